/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * daemon.h - what sluiced is made of, changed by one thread. Each of these structs is passed alone;
 * all of them together are seen in this room only.
 *
 *     main.c        start, in order (start.c); the end
 *     timers.c      what is done each second and each minute; state_watch.c, netlink.c
 *     confine.c     gives privileges up
 *     http_tier.c   the request tier as a part of what runs: its files, sockets, end
 *     metrics_listen.c  the listener of /metrics
 *
 * Knows: who there is, in which order they start and end. Does not know: what they do. May use: all.
 */
#ifndef SLUICE_DAEMON_H
#define SLUICE_DAEMON_H

#include <event2/event.h>

#include "control/commands/control.h"
#include "control/elastic/scales.h"
#include "control/metrics/metrics.h"
#include "control/mitigation/sources.h"
#include "control/replication/nodes.h"
#include "control/running/running.h"
#include "packet/host/host.h"

struct daemon {
	struct event_base *base;
	struct packet_host packets;
	struct running running;
	struct nodes nodes;
	struct scales scales;
	struct sources *sources;	/* NULL: the file has no `http:` */
	struct http_tier *http;		/* NULL: the same */
	struct http_keep *http_keep;
	struct running_part http_part;
	struct commands commands;
	struct metrics metrics;
};

/* Lets each of them see those that it may; before anything else is done with them. */
void daemon_wire(struct daemon *d);

#endif
