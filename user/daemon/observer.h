/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * observer.h - carries the data path's events to packet/observe: names instead of numbers, and the
 * end of what began: a source that a limit no longer refuses, a ban.
 */
#ifndef SLUICE_DAEMON_OBSERVER_H
#define SLUICE_DAEMON_OBSERVER_H

#include "daemon/daemon.h"

/* Reads the ring. Does nothing without a packet tier. */
void observer_tick(struct daemon *d);
/* How long no event was in it, since it was read first. */
u64 observer_calm_ns(void);
/* The same, and accounts for what was dropped since the last call without an event; before the end
 * of the daemon. */
void observer_flush(struct daemon *d);
/* Events come at the rate that is configured. Does nothing without a packet tier. */
void observer_set_rate(struct daemon *d);
/* Each second: the rate, and what has ended. */
void observer_second(struct daemon *d);

#endif
