/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * table.h - the shared table of buckets: find, charge, install, evict.
 *
 * Sets of four {key, bucket state} ways, one cache line each; a key lives in one of two sets.
 * States change by compare-and-swap only. A way gets another key in three steps, so that no charge
 * goes to the wrong key unnoticed:
 *
 *     state: old -> BUSY       (the CPU that succeeds owns the way)
 *     key:   old -> new        then look again in both sets: if another CPU has installed the
 *                              key meanwhile, free this way
 *     state: BUSY -> new       (published)
 *
 * A charge reads key, state, key; swaps the state; and reads the key once more: if the way got
 * another key in between, it charges again where its key is now.
 *
 * Who is evicted, in this order:
 *
 *   1  no key in use: an empty way, an expired bucket (no different from none), a record that has
 * ended 2  the lightest below half of its limit that was never refused; it is forgotten, and
 *      counted with what it had used
 *   3  an offender: it was refused since its bucket last expired (SL_KEY_REFUSED, one write at the
 *      first refusal). It leaves a fingerprint in a record of the set: a way that holds six of
 *      them instead of one bucket. When it returns it has used all of its limit
 *   4  the lightest that was never refused, half of its limit and above; as 2
 *
 * So no offender gets a fresh bucket by filling the table, and a set with no room for a new
 * key has three records of six and an offender: 19 sources that were each refused. The errors:
 * a new key is taken for an evicted one with a probability of 36 / 2^19 at the very most
 * (docs/algorithms.md), and a forgotten source may use its limit again.
 */
#ifndef SLUICE_BPF_TABLE_H
#define SLUICE_BPF_TABLE_H

#include "bpf/clock.h"
#include "bpf/observe.h"

#define TABLE_TRIES 8

/* Weights beyond sl_utilization()'s 0..255. */
#define TABLE_HALF 128	   /* from half of a limit on */
#define TABLE_OFFENDER 256 /* added for one that was refused */
#define TABLE_NEVER 1024   /* a record, or a way that is changing hands */

/* Which way of both sets, 0..7, or why none. */
#define TABLE_NONE 8
#define TABLE_AGAIN 9

/* The result of a charge. */
enum charge {
	CHARGE_PASS,
	CHARGE_OVER,
	CHARGE_FULL,	  /* no room for a new key */
	CHARGE_CONTENDED, /* TABLE_TRIES compare-and-swaps lost */
};

/* The result of one attempt: that of the charge, or what is to be done first. */
enum attempt {
	ATTEMPT_PASS = CHARGE_PASS,
	ATTEMPT_OVER = CHARGE_OVER,
	ATTEMPT_FULL = CHARGE_FULL,
	ATTEMPT_AGAIN,	  /* the bucket changed: look again */
	ATTEMPT_NEW,	  /* the key is not in the table: install it */
	ATTEMPT_RETURNED, /* the same, and it is an evicted offender's */
};

static __always_inline u64 read_once(const u64 *at)
{
	return *(const volatile u64 *)at;
}

/* The way that holds `key`, other than `except`; NULL where none does. */
static __always_inline struct sl_way *table_find(u64 key, const struct sl_way *except)
{
	u32 which, i;

	for (which = 0; which < 2; which++) {
		struct sl_set *set = map_table_set(sl_table_set(key, which, env_table_sets()));

		if (!set) {
			count_map_error(SL_ME_TABLE_LOOKUP);
			return NULL;
		}
		for (i = 0; i < SL_WAYS; i++)
			if (sl_key_is(read_once(&set->way[i].key), key) && &set->way[i] != except)
				return &set->way[i];
	}
	return NULL;
}

/* Has a key's first set on its way to the cache. */
static __always_inline void table_touch(u64 key)
{
	struct sl_set *set = map_table_set(sl_table_set(key, 0, env_table_sets()));

	if (set)
		read_once(&set->way[0].key);
}

