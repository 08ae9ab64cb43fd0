/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * handover.h - one sluiced takes the place of another (sluiced --replace), without a service
 * manager that keeps the sockets.
 *
 *     new: the lock of state_dir is taken -> connects to state_dir/handover.sock
 *     old: sends its listening sockets (SCM_RIGHTS), and exits as after SIGTERM
 *     new: waits for the lock; meanwhile both have the sockets, so no connection is refused
 *
 * Only root and the daemon's own user may take them. The control socket and that of metrics are not
 * among them.
 */
#ifndef SLUICE_DAEMON_HANDOVER_H
#define SLUICE_DAEMON_HANDOVER_H

#include <event2/event.h>
#include <stdbool.h>
#include <stddef.h>

#include "lib/err.h"

#define HANDOVER_FDS_MAX 253 /* of one message (SCM_MAX_FD) */

struct daemon;

struct handover {
	struct event *event;
	char *path;
	bool given;		  /* another daemon has the sockets */
	int fd[HANDOVER_FDS_MAX]; /* taken from another daemon, until http_tier_open() */
	size_t count;
};

/* Locks state_dir; with `replace` by taking the place of the daemon that has the lock. */
int handover_lock(struct handover *handover, const char *state_dir, bool replace,
		  struct sl_err *err);
/* Offers the sockets from now on. A failure is logged: sluiced runs, and cannot be replaced. */
void handover_offer(struct daemon *d);
void handover_stop(struct handover *handover);

#endif
