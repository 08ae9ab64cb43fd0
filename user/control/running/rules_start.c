// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * rules_start.c - whole rule sets: at start, reloaded, applied, rolled back; see rules.h.
 *
 * The running configuration is the file's part with the live changes. The file's part is the text
 * of the configured file, or of one applied (or rolled back to) in its place; the latter is kept in
 * the history and is in force at the next start, too.
 */
#include "control/running/rules.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "config/keys.h"
#include "control/running/audit.h"
#include "control/running/entries.h"
#include "control/running/feeds.h"
#include "lib/clock.h"
#include "lib/file.h"
#include "control/running/history.h"
#include "packet/host/ifaces.h"
#include "control/running/live.h"
#include "control/running/pending.h"
#include "control/running/running_text.h"
#include "packet/host/state.h"
#include "lib/log.h"

/* ------------------------------------------------------------------ states */

/* running = file + live; operations that no longer apply are removed from live. */
static int put_together(const struct policy *file, json_t *live, json_t *dropped,
			struct policy **ret, struct sl_err *err)
{
	if (policy_clone(file, ret) < 0)
		return sl_err_set(err, ENOMEM, "out of memory");
	live_replay(live, *ret, clock_utc_ns(), dropped);
	policy_list_expire(*ret, clock_utc_ns());
	return 0;
}

/* Reads a state of the history; *ret_what, to be freed, is the change that it undoes. */
static int state_read(const struct running *run, u32 number, json_t *dropped,
		      struct rules_state *ret, char **ret_what, struct sl_err *err)
{
	struct rules_state state = { .live = NULL };
	const char *what;
	json_t *json;
	int r = history_state_read(run->state_dir, number, &json, err);

	if (r < 0)
		return r;
	r = config_text_restore(run, (u32)json_integer_value(json_object_get(json, "text")),
				json_string_value(json_object_get(json, "path")), &state.source,
				err);
	if (!r) {
		state.source.at_utc_ns =
			(u64)json_integer_value(json_object_get(json, "at_utc_ns"));
		state.source.uid = (uid_t)json_integer_value(json_object_get(json, "uid"));
		r = config_text_parse(&state.source, &state.file, err);
	}
	state.live = json_copy(json_object_get(json, "changes"));
	if (!r && !live_well_formed(state.live))
		r = sl_err_set(err, EINVAL, "state %u of the history is damaged", number);
	if (!r)
		r = put_together(state.file, state.live, dropped, &state.running, err);
	what = json_string_value(json_object_get(json_object_get(json, "undoes"), "what"));
	if (!r && ret_what)
		*ret_what = strdup(what ? what : "a change");
	if (r < 0)
		rules_state_clear(&state);
	else
		*ret = state;
	json_decref(json);
	return r;
}

static void state_take(struct running *run, struct rules_state *state)
{
	struct rules_state before = { run->source, run->file, run->policy, run->live };

	rules_state_clear(&before);
	run->source = state->source;
	run->file = state->file;
	run->policy = state->running;
	run->live = state->live;
	memset(state, 0, sizeof(*state));
}

/* ------------------------------------------------------------------ start */

/* The applied text cannot be used: it is kept as applied.yaml.bad. */
static void put_aside(const struct running *run, u32 number, const struct sl_err *why)
{
	char *aside = file_join(run->state_dir, "applied.yaml.bad"), *text = NULL, words[768];
	struct sl_err err;
	size_t size;

	if (aside && history_text_read(run->state_dir, number, &text, &size, &err) == 0)
		file_replace(aside, NULL, text, size, 0640, &err);
	log_error(
		"cannot load the applied file that was in force: %s; it is kept as %s, and %s is in "
		"force instead",
		sl_err_format(why, words, sizeof(words)), aside ? aside : "", run->config_path);
	free(text);
	free(aside);
}

/* Rules whose deadline passed while no daemon ran, or whose predecessors cannot be read. */
static void restore_reverted(struct running *run)
{
	const char *path =
		json_string_value(json_object_get(json_object_get(run->record, "file"), "path"));
	struct rules_state state;
	struct sl_err err;
	char words[768];

	log_warn("%s was not confirmed: reverted to the previous rules", path ? path : "?");
	if (state_read(run, run->history_top, NULL, &state, NULL, &err) < 0) {
		log_error("cannot load the previous rules: %s; %s is in force instead",
			  sl_err_format(&err, words, sizeof(words)), run->config_path);
		json_array_clear(run->live);
		audit_write(run, NULL, "revert", NULL, run->generation, &err);
	} else {
		state_take(run, &state);
		run->history_top--;
		audit_write(run, NULL, "revert", NULL, run->generation, NULL);
	}
}

