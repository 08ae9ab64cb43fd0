/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * control.h - the control socket: one JSON object a line, each way.
 *
 *     {"command": "limit set", "args": {"name": "web", "pairs": ["rate=10 packets/s"]}}
 *     {"ok": true, "result": {...}}
 *     {"ok": false, "error": {"message": ..., "file": ..., "line": ..., "column": ...}}
 *
 * Knows: all of control but metrics, through struct commands; explain. Does not know: workers,
 * listeners, the order of start and exit. May use: every room below it but request/server, the
 * frontends and control/metrics.
 *
 * Root, the daemon's own uid and members of control.group may run every command; members of
 * control.read_group those that change nothing. Others are refused and disconnected.
 */
#ifndef SLUICE_COMMANDS_CONTROL_H
#define SLUICE_COMMANDS_CONTROL_H

#include <event2/event.h>

#include "control/elastic/scales.h"
#include "control/mitigation/sources.h"
#include "control/replication/nodes.h"
#include "control/running/running.h"

/* The state that commands read and change. */
struct commands {
	struct event_base *base;
	const char *socket_path;
	u64 started_mono_ns;
	struct running *running;
	struct nodes *nodes;
	struct scales *scales;
	struct sources *sources; /* NULL: no request tier */
};

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
 * Binds the socket and makes its directory; replaces the socket of a dead daemon. -EADDRINUSE and
 * err if a running daemon listens on it.
 */
int control_start(struct commands *ctx, const struct policy *policy, struct sl_err *err);
/* Closes the socket and removes its file. */
void control_stop(struct commands *ctx);

#endif
