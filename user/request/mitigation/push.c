// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* push.c - see push.h. */
#include "request/mitigation/push_private.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/array.h"

const char *push_refusal_name(enum push_refusal refusal)
{
	static const char *const name[] = {
		[PUSH_ALLOWED] = "none",
		[PUSH_NO_RIGHT] = "caller",
		[PUSH_PROTECTED] = "protected",
		[PUSH_UNSEEN] = "unseen",
		[PUSH_SHARE] = "max_share",
		[PUSH_MAX_SOURCES] = "max_sources",
		[PUSH_FEW_REQUESTS] = "min_requests",
		[PUSH_USERS] = "users",
		[PUSH_FAILED] = "failed",
	};

	return name[refusal];
}

int push_new(const struct push_callbacks *callbacks, struct sl_seed seed, struct push **ret)
{
	struct push *push = calloc(1, sizeof(*push));

	if (!push)
		return -ENOMEM;
	push->callbacks = *callbacks;
	push->seed = seed;
	*ret = push;
	return 0;
}

void push_free(struct push *push)
{
	if (!push)
		return;
	free(push->entry);
	free(push);
}

static u64 group_hash(const struct push *push, const struct sl_prefix *group)
{
	return offense_hash(push->seed, group, 0, 0);
}

/* Reports of a caller without the right to push down count separately. */
static u64 offense_key(const struct push *push, const struct refusal_note *note)
{
	return offense_hash(push->seed, &note->group, note->who, note->may_push);
}

/* ------------------------------------------------------------------ entries */

static u32 chain_of(const struct push *push, const struct sl_prefix *group)
{
	return group_hash(push, group) % PUSH_CHAINS;
}

struct push_entry *push_lookup(const struct push *push, const struct sl_prefix *group)
{
	for (u32 at = push->chain[chain_of(push, group)]; at; at = push->entry[at - 1].next)
		if (sl_prefix_equal(&push->entry[at - 1].group, group))
			return &push->entry[at - 1];
	return NULL;
}

const struct push_entry *push_find(const struct push *push, const struct sl_prefix *group)
{
	return push_lookup(push, group);
}

const struct push_entry *push_at(const struct push *push, u32 n)
{
	return n < push->top ? &push->entry[n] : NULL;
}

struct push_entry *push_take(struct push *push, const struct push_entry *entry)
{
	u32 chain = chain_of(push, &entry->group), at = 0;

	while (at < push->top && push->entry[at].used)
		at++;
	if (at < push->top)
		push->entry[at] = *entry;
	else if (append(push->entry, push->top, *entry))
		return NULL;
	push->used++;
	push->entry[at].used = true;
	push->entry[at].next = push->chain[chain];
	push->chain[chain] = at + 1;
	return &push->entry[at];
}

void push_drop(struct push *push, struct push_entry *entry)
{
	u32 *link = &push->chain[chain_of(push, &entry->group)];

	while (*link && &push->entry[*link - 1] != entry)
		link = &push->entry[*link - 1].next;
	if (*link)
		*link = entry->next;
	entry->used = false;
	push->used--;
}

void push_report(struct push *push, const struct push_entry *entry, enum push_event event,
		 enum push_refusal refusal)
{
	if (refusal != PUSH_ALLOWED)
		push->stats.refused[refusal]++;
	push->callbacks.notify(push->callbacks.arg, entry, event, refusal);
}

void push_finish(struct push *push, struct push_entry *entry, enum push_refusal why)
{
	if (!entry->shadow)
		push->callbacks.del(push->callbacks.arg, &entry->group);
	push->callbacks.notify(push->callbacks.arg, entry, PUSH_ENDED, why);
	push_drop(push, entry);
}

/* ------------------------------------------------------------------ steps */

/* Steps that hit all users behind a source: not used while any of them is well-behaved. */
static bool spares_nobody(enum sl_push_kind kind)
{
	return kind == SL_PUSH_NO_NEW || kind == SL_PUSH_DROP;
}

bool push_may_take(const struct push_step *step, const struct source_profile *profile)
{
	return !spares_nobody(step->kind) || !profile->good;
}

