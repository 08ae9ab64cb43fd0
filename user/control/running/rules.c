// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* rules.c - see rules.h. */
#include "control/running/rules.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "control/running/persist.h"
#include "lib/clock.h"
#include "daemon/cpus.h"
#include "control/running/history.h"
#include "control/running/http_rules.h"
#include "daemon/ifaces.h"
#include "control/running/live.h"
#include "control/running/live_rule.h"
#include "control/running/override_move.h"
#include "control/running/pending.h"
#include "control/running/running_text.h"
#include "control/mitigation/sources.h"
#include "control/replication/replication.h"
#include "control/running/state.h"
#include "control/replication/consumption.h"
#include "request/rules/rule.h"
#include "lib/log.h"

/* ------------------------------------------------------------------ putting a policy in force */

static bool is_bound(const struct sl_limit_id_info *info)
{
	return info->state == SL_LIMIT_ID_BOUND;
}

static bool same_binding(const struct sl_limit_id_info *a, const struct sl_limit_id_info *b)
{
	return is_bound(a) && is_bound(b) && !strcmp(a->name, b->name);
}

/*
 * A slot that gets a limit starts with clean counters; the program does not know it yet. One
 * that drains and comes back to its own limit counts on: its counters were never gone.
 */
static int clear_new_limit_ids(struct daemon *d, const struct sl_limit_id_info *before,
			       const struct sl_limit_id_info *after)
{
	int r = 0;

	for (u32 slot = 1; !r && slot < SL_LIMIT_IDS; slot++) {
		if (!is_bound(&after[slot]) || same_binding(&before[slot], &after[slot]))
			continue;
		if (before[slot].state != SL_LIMIT_ID_DRAINING ||
		    strcmp(before[slot].name, after[slot].name) != 0)
			r = d->dp->ops->limit_stats_clear(d->dp, slot);
	}
	return r;
}

static bool has_name(const struct sl_limit_id_info *slots, const char *name)
{
	for (u32 slot = 1; slot < SL_LIMIT_IDS; slot++)
		if (is_bound(&slots[slot]) && !strcmp(slots[slot].name, name))
			return true;
	return false;
}

/*
 * Slots are about to be given back. A limit that left its slot for another takes its counters
 * along; one that is gone loses them. True where there was either.
 */
static bool carry_counters(struct daemon *d)
{
	const struct sl_limit_id_info *slots = d->dp->ops->slots(d->dp);
	struct sl_limit_stats stats;
	bool any = false;

	for (u32 slot = 1; slot < SL_LIMIT_IDS; slot++) {
		if (slots[slot].state != SL_LIMIT_ID_DRAINING)
			continue;
		any = true;
		if (strchr(slots[slot].name, '#'))
			continue;	/* a further row: its limit's head has the counters */
		if (!has_name(slots, slots[slot].name))
			state_base_drop(d, slots[slot].name);
		else if (d->dp->ops->limit_stats(d->dp, slot, &stats) == 0 &&
			 state_base_add(d, slots[slot].name, &stats) == 0)
			d->dp->ops->limit_stats_clear(d->dp, slot);
	}
	return any;
}

/* Words are to be moved where a rate generation changed. */
static bool changed_rates(const struct sl_limit_id_info *before,
			  const struct sl_limit_id_info *after)
{
	for (u32 slot = 1; slot < SL_LIMIT_IDS; slot++)
		if (before[slot].gen != after[slot].gen)
			return true;
	return false;
}

static void settle(struct daemon *d, bool sweep)
{
	struct sl_err err;

	if (carry_counters(d)) {
		sweep = true;
		if (state_store(d, &err) < 0)
			log_error("%s", err.message);
	}
	/* Before another change can use a rate generation's number again. */
	if (sweep)
		dp_sweep(d->dp, clock_now(clock_utc_offset_ns()));
}

void rules_settle(struct daemon *d)
{
	settle(d, true);
}

static struct compile_env make_env(struct daemon *d, char (*names)[16],
				   struct sl_limit_id_info *slots)
{
	struct compile_env env;