/* A file applied in the configured one's place. */
static void restore_applied(struct running *run, const json_t *file)
{
	u32 number = (u32)json_integer_value(json_object_get(file, "text"));
	const char *path = json_string_value(json_object_get(file, "path"));
	struct rules_state state = { .live = json_incref(run->live) };
	char when[32];
	struct sl_err err;
	int r = path ? config_text_restore(run, number, path, &state.source, &err)
		     : sl_err_set(&err, EINVAL, "live.json does not name the applied file");

	if (!r)
		r = config_text_parse(&state.source, &state.file, &err);
	if (r < 0) {
		put_aside(run, number, &err);
		rules_state_clear(&state);
		return;
	}
	state.source.at_utc_ns = (u64)json_integer_value(json_object_get(file, "at_utc_ns"));
	state.source.uid = (uid_t)json_integer_value(json_object_get(file, "uid"));
	state_take(run, &state);
	if (!run->source.applied)
		return;
	log_warn(
		"%s, applied %s, is in force instead of %s; to use that file run sluicectl reload, "
		"to overwrite it sluicectl save",
		path, clock_format_utc(run->source.at_utc_ns, when, sizeof(when)),
		run->config_path);
}

/* With a full or read-only disk the rules still come in force: the alternative is no limits. 0: it
 * was that. */
static int go_on_unwritten(struct running *run, int r, const struct sl_err *err)
{
	if (r == 0 || !file_is_no_room(-r))
		return r;
	log_error("%s: limits are in force, and so are changes, saved once it can be written",
		  err->message);
	snprintf(run->unwritten_why, sizeof(run->unwritten_why), "%s", err->message);
	run->unwritten = true;
	return 0;
}

/* The configured file differs from the last start: it was edited, or is another one. */
static int note_changed_file(struct running *run, u32 number, struct sl_err *err)
{
	const char *path =
		json_string_value(json_object_get(json_object_get(run->record, "file"), "path"));
	struct change change = { .what = "sluiced was started with a changed file",
				 .uid = geteuid(),
				 .pid = getpid() };
	struct config_text now = run->source;
	int r;

	run->source.number = number;
	if (path)
		run->source.path = (char *)path;
	r = rules_note_before(run, &change, err);
	run->source = now;
	if (!r)
		run->history_top++;
	return go_on_unwritten(run, r, err);
}

/* Restores the state of live.json; the configured file has been read. */
static int restore(struct running *run, struct sl_err *err)
{
	const json_t *file = json_object_get(run->record, "file");
	const char *config = json_string_value(json_object_get(run->record, "config"));
	const json_t *pending = json_object_get(run->record, "pending");
	u32 number = (u32)json_integer_value(json_object_get(file, "text"));
	u64 deadline_ns, deadline_utc_ns;
	int r = history_text_keep(run->state_dir, run->source.text, run->source.size,
				  &run->source.number, err);

	run->history_top = (u32)json_integer_value(json_object_get(run->record, "top"));
	r = go_on_unwritten(run, r, err);
	if (r < 0 || !config || !number)
		return r;
	if (strcmp(config, run->config_path) != 0) {
		log_info("started with another file than last time, which was %s", config);
		return note_changed_file(run, number, err);
	}
	if (pending_from_json(pending, &deadline_ns, &deadline_utc_ns)) {
		if (pending_is_over(run, pending, deadline_ns) ||
		    state_read(run, run->history_top, NULL, &run->pending.before, NULL, err) < 0) {
			restore_reverted(run);
			return 0;
		}
		restore_applied(run, file);
		run->pending.deadline_ns = deadline_ns;
		run->pending.deadline_utc_ns = deadline_utc_ns;
		return 0;
	}
	if (json_is_true(json_object_get(file, "applied")))
		restore_applied(run, file);
	else if (run->source.number && number != run->source.number)
		return note_changed_file(run, number, err);
	return 0;
}

/*
 * While rules are pending the data plane has two rule sets. After a restart of the daemon it still
 * has the fallback; after a reboot it gets it again.
 */