struct rate push_limit_rate(const struct push *push, const struct rate *wanted,
			    const struct source_profile *profile)
{
	u64 need = push->callbacks.need_pps(push->callbacks.arg, profile);

	if ((double)wanted->count * 1e9 / (double)wanted->period_ns >= (double)need)
		return *wanted;
	return (struct rate){ .count = need, .period_ns = SL_NS_PER_SEC, .unit = RATE_PACKETS };
}

/* By it a restarted daemon finds the rule and the step. */
u64 push_note(const struct push_entry *entry)
{
	return entry->node[0] ? PUSH_NOTE_THEIRS : entry->rule_id << 4 | entry->step;
}

/* Applies the entry's step, or renews it. */
static int assert_step(struct push *push, struct push_entry *entry,
		       const struct source_profile *profile, u64 now_ns)
{
	u64 until_ns = now_ns + PUSH_LEASE_NS, max_ns = entry->began_ns + entry->def.max_ns;
	struct push_down down = {
		.src = entry->group,
		.kind = entry->steps[entry->step].kind,
		.until_ns = until_ns < max_ns ? until_ns : max_ns,
		.note = push_note(entry),
	};
	int r = 0;

	entry->rate = push_limit_rate(push, &entry->steps[entry->step].rate, profile);
	if (down.kind == SL_PUSH_LIMIT)
		down.rate = entry->rate;
	if (!entry->shadow)
		r = push->callbacks.put(push->callbacks.arg, &down);
	if (!r)
		entry->until_ns = down.until_ns;
	return r;
}

static void change_step(struct push *push, struct push_entry *entry, u32 step,
			const struct source_profile *profile, u64 now_ns)
{
	enum push_event event = step > entry->step ? PUSH_WENT_UP : PUSH_WENT_DOWN;

	entry->step = step;
	entry->changed_ns = now_ns;
	entry->current = entry->before = 0;
	if (assert_step(push, entry, profile, now_ns) < 0)
		push->stats.refused[PUSH_FAILED]++; /* the step in force expires */
	push_report(push, entry, event, PUSH_ALLOWED);
}

/* The first permitted step from this one on; `count` if there is none. */
static u32 step_from(const struct push_step *step, u32 count, u32 from,
		     const struct source_profile *profile)
{
	while (from < count && !push_may_take(&step[from], profile))
		from++;
	return from;
}

/* ------------------------------------------------------------------ beginning */

bool push_is_large_share(struct push *push, const struct source_profile *profile)
{
	u64 all = push->callbacks.good_requests(push->callbacks.arg), sum = profile->good_requests;
	struct source_profile other;

	if (!sum)
		return false;
	for (u32 i = 0; i < push->top; i++) {
		if (!push->entry[i].used)
			continue;
		push->callbacks.profile(push->callbacks.arg, &push->entry[i].group,
					profile->seen_ns, &other);
		sum += other.good_requests;
	}
	return sum * 1000 > all * push->limits.max_share_permille;
}

static enum push_refusal may_begin(struct push *push, const struct refusal_note *note,
				   const struct push_def *def, const struct source_profile *profile,
				   u64 now_ns)
{
	enum push_refusal refusal;

	if (!note->may_push)
		return PUSH_NO_RIGHT;
	refusal = push->callbacks.guard(push->callbacks.arg, &note->group, &note->address, true,
					now_ns);
	if (refusal != PUSH_ALLOWED)
		return refusal;
	if (profile->requests < push->limits.min_requests)
		return PUSH_FEW_REQUESTS;
	if (push->used >= push->limits.max_sources)
		return PUSH_MAX_SOURCES;
	if (push_is_large_share(push, profile))
		return PUSH_SHARE;
	return step_from(def->step, def->step_count, 0, profile) == def->step_count ? PUSH_USERS
										    : PUSH_ALLOWED;
}

static void make_entry(const struct refusal_note *note, const struct rule *rule, u64 now_ns,
		       struct push_entry *ret)
{
	size_t len = note->value_len < AGGREGATE_VALUE_MAX ? note->value_len : AGGREGATE_VALUE_MAX;

