/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * sessions.h - who is logged in to this machine, and over which TCP connections: what step 2 of
 * the order lets pass, and what is never banned.
 *
 * A connection is a login session's where an established TCP socket of it is held by
 *
 *   - an sshd of root's under which something other than sshd runs: somebody is really logged
 *     in. One that is still authenticating has only sshds below it; the one that listens for
 *     new connections has sshds of root's directly below it, and is left out;
 *   - a process that utmp names as a user's (login, telnetd...), or one of those above it.
 *
 * Names of processes are their own to choose, so an sshd that is not root's counts for nothing.
 * What vanishes while being looked at, or cannot be read, is skipped. Sockets are looked up in
 * the network namespace of the caller: a session of another one (a container's) is not of it.
 */
#ifndef SLUICE_HOST_SESSIONS_H
#define SLUICE_HOST_SESSIONS_H

#include "lib/addr.h"
#include "lib/err.h"

struct session_list {
	struct sl_session session[SL_SESSIONS_MAX];	/* `used`: 1 + the family */
	u32 count;		/* in the array */
	u32 found;		/* all there are */
};

/*
 * `proc` and `utmp`: "/proc" and the utmp file, or a test's. Fills *ret; 0, or -errno and err
 * where `proc` cannot be read at all. Takes CAP_SYS_PTRACE to see others' descriptors.
 */
int sessions_find(const char *proc, const char *utmp, struct session_list *ret,
		  struct sl_err *err);

/* A session's remote address. */
struct sl_prefix session_peer(const struct sl_session *session);

#endif
