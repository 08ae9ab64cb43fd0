// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * rules_entry.c - a live change that needs no other policy: of one block or exemption, of a limit's
 * own values or one of its overrides, of a rule of the HTTP tier, or of a value's limits in it; see
 * rules.h. It is in force first, and stored then; where that fails it is undone. An entry is one
 * map update, and the rule set stays; so do entries that the file has: changing one of those needs
 * another rule set. A limit's values, or an override, give a rule set that has all else of the one
 * before. A rule, or a value's limits, are one pointer in the rules of the HTTP tier. And the
 * removal of what has ended, and the description of a change for the history.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/http_def.h"
#include "control/running/entries.h"
#include "control/running/feeds.h"
#include "control/running/history.h"
#include "control/running/http_rules.h"
#include "control/running/live.h"
#include "control/running/override_move.h"
#include "control/running/pending.h"
#include "control/running/rules.h"
#include "lib/clock.h"
#include "lib/file.h"
#include "lib/log.h"

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

struct target {
	enum list_kind list;
	struct sl_prefix prefix;
	bool had;
	struct list_entry before; /* if `had` */
};

/* What an operation changes; false: it is none of a live entry. */
static bool find_target(const struct running *run, const json_t *op, struct target *ret)
{
	const struct live_kind *kind = live_kind_of(op);
	const struct list_entry *entry;
	const char *reason;
	bool adds;

	if (!kind || (kind->subject != LIVE_BLOCK && kind->subject != LIVE_EXEMPT) ||
	    sl_prefix_parse(live_text(op, "prefix"), &ret->prefix, &reason) < 0)
		return false;
	adds = strstr(live_text(op, "op"), "add") != NULL;
	ret->list = kind->subject == LIVE_BLOCK ? LIST_BLOCK : LIST_EXEMPT;
	entry = list_find_entry(&run->policy->list[ret->list], &ret->prefix);
	ret->had = entry;
	if (!entry)
		return adds;
	ret->before = *entry;
	return list_entry_is_live(entry) && !entry->derived;
}

/* As before the change. */
static void restore(struct running *run, const struct target *target)
{
	struct sl_err ignored;

	if (target->had)
		policy_list_add(run->policy, target->list, &target->before, &ignored);
	else
		policy_list_del(run->policy, target->list, &target->prefix, &ignored);
	entries_follow_one(run, target->list, &target->prefix, &ignored);
}

/* Stores what is in force already: `op` is the change, run->policy has it. On failure nothing is
 * stored. */
static int record(struct running *run, json_t *op, struct sl_err *err)
{
	struct change change = { .live = json_copy(run->live) };
	bool is_new = false;
	u32 top;
	int r = 0;

	/* Stores the changes before it first, each with the state before it. */
	if (run->unwritten)
		rules_write(run);
	change_note(&change, op);
	if (!change.live || live_add(change.live, op, run->file, run->policy) < 0)
		r = sl_err_set(err, ENOMEM, "out of memory");
	top = run->history_top;
	if (!r && !json_equal(change.live, run->live)) {
		is_new = true;
		r = rules_note_before(run, &change, err);
		if (!r)
			r = rules_store(run, &run->source, change.live, top + 1, 0, 0, err);
		top += !r;
		r = rules_unsaved(run, &change, r, err);
	}
	if (r < 0) {
		json_decref(change.live);
		return r;
	}
	json_decref(run->live);
	run->live = change.live;
	if (is_new && top != run->history_top) {
		run->history_top = top;
		history_tidy(run->state_dir, top, false, run->source.number);
		rules_are_saved(run);
	}
	return 0;
}

static int change_entry(struct running *run, json_t *op, struct sl_err *err)
{
	struct target target;
	int r;

	if (!run->entries || !find_target(run, op, &target))
		return 1;
	r = live_apply(op, run->policy, err);
	if (r < 0)
		return r;
	r = entries_follow_one(run, target.list, &target.prefix, err);
	if (!r)
		r = record(run, op, err);
	if (r < 0) {
		restore(run, &target);
		return r;
	}
	run->generation++;
	if (target.list == LIST_BLOCK)
		rules_protect(run);
	return 0;
}

/* ------------------------------------------------------------------ a limit's values */

