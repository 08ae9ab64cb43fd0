/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* state_watch.h - files of state_dir that others deleted under the daemon are written again. */
#ifndef SLUICE_DAEMON_STATE_WATCH_H
#define SLUICE_DAEMON_STATE_WATCH_H

#include "daemon/daemon.h"

/*
 * Looks for live.json, state.json, bans.json and words. One that was there at an earlier look and
 * is gone is written again, and logged. (http.state: counters_sync().) Each second.
 */
void state_watch(struct daemon *d);

#endif
