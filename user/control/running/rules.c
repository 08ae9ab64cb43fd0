// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * rules.c - see rules.h.
 */
#include "control/running/rules.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "control/running/entries.h"
#include "lib/clock.h"
#include "lib/cpus.h"
#include "control/running/history.h"
#include "control/running/http_rules.h"
#include "packet/host/ifaces.h"
#include "control/running/live.h"
#include "control/running/override_move.h"
#include "control/running/pending.h"
#include "control/running/running_text.h"
#include "packet/host/state.h"
#include "request/rules/rule.h"
#include "lib/log.h"

/* ------------------------------------------------------------------ installing a policy */

static bool is_bound(const struct sl_limit_id_info *info)
{
	return info->state == SL_LIMIT_ID_BOUND;
}

/*
 * Clears the counters of a limit_id that gets a limit, before the program uses it. One that drains
 * and returns to its own limit keeps its counters.
 */
static int clear_new_limit_ids(struct running *run, const struct sl_limit_id_info *before,
			       const struct sl_limit_id_info *after)
{
	int r = 0;

	for (u32 slot = 1; !r && slot < SL_LIMIT_IDS; slot++)
		if (is_bound(&after[slot]) && (before[slot].state == SL_LIMIT_ID_FREE ||
					       strcmp(before[slot].name, after[slot].name) != 0))
			r = run->packets->dp->ops->limit_stats_clear(run->packets->dp, slot);
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
 * Before limit_ids are released: a limit that moved to another limit_id takes its counters along;
 * those of a deleted limit are cleared. True if there was either.
 */
static bool carry_counters(struct running *run)
{
	const struct sl_limit_id_info *slots = run->packets->dp->slots;
	struct sl_limit_stats stats;
	bool any = false;

	for (u32 slot = 1; slot < SL_LIMIT_IDS; slot++) {
		if (slots[slot].state != SL_LIMIT_ID_DRAINING)
			continue;
		any = true;
		if (strchr(slots[slot].name, '#'))
			continue; /* a further meter: the limit's first one has the counters */
		if (!has_name(slots, slots[slot].name))
			state_base_drop(run->packets, slots[slot].name);
		else if (run->packets->dp->ops->limit_stats(run->packets->dp, slot, &stats) == 0 &&
			 state_base_add(run->packets, slots[slot].name, &stats) == 0)
			run->packets->dp->ops->limit_stats_clear(run->packets->dp, slot);
	}
	return any;
}

/* True if a rate generation changed: bucket states must be converted. */
static bool changed_rates(const struct sl_limit_id_info *before,
			  const struct sl_limit_id_info *after)
{
	for (u32 slot = 1; slot < SL_LIMIT_IDS; slot++)
		if (before[slot].gen != after[slot].gen)
			return true;
	return false;
}

static void settle(struct running *run, bool sweep)
{
	struct sl_err err;

	if (carry_counters(run)) {
		sweep = true;
		if (state_store(run->packets, &err) < 0)
			log_error("%s", err.message);
	}
	/* Before another change reuses the number of a rate generation. */
	if (sweep)
		dp_sweep(run->packets->dp, dp_now(run->packets->dp));
}

void rules_settle(struct running *run)
{
	settle(run, true);
}

static struct compile_env make_env(struct running *run, char (*names)[16],
				   struct sl_limit_id_info *slots)
{
	struct compile_env env;

	for (u32 slot = 0; slot < SL_IFACES_MAX; slot++)
		memcpy(names[slot], run->packets->iface[slot].name, sizeof(names[slot]));
	env = (struct compile_env){
		.mono_ns = clock_mono_ns(),
		.utc_offset_ns = clock_utc_offset_ns(),
		.cpus = cpus_online(),
		.seed = run->packets->dp->state->seed,
		.generation = run->generation + 1,
		.iface = (const char(*)[16])names,
		.local = run->packets->local,
		.local_count = run->packets->local_count,
		.session = run->packets->protect.sessions.session,
		.session_count = run->packets->protect.sessions.count,
		.gateway = run->packets->protect.gateways.gateway,
		.gateway_count = run->packets->protect.gateways.count,
		.no_ban = run->packets->protect.no_ban,
		.no_ban_count = run->packets->protect.no_ban_count,
		.slots = slots,
		.before = run->image,
	};
	bans_lengths(run->packets, &env);
	return env;
}

static int put_in_force(struct running *run, const struct sl_image *image, u64 revert_at_ns,
			struct sl_err *err)
{
	if (revert_at_ns)
		return run->packets->dp->ops->apply_until(run->packets->dp, image, revert_at_ns,
							  err);
	return run->packets->dp->ops->apply(run->packets->dp, image, err);
}

/* `before` and `after`: the bindings of limit_ids now, and as the image needs them. */
static int compile(struct running *run, const struct policy *policy,
		   struct sl_limit_id_info *before, struct sl_limit_id_info *after,
		   struct sl_image **ret, struct sl_err *err)
{
	char names[SL_IFACES_MAX][16];
	struct compile_env env = make_env(run, names, after);

	memcpy(before, run->packets->dp->slots, SL_LIMIT_IDS * sizeof(*before));
	memcpy(after, before, SL_LIMIT_IDS * sizeof(*after));
	return image_compile(policy, &env, ret, err);
}

/* Entries that cannot be removed stay until the next rule set. */
static void narrow(struct running *run, const struct policy *policy, u64 revert_at_ns)
{
	struct sl_err err;

	if (entries_narrow(run, policy, revert_at_ns, &err) < 0)
		log_error("%s", err.message);
}

/* `image` is in force, and owned by `run` from here on; `slots`: the bindings that it needs. */
static void took_force(struct running *run, const struct policy *policy, struct sl_image *image,
		       const struct sl_limit_id_info *slots, bool settled)
{
	struct sl_limit_id_info *bound = run->packets->dp->slots;
	bool sweep = changed_rates(bound, slots);

	memcpy(bound, slots, SL_LIMIT_IDS * sizeof(*slots));
	run->generation = image->rules->generation;
	image_free(run->image);
	run->image = image;
	running_installed(run, policy);
	if (settled)
		settle(run, sweep);
	ifaces_follow_marks(run->packets);
	run->packets->table_at_ns = 0;
}

void rules_took_force(struct running *run, struct sl_image *image,
		      const struct sl_limit_id_info *slots)
{
	took_force(run, run->policy, image, slots, true);
}

static int install(struct running *run, const struct policy *policy, u64 revert_at_ns,
		   struct sl_err *err)
{
	struct sl_limit_id_info *before = malloc(SL_LIMIT_IDS * sizeof(*before));
	struct sl_limit_id_info *after = malloc(SL_LIMIT_IDS * sizeof(*after));
	struct override_moves moves = { .move = NULL };
	struct sl_image *image = NULL;
	int r = before && after ? compile(run, policy, before, after, &image, err)
				: sl_err_set(err, ENOMEM, "out of memory");

	if (r < 0)
		goto out;
	r = clear_new_limit_ids(run, before, after);
	if (r < 0) {
		sl_err_set(err, -r, "cannot clear counters: %s", strerror(-r));
		goto out;
	}
	override_moves_begin(run, policy, image, &moves);
	r = entries_widen(run, policy, err);
	if (!r)
		r = put_in_force(run, image, revert_at_ns, err);
	if (r < 0)
		goto out;
	narrow(run, policy, revert_at_ns);
	override_moves_end(run, &moves);
	/* The fallback rules need their limit_ids and bucket states unchanged. */
	took_force(run, policy, image, after, !revert_at_ns);
	image = NULL;
out:
	override_moves_free(&moves);
	image_free(image);
	free(before);
	free(after);
	return r;
}

/* The rules once more, where login sessions were opened since those that they have. */
static void protect(struct running *run, const struct policy *policy, u64 revert_at_ns)
{
	struct sl_err err;

	if (protect_find_sessions(run->packets) && install(run, policy, revert_at_ns, &err) < 0)
		log_error("new login sessions are not exempt: %s", err.message);
}

void rules_protect(struct running *run)
{
	protect(run, run->policy, run->pending.deadline_ns);
}

int rules_install(struct running *run, const struct policy *policy, u64 revert_at_ns,
		  struct sl_err *err)
{
	bool first = !run->image;
	int r;

	/* Later ones are in force first: a look at all processes takes longer than to compile. */
	if (first)
		protect_find_sessions(run->packets);
	r = install(run, policy, revert_at_ns, err);
	if (!r && !first)
		protect(run, policy, revert_at_ns);
	return r;
}

int rules_replace(struct running *run, struct policy *policy, u64 revert_at_ns, struct sl_err *err)
{
	int r = rules_install(run, policy, revert_at_ns, err);

	if (r < 0) {
		policy_free(policy);
		return r;
	}
	policy_free(run->policy);
	run->policy = policy;
	return 0;
}

/* ------------------------------------------------------------------ a change */

int change_begin(const struct running *run, struct change *change, struct sl_err *err)
{
	int r = pending_refuse(run, err);

	memset(change, 0, sizeof(*change));
	if (r < 0)
		return r;
	change->uid = geteuid();
	change->pid = getpid();
	change->live = json_copy(run->live);
	if (!change->live || policy_clone(run->policy, &change->running) < 0) {
		change_end(change);
		return sl_err_set(err, ENOMEM, "out of memory");
	}
	/* Changes apply to the policy without derived entries; change_commit() adds those again. */
	policy_override_underive(change->running);
	policy_list_underive(change->running);
	return 0;
}

int change_do(struct change *change, const struct running *run, json_t *op, struct sl_err *err)
{
	int r = live_apply(op, change->running, err);

	if (!r && live_add(change->live, op, run->file, change->running) < 0)
		r = sl_err_set(err, ENOMEM, "out of memory");
	change->must = live_is_rule(op);
	change->of_packets = !change->must;
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

static void undo(struct running *run)
{
	struct sl_err err;

	if (rules_install(run, run->policy, 0, &err) < 0 ||
	    ifaces_attach(run->packets, run->policy, false, &err) < 0 ||
	    ifaces_detach_others(run->packets, run->policy, &err) < 0)
		log_error("cannot restore the previous rules: %s", err.message);
}

/* False if the same file was read again: that is no change to roll back. */
static bool is_new(const struct running *run, const struct change *change)
{
	if (change->confirm_ns || !json_equal(change->live, run->live))
		return true;
	return change->file && (change->source.number != run->source.number ||
				change->source.applied != run->source.applied ||
				strcmp(change->source.path, run->source.path) != 0);
}

int rules_note_before(struct running *run, const struct change *change, struct sl_err *err)
{
	char when[32];
	json_t *state;
	int r = 0;

	/* At start there was no disk space for it. */
	if (!run->source.number)
		r = history_text_keep(run->state_dir, run->source.text, run->source.size,
				      &run->source.number, err);
	if (r < 0)
		return r;
	clock_format_utc(clock_utc_ns(), when, sizeof(when));
	state = json_pack("{s:I, s:s, s:I, s:I, s:{s:s, s:s, s:I, s:I}, s:O}", "text",
			  (json_int_t)run->source.number, "path", run->source.path, "at_utc_ns",
			  (json_int_t)run->source.at_utc_ns, "uid", (json_int_t)run->source.uid,
			  "undoes", "what", change->what, "when", when, "uid",
			  (json_int_t)change->uid, "pid", (json_int_t)change->pid, "changes",
			  run->live);
	if (!state)
		return sl_err_set(err, ENOMEM, "out of memory");
	r = history_state_write(run->state_dir, run->history_top + 1, state, err);
	json_decref(state);
	return r;
}

int rules_store(const struct running *run, const struct config_text *source, const json_t *live,
		u32 history_top, u64 deadline_ns, u64 deadline_utc_ns, struct sl_err *err)
{
	json_t *record =
		json_pack("{s:I, s:s, s:{s:I, s:s, s:b, s:I, s:I}}", "top", (json_int_t)history_top,
			  "config", run->config_path, "file", "text", (json_int_t)source->number,
			  "path", source->path, "applied", source->applied, "at_utc_ns",
			  (json_int_t)source->at_utc_ns, "uid", (json_int_t)source->uid);
	int r;

	if (!record)
		return sl_err_set(err, ENOMEM, "out of memory");
	if (deadline_ns)
		json_object_set_new(record, "pending",
				    pending_to_json(deadline_ns, deadline_utc_ns, run->generation));
	r = live_store(run->state_dir, live, record, err);
	json_decref(record);
	return r;
}

/* Exchanges the change's state and the daemon's; the old one is kept while pending, or freed. */
static void swap(struct running *run, struct change *change, u32 top, u64 deadline_ns,
		 u64 deadline_utc_ns)
{
	struct rules_state before = { .running = run->policy, .live = run->live };
	bool new_file = change->file;

	if (new_file) {
		before.file = run->file;
		before.source = run->source;
		run->file = change->file;
		run->source = change->source;
		change->file = NULL;
		memset(&change->source, 0, sizeof(change->source));
	}
	run->policy = change->running;
	change->running = NULL;
	run->live = change->live;
	change->live = NULL;
	if (deadline_ns)
		run->pending = (struct pending){ .deadline_ns = deadline_ns,
						 .deadline_utc_ns = deadline_utc_ns,
						 .before = before };
	else
		rules_state_clear(&before);
	if (top != run->history_top || new_file)
		history_tidy(run->state_dir, top, new_file, run->source.number);
	run->history_top = top;
}

/* All but the HTTP tier's rules, which are prepared. */
static int commit_policy(struct running *run, struct change *change, struct sl_err *err)
{
	u64 deadline_ns = change->confirm_ns ? clock_mono_ns() + change->confirm_ns : 0;
	u64 deadline_utc_ns = change->confirm_ns ? clock_utc_ns() + change->confirm_ns : 0;
	const struct config_text *source = change->file ? &change->source : &run->source;
	bool is_live = !change->file && !change->back && !change->confirm_ns, new, unsaved;
	int r = ifaces_assign(run->packets, change->running, err);
	u32 top;

	/* Stores the changes before it first, each with the state before it. */
	if (run->unwritten)
		rules_write(run);
	top = run->history_top;
	if (r > 0)
		r = state_store(run->packets, err);
	if (!r && change->file)
		r = history_text_keep(run->state_dir, source->text, source->size,
				      &change->source.number, err);
	if (r < 0)
		return r;
	new = change->back || is_new(run, change);
	if (new)
		top += change->back ? -1 : 1;
	running_derive(run, change->running);
	r = rules_install(run, change->running, deadline_ns, err);
	if (r < 0)
		return r;
	/* In force first: writing takes longer than compiling. */
	if (new && !change->back)
		r = rules_note_before(run, change, err);
	unsaved = r < 0 && is_live && rules_unsaved(run, change, r, err) == 0;
	if (!r || unsaved)
		r = ifaces_attach(run->packets, change->running, false, err);
	/* Detaches nothing while the rules may revert: no daemon may be there to attach again. */
	if (!r && !deadline_ns)
		r = ifaces_detach_others(run->packets, change->running, err);
	if (!r && !unsaved && (new || run->unwritten)) {
		r = rules_store(run, source, change->live, top, deadline_ns, deadline_utc_ns, err);
		if (!r)
			rules_are_saved(run);
		unsaved = r < 0 && is_live && rules_unsaved(run, change, r, err) == 0;
		r = unsaved ? 0 : r;
	}
	if (r < 0) {
		undo(run);
		return r;
	}
	swap(run, change, unsaved ? run->history_top : top, deadline_ns, deadline_utc_ns);
	return 0;
}

int change_commit(struct running *run, struct change *change, struct sl_err *err)
{
	struct ruleset *next = NULL;
	int r = 0;

	if (!change->of_packets)
		r = http_rules_prepare(run, change->live, change->must, change->dropped, &next,
				       err);
	if (!r)
		r = commit_policy(run, change, err);
	if (r < 0)
		ruleset_free(next);
	else if (next)
		http_rules_put(run, next, run->live);
	return r;
}

/* ------------------------------------------------------------------ refresh */

void rules_refresh(struct running *run)
{
	struct sl_err err;

	/* After detach --all there are no maps. */
	if (run->packets->stopping)
		return;
	/* The fallback rules of a pending change stay as they are. */
	if (rules_install(run, run->policy, run->pending.deadline_ns, &err) < 0)
		log_error("cannot compile the rules for this host's new addresses, keeping the "
			  "previous ones: %s",
			  err.message);
}