/* The meter whose parameters a stored key is read with; NULL where its limit is gone. */
static __always_inline const struct sl_limit *table_limit_of(const struct sl_rules *rules, u64 key)
{
	u32 slot = sl_key_limit_id(key);

	OPAQUE(slot);
	if (slot >= SL_LIMIT_IDS)
		return NULL;
	return limit_at(rules, rules->limit_of_id[slot]);
}

/*
 * sl_step() of the contract, as a function of its own: the new state, or SL_STATE_BUSY where
 * the verdict is SL_OVER (no step returns that state).
 */
SL_GLOBAL u64 table_step(const struct sl_params *p, u64 mono_ns, u64 utc_ns, u64 bucket_state,
			 u64 cost)
{
	struct sl_now now = { .mono_ns = mono_ns, .utc_ns = utc_ns };
	struct sl_result res;

	if (!p)
		return SL_STATE_BUSY;
	res = sl_step(bucket_state, p, now, cost);
	return res.verdict == SL_PASS ? res.bucket_state : SL_STATE_BUSY;
}

/* The weight of a way: 0 where it is empty, expired, ended, or of a limit that is gone. */
SL_GLOBAL u32 table_utilization(const struct sl_rules *rules, const struct packet *pkt, u64 key,
				u64 bucket_state)
{
	const struct sl_limit *limit;
	u32 weight;

	if (!rules || !pkt || !key)
		return 0;
	if (bucket_state == SL_STATE_BUSY)
		return TABLE_NEVER;
	if (sl_key_is_record(key))
		return sl_record_left(key, bucket_state, pkt->now.mono_ns) ? TABLE_NEVER : 0;
	limit = table_limit_of(rules, key);
	weight = limit ? sl_utilization(bucket_state, &limit->params, packet_time(pkt)) : 0;
	return weight && (key & SL_KEY_REFUSED) ? weight + TABLE_OFFENDER : weight;
}

/* Whether a way can be taken at no loss. Inline for the usual case: a bucket of the same limit. */
static __always_inline int table_is_free(const struct sl_rules *rules, const struct packet *pkt,
					 const struct sl_limit *limit, const struct sl_way *way)
{
	u64 key = read_once(&way->key), bucket_state = read_once(&way->bucket_state);

	if (bucket_state == SL_STATE_BUSY || !key)
		return bucket_state != SL_STATE_BUSY;
	if (sl_key_limit_id(key) == limit->slot)
		return sl_expired(bucket_state, &limit->params, packet_time(pkt));
	return table_utilization(rules, pkt, key, bucket_state) == 0;
}

/* A free way of one set, and how many it has: 0, and then the way is any. */
static __always_inline u32 table_free_way(const struct sl_rules *rules, const struct packet *pkt,
					  const struct sl_limit *limit, struct sl_set *set,
					  u32 *ret_count)
{
	u32 i, is_free, found = 0;

	*ret_count = 0;
	for (i = 0; i < SL_WAYS; i++) {
		is_free = table_is_free(rules, pkt, limit, &set->way[i]);
		FORGET(pkt, is_free);
		found = is_free ? i : found;
		*ret_count += is_free;
	}
	FORGET(pkt, found);
	return found;
}

/* ---- offenders */

/* Marks a bucket as an offender's. The only write of a refusal. */
static __always_inline void table_mark_refused(struct sl_way *way, u64 key)
{
	if (!(read_once(&way->key) & SL_KEY_REFUSED))
		__sync_val_compare_and_swap(&way->key, key, key | SL_KEY_REFUSED);
}

/*
 * How long until a key's evicted bucket would have recovered, in ns; 0: it is in no record, so
 * was never an offender's. SL_STATE_BUSY: a record is changing, look again.
 */
