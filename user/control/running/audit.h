/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * audit.h - state_dir/audit.log: the log of changes; one JSON object per line.
 *
 *     {"at": UTC, "uid": 0, "user": "root", "login_uid": 1000, "login_user": "ann", "pid": 4711,
 *      "command": "limit set", "args": {...}, "generation": [7, 8], "ok": true}
 *
 * A refused change has "ok": false and "error". Changes by sluiced itself (start, SIGHUP, a revert)
 * have no uid and pid. "login_uid" is the user who logged in, before sudo or su, if the kernel has
 * it. Arguments longer than 4 KiB are cut and written as a string.
 */
#ifndef SLUICE_RUNNING_AUDIT_H
#define SLUICE_RUNNING_AUDIT_H

#include "control/running/running.h"

/* The author of a change. */
struct actor {
	uid_t uid;
	pid_t pid;
};

/* `actor` NULL: sluiced; `args` may be NULL; `generation` before the change; `err` NULL:
 * success. */
void audit_write(const struct running *run, const struct actor *actor, const char *command,
		 const json_t *args, u64 generation, const struct sl_err *err);

#endif
