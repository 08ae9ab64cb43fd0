/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* state_watch.h - restores files of state_dir that another process deleted. */
#ifndef SLUICE_DAEMON_STATE_WATCH_H
#define SLUICE_DAEMON_STATE_WATCH_H

#include "daemon/daemon.h"

/*
 * Each second: writes live.json, state.json and bans.json again if they existed
 * at an earlier check and are gone, and logs that. (http.state: counters_sync().)
 */
void state_watch(struct daemon *d);

#endif