	protect_find_sessions(d);
	for (u32 slot = 0; slot < SL_IFACES_MAX; slot++)
		memcpy(names[slot], d->iface[slot].name, sizeof(names[slot]));
	env = (struct compile_env){
		.mono_ns = clock_mono_ns(),
		.utc_offset_ns = clock_utc_offset_ns(),
		.cpus = cpus_possible(),
		.seed = d->dp->ops->state(d->dp)->seed,
		.generation = d->generation + 1,
		.iface = (const char (*)[16])names,
		.local = d->local,
		.local_count = d->local_count,
		.session = d->protect.sessions.session,
		.session_count = d->protect.sessions.count,
		.no_ban = d->protect.no_ban,
		.no_ban_count = d->protect.no_ban_count,
		.slots = slots,
		.before = d->image,
	};
	bans_lengths(d, &env);
	return env;
}

static int put_in_force(struct daemon *d, const struct sl_image *image, u64 revert_at_ns,
			struct sl_err *err)
{
	if (revert_at_ns)
		return d->dp->ops->apply_until(d->dp, image, revert_at_ns, err);
	return d->dp->ops->apply(d->dp, image, err);
}

/* `before` and `after`: the slots' bindings now, and as the image needs them. */
static int compile(struct daemon *d, const struct policy *policy, struct sl_limit_id_info *before,
		   struct sl_limit_id_info *after, struct sl_image **ret, struct sl_err *err)
{
	char names[SL_IFACES_MAX][16];
	struct compile_env env = make_env(d, names, after);

	memcpy(before, d->dp->ops->slots(d->dp), SL_LIMIT_IDS * sizeof(*before));
	memcpy(after, before, SL_LIMIT_IDS * sizeof(*after));
	return image_compile(policy, &env, ret, err);
}

int rules_install(struct daemon *d, const struct policy *policy, u64 revert_at_ns,
		  struct sl_err *err)
{
	struct sl_limit_id_info *before = malloc(SL_LIMIT_IDS * sizeof(*before));
	struct sl_limit_id_info *after = malloc(SL_LIMIT_IDS * sizeof(*after));
	struct override_moves moves = { .move = NULL };
	struct sl_image *image = NULL;
	int r = before && after ? compile(d, policy, before, after, &image, err) :
				  sl_err_set(err, ENOMEM, "out of memory");

	if (r < 0)
		goto out;
	r = clear_new_limit_ids(d, before, after);
	if (r < 0) {
		sl_err_set(err, -r, "cannot clear counters: %s", strerror(-r));
		goto out;
	}
	override_moves_begin(d, policy, image, &moves);
	r = put_in_force(d, image, revert_at_ns, err);
	if (r < 0)
		goto out;
	override_moves_end(d, &moves);
	memcpy(d->dp->ops->slots(d->dp), after, SL_LIMIT_IDS * sizeof(*after));
	d->generation = image->rules->generation;
	image_free(d->image);
	d->image = image;
	image = NULL;
	persist_rules(d);
	consumption_rules(d, policy);
	/* The rules to fall back to need their slots and words as they are. */
	if (!revert_at_ns)
		settle(d, changed_rates(before, after));
	d->table_at_ns = 0;
out:
	override_moves_free(&moves);
	image_free(image);
	free(before);
	free(after);
	return r;
}

int rules_replace(struct daemon *d, struct policy *policy, u64 revert_at_ns, struct sl_err *err)
{
	int r = rules_install(d, policy, revert_at_ns, err);

	if (r < 0) {
		policy_free(policy);
		return r;
	}
	policy_free(d->running);
	d->running = policy;
	return 0;
}

/* ------------------------------------------------------------------ a change */

int change_begin(const struct daemon *d, struct change *change, struct sl_err *err)
{
	int r = pending_refuse(d, err);

	memset(change, 0, sizeof(*change));
	if (r < 0)
		return r;
	change->uid = geteuid();
	change->pid = getpid();
	change->live = json_copy(d->live);
	if (!change->live || policy_clone(d->running, &change->running) < 0) {
		change_end(change);
		return sl_err_set(err, ENOMEM, "out of memory");
	}
	/* Changes are made to what somebody wrote; change_commit() puts the rest back. */
	policy_override_underive(change->running);
	policy_list_underive(change->running);
	return 0;
}

