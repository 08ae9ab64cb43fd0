/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * dp_common.c - the daemon's operations on the table of bucket states, over any data plane's
 * memory, beside the program that charges them.
 *
 * Here a bucket state changes by a single compare-and-swap, and keys are not replaced. The
 * program's own way to replace a key (bpf/table.h) keeps the bucket state BUSY meanwhile; a daemon
 * killed at that moment would leave that way BUSY for good. So a bucket state is removed by setting
 * it to 0, "never seen": its way is free, and if the same key comes again it starts anew there.
 */
#include <math.h>
#include <string.h>

#include "lib/clock.h"
#include "packet/dataplane/dataplane.h"

static u64 read_bucket_state(const u64 *at)
{
	return __atomic_load_n(at, __ATOMIC_ACQUIRE);
}

/* False if the program was faster; then the bucket state is current and active again. */
static bool swap_bucket(struct sl_way *way, u64 from, u64 to)
{
	return __atomic_compare_exchange_n(&way->bucket_state, &from, to, false, __ATOMIC_ACQ_REL,
					   __ATOMIC_RELAXED);
}

/* A key and its bucket state, read consistently; false: none, or the way is being replaced. */
static bool read_way(const struct sl_way *way, u64 *ret_key, u64 *ret_word)
{
	u64 key = read_bucket_state(&way->key);
	u64 bucket_state = read_bucket_state(&way->bucket_state);

	if (!key || !bucket_state || bucket_state == SL_STATE_BUSY ||
	    read_bucket_state(&way->key) != key)
		return false;
	*ret_key = key;
	*ret_word = bucket_state;
	return true;
}