/* Those that source_budget writes follow the limit's rate. */
static bool has_derived(const struct policy *policy, const struct limit_def *limit)
{
	return policy->http && !strcmp(policy->http->budget.limit, limit->name);
}

/* Puts the limit in force as `after`, or its override `changed` (NULL: none). 1: it takes more. */
static int put_limit(struct running *run, u32 index, const struct limit_def *after,
		     const struct override_def *changed, struct sl_err *err)
{
	struct sl_limit_id_info *slots = malloc(SL_LIMIT_IDS * sizeof(*slots));
	struct dp *dp = run->packets->dp;
	struct compile_env env = {
		.generation = run->generation + 1,
		.slots = slots,
		.before = run->image,
	};
	struct override_moves moves = { .move = NULL };
	struct sl_image *image;
	int r = 1;

	if (slots) {
		memcpy(slots, dp->slots, SL_LIMIT_IDS * sizeof(*slots));
		r = image_change_limit(after, index, changed, run->policy->cluster, &env, &image);
	}
	if (!r) {
		if (changed)
			override_move_begin(run, index, &changed->src, image, &moves);
		r = dp->ops->apply(dp, image, err);
		if (r < 0) {
			image_free(image);
		} else {
			override_moves_end(run, &moves);
			rules_took_force(run, image, slots);
		}
	}
	override_moves_free(&moves);
	free(slots);
	return r;
}

/* Those of the policy, after a change that cannot be stored. */
static void restore_rules(struct running *run)
{
	struct sl_err err;

	if (rules_install(run, run->policy, 0, &err) < 0)
		log_error("cannot restore the previous rules: %s", err.message);
}

static int change_limit(struct running *run, json_t *op, struct sl_err *err)
{
	const struct live_kind *kind = live_kind_of(op);
	struct limit_def *limit, before, after;
	size_t count;
	char **pair;
	int r;

	if (!kind || kind->subject != LIVE_LIMIT || !json_object_get(op, "pairs"))
		return 1;
	limit = policy_find_limit(run->policy, live_text(op, "name"));
	if (!limit || has_derived(run->policy, limit) || live_pairs(op, &pair, &count, err) < 0)
		return 1;
	r = !limit_revalue(limit, pair, count, &after);
	free(pair);
	if (!r)
		r = put_limit(run, limit - run->policy->limit, &after, NULL, err);
	if (r)
		return r;
	before = *limit;
	*limit = after;
	r = record(run, op, err);
	if (!r) {
		rules_protect(run);
		return 0;
	}
	*limit = before;
	restore_rules(run);
	return r;
}

static int change_override(struct running *run, json_t *op, struct sl_err *err)
{
	const struct live_kind *kind = live_kind_of(op);
	struct override_kept before, after;
	struct limit_def *limit;
	struct sl_prefix src;
	const char *reason;
	bool is_put;
	int r;

	if (!kind || kind->subject != LIVE_OVERRIDE ||
	    sl_prefix_parse(live_text(op, "prefix"), &src, &reason) < 0)
		return 1;
	limit = policy_find_limit(run->policy, live_text(op, "name"));
	if (!limit || has_derived(run->policy, limit) || !override_keep(limit, &src, &before))
		return 1;
	r = live_apply(op, run->policy, err);
	if (r < 0)
		return r;
	override_keep(limit, &src, &after);
	r = put_limit(run, limit - run->policy->limit, limit, &after.def, err);
	is_put = !r;
	if (!r)
		r = record(run, op, err);
	if (!r) {
		rules_protect(run);
		return 0;
	}
	if (override_restore(limit, &before) < 0)
		r = sl_err_set(err, ENOMEM, "out of memory");
	if (is_put)
		restore_rules(run);
	return r;
}

/* ------------------------------------------------------------ a rule, or a value's limits in it */

static int change_rule(struct running *run, json_t *op, struct sl_err *err)
{
	int r;

	if (!live_is_rule(op) || http_rules_change(run, op))
		return 1;
	r = record(run, op, err);
	if (r < 0) {
		http_rules_again(run);
		return r;
	}
	http_rules_noted(run);
	run->generation++;
	return 0;
}

