/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * audit.h - state_dir/audit.log: who changed what, when; one JSON object a line.
 *
 *     {"at": UTC, "uid": 0, "user": "root", "login_uid": 1000, "login_user": "ann", "pid": 4711,
 *      "command": "limit set", "args": {...}, "generation": [7, 8], "ok": true}
 *
 * Refused ones have "ok": false and "error". What sluiced does by itself (start, SIGHUP, a
 * revert) has no uid and pid. "login_uid" is who logged in before sudo or su, where the kernel
 * keeps that. Arguments longer than 4 KiB are their beginning, as a string.
 */
#ifndef SLUICE_RUNNING_AUDIT_H
#define SLUICE_RUNNING_AUDIT_H

#include "control/running/running.h"

/* Who asked for a change. */
struct actor {
	uid_t uid;
	pid_t pid;
};

/* `actor` NULL: sluiced itself; `args` may be NULL; `generation` is that before; `err` NULL: done. */
void audit_write(const struct running *run, const struct actor *actor, const char *command,
		 const json_t *args, u64 generation, const struct sl_err *err);

#endif