/* A bucket's key without the mark of an offender: it starts anew. */
static bool unmark(struct sl_way *way, u64 key)
{
	u64 from = key | SL_KEY_REFUSED;

	return !(key & SL_KEY_REFUSED) ||
	       __atomic_compare_exchange_n(&way->key, &from, key & ~SL_KEY_REFUSED, false,
					   __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

/* The limit of a stored key, or NULL if the rule set has none. */
static const struct sl_limit *limit_of(const struct sl_rules *rules, u64 key)
{
	u32 slot = sl_key_limit_id(key);
	u32 index;

	if (!rules || slot >= SL_LIMIT_IDS)
		return NULL;
	index = rules->limit_of_id[slot];
	return index < SL_METERS_MAX ? &rules->limits[index] : NULL;
}

const struct sl_rules *dp_rules_at(struct dp *dp, u64 mono_ns)
{
	const struct sl_rules *rules = dp->ops->rules(dp), *fallback;

	if (!rules || !rules->revert_at_ns || mono_ns < rules->revert_at_ns)
		return rules;
	fallback = dp->ops->fallback(dp);
	return fallback ? fallback : rules;
}

u32 dp_free_pfx_slot(const struct sl_rules *a, const struct sl_rules *b)
{
	u32 slot = 0;

	while ((a && a->pfx_slot == slot) || (b && b->pfx_slot == slot))
		slot++;
	return slot;
}

void dp_fallback_rescale(struct dp *dp, struct sl_rules *fallback, const struct sl_rules *next)
{
	const struct sl_limit_id_info *slots = dp->slots;

	for (u32 slot = 1; slot < SL_LIMIT_IDS; slot++) {
		u32 meter = fallback->limit_of_id[slot], meter_next = next->limit_of_id[slot];
		struct sl_limit_id_info history = slots[slot];

		if (meter >= SL_METERS_MAX || meter_next >= SL_METERS_MAX)
			continue;
		history.tau[next->limits[meter_next].params.gen & SL_GCRA_GEN_MASK] =
			next->limits[meter_next].params.tau;
		params_rescale(&fallback->limits[meter].params, &history);
	}
}

static bool rules_mark(const struct sl_rules *rules)
{
	for (u32 i = 0; rules && i < rules->limits_count; i++)
		if (rules->limits[i].action == SL_ACT_TAG &&
		    rules->limits[i].mode == SL_MODE_ENFORCE && rules->limits[i].tag & SL_TAG_MARK)
			return true;
	return false;
}

bool dp_marks(struct dp *dp)
{
	return rules_mark(dp->ops->rules(dp)) || rules_mark(dp->ops->fallback(dp)) ||
	       __atomic_load_n(&dp->push_now->flags, __ATOMIC_ACQUIRE) & SL_PUSH_MARKS;
}

void dp_epoch_raise(struct dp *dp)
{
	__atomic_fetch_add(&dp->epoch->count, SL_EPOCH_STEP, __ATOMIC_ACQ_REL);
}

void dp_epoch_begin(struct dp *dp)
{
	__atomic_fetch_or(&dp->epoch->count, SL_EPOCH_CHANGING, __ATOMIC_ACQ_REL);
}

void dp_epoch_end(struct dp *dp)
{
	dp_epoch_raise(dp);
	__atomic_fetch_and(&dp->epoch->count, ~(u64)SL_EPOCH_CHANGING, __ATOMIC_ACQ_REL);
}

void dp_set_clock(struct dp *dp, u64 utc_offset_ns)
{
	u64 *at = &dp->state->utc_offset_ns;

	if (__atomic_exchange_n(at, utc_offset_ns, __ATOMIC_ACQ_REL) != utc_offset_ns)
		dp_epoch_raise(dp);
}

struct sl_now dp_now(struct dp *dp)
{
	return clock_now(dp->state->utc_offset_ns);
}

u64 dp_bucket_state(struct dp *dp, u64 key)
{
	u32 sets = dp->table_sets;
	const struct sl_set *table = dp->table;

	for (u32 which = 0; which < 2; which++) {
		const struct sl_set *set = &table[sl_table_set(key, which, sets)];

		for (u32 i = 0; i < SL_WAYS; i++) {
			u64 found, bucket_state;

			if (read_way(&set->way[i], &found, &bucket_state) && sl_key_is(found, key))
				return bucket_state;
		}
	}
	return 0;
}

/*
 * Replaces the fingerprint of one half of a record by one that no key has: without it the half
 * could leave a bucket state of 0, which would void the record. False: the program was faster.
 */
static bool forget_print(u64 *at, u64 print)
{
	u64 half = read_bucket_state(at), other = print > 1 ? print - 1 : print + 1;

	for (u32 n = 0; n < SL_PRINTS_HALF; n++)
		if (sl_print_at(half, n) == print)
			return __atomic_compare_exchange_n(
				at, &half, half ^ (print ^ other) << n * SL_PRINT_BITS, false,
				__ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
	return true;
}

static bool forget_record(struct sl_way *way, u64 key)
{
	u64 record = read_bucket_state(&way->key),
	    bucket_state = read_bucket_state(&way->bucket_state);

	if (!sl_key_is_record(record))
		return true;
	return bucket_state != SL_STATE_BUSY && forget_print(&way->key, sl_print(key)) &&
	       forget_print(&way->bucket_state, sl_print(key));
}

void dp_bucket_forget(struct dp *dp, u64 key)
{
	u32 sets = dp->table_sets;
	struct sl_set *table = dp->table;

	/*
	 * In both sets: for an instant a key can be in either. A swap fails if the key is being
	 * charged.
	 */
	for (u32 at = 0; at < 2 * SL_WAYS; at++) {
		struct sl_way *way =
			&table[sl_table_set(key, at / SL_WAYS, sets)].way[at % SL_WAYS];
		u64 found, bucket_state;

		for (int attempt = 0; attempt < 8; attempt++)
			if (!read_way(way, &found, &bucket_state) || !sl_key_is(found, key) ||
			    (unmark(way, found) && swap_bucket(way, bucket_state, 0)))
				break;
		for (int attempt = 0; attempt < 8 && !forget_record(way, key); attempt++)
			;
	}
	dp_epoch_raise(dp);
}

u64 dp_source_key(const struct sl_rules *rules, const struct sl_limit *limit,
		  const struct sl_prefix *source)
{
	const struct sl_addr none = { 0 };

	return sl_bucket_key_own(rules, limit, sl_link_own(limit, source->family, source->addr),
				 source->addr, none, source->family, 0, 0, 0, 0);
}

u64 dp_seen_estimate(const struct sl_seen *seen)
{
	const double bits = SL_SEEN_WORDS * 64;
	u32 zeros = 0;

	for (u32 i = 0; i < SL_SEEN_WORDS; i++)
		zeros += 64 - __builtin_popcountll(read_bucket_state(&seen->w[i]));
	/* All ones: as many as leave one zero, on average. */
	return bits * log(bits / (zeros ? zeros : 1)) + 0.5;
}

void dp_table_stats(struct dp *dp, struct sl_now now, struct dp_table_stats *ret)
{
	const struct sl_rules *rules = dp_rules_at(dp, now.mono_ns);
	u32 sets = dp->table_sets;
	const struct sl_set *table = dp->table;

	memset(ret, 0, sizeof(*ret));
	ret->ways = (u64)sets * SL_WAYS;
	for (u64 i = 0; i < ret->ways; i++) {
		const struct sl_limit *limit;
		u64 key, bucket_state;

		if (!read_way(&table[i / SL_WAYS].way[i % SL_WAYS], &key, &bucket_state)) {
			ret->empty++;
			continue;
		}
		if (sl_key_is_record(key) && sl_record_left(key, bucket_state, now.mono_ns)) {
			ret->records++;
			for (u32 n = 0; n < SL_PRINTS_HALF; n++)
				ret->recorded +=
					!!sl_print_at(key, n) + !!sl_print_at(bucket_state, n);
			continue;
		}
		limit = limit_of(rules, key);
		if (!limit || sl_expired(bucket_state, &limit->params, now)) {
			ret->expired++;
			continue;
		}
		ret->live++;
		ret->limit_live[limit->slot]++;
		if (sl_step(bucket_state, &limit->params, now, 1).verdict == SL_OVER)
			ret->limit_over[limit->slot]++;
		else if (sl_used(bucket_state, &limit->params, now) >=
			 limit->params.capacity / 5 * 4)
			ret->limit_near[limit->slot]++;
	}
}

/*
 * The new value of a bucket state: 0 if it has no meaning any more. Bucket states of a slot that
 * this rule set does not use are left alone if another one may use them: the slot is bound and a
 * rule set for it is being applied, or there is a fallback.
 */
static u64 swept_bucket(u64 bucket_state, const struct sl_limit *limit, bool kept,
			struct sl_now now)
{
	u64 ticks = now.mono_ns * SL_TICKS_PER_NS;
	const struct sl_params *p;

	if (!limit)
		return kept ? bucket_state : 0;
	p = &limit->params;
	if (sl_expired(bucket_state, p, now))
		return 0;
	if (sl_is_bucket(p) && (bucket_state & SL_GCRA_GEN_MASK) != p->gen)
		return sl_gcra_state(p, ticks, sl_gcra_debt(bucket_state, p, ticks));
	return bucket_state;
}

/*
 * A failed swap needs no second try: the program charged the bucket state in between (so it is
 * current), or replaced the key. It judges by the rule set in force, which has no draining slot:
 * those get no new bucket states, and are free after one pass.
 */
void dp_sweep(struct dp *dp, struct sl_now now)
{
	const struct sl_rules *rules = dp->ops->rules(dp);
	const struct sl_rules *fallback = dp->ops->fallback(dp);
	struct sl_limit_id_info *slots = dp->slots;
	u32 sets = dp->table_sets;
	struct sl_set *table = dp->table;

	if (!rules)
		return;
	for (u64 i = 0; i < (u64)sets * SL_WAYS; i++) {
		struct sl_way *way = &table[i / SL_WAYS].way[i % SL_WAYS];
		u64 key, bucket_state, swept;
		u32 slot;

		if (!read_way(way, &key, &bucket_state))
			continue;
		if (sl_key_is_record(key)) {
			if (!sl_record_left(key, bucket_state, now.mono_ns))
				swap_bucket(way, bucket_state, 0);
			continue;
		}
		slot = sl_key_limit_id(key);
		swept = swept_bucket(
			bucket_state, limit_of(rules, key),
			fallback || (slot < SL_LIMIT_IDS && slots[slot].state == SL_LIMIT_ID_BOUND),
			now);
		if (swept != bucket_state && (swept || unmark(way, key)))
			swap_bucket(way, bucket_state, swept);
	}
	for (u32 slot = 1; slot < SL_LIMIT_IDS && !fallback; slot++) {
		if (slots[slot].state != SL_LIMIT_ID_DRAINING ||
		    rules->limit_of_id[slot] < SL_METERS_MAX)
			continue;
		dp->ops->limit_stats_clear(dp, slot);
		memset(&slots[slot], 0, sizeof(slots[slot])); /* SL_LIMIT_ID_FREE is 0 */
	}
}