static __always_inline u64 table_recorded_here(const struct packet *pkt, u64 key)
{
	u64 print = sl_print(key & ~SL_KEY_REFUSED), found, bucket_state, left;
	struct sl_set *set;
	u32 i;

	if (!pkt)
		return 0;
	for (i = 0; i < 2 * SL_WAYS; i++) {
		set = map_table_set(
			sl_table_set(key & ~SL_KEY_REFUSED, i / SL_WAYS, env_table_sets()));
		if (!set)
			return 0;
		found = read_once(&set->way[i % SL_WAYS].key);
		if (!sl_key_is_record(found))
			continue;
		bucket_state = read_once(&set->way[i % SL_WAYS].bucket_state);
		if (bucket_state == SL_STATE_BUSY || read_once(&set->way[i % SL_WAYS].key) != found)
			return SL_STATE_BUSY;
		if (!sl_half_has(found, print) && !sl_half_has(bucket_state, print))
			continue;
		left = sl_record_left(found, bucket_state, pkt->now.mono_ns);
		if (left)
			return sl_record_left_ns(left, pkt->now.mono_ns);
	}
	return 0;
}

SL_GLOBAL u64 table_recorded(const struct packet *pkt, u64 key)
{
	return table_recorded_here(pkt, key);
}

/* Whether a set has a record with room for a fingerprint. Returns fingerprints it could take. */
SL_GLOBAL u32 table_room(const struct packet *pkt, u32 index)
{
	struct sl_set *set = map_table_set(index);
	u32 i, n, room = SL_RECORDS * SL_PRINTS;

	if (!set || !pkt)
		return 0;
	for (i = 0; i < SL_WAYS; i++) {
		u64 key = read_once(&set->way[i].key),
		    bucket_state = read_once(&set->way[i].bucket_state);

		if (!sl_key_is_record(key) || !sl_record_left(key, bucket_state, pkt->now.mono_ns))
			continue;
		for (n = 0; n < SL_PRINTS_HALF; n++)
			room -= !!sl_print_at(key, n) + !!sl_print_at(bucket_state, n);
	}
	return room;
}

/* One step of a way's change of hands: 1 if it was as seen, and is BUSY and ours now. */
static __always_inline int table_lock(struct sl_way *way, struct sl_way seen)
{
	if (seen.bucket_state == SL_STATE_BUSY ||
	    __sync_val_compare_and_swap(&way->bucket_state, seen.bucket_state, SL_STATE_BUSY) !=
		    seen.bucket_state)
		return 0;
	if (read_once(&way->key) == seen.key)
		return 1;
	__sync_lock_test_and_set(&way->bucket_state, seen.bucket_state);
	return 0;
}

/* Its other steps. 0: the key was marked meanwhile; all is as it was. */
static __always_inline int table_replace(struct sl_way *way, struct sl_way seen, struct sl_way new)
{
	if (__sync_val_compare_and_swap(&way->key, seen.key, new.key) != seen.key) {
		__sync_lock_test_and_set(&way->bucket_state, seen.bucket_state);
		return 0;
	}
	__sync_lock_test_and_set(&way->bucket_state, new.bucket_state);
	return 1;
}

/*
 * Records the offender in way `at` of a set. ATTEMPT_PASS: its fingerprint is in a record, the way
 * can be taken. ATTEMPT_AGAIN: its way became the record, or another CPU was faster. ATTEMPT_FULL:
 * it takes longer to recover than a record lasts, or there is no room.
 */
