// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * decide_ban.c - bans of values: the `ban` of a rule.
 *
 * A value has two more states beside its buckets: a window that counts its refusals (offenses), and
 * its ban (limiter/ban.h). Both are in the counter table, so they have a fixed size and outlive the
 * daemon. While the ban lasts all buckets of the value are over until it ends, so headers and
 * `user show` need to know nothing about it. A wider prefix stays as it is: of its refusals only
 * the values count that were over themselves.
 *
 * With limits of the cluster the keys are the same on all nodes, and what happened goes to them
 * through the outbox (ban_outbox.h): each node adds the refusals of the others to its own.
 */
#include "request/engine/ban_outbox.h"
#include "request/engine/decide_private.h"

static u64 offenses_key(u64 key)
{
	u64 other = key ^ 0x9e3779b97f4a7c15ULL;

	return other ? other : 1;
}

static void fill_defs(const struct ban_def *ban, struct spec_def *state, struct spec_def *offenses)
{
	*state = (struct spec_def){ .count = ban->factor_percent,
				    .period_ns = ban->for_ns,
				    .burst = ban->max_ns,
				    .scale = 1,
				    .ceiling_percent = 100,
				    .algo = SL_ALGO_BAN };
	*offenses = (struct spec_def){ .count = ban->after,
				       .period_ns = ban->within_ns,
				       .scale = 1,
				       .ceiling_percent = 100,
				       .algo = SL_ALGO_SLIDING_WINDOW };
}

void decide_ban_collect(struct decision *d, struct part *part, struct sl_sip sip, bool cluster)
{
	u64 key = decide_ban_key(sip);
	struct counters_ref *ref;

	d->bans = true;
	part->ban_cluster = cluster;
	/* The same rule and values twice in a request. */
	for (const struct part *other = d->part; other < part; other++) {
		if (!other->ban_ref || d->ref[other->ban_ref - 1].key != key)
			continue;
		part->ban_ref = other->ban_ref;
		return;
	}
	ref = decide_add_ref(d, key);
	decide_add_ref(d, offenses_key(key));
	fill_defs(&part->rule->ban, &ref[0].def, &ref[1].def);
	part->ban_ref = 1 + (u32)(ref - d->ref);
}

static struct counters_ref *ban_ref(struct decision *d, const struct part *part)
{
	return &d->ref[part->ban_ref - 1];
}

u64 decide_ban_left(const struct decision *d, const struct part *part, u32 *ret_level)
{
	const struct counters_ref *ref;

	if (!part->ban_ref || d->request->report)
		return 0;
	ref = &d->ref[part->ban_ref - 1];
	*ret_level = ban_level(ref->bucket_state);
	return ban_left_ns(ref->bucket_state, d->now.mono_ns);
}

static void refuse(struct decision *d, const struct part *part, u64 left_ns)
{
	for (u32 k = 0; k < part->narrow; k++) {
		struct bucket *b = &d->bucket[part->bucket[k]];

		b->ban_left_ns = left_ns;
		b->over = true;
		b->soft = b->retries = false;
		b->wait_ns = b->wait_ns > left_ns ? b->wait_ns : left_ns;
	}
}

void decide_ban_look(struct decision *d)
{
	for (u32 i = 0; i < d->part_count; i++) {
		struct part *part = &d->part[i];
		struct counters_ref *ref;
		u32 level;
		u64 left_ns;

		if (!part->ban_ref)
			continue;
		ref = ban_ref(d, part);
		counters_look(d->counters, &ref[0], d->now);
		counters_look(d->counters, &ref[1], d->now);
		left_ns = decide_ban_left(d, part, &level);
		if (left_ns)
			refuse(d, part, left_ns);
	}
}

/* ---- offenses */

static bool is_over(const struct decision *d, const struct part *part)
{
	for (u32 k = 0; k < part->narrow; k++) {
		const struct bucket *b = &d->bucket[part->bucket[k]];

		if (b->over && b->cost && !b->none)
			return true;
	}
	return false;
}

