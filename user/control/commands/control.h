/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * control.h - the control socket: one JSON object a line, each way.
 *
 *     {"command": "limit set", "args": {"name": "web", "pairs": ["rate=10 packets/s"]}}
 *     {"ok": true, "result": {...}}
 *     {"ok": false, "error": {"message": ..., "file": ..., "line": ..., "column": ...}}
 *
 * Root and the daemon's own uid may do all; so may members of control.group. Members of
 * control.read_group may ask for what changes nothing. Others are told so and let go.
 */
#ifndef SLUICE_DAEMON_CONTROL_H
#define SLUICE_DAEMON_CONTROL_H

#include "daemon/daemon.h"

enum peer_rights {
	PEER_NONE,
	PEER_READ,
	PEER_ALL,
};

struct peer {
	uid_t uid;
	pid_t pid;
	enum peer_rights rights;
};

/*
 * Binds the socket (the directory is made), in the place of a dead daemon's. -EADDRINUSE with
 * words where a live one answers on it.
 */
int control_start(struct daemon *d, const struct policy *policy, struct sl_err *err);
/* Closes it and takes its name away. */
void control_stop(struct daemon *d);

#endif