SL_GLOBAL enum attempt table_record(const struct sl_rules *rules, const struct packet *pkt,
				    u32 index, u32 at)
{
	struct sl_way offender, seen = { 0 }, found;
	struct sl_set *set = map_table_set(index);
	const struct sl_limit *limit;
	struct sl_limit_stats *stats;
	u32 i, to, records = 0;
	u64 left, known, units, print;

	if (!rules || !pkt || !set)
		return ATTEMPT_FULL;
	at %= SL_WAYS;
	offender.key = read_once(&set->way[at].key);
	offender.bucket_state = read_once(&set->way[at].bucket_state);
	limit = table_limit_of(rules, offender.key);
	if (!limit || offender.bucket_state == SL_STATE_BUSY)
		return ATTEMPT_AGAIN;
	left = sl_left_ns(offender.bucket_state, &limit->params, packet_time(pkt));
	units = sl_record_units(left, pkt->now.mono_ns);
	if (units > SL_RECORD_AHEAD)
		return ATTEMPT_FULL;
	/* Not a call: "combined stack size of 7 calls is 544. Too large" on 6.1. Test:
	 * tests/vm/attach.sh. */
	known = table_recorded_here(pkt, offender.key);
	if (known == SL_STATE_BUSY)
		return ATTEMPT_AGAIN;
	if (known >= left)
		return ATTEMPT_PASS;
	print = sl_print(offender.key & ~SL_KEY_REFUSED);
	for (i = 0, to = TABLE_NONE; i < SL_WAYS; i++) {
		found.key = read_once(&set->way[i].key);
		found.bucket_state = read_once(&set->way[i].bucket_state);
		if (!sl_key_is_record(found.key) ||
		    !sl_record_left(found.key, found.bucket_state, pkt->now.mono_ns))
			continue;
		records++;
		if (!sl_record_has(found, print) && !(to == TABLE_NONE && sl_record_has(found, 0)))
			continue;
		to = i;
		seen = found;
	}
	if (to != TABLE_NONE) {
		found = sl_record_add(seen, print, units, pkt->now.mono_ns);
		return table_lock(&set->way[to & (SL_WAYS - 1)], seen) &&
				       table_replace(&set->way[to & (SL_WAYS - 1)], seen, found)
			       ? ATTEMPT_PASS
			       : ATTEMPT_AGAIN;
	}
	if (records >= SL_RECORDS)
		return ATTEMPT_FULL;
	found = sl_record_add(seen, print, units, pkt->now.mono_ns);
	stats = map_limit_stats(limit->slot);
	if (table_lock(&set->way[at], offender) && table_replace(&set->way[at], offender, found) &&
	    stats)
		stats->recorded++;
	return ATTEMPT_AGAIN;
}

/* ---- a new key */

/* Counts a live bucket that is evicted. */
static __always_inline void table_count_evicted(const struct sl_rules *rules,
						const struct packet *pkt, u64 key, u64 bucket_state)
{
	const struct sl_limit *limit = key ? table_limit_of(rules, key) : NULL;
	struct sl_limit_stats *stats;

	if (!limit || sl_expired(bucket_state, &limit->params, packet_time(pkt)))
		return;
	stats = map_limit_stats(limit->slot);
	if (!stats) {
		count_map_error(SL_ME_STATS_LOOKUP);
		return;
	}
	if (key & SL_KEY_REFUSED) {
		stats->recorded++;
		return;
	}
	stats->evicted++;
	stats->evicted_units += sl_used(bucket_state, &limit->params, packet_time(pkt));
}

/* The lightest way of a set that was never refused, if below *least; the lightest offender. */
static __always_inline u32 table_lightest(const struct sl_rules *rules, const struct packet *pkt,
					  struct sl_set *set, u32 *least, u32 *ret_offender)
{
	u32 i, weight, found = TABLE_NONE, offender = TABLE_NEVER;

	*ret_offender = TABLE_NONE;
	for (i = 0; i < SL_WAYS; i++) {
		weight = table_utilization(rules, pkt, read_once(&set->way[i].key),
					   read_once(&set->way[i].bucket_state));
		if (weight < *least) {
			*least = weight;
			found = i;
		} else if (weight >= TABLE_OFFENDER && weight < offender) {
			offender = weight;
			*ret_offender = i;
		}
		FORGET(pkt, *least);
		FORGET(pkt, found);
		FORGET(pkt, offender);
		FORGET(pkt, *ret_offender);
	}
	return found;
}

/*
 * Which way a new key gets: a free one of the set that has more of them, or one that may go.
 * TABLE_NONE: full. Called before table_install(), not by it: frames add up (scripts/stack.py).
 */
