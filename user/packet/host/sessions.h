/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * sessions.h - login sessions on this machine and their TCP connections: step 2 of the order passes
 * them, and their peers are never banned.
 *
 * A connection is a login session's if its established TCP socket is held by
 *
 *   - an sshd of root with a process below it that is not sshd: a login that has succeeded. An
 *     sshd that is still authenticating has only sshds below it. The sshd that listens for
 *     connections has sshds of root directly below it, and is left out;
 *   - a process that utmp lists as a user's (login, telnetd...), or one of those above it.
 *
 * A process chooses its own name, so an sshd of another user does not count. Processes that vanish
 * meanwhile or cannot be read are skipped. Sockets are looked up in the network namespace of the
 * caller; sessions of others (containers) are not found.
 */
#ifndef SLUICE_HOST_SESSIONS_H
#define SLUICE_HOST_SESSIONS_H

#include "lib/addr.h"
#include "lib/err.h"

struct session_list {
	struct sl_session session[SL_SESSIONS_MAX]; /* `used`: 1 + the family */
	u32 count;				    /* in the array */
	u32 found;				    /* found in all */
};

/*
 * `proc` and `utmp`: "/proc" and the utmp file, or a test's. Fills *ret; 0, or -errno and err if
 * `proc` cannot be read at all. Needs CAP_SYS_PTRACE to read descriptors of other users' processes.
 */
int sessions_find(const char *proc, const char *utmp, struct session_list *ret, struct sl_err *err);

/* A session's remote address. */
struct sl_prefix session_peer(const struct sl_session *session);

#endif