int change_one(struct running *run, json_t *op, struct sl_err *err)
{
	int r = pending_refuse(run, err);

	if (!r)
		r = change_entry(run, op, err);
	if (r > 0)
		r = change_limit(run, op, err);
	if (r > 0)
		r = change_override(run, op, err);
	return r > 0 ? change_rule(run, op, err) : r;
}

/* ------------------------------------------------------------------ what is in force already */

int rules_unsaved(struct running *run, const struct change *change, int r, const struct sl_err *err)
{
	size_t used = strlen(run->unnoted.what);

	if (!r || !file_is_no_room(-r))
		return r;
	if (!run->unwritten_why[0])
		log_error("%s: changes are in force, and saved once it can be written",
			  err->message);
	snprintf(run->unwritten_why, sizeof(run->unwritten_why), "%s", err->message);
	run->unwritten = true;
	if (!run->unnoted.live) {
		run->unnoted.live = json_incref(run->live);
		run->unnoted.uid = change->uid;
		run->unnoted.pid = change->pid;
	}
	snprintf(run->unnoted.what + used, sizeof(run->unnoted.what) - used, "%s%s",
		 used ? ", " : "", change->what);
	cut_text(run->unnoted.what, sizeof(run->unnoted.what));
	return 0;
}

void rules_are_saved(struct running *run)
{
	if (run->unwritten_why[0])
		log_info("what was in force and not saved is saved");
	json_decref(run->unnoted.live);
	memset(&run->unnoted, 0, sizeof(run->unnoted));
	run->unwritten_why[0] = '\0';
	run->unwritten = false;
}

const char *rules_unsaved_why(const struct running *run)
{
	return run->unwritten_why[0] ? run->unwritten_why : entries_unsaved_why(run);
}

/* The state before the first change that could not be stored: rollback needs it. */
static int note_unnoted(struct running *run, struct sl_err *err)
{
	struct change change = { .uid = run->unnoted.uid, .pid = run->unnoted.pid };
	json_t *live = run->live;
	int r;

	if (!run->unnoted.live)
		return 0;
	snprintf(change.what, sizeof(change.what), "%s", run->unnoted.what);
	run->live = run->unnoted.live;
	r = rules_note_before(run, &change, err);
	run->live = live;
	return r;
}

void rules_write(struct running *run)
{
	u32 top = run->history_top + (run->unnoted.live != NULL);
	struct sl_err err;
	bool again = run->unwritten;
	int r = note_unnoted(run, &err);

	if (!r)
		r = rules_store(run, &run->source, run->live, top, run->pending.deadline_ns,
				run->pending.deadline_utc_ns, &err);
	if (r < 0 && !again)
		log_error("%s", err.message);
	run->unwritten = r < 0;
	if (r < 0)
		return;
	run->history_top = top;
	rules_are_saved(run);
	if (again)
		history_tidy(run->state_dir, run->history_top, true, run->source.number);
}

void rules_saved(struct running *run)
{
	run->source.applied = false;
	run->source.at_utc_ns = 0;
	rules_write(run);
}

/* ------------------------------------------------------------------ expiry */

/* Whether a rule set has entries that have ended. */
static bool has_ended(const struct policy *policy, u64 now_utc_ns)
{
	for (enum list_kind kind = LIST_BLOCK; kind <= LIST_EXEMPT; kind++) {
		const struct list_def *list = &policy->list[kind];

		for (size_t i = 0; i < list->count; i++)
			if (list->entry[i].until_utc_ns && !list_entry_is_live(&list->entry[i]) &&
			    list->entry[i].until_utc_ns <= now_utc_ns)
				return true;
	}
	return false;
}

void rules_expire(struct running *run)
{
	u64 now_utc_ns = clock_utc_ns();
	struct sl_err err;
	bool compiled;

	/* The data path ended them on time; this removes the entries. */
	compiled = has_ended(run->policy, now_utc_ns);
	if (policy_list_expire(run->policy, now_utc_ns) > 0 && !compiled &&
	    entries_narrow(run, run->policy, run->pending.deadline_ns, &err) < 0)
		log_error("%s", err.message);
	if (compiled)
		rules_refresh(run);
	entries_expire(run);
	feeds_tick(run);
	if (live_expire(run->live, now_utc_ns))
		http_rules_expire(run, now_utc_ns);
	else if (!run->unwritten)
		return;
	rules_write(run);
}
