/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * daemon.h - the state of sluiced, changed by the main thread alone. Each of these structs is
 * passed alone; only this room sees all of them.
 *
 *     main.c            the command line, the main loop
 *     start.c           start in order, and exit
 *     timers.c          work of each second and each minute; netlink.c
 *     confine.c         drops privileges
 *     http_tier.c       the request tier as a part of the running configuration
 *     handover.c        one sluiced takes the place of another
 *     observer.c        events of the data path, for people
 *     metrics_listen.c  the listener of /metrics
 *     status_page.c     its status page; page/ has the parts for the browser
 *
 * Knows: which components exist, and in which order they start and exit. Does not know: what they
 * do. May use: all rooms.
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
#include "daemon/handover.h"
#include "packet/host/host.h"

struct daemon {
	struct event_base *base;
	struct packet_host packets;
	struct running running;
	struct nodes nodes;
	struct scales scales;
	struct sources *sources; /* NULL: sluice.yaml has no section `http` */
	struct http_tier *http;	 /* likewise */
	struct http_keep *http_keep;
	struct running_part http_part;
	struct commands commands;
	struct metrics metrics;
	struct handover handover;
	bool replace; /* takes the place of a daemon that runs */
};

/* Connects the components; before any other use of them. */
void daemon_wire(struct daemon *d);

#endif