	*ret = (struct push_entry){
		.group = note->group,
		.who = note->who,
		.def = rule->push,
		.began_ns = now_ns,
		.changed_ns = now_ns,
		.abuse_ns = now_ns,
	};
	/* A copy: the rule may be removed. */
	memcpy(ret->steps, rule->push.step, rule->push.step_count * sizeof(ret->steps[0]));
	ret->def.step = NULL;
	ret->rule_id = rule->id;
	snprintf(ret->rule, sizeof(ret->rule), "%s/%s", rule->domain, rule->path);
	memcpy(ret->value, note->value, len);
}

static void begin(struct push *push, const struct refusal_note *note, const struct rule *rule,
		  u64 now_ns)
{
	struct source_profile profile;
	struct push_entry entry, *taken;
	enum push_refusal refusal;

	make_entry(note, rule, now_ns, &entry);
	entry.shadow = push->limits.mode == PUSH_MODE_SHADOW;
	push->callbacks.profile(push->callbacks.arg, &note->group, now_ns, &profile);
	refusal = may_begin(push, note, &rule->push, &profile, now_ns);
	if (refusal == PUSH_ALLOWED) {
		entry.step = step_from(entry.steps, entry.def.step_count, 0, &profile);
		if (assert_step(push, &entry, &profile, now_ns) < 0)
			refusal = PUSH_FAILED;
	}
	offense_forget(&push->offenses, offense_key(push, note));
	if (refusal != PUSH_ALLOWED) {
		push_report(push, &entry, PUSH_REFUSED, refusal);
		return;
	}
	taken = push_take(push, &entry);
	if (taken)
		push_report(push, taken, PUSH_BEGAN, PUSH_ALLOWED);
	else if (!entry.shadow)
		push->callbacks.del(push->callbacks.arg, &entry.group);
}

/* Further refusals, or another abuser behind the same source. */
static void go_on(struct push_entry *entry, const struct refusal_note *note, u64 count, u64 after,
		  u64 now_ns)
{
	u64 window = now_ns / entry->def.within_ns, few = (entry->def.after + 3) / 4;

	if (!note->may_push)
		return;
	if (note->who == entry->who) {
		if (window != entry->window) {
			entry->before = window == entry->window + 1 ? entry->current : 0;
			entry->current = 0;
			entry->window = window;
		}
		entry->current++;
		if (offense_window(window, entry->current, entry->before, entry->def.within_ns,
				   now_ns) >= few)
			entry->abuse_ns = now_ns;
	} else if (count >= after) {
		entry->abuse_ns = now_ns;
	}
}

/*
 * This node has reached the threshold itself. If its own rules forbid a push-down, the other node's
 * continues.
 */
static void take_over(struct push *push, struct push_entry *entry, const struct refusal_note *note,
		      const struct rule *rule, u64 now_ns)
{
	struct push_entry theirs = *entry;

	push_drop(push, entry);
	begin(push, note, rule, now_ns);
	if (!push_lookup(push, &theirs.group))
		push_take(push, &theirs);
}

void push_refused(struct push *push, const struct refusal_note *note, const struct rule *rule,
		  u64 now_ns)
{
	struct push_entry *entry;
	u64 count, key;

	if (!rule->push.after || !note->has_source || push->limits.mode == PUSH_MODE_OFF)
		return;
	key = offense_key(push, note);
	count = offense_add(&push->offenses, key, group_hash(push, &note->group),
			    rule->push.within_ns, now_ns);
	entry = push_lookup(push, &note->group);
	if (entry && entry->node[0]) {
		if (count >= rule->push.after)
			take_over(push, entry, note, rule, now_ns);
	} else if (entry) {
		go_on(entry, note, count, rule->push.after, now_ns);
	} else if (count >= rule->push.after) {
		begin(push, note, rule, now_ns);
	}
}

/* ------------------------------------------------------------------ going on */

static bool rate_differs(const struct rate *a, const struct rate *b)
{
	double x = (double)a->count / (double)a->period_ns;
	double y = (double)b->count / (double)b->period_ns;

	return x > y * 1.05 || y > x * 1.05;
}

/* Abuse has occurred since the last step, and recently. */
static bool goes_on(const struct push_entry *entry, u64 now_ns)
{
	return entry->abuse_ns > entry->changed_ns &&
	       now_ns - entry->abuse_ns <= entry->def.within_ns;
}

static u64 later(u64 a, u64 b)
{
	return a > b ? a : b;
}