static int install_pending(struct running *run, struct sl_err *err)
{
	const struct sl_rules *rules = run->packets->dp->ops->rules(run->packets->dp);
	int r = 0;

	log_warn("%s is not confirmed yet: it reverts unless confirmed (sluicectl confirm)",
		 run->source.path);
	if (!run->packets->dp->ops->fallback(run->packets->dp) ||
	    rules->revert_at_ns != run->pending.deadline_ns) {
		r = ifaces_assign(run->packets, run->pending.before.running, err);
		if (r >= 0)
			r = rules_install(run, run->pending.before.running, 0, err);
	}
	/* Their entries as well, for when the rules revert. */
	if (r >= 0)
		r = entries_widen(run, run->pending.before.running, err);
	return r < 0 ? r : rules_install(run, run->policy, run->pending.deadline_ns, err);
}

static int install_first(struct running *run, struct sl_err *err)
{
	int r = ifaces_assign(run->packets, run->policy, err);

	if (r >= 0)
		r = go_on_unwritten(run, state_store(run->packets, err), err);
	if (!r && pending_is(run))
		r = install_pending(run, err);
	else if (!r)
		r = rules_install(run, run->policy, 0, err);
	if (!r)
		r = go_on_unwritten(run,
				    rules_store(run, &run->source, run->live, run->history_top,
						run->pending.deadline_ns,
						run->pending.deadline_utc_ns, err),
				    err);
	if (!r) {
		bans_name(run->packets);
		r = ifaces_attach(run->packets, run->policy, true, err);
	}
	return r;
}

int rules_start(struct running *run, struct sl_err *err)
{
	const struct sl_rules *rules = run->packets->dp->ops->rules(run->packets->dp);
	int r;

	run->generation = rules ? rules->generation : 0;
	if (config_text_keep_settings(run->file, &run->started) < 0)
		return sl_err_set(err, ENOMEM, "out of memory");
	r = restore(run, err);
	if (r < 0)
		return r;
	policy_free(run->policy);
	run->policy = NULL;
	return put_together(run->file, run->live, NULL, &run->policy, err);
}

int rules_start_install(struct running *run, struct sl_err *err)
{
	u64 before = run->generation;
	int r;

	feeds_start(run);
	running_derive(run, run->policy);
	r = entries_start(run, err);
	if (!r)
		r = install_first(run, err);
	if (r < 0)
		return r;
	entries_settle(run);
	history_tidy(run->state_dir, run->history_top, true, run->source.number);
	if (!pending_is(run) && ifaces_detach_others(run->packets, run->policy, err) < 0)
		log_error("cannot detach an interface that is no longer configured: %s",
			  err->message);
	config_text_log_skipped(run->file);
	run->reload.ok = true;
	run->reload.ok_utc_ns = run->reload.at_utc_ns = clock_utc_ns();
	audit_write(run, NULL, "start", NULL, before, NULL);
	return 0;
}

void rules_free(struct running *run)
{
	feeds_free(run);
	entries_free(run);
	image_free(run->image);
	policy_free(run->policy);
	policy_free(run->file);
	policy_free(run->started);
	config_text_clear(&run->source);
	rules_state_clear(&run->pending.before);
	json_decref(run->live);
	json_decref(run->unnoted.live);
	json_decref(run->record);
	free(run->look);
}

/* ------------------------------------------------------------------ reload, apply, save */

/* The HTTP tier's part first: it may fail on its own files, and is easy to undo. */
static int commit(struct running *run, struct change *change, struct sl_err *err)
{
	struct sl_err ignored;
	int r = running_configure(run, change->running, err);

	if (r < 0)
		return r;
	r = change_commit(run, change, err);
	if (r < 0)
		running_configure(run, run->policy, &ignored);
	return r;
}

/* Puts change->source, with the live changes in change->live, in force. */
static int commit_config_text(struct running *run, struct change *change, json_t *dropped,
			      json_t *notes, struct sl_err *err)
{
	int r = config_text_parse(&change->source, &change->file, err);

	change->dropped = dropped;
	if (!r && !change->live)
		r = sl_err_set(err, ENOMEM, "out of memory");
	if (!r)
		r = put_together(change->file, change->live, dropped, &change->running, err);
	if (r < 0)
		return r;
	r = reach_is_set() ? config_text_check_settings(run->policy, change->running, KEY_ROOT, err)
			   : 0;
	if (r < 0)
		return r;
	config_text_note_settings(run->started, change->file, notes);
	return commit(run, change, err);
}

static int reload(struct running *run, uid_t uid, pid_t pid, json_t *dropped, json_t *notes,
		  struct sl_err *err)
{
	struct change change = { .what = "reload", .uid = uid, .pid = pid };
	json_t *note;
	size_t i;
	int r = pending_refuse(run, err);