SL_GLOBAL u32 table_victim(const struct sl_rules *rules, const struct packet *pkt,
			   const struct sl_limit *limit, u64 key)
{
	u32 index_a = sl_table_set(key & ~SL_KEY_REFUSED, 0, env_table_sets());
	u32 index_b = sl_table_set(key & ~SL_KEY_REFUSED, 1, env_table_sets());
	struct sl_set *a = map_table_set(index_a), *b = map_table_set(index_b);
	u32 free_a, free_b, way_a, way_b, offender_a, offender_b, least = TABLE_OFFENDER;
	u32 room_a = 0, room_b = 0;
	enum attempt recorded = ATTEMPT_FULL;

	if (!rules || !pkt || !limit)
		return TABLE_NONE;
	if (!a || !b) {
		count_map_error(SL_ME_TABLE_LOOKUP);
		return TABLE_NONE;
	}
	way_a = table_free_way(rules, pkt, limit, a, &free_a);
	way_b = table_free_way(rules, pkt, limit, b, &free_b);
	if (free_a || free_b)
		return free_a >= free_b ? way_a : SL_WAYS + way_b;
	way_a = table_lightest(rules, pkt, a, &least, &offender_a);
	way_b = table_lightest(rules, pkt, b, &least, &offender_b);
	if (way_b != TABLE_NONE)
		way_a = SL_WAYS + way_b;
	if (least < TABLE_HALF)
		return way_a;
	if (offender_a != TABLE_NONE)
		room_a = table_room(pkt, index_a);
	if (offender_b != TABLE_NONE)
		room_b = table_room(pkt, index_b);
	if (room_b > room_a) {
		recorded = table_record(rules, pkt, index_b, offender_b);
		offender_a = SL_WAYS + offender_b;
	} else if (room_a) {
		recorded = table_record(rules, pkt, index_a, offender_a);
	}
	if (recorded == ATTEMPT_AGAIN)
		return TABLE_AGAIN;
	return recorded == ATTEMPT_PASS ? offender_a : way_a;
}

/* The last step of a way that is ours and has its new key. */
static __always_inline enum attempt table_publish(struct sl_way *way, u64 key, u64 bucket_state)
{
	struct sl_global_stats *stats;

	if (table_find(key & ~SL_KEY_REFUSED, way)) {
		__sync_lock_test_and_set(&way->key, 0);
		__sync_lock_test_and_set(&way->bucket_state, 0);
		return ATTEMPT_AGAIN;
	}
	__sync_lock_test_and_set(&way->bucket_state, bucket_state);
	stats = map_global_stats();
	if (stats)
		stats->inserted++;
	return ATTEMPT_PASS;
}

/* Installs a key with its bucket state in way `at`, of table_victim(). An offender's key is
 * marked. */
SL_GLOBAL enum attempt table_install(const struct sl_rules *rules, const struct packet *pkt, u32 at,
				     u64 key, u64 bucket_state)
{
	struct sl_way seen, *way;
	struct sl_set *set;
	u64 known = 1;
	u32 weight;

	if (!rules || !pkt || at == TABLE_NONE)
		return ATTEMPT_FULL;
	if (at >= TABLE_AGAIN)
		return ATTEMPT_AGAIN;
	set = map_table_set(sl_table_set(key & ~SL_KEY_REFUSED, at / SL_WAYS, env_table_sets()));
	if (!set)
		return ATTEMPT_FULL;
	way = &set->way[at % SL_WAYS];
	seen.key = read_once(&way->key);
	seen.bucket_state = read_once(&way->bucket_state);
	/* Another CPU installed the same key here: its use must not be lost. */
	if (sl_key_is(seen.key, key & ~SL_KEY_REFUSED) || !table_lock(way, seen))
		return ATTEMPT_AGAIN;
	/* The way is ours. May its bucket be evicted? */
	weight = table_utilization(rules, pkt, seen.key, seen.bucket_state);
	if (weight >= TABLE_OFFENDER)
		known = table_recorded(pkt, seen.key);
	if (weight >= TABLE_NEVER || !known || known == SL_STATE_BUSY) {
		__sync_lock_test_and_set(&way->bucket_state, seen.bucket_state);
		return ATTEMPT_AGAIN;
	}
	if (__sync_val_compare_and_swap(&way->key, seen.key, key) != seen.key) {
		__sync_lock_test_and_set(&way->bucket_state, seen.bucket_state);
		return ATTEMPT_AGAIN;
	}
	table_count_evicted(rules, pkt, seen.key, seen.bucket_state);
	return table_publish(way, key, bucket_state);
}

#endif