/* Adds offenses to the state; true if that began a ban. */
static bool add_offenses(struct decision *d, struct counters_ref ref[2], u64 count)
{
	struct spec_view view;
	struct sl_result res;

	if (!ref[0].spec || !ref[1].spec || ban_left_ns(ref[0].bucket_state, d->now.mono_ns))
		return false;
	spec_view_init(&view, ref[1].spec, 0, 0);
	res = spec_charge(&view, ref[1].bucket_state, d->now, count);
	if (res.verdict == SL_PASS) {
		if (decide_claim(d, &ref[1]))
			counters_put(d->counters, &ref[1], res.bucket_state);
		return false;
	}
	if (!decide_claim(d, &ref[0]))
		return false;
	counters_put(d->counters, &ref[0],
		     ban_next(ref[0].spec, ref[0].bucket_state, d->now.mono_ns));
	if (ref[1].present || ref[1].claimed)
		counters_put(d->counters, &ref[1], 0);
	return true;
}

static bool is_noted(const struct decision *d, const struct part *part)
{
	for (const struct part *other = d->part; other < part; other++)
		if (other->ban_ref == part->ban_ref)
			return true;
	return false;
}

void decide_ban_note(struct decision *d, enum response_code code)
{
	for (u32 i = 0; i < d->part_count; i++) {
		struct part *part = &d->part[i];
		struct counters_ref *ref;
		u32 level;

		if (!part->ban_ref || (!part->shadow && code != RESPONSE_OVER_LIMIT) ||
		    !is_over(d, part) || decide_ban_left(d, part, &level) || is_noted(d, part))
			continue;
		ref = ban_ref(d, part);
		part->ban_began = add_offenses(d, ref, 1);
		if (part->ban_began)
			refuse(d, part, decide_ban_left(d, part, &level));
		if (part->ban_cluster && d->ledger->bans)
			ban_outbox_add(d->ledger->bans, part->rule, ref->key, 1,
				       part->ban_began ? ref->bucket_state : 0);
	}
}

/* ---- other nodes, and by hand */

void decide_ban_keys(const struct decision *d, const struct part *part, struct decide_reset *ret)
{
	if (!part->ban_ref || !part->ban_cluster || ret->count + 2 > DECIDE_RESET_MAX)
		return;
	ret->key[ret->count++] = d->ref[part->ban_ref - 1].key;
	ret->key[ret->count++] = d->ref[part->ban_ref].key;
}

/* The end is at most one longest ban away, whatever another node sent. */
static void take_ban(struct decision *d, struct counters_ref *ref, const struct decide_ban *ban)
{
	u64 left_ns = ban->left_ns < ref->spec->ban_max_ns ? ban->left_ns : ref->spec->ban_max_ns;
	u32 level = ban->level < BAN_LEVELS ? ban->level : BAN_LEVELS - 1;

	if (left_ns > ban_left_ns(ref->bucket_state, d->now.mono_ns) && decide_claim(d, ref))
		counters_put(d->counters, ref, ban_state(d->now.mono_ns + left_ns, level));
}

void decide_ban_receive(const struct ledger *ledger, const struct rule *rule,
			const struct decide_ban *ban)
{
	struct request request = { .count = 0 };
	struct counters_ref ref[2] = { { .key = ban->key }, { .key = offenses_key(ban->key) } };
	struct decision *d = decision_begin(ledger, &request, counters_now(ledger->counters));

	fill_defs(&rule->ban, &ref[0].def, &ref[1].def);
	store_begin(d->counters, &d->locks, ref, 2);
	counters_look(d->counters, &ref[0], d->now);
	counters_look(d->counters, &ref[1], d->now);
	if (ban->offenses)
		add_offenses(d, ref, ban->offenses);
	if (ban->left_ns && ref[0].spec)
		take_ban(d, &ref[0], ban);
	counters_end(&d->locks);
}