	if (!r)
		r = config_text_read_file(run->config_path, &change.source, err);
	if (!r) {
		change.live = json_copy(run->live);
		r = commit_config_text(run, &change, dropped, notes, err);
	}
	if (!r)
		json_array_foreach(notes, i, note)
			log_warn("%s", json_string_value(note));
	change_end(&change);
	return r;
}

int rules_reload(struct running *run, uid_t uid, pid_t pid, json_t *dropped, json_t *notes,
		 struct sl_err *err)
{
	char text[768];
	int r = reload(run, uid, pid, dropped, notes, err);

	run->reload.ok = !r;
	/* The file is in force even if the HTTP tier's own files have errors. */
	if (!r)
		r = running_reload_parts(run, err);
	run->reload.at_utc_ns = clock_utc_ns();
	if (run->reload.ok)
		run->reload.ok_utc_ns = run->reload.at_utc_ns;
	else
		run->reload.err = *err;
	if (!r) {
		config_text_log_skipped(run->file);
		log_info("reloaded %s: %zu limits, generation %llu", run->config_path,
			 run->policy->limit_count, run->generation);
	} else {
		log_error("reload failed, keeping the previous rules: %s",
			  sl_err_format(err, text, sizeof(text)));
	}
	return r;
}

int rules_apply(struct running *run, const struct apply *apply, struct sl_err *err)
{
	struct change change = { .uid = apply->uid,
				 .pid = apply->pid,
				 .confirm_ns = apply->confirm_ns };
	struct reach_of reach;
	int r = pending_refuse(run, err);

	if (!r)
		r = config_text_make(apply->path, apply->text, strlen(apply->text), &change.source,
				     err);
	if (r < 0)
		return r;
	/* If the configured file itself is applied, it is not replaced by another. */
	config_text_note_applied(run, &change.source, apply->uid);
	change.live = apply->discard_live ? json_array() : json_copy(run->live);
	snprintf(change.what, sizeof(change.what), "apply %.240s", apply->path);
	r = reach_of_begin(run->config_path, run->state_dir, run->policy, apply->uid, apply->path,
			   &reach, err);
	if (!r)
		r = commit_config_text(run, &change, apply->dropped, apply->notes, err);
	if (r < 0)
		reach_hide(err);
	reach_of_end(&reach);
	change_end(&change);
	if (!r)
		log_info("applied %s: %zu limits, generation %llu%s (uid %u, pid %d)", apply->path,
			 run->policy->limit_count, run->generation,
			 apply->confirm_ns ? ", to be confirmed" : "", apply->uid, apply->pid);
	return r;
}

int rules_save(struct running *run, const char *text, size_t size, uid_t uid, pid_t pid,
	       struct sl_err *err)
{
	struct change change = {
		.what = "save", .uid = uid, .pid = pid, .live = live_rules(run->live, LIVE_TIMED)
	};
	int r = config_text_make(run->config_path, text, size, &change.source, err);

	if (!r) {
		config_text_note_applied(run, &change.source, uid);
		r = commit_config_text(run, &change, NULL, NULL, err);
	}
	change_end(&change);
	return r;
}

/* ------------------------------------------------------------------ rollback */

int rules_rollback(struct running *run, uid_t uid, pid_t pid, char **ret_what, json_t *dropped,
		   struct sl_err *err)
{
	struct change change = { .what = "rollback", .uid = uid, .pid = pid, .back = true };
	struct rules_state state;
	char *what = NULL;
	int r;

	if (pending_is(run)) {
		if (asprintf(&what, "apply %s", run->source.path) < 0)
			return sl_err_set(err, ENOMEM, "out of memory");
		r = pending_revert(run, "rollback", err);
	} else if (!run->history_top) {
		return sl_err_set(err, ENOENT,
				  "there is no change left to undo: the history is empty");
	} else {
		r = state_read(run, run->history_top, dropped, &state, &what, err);
		if (r == -ENOENT && !err->file[0])
			sl_err_set(err, ENOENT,
				   "there is no change left to undo: the last %d are "
				   "kept",
				   HISTORY_MAX);
		if (r < 0)
			return r;
		/* The text is no longer that of the configured file: it counts as applied now. */
		if (state.source.applied && !state.source.at_utc_ns) {
			state.source.at_utc_ns = clock_utc_ns();
			state.source.uid = uid;
		}
		change.source = state.source;
		change.file = state.file;
		change.running = state.running;
		change.live = state.live;
		r = commit(run, &change, err);
		change_end(&change);
	}
	if (r < 0)
		free(what);
	else
		*ret_what = what;
	return r;
}
