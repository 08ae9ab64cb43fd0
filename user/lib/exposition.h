/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* exposition.h - the syntax of Prometheus text 0.0.4. */
#ifndef SLUICE_EXPOSITION_H
#define SLUICE_EXPOSITION_H

#include <event2/buffer.h>
#include <stdbool.h>

#include "sluice/types.h"

enum metric_type {
	METRIC_COUNTER, /* samples get _total */
	METRIC_GAUGE,
	METRIC_INFO,	  /* samples get _info, their value is 1 */
	METRIC_HISTOGRAM, /* metric_histogram() */
};

struct exposition {
	struct evbuffer *out;
	const char *name; /* of the metric begun last, without its suffix */
	enum metric_type type;
};

void metric_begin(struct exposition *e, const char *name, enum metric_type type, const char *help);
/*
 * A sample of the metric begun last. Labels are pairs name, value, up to a NULL; values are
 * escaped here.
 */
void metric_u64(struct exposition *e, u64 value, ...) __attribute__((sentinel));
void metric_double(struct exposition *e, double value, ...) __attribute__((sentinel));
/*
 * The one histogram of the metric begun last, without labels: count[i] samples were at most
 * bound[i] and above bound[i - 1]; the last of `count` has no bound.
 */
void metric_histogram(struct exposition *e, const u64 *count, const double *bound, size_t buckets,
		      double sum);

#endif
