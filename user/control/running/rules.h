/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * rules.h - one change, from a policy to what packets are judged by; all of it or none.
 *
 *     clone -> edit -> note what was -> compile -> apply -> attach, detach -> write down -> swap
 *
 * A step that fails undoes those before it: the rule set before is compiled and put in force
 * again. live.json is the one place that says what is in force: until it is replaced a
 * killed daemon's successor goes back to what was before, and after it goes on with the new.
 */
#ifndef SLUICE_RUNNING_RULES_H
#define SLUICE_RUNNING_RULES_H

#include "control/running/running.h"

struct change {
	struct policy *file;	/* the file's part anew, or NULL: as it is */
	struct config_text source;	/* and its text */
	struct policy *running;	/* a copy of what runs, to be edited */
	json_t *live;		/* a copy of the list, to be added to */
	u64 confirm_ns;		/* unless it is confirmed within that time it reverts; 0 */
	bool must;		/* its last change to the HTTP tier's rules has to apply */
	json_t *dropped;	/* NULL, or where to tell which of those do not; not its own */
	bool back;		/* a rollback: the newest state of the history is used up */
	/* For the history: in words, and by whom. */
	char what[256];
	uid_t uid;
	pid_t pid;
};

/* Refused, with words, while another change waits for its confirmation. */
int change_begin(const struct running *run, struct change *change, struct sl_err *err);

/*
 * Does an operation to the change, and notes it in the list. `op` as in live.h; a reference
 * to it is kept.
 */
int change_do(struct change *change, const struct running *run, json_t *op, struct sl_err *err);
/* The words that an operation's change has in the history. change_do() does it. */
void change_note(struct change *change, const json_t *op);

/* Puts the change in force. On success what it holds is the daemon's. */
int change_commit(struct running *run, struct change *change, struct sl_err *err);

/* Frees what was not committed; fine after change_commit(). */
void change_end(struct change *change);

/* Compiles a policy and puts it in force; until revert_at_ns (0: for good), see dp_ops. */
int rules_install(struct running *run, const struct policy *policy, u64 revert_at_ns,
		  struct sl_err *err);
/* The same, and the policy is then the running one; where that fails it is freed. */
int rules_replace(struct running *run, struct policy *policy, u64 revert_at_ns, struct sl_err *err);
/* What waits until there is nothing to fall back to: counters of gone limits, and a sweep. */
void rules_settle(struct running *run);

/*
 * Compiles `running` anew, where what it depends on has changed (local addresses). Failure
 * leaves the old one in force and is logged.
 */
void rules_refresh(struct running *run);

/* Takes expired blocks and exemptions out of `running` and the list. */
void rules_expire(struct running *run);

/* Writes the state before a change, as the one a rollback of it goes to: number top + 1. */
int rules_note_before(struct running *run, const struct change *change, struct sl_err *err);

/* live.json, of what is in force and of what is pending. */
int rules_store(const struct running *run, const struct config_text *source, const json_t *live,
		u32 history_top, u64 deadline_ns, u64 deadline_utc_ns, struct sl_err *err);

void rules_state_clear(struct rules_state *state);

/* ---- rules_start.c ---- */

/*
 * The first rule set, at start: run->file and run->source are the configured file's, run->live and
 * run->record what live_load() found. What is in force is then the file, or one applied in its
 * place, or what is pending. Attaches every interface, also those that an earlier daemon left
 * attached.
 */
int rules_start(struct running *run, struct sl_err *err);
/* All that the daemon holds of rules, and of what they were made from. The data plane goes on. */
void rules_free(struct running *run);

/*
 * Reads the configured file again, keeping live changes; notes the outcome in run->reload. `notes` gets
 * what takes a restart.
 */
int rules_reload(struct running *run, uid_t uid, pid_t pid, json_t *dropped, json_t *notes,
		 struct sl_err *err);

struct apply {
	const char *path, *text;
	u64 confirm_ns;		/* 0: for good at once */
	bool discard_live;
	uid_t uid;
	pid_t pid;
	json_t *dropped, *notes;	/* arrays, filled */
};

/* Puts a text in the file's place. */
int rules_apply(struct running *run, const struct apply *apply, struct sl_err *err);

/*
 * Undoes the last change; *ret_what (to be freed) says which that was. What is pending is
 * reverted; else the newest state of the history is put in force.
 */
int rules_rollback(struct running *run, uid_t uid, pid_t pid, char **ret_what, json_t *dropped,
		   struct sl_err *err);

/* The configured file was written by ourselves (`save`): it is all there is now. */
int rules_saved(struct running *run, uid_t uid, pid_t pid, struct sl_err *err);

#endif