/* A text that filled its buffer may end in the middle of a character. */
static void cut_text(char *text, size_t size)
{
	size_t length = strlen(text);

	if (length + 1 < size)
		return;
	while (length && ((u8)text[length - 1] & 0xc0) == 0x80)
		length--;
	if (length && (u8)text[length - 1] >= 0xc0)
		length--;
	text[length] = '\0';
}

void change_note(struct change *change, const json_t *op)
{
	size_t used = strlen(change->what);

	if (used + 2 < sizeof(change->what)) {
		if (used)
			used += (size_t)sprintf(change->what + used, ", ");
		live_describe(op, change->what + used, sizeof(change->what) - used);
		cut_text(change->what, sizeof(change->what));
	}
	change->uid = (uid_t)json_integer_value(json_object_get(op, "uid"));
	change->pid = (pid_t)json_integer_value(json_object_get(op, "pid"));
}

int change_do(struct change *change, const struct daemon *d, json_t *op, struct sl_err *err)
{
	int r = live_apply(op, change->running, err);

	if (!r && live_add(change->live, op, d->file) < 0)
		r = sl_err_set(err, ENOMEM, "out of memory");
	change->must = live_rule_is(op);
	change_note(change, op);
	return r;
}

void change_end(struct change *change)
{
	policy_free(change->file);
	config_text_clear(&change->source);
	policy_free(change->running);
	json_decref(change->live);
	change->file = change->running = NULL;
	change->live = NULL;
}

void rules_state_clear(struct rules_state *state)
{
	config_text_clear(&state->source);
	policy_free(state->file);
	policy_free(state->running);
	json_decref(state->live);
	memset(state, 0, sizeof(*state));
}

static void undo(struct daemon *d)
{
	struct sl_err err;

	if (rules_install(d, d->running, 0, &err) < 0 ||
	    ifaces_attach(d, d->running, false, &err) < 0 ||
	    ifaces_detach_others(d, d->running, &err) < 0)
		log_error("cannot go back to what was before: %s", err.message);
}

/* Whether there is anything to go back to: the same file read again is no change. */
static bool is_new(const struct daemon *d, const struct change *change)
{
	if (change->confirm_ns || !json_equal(change->live, d->live))
		return true;
	return change->file && (change->source.number != d->source.number ||
				change->source.applied != d->source.applied ||
				strcmp(change->source.path, d->source.path) != 0);
}

int rules_note_before(struct daemon *d, const struct change *change, struct sl_err *err)
{
	char when[32];
	json_t *state;
	int r = 0;

	/* There was no room for it when sluiced was started. */
	if (!d->source.number)
		r = history_text_keep(d->state_dir, d->source.text, d->source.size,
				      &d->source.number, err);
	if (r < 0)
		return r;
	clock_format_utc(clock_utc_ns(), when, sizeof(when));
	state = json_pack("{s:I, s:s, s:I, s:I, s:{s:s, s:s, s:I, s:I}, s:O}", "text",
			  (json_int_t)d->source.number, "path", d->source.path, "at_utc_ns",
			  (json_int_t)d->source.at_utc_ns, "uid", (json_int_t)d->source.uid,
			  "undoes", "what", change->what, "when", when, "uid",
			  (json_int_t)change->uid, "pid", (json_int_t)change->pid, "changes",
			  d->live);
	if (!state)
		return sl_err_set(err, ENOMEM, "out of memory");
	r = history_state_write(d->state_dir, d->history_top + 1, state, err);
	json_decref(state);
	return r;
}

int rules_store(const struct daemon *d, const struct config_text *source, const json_t *live,
		u32 history_top, u64 deadline_ns, u64 deadline_utc_ns, struct sl_err *err)
{
	json_t *record = json_pack("{s:I, s:s, s:{s:I, s:s, s:b, s:I, s:I}}", "top",
				   (json_int_t)history_top, "config", d->config_path, "file",
				   "text", (json_int_t)source->number, "path", source->path,
				   "applied", source->applied, "at_utc_ns",
				   (json_int_t)source->at_utc_ns, "uid", (json_int_t)source->uid);
	int r;

	if (!record)
		return sl_err_set(err, ENOMEM, "out of memory");
	if (deadline_ns)
		json_object_set_new(record, "pending",
				    pending_to_json(deadline_ns, deadline_utc_ns));
	r = live_store(d->state_dir, live, record, err);
	json_decref(record);
	return r;
}

