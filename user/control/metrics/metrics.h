/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * metrics.h - all metrics, as Prometheus text; docs/metrics.md.
 *
 * Knows: the state to be exported, through struct metrics. Does not know: commands, listeners and
 * workers, clients. May use: as control/commands.
 */
#ifndef SLUICE_METRICS_METRICS_H
#define SLUICE_METRICS_METRICS_H

#include <event2/buffer.h>

#include "control/elastic/scales.h"
#include "control/mitigation/sources.h"
#include "control/replication/nodes.h"
#include "control/running/running.h"
#include "request/engine/observe.h"

/* A listener of the request tier at the time of the scrape. */
struct metrics_listener {
	const char *address;
	u64 evicted, refused, refused_address;
};

/* The exported state. */
struct metrics {
	struct running *running;
	struct nodes *nodes;
	struct scales *scales;
	struct sources *sources; /* NULL: no request tier; the rest is then unused */
	/* Set before each metrics_write(). */
	u64 connections;
	struct metrics_listener *listener;
	size_t listener_count;
};

/* Appends the whole exposition, in text format 0.0.4. */
void metrics_write(struct metrics *m, struct evbuffer *out);

#endif
