/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * rules.h - one change, from a policy to the rules that judge packets; all of it or none.
 *
 *     clone -> edit -> compile -> apply -> record the state before -> attach, detach -> store ->
 * swap
 *
 * A step that fails undoes the earlier ones: the previous rule set is compiled and installed again.
 * live.json is authoritative: until it is replaced, a daemon that starts after a crash restores the
 * previous rules; after that, the new ones.
 */
#ifndef SLUICE_RUNNING_RULES_H
#define SLUICE_RUNNING_RULES_H

#include "control/running/running.h"

struct change {
	struct policy *file;	   /* the new file's policy, or NULL: unchanged */
	struct config_text source; /* its text */
	struct policy *running;	   /* a copy of the running policy, to be edited */
	json_t *live;		   /* a copy of the list, to be extended */
	u64 confirm_ns;		   /* reverts unless confirmed within this time; 0: permanent */
	bool must;		   /* its last change to the HTTP tier's rules must apply */
	bool of_packets;	   /* of the packet tier alone: the HTTP tier's rules stay */
	json_t *dropped;	   /* NULL, or gets those that do not apply; not owned */
	bool back;		   /* a rollback: removes the newest state of the history */
	/* For the history: a description, and the author. */
	char what[256];
	uid_t uid;
	pid_t pid;
};

/* -EBUSY and err while another change is not confirmed. */
int change_begin(const struct running *run, struct change *change, struct sl_err *err);

/*
 * Applies an operation (live.h) to the change, and adds it to the list, which keeps a reference.
 */
int change_do(struct change *change, const struct running *run, json_t *op, struct sl_err *err);
/*
 * rules_entry.c: the whole change, where it is of one live block or exemption, of a limit's own
 * values, of one of its overrides, or of a value's limits in a rule: it needs no copy of the
 * policy. 1: it is another operation, and nothing was done.
 */
int change_one(struct running *run, json_t *op, struct sl_err *err);
/* Adds an operation to the description for the history. change_do() calls it. */
void change_note(struct change *change, const json_t *op);

/* Puts the change in force. On success its state is moved to `run`. */
int change_commit(struct running *run, struct change *change, struct sl_err *err);

/* Frees what was not committed; fine after change_commit(). */
void change_end(struct change *change);

/* Compiles a policy and puts it in force; until revert_at_ns (0: for good), see dp_ops. */
int rules_install(struct running *run, const struct policy *policy, u64 revert_at_ns,
		  struct sl_err *err);
/*
 * An image is in force that has the limits, limit_ids and entries of the one before; it is owned by
 * `run` from here on. `slots`: the bindings that it needs.
 */
void rules_took_force(struct running *run, struct sl_image *image,
		      const struct sl_limit_id_info *slots);
/* Looks for login sessions: those opened since the last look are exempt when it returns. */
void rules_protect(struct running *run);
/* The same as rules_install(), and the policy becomes the running one; on failure it is freed. */
int rules_replace(struct running *run, struct policy *policy, u64 revert_at_ns, struct sl_err *err);
/* Work that waits until no fallback is pending: counters of deleted limits, and a sweep. */
void rules_settle(struct running *run);

/*
 * Compiles the running policy again if the local addresses that it depends on changed. A failure is
 * logged and leaves the previous rules in force.
 */
void rules_refresh(struct running *run);

/* rules_entry.c: removes expired blocks and exemptions from the running policy and the list. */
void rules_expire(struct running *run);

/* Writes the state before a change, for its rollback, as number top + 1. */
int rules_note_before(struct running *run, const struct change *change, struct sl_err *err);

/* Writes live.json: the rules in force and the pending ones. */
int rules_store(const struct running *run, const struct config_text *source, const json_t *live,
		u32 history_top, u64 deadline_ns, u64 deadline_utc_ns, struct sl_err *err);

/*
 * rules_entry.c: the same of what is in force, which stays so where that fails: it is logged once,
 * and tried again each second and with the next change.
 */
void rules_write(struct running *run);
/*
 * A change that is in force cannot be stored, as `r` and `err` have it: 0 if the disk has no room,
 * which is logged and reported; rules_write() stores it. Else r. run->live is the list before the
 * change.
 */
int rules_unsaved(struct running *run, const struct change *change, int r,
		  const struct sl_err *err);
/* Everything is stored now. */
void rules_are_saved(struct running *run);
/* Why a change that is in force is not stored yet; NULL: all are. */
const char *rules_unsaved_why(const struct running *run);
/* The configured file has the text in force. */
void rules_saved(struct running *run);

void rules_state_clear(struct rules_state *state);

/* ---- rules_start.c ---- */

/*
 * The first rules, at start: run->file and run->source are the configured file's, run->live and
 * run->record those of live_load(). Chooses the file, or the one applied in its place, or the
 * pending rules, and makes the running policy.
 */
int rules_start(struct running *run, struct sl_err *err);
/*
 * Puts the running policy in force. Attaches every interface, also those that an earlier daemon
 * left attached.
 */
int rules_start_install(struct running *run, struct sl_err *err);
/* Frees the rules and their sources. The data plane keeps its rules. */
void rules_free(struct running *run);

/*
 * Reads the configured file again and keeps the live changes; the outcome is in run->reload.
 * `notes` gets the changes that need a restart.
 */
int rules_reload(struct running *run, uid_t uid, pid_t pid, json_t *dropped, json_t *notes,
		 struct sl_err *err);

struct apply {
	const char *path, *text;
	u64 confirm_ns; /* 0: permanent at once */
	bool discard_live;
	uid_t uid;
	pid_t pid;
	json_t *dropped, *notes; /* arrays, filled */
};

/* Puts a text in force in place of the configured file. */
int rules_apply(struct running *run, const struct apply *apply, struct sl_err *err);

/*
 * Undoes the last change; *ret_what (to be freed) describes it. Pending rules are reverted; else
 * the newest state of the history is put in force.
 */
int rules_rollback(struct running *run, uid_t uid, pid_t pid, char **ret_what, json_t *dropped,
		   struct sl_err *err);

/*
 * `save` before it writes the configured file: its new text is in force, as if it had been applied,
 * and there are no live changes any more but timed ones of the HTTP tier. Whatever ends the daemon,
 * the next start has either the text of the history or the file.
 */
int rules_save(struct running *run, const char *text, size_t size, uid_t uid, pid_t pid,
	       struct sl_err *err);

#endif
