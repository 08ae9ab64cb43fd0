/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * rules.h - one change, from a policy to what packets are judged by; all of it or none.
 *
 *     clone -> edit -> compile -> apply -> attach, detach -> write down -> swap
 *
 * A step that fails undoes those before it: the rule set before is compiled and put in force
 * again, and nothing was written down.
 */
#ifndef SLUICE_DAEMON_RULES_H
#define SLUICE_DAEMON_RULES_H

#include "daemon/daemon.h"

struct change {
	struct policy *file;	/* the file read anew, or NULL: as it is */
	struct policy *running;	/* a copy of what runs, to be edited */
	json_t *live;		/* a copy of the list, to be added to */
};

int change_begin(const struct daemon *d, struct change *change, struct sl_err *err);

/*
 * Does an operation to the change, and notes it in the list. `op` as in live.h; a reference
 * to it is kept.
 */
int change_do(struct change *change, const struct daemon *d, json_t *op, struct sl_err *err);

/* Puts the change in force. On success what it holds is the daemon's. */
int change_commit(struct daemon *d, struct change *change, struct sl_err *err);

/* Frees what was not committed; fine after change_commit(). */
void change_end(struct change *change);

/*
 * The first rule set, at start: d->file and d->live are there, d->running is made of them.
 * Attaches every interface, also those that an earlier daemon left attached.
 */
int rules_start(struct daemon *d, struct sl_err *err);

/* Reads the file again, keeping live changes; notes the outcome in d->reload. */
int rules_reload(struct daemon *d, struct sl_err *err);

/*
 * Compiles `running` anew, where what it depends on has changed (local addresses). Failure
 * leaves the old one in force and is logged.
 */
void rules_refresh(struct daemon *d);

/* Takes expired blocks and exemptions out of `running` and the list. */
void rules_expire(struct daemon *d);

#endif