/* What the change holds is the daemon's; what the daemon held is the way back, or nothing. */
static void swap(struct daemon *d, struct change *change, u32 top, u64 deadline_ns,
		 u64 deadline_utc_ns)
{
	struct rules_state before = { .running = d->running, .live = d->live };
	bool new_file = change->file;

	if (new_file) {
		before.file = d->file;
		before.source = d->source;
		d->file = change->file;
		d->source = change->source;
		change->file = NULL;
		memset(&change->source, 0, sizeof(change->source));
	}
	d->running = change->running;
	change->running = NULL;
	d->live = change->live;
	change->live = NULL;
	if (deadline_ns)
		d->pending = (struct pending){ .deadline_ns = deadline_ns,
					       .deadline_utc_ns = deadline_utc_ns,
					       .before = before };
	else
		rules_state_clear(&before);
	if (top != d->history_top || new_file)
		history_tidy(d->state_dir, top, new_file, d->source.number);
	d->history_top = top;
}

/* All but the HTTP tier's rules, which stand ready. */
static int commit_policy(struct daemon *d, struct change *change, struct sl_err *err)
{
	u64 deadline_ns = change->confirm_ns ? clock_mono_ns() + change->confirm_ns : 0;
	u64 deadline_utc_ns = change->confirm_ns ? clock_utc_ns() + change->confirm_ns : 0;
	const struct config_text *source = change->file ? &change->source : &d->source;
	u32 top = d->history_top;
	bool new;
	int r = ifaces_assign(d, change->running, err);

	if (r > 0)
		r = state_store(d, err);
	if (!r && change->file)
		r = history_text_keep(d->state_dir, source->text, source->size,
				      &change->source.number, err);
	if (r < 0)
		return r;
	new = change->back || is_new(d, change);
	if (new && !change->back)
		r = rules_note_before(d, change, err);
	if (new && !r)
		top += change->back ? -1 : 1;
	sources_derive(d, change->running);
	replication_derive(d, change->running);
	if (!r)
		r = rules_install(d, change->running, deadline_ns, err);
	if (r < 0)
		return r;
	r = ifaces_attach(d, change->running, false, err);
	/* While it may revert with no daemon to attach again, nothing is detached. */
	if (!r && !deadline_ns)
		r = ifaces_detach_others(d, change->running, err);
	if (!r && new)
		r = rules_store(d, source, change->live, top, deadline_ns, deadline_utc_ns, err);
	if (r < 0) {
		undo(d);
		return r;
	}
	swap(d, change, top, deadline_ns, deadline_utc_ns);
	return 0;
}

int change_commit(struct daemon *d, struct change *change, struct sl_err *err)
{
	struct ruleset *next = NULL;
	int r = http_rules_prepare(d, change->live, change->must, change->dropped, &next, err);

	if (!r)
		r = commit_policy(d, change, err);
	if (r < 0)
		ruleset_free(next);
	else
		http_rules_put(d, next, d->live);
	return r;
}

/* ------------------------------------------------------------------ refresh */

void rules_refresh(struct daemon *d)
{
	struct sl_err err;

	/* After detach --all there is nothing left to put rules into. */
	if (d->stopping)
		return;
	/* While something is pending, what it would fall back to stays as it is. */
	if (rules_install(d, d->running, d->pending.deadline_ns, &err) < 0)
		log_error("cannot compile the rules for this host's new addresses: %s", err.message);
}

void rules_expire(struct daemon *d)
{
	u64 now_utc_ns = clock_utc_ns();
	struct sl_err err;

	/* The data path let them end on time; this only tidies up. */
	if (policy_list_expire(d->running, now_utc_ns) > 0)
		rules_refresh(d);
	if (!live_expire(d->live, now_utc_ns))
		return;
	http_rules_follow(d);
	if (rules_store(d, &d->source, d->live, d->history_top, d->pending.deadline_ns,
			d->pending.deadline_utc_ns, &err) < 0)
		log_error("%s", err.message);
}