/* Well-behaved users must not be dropped: moves down to a step that spares them, or none. */
static void spare(struct push *push, struct push_entry *entry, const struct source_profile *profile,
		  u64 now_ns)
{
	u32 step = entry->step;

	while (step && !push_may_take(&entry->steps[step], profile))
		step--;
	if (push_may_take(&entry->steps[step], profile))
		change_step(push, entry, step, profile, now_ns);
	else
		push_finish(push, entry, PUSH_USERS);
}

static void tick_entry(struct push *push, struct push_entry *entry, u64 now_ns)
{
	const struct push_def *def = &entry->def;
	struct source_profile profile;
	struct rate rate;
	u32 above;

	push->callbacks.profile(push->callbacks.arg, &entry->group, now_ns, &profile);
	if (push->callbacks.guard(push->callbacks.arg, &entry->group, &entry->group, false,
				  now_ns) != PUSH_ALLOWED) {
		push_finish(push, entry, PUSH_PROTECTED);
		return;
	}
	if (now_ns >= entry->began_ns + def->max_ns ||
	    (entry->node[0] && now_ns >= entry->until_ns)) {
		push_finish(push, entry, PUSH_ALLOWED);
		return;
	}
	/* An older profile may count as well-behaved the very user whose refusals began this. */
	if (profile.as_of_ns >= entry->began_ns &&
	    !push_may_take(&entry->steps[entry->step], &profile)) {
		spare(push, entry, &profile, now_ns);
		return;
	}
	/* The node that began it decides on steps. */
	if (entry->node[0])
		return;
	if (goes_on(entry, now_ns) && now_ns - entry->changed_ns >= def->step_ns) {
		above = step_from(entry->steps, def->step_count, entry->step + 1, &profile);
		if (above < def->step_count) {
			change_step(push, entry, above, &profile, now_ns);
			return;
		}
	}
	if (now_ns - later(entry->changed_ns, entry->abuse_ns) >= def->down_ns) {
		if (entry->step)
			change_step(push, entry, entry->step - 1, &profile, now_ns);
		else
			push_finish(push, entry, PUSH_ALLOWED);
		return;
	}
	rate = push_limit_rate(push, &entry->steps[entry->step].rate, &profile);
	if ((entry->steps[entry->step].kind == SL_PUSH_LIMIT &&
	     rate_differs(&rate, &entry->rate)) ||
	    (entry->until_ns < now_ns + PUSH_LEASE_NS / 2 &&
	     entry->until_ns < entry->began_ns + def->max_ns))
		assert_step(push, entry, &profile, now_ns);
}

void push_tick(struct push *push, u64 now_ns)
{
	for (u32 i = 0; i < push->top; i++)
		if (push->entry[i].used)
			tick_entry(push, &push->entry[i], now_ns);
	while (push->top && !push->entry[push->top - 1].used)
		push->top--;
}

u32 push_clear(struct push *push, const struct sl_prefix *group, u64 now_ns)
{
	u32 count = 0;

	for (u32 i = 0; i < push->top; i++) {
		struct push_entry *entry = &push->entry[i];

		if (!entry->used || (group && !sl_prefix_contains(&entry->group, group) &&
				     !sl_prefix_contains(group, &entry->group)))
			continue;
		offense_forget_group(&push->offenses, group_hash(push, &entry->group));
		push_finish(push, entry, PUSH_ALLOWED);
		count++;
	}
	return count;
}

void push_set_limits(struct push *push, const struct push_limits_def *limits, u64 now_ns)
{
	bool ends = limits->mode != push->limits.mode;

	push->limits = *limits;
	/* Shadow entries are not in force, so a change from or to shadow starts again. */
	if (ends)
		push_clear(push, NULL, now_ns);
}

int push_adopt(struct push *push, const struct push_entry *entry)
{
	if (push_lookup(push, &entry->group))
		return -EEXIST;
	return push_take(push, entry) ? 0 : -ENOMEM;
}

void push_stats(const struct push *push, struct push_stats *ret)
{
	*ret = push->stats;
	for (u32 i = 0; i < push->top; i++)
		if (push->entry[i].used)
			ret->active[push->entry[i].steps[push->entry[i].step].kind]++;
}
