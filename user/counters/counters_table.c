// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * counters_table.c - bucket states: locked, found, placed and written.
 *
 * A set's lock is a byte of this process: 0x80 while it is held, and a lower bit for each way that
 * the request uses, so that it does not evict one of its bucket states for another. Waiting threads
 * spin (lib/spin.h).
 *
 * Writes are ordered so that a process killed at any instruction leaves a usable table. The key of
 * a new entry is written last; the key of a reused way is 0 in between; a changed class is written
 * before the bucket state (if killed between the two, a bucket's debt is read at its new rate, at
 * most twice its capacity).
 */
#include <stdlib.h>

#include "counters/counters_table.h"
#include "lib/spin.h"
#include "limiter/algorithm.h"

#define LOCKED 0x80
/* A bucket state at half its limit or more is never evicted. */
#define UTILIZATION_HALF 128

/* ------------------------------------------------------------------ locks */

void counters_lock_set(struct counters *counters, u32 set)
{
	u8 *lock = &counters->lock[set];
	u32 turns = 0;
	u8 free = 0;

	/* In one order with block_state(): see settle() in counters_recover.c. */
	while (!__atomic_compare_exchange_n(lock, &free, LOCKED, false, __ATOMIC_SEQ_CST,
					    __ATOMIC_RELAXED)) {
		free = 0;
		spin_wait(&turns);
	}
}

void counters_unlock_set(struct counters *counters, u32 set)
{
	__atomic_store_n(&counters->lock[set], 0, __ATOMIC_RELEASE);
}

/* The bits are read by the holder only: other threads compare the byte with 0. */
static void keep_way(struct counters *counters, u32 set, u32 way)
{
	u8 *lock = &counters->lock[set];

	__atomic_store_n(lock, __atomic_load_n(lock, __ATOMIC_RELAXED) | 1U << way,
			 __ATOMIC_RELAXED);
}

static bool is_kept(const struct counters *counters, u32 set, u32 way)
{
	return __atomic_load_n(&counters->lock[set], __ATOMIC_RELAXED) & (1U << way);
}

static int compare_u32(const void *a, const void *b)
{
	u32 x = *(const u32 *)a, y = *(const u32 *)b;

	return x < y ? -1 : x > y;
}

static void sort(u32 *set, u32 count)
{
	if (count > 32) {
		qsort(set, count, sizeof(*set), compare_u32);
		return;
	}
	for (u32 i = 1; i < count; i++) {
		u32 one = set[i], at = i;

		for (; at && set[at - 1] > one; at--)
			set[at] = set[at - 1];
		set[at] = one;
	}
}

void counters_prefetch(const struct counters *counters, u64 key)
{
	for (u32 which = 0; which < 2; which++) {
		u32 set = sl_key_set(key, which, counters->sets);

		__builtin_prefetch(&counters->lock[set], 1);
		__builtin_prefetch(&counters->set[set], 1);
		__builtin_prefetch((const char *)&counters->set[set] + 64, 1);
	}
}

void store_begin(struct counters *counters, struct counters_locks *locks,
		 const struct counters_ref *ref, u32 count)
{
	u32 kept = 0;

	locks->counters = counters;
	locks->count = 0;
	for (u32 i = 0; i < count; i++) {
		locks->set[locks->count++] = sl_key_set(ref[i].key, 0, counters->sets);
		locks->set[locks->count++] = sl_key_set(ref[i].key, 1, counters->sets);
	}
	sort(locks->set, locks->count);
	for (u32 i = 0; i < locks->count; i++) {
		u32 set = locks->set[i];

		if (kept && locks->set[kept - 1] == set)
			continue;
		counters_lock_set(counters, set);
		locks->set[kept++] = set;
	}
	locks->count = kept;
}

void counters_end(struct counters_locks *locks)
{
	for (u32 i = 0; i < locks->count; i++)
		counters_unlock_set(locks->counters, locks->set[i]);
}

/* ------------------------------------------------------------------ ways */

/* A bucket state does not show the scope of its limit, so both clocks are used. */
static u32 utilization_of(const struct counters *counters, const struct spec *spec,
			  u64 bucket_state, struct sl_now now)
{
	u32 here = spec_utilization(spec, bucket_state, now), there = here;

	if (counters->shared)
		there = spec_utilization(spec, bucket_state, counters_shared_now(counters, now));
	return here > there ? here : there;
}

u32 counters_way_utilization(struct counters *counters, const struct counters_set *set, u32 way,
			     struct sl_now now)
{
	const struct spec *spec = counters_spec(counters, set->class[way]);
	u64 bucket_state = set->bucket_state[way], count;

	if (!spec)
		return 0;
	if (!algorithm_is_log(spec->algo))
		return utilization_of(counters, spec, bucket_state, now);
	if (request_log_expired(&counters->logs, spec, bucket_state, now))
		return 0;
	/* Expired requests of a log are included: excluding them would mean to remove them. */
	count = request_log_count(bucket_state);
	return count >= spec->capacity ? 255 : 1 + count * 254 / spec->capacity;
}

static bool way_expired(struct counters *counters, const struct counters_set *set, u32 way,
			struct sl_now now)
{
	const struct spec *spec = counters_spec(counters, set->class[way]);

	if (!spec)
		return true;
	if (algorithm_is_log(spec->algo))
		return request_log_expired(&counters->logs, spec, set->bucket_state[way], now);
	return spec_expired(spec, set->bucket_state[way], now) &&
	       spec_expired(spec, set->bucket_state[way], counters_shared_now(counters, now));
}

void counters_way_free(struct counters *counters, struct counters_set *set, u32 way)
{
	const struct spec *spec = counters_spec(counters, set->class[way]);

	counters_touch(counters, set);
	__atomic_store_n(&set->key[way], 0, __ATOMIC_RELAXED);
	if (spec && algorithm_is_log(spec->algo))
		request_log_free(&counters->logs, set->bucket_state[way]);
}

/* ------------------------------------------------------------------ one bucket state */

void counters_put(struct counters *counters, struct counters_ref *ref, u64 bucket_state)
{
	struct counters_set *set = &counters->set[ref->set];

	ref->bucket_state = bucket_state;
	counters_touch(counters, set);
	if (!bucket_state) {
		__atomic_store_n(&set->key[ref->way], 0, __ATOMIC_RELEASE);
		return;
	}
	__atomic_store_n(&set->class[ref->way], ref -> class, __ATOMIC_RELEASE);
	__atomic_store_n(&set->bucket_state[ref->way], bucket_state, __ATOMIC_RELEASE);
	__atomic_store_n(&set->key[ref->way], ref->key, __ATOMIC_RELEASE);
}

void counters_forget(struct counters *counters, struct counters_ref *ref)
{
	counters_way_free(counters, &counters->set[ref->set], ref->way);
	ref->present = false;
	ref->bucket_state = 0;
}

static bool find(const struct counters *counters, u64 key, u32 *ret_set, u8 *ret_way)
{
	for (u32 which = 0; which < 2; which++) {
		u32 at = sl_key_set(key, which, counters->sets);
		const struct counters_set *set = &counters->set[at];

		for (u32 way = 0; way < COUNTERS_WAYS; way++) {
			if (set->key[way] != key)
				continue;
			*ret_set = at;
			*ret_way = way;
			return true;
		}
	}
	return false;
}

void counters_forget_key(struct counters *counters, u64 key)
{
	u32 set;
	u8 way;

	if (find(counters, key, &set, &way))
		counters_way_free(counters, &counters->set[set], way);
}

bool counters_release(struct counters *counters, u64 key, struct sl_now then, struct sl_now now)
{
	struct counters_ref ref = { .key = key };
	u64 before, after;

	if (!find(counters, key, &ref.set, &ref.way))
		return false;
	ref.class = counters->set[ref.set].class[ref.way];
	ref.spec = counters_spec(counters, ref.class);
	if (!ref.spec || ref.spec->algo != SL_ALGO_CONCURRENCY)
		return false;
	before = counters->set[ref.set].bucket_state[ref.way];
	after = request_log_release(&counters->logs, ref.spec, before, then, now);
	if (after == before)
		return false;
	counters_put(counters, &ref, after);
	return true;
}

void counters_look(struct counters *counters, struct counters_ref *ref, struct sl_now now)
{
	const struct spec *from;
	struct counters_set *set;
	bool log;
	u16 class;

	ref->bucket_state = 0;
	ref->spec = NULL;
	ref->claimed = false;
	ref->class = counters_class(counters, &ref->def, ref->caller, &ref->spec);
	ref->present = find(counters, ref->key, &ref->set, &ref->way);
	if (!ref->present || !ref->class)
		return;
	set = &counters->set[ref->set];
	class = set->class[ref->way];
	from = counters_spec(counters, class);
	log = algorithm_is_log(ref->spec->algo);
	if (!from || from->algo != ref->spec->algo ||
	    (log && (from->tick_shift != ref->spec->tick_shift ||
		     from->bucket_ns != ref->spec->bucket_ns))) {
		/* A limit of another kind: its counts do not apply here. */
		counters_way_free(counters, set, ref->way);
		ref->present = false;
		return;
	}
	keep_way(counters, ref->set, ref->way);
	ref->bucket_state = set->bucket_state[ref->way];
	if (log) {
		ref->bucket_state =
			request_log_expire(&counters->logs, ref->spec, ref->bucket_state, now);
		if (set->bucket_state[ref->way] != ref->bucket_state) {
			counters_touch(counters, set);
			set->bucket_state[ref->way] = ref->bucket_state;
		}
	} else if (class != ref->class) {
		ref->bucket_state = spec_convert(from, ref->spec, ref->bucket_state, now);
	}
	/*
	 * Written at once, also if the request is refused: a debt drains at its new rate from now
	 * on.
	 */
	if (class != ref->class || !ref->bucket_state)
		counters_put(counters, ref, ref->bucket_state);
	ref->present = ref->bucket_state;
}

struct places {
	u32 set, way;
	u32 free; /* ways of that set that are empty or expired */
};

/* Empty ways of a set, or expired ones. */
static struct places places_in(struct counters *counters, u32 at, bool dead, struct sl_now now)
{
	const struct counters_set *set = &counters->set[at];
	struct places p = { .set = at };

	for (u32 way = COUNTERS_WAYS; way--;) {
		if (is_kept(counters, at, way))
			continue;
		if (set->key[way] && (!dead || !way_expired(counters, set, way, now)))
			continue;
		p.way = way;
		p.free++;
	}
	return p;
}

/* The live bucket state of least utilization, if that is below half of its limit. */
static bool victim(struct counters *counters, u64 key, struct sl_now now, struct places *ret)
{
	u32 least = UTILIZATION_HALF;

	for (u32 which = 0; which < 2; which++) {
		u32 at = sl_key_set(key, which, counters->sets);

		for (u32 way = 0; way < COUNTERS_WAYS; way++) {
			u32 weight;

			if (is_kept(counters, at, way))
				continue;
			weight = counters_way_utilization(counters, &counters->set[at], way, now);
			if (weight >= least)
				continue;
			least = weight;
			*ret = (struct places){ at, way, 1 };
		}
	}
	return least < UTILIZATION_HALF;
}

static void count_evicted_units(struct counters *counters, const struct places *p,
				struct sl_now now)
{
	const struct counters_set *set = &counters->set[p->set];
	const struct spec *spec = counters_spec(counters, set->class[p->way]);
	struct spec_view view;
	u64 used = 1;

	if (spec && algorithm_is_log(spec->algo)) {
		used = request_log_count(set->bucket_state[p->way]);
	} else if (spec && algorithm_kind(spec->algo) != STATE_TIME) {
		spec_view_init(&view, spec, 0, 0);
		used = spec->capacity - spec_remaining(&view, set->bucket_state[p->way], now);
	}
	__atomic_fetch_add(&counters->evicted, 1, __ATOMIC_RELAXED);
	__atomic_fetch_add(&counters->evicted_units, used, __ATOMIC_RELAXED);
}

bool counters_claim(struct counters *counters, struct counters_ref *ref, struct sl_now now)
{
	u32 a = sl_key_set(ref->key, 0, counters->sets),
	    b = sl_key_set(ref->key, 1, counters->sets);
	struct places p = { 0 }, q;

	if (!ref->class)
		return false;
	for (u32 dead = 0; dead < 2 && !p.free; dead++) {
		p = places_in(counters, a, dead, now);
		q = places_in(counters, b, dead, now);
		if (q.free > p.free)
			p = q;
	}
	if (!p.free && !victim(counters, ref->key, now, &p))
		return false;
	if (counters->set[p.set].key[p.way] &&
	    counters_way_utilization(counters, &counters->set[p.set], p.way, now))
		count_evicted_units(counters, &p, now);
	ref->set = p.set;
	ref->way = p.way;
	ref->claimed = true;
	if (counters->set[p.set].key[p.way])
		counters_way_free(counters, &counters->set[p.set], p.way);
	keep_way(counters, p.set, p.way);
	return true;
}

/* ------------------------------------------------------------------ the logs' pool */

#define SHED_SETS 256

/* Skips locked sets, because the request itself may hold the lock. */
static bool try_lock_set(struct counters *counters, u32 set)
{
	u8 free = 0;

	return __atomic_compare_exchange_n(&counters->lock[set], &free, LOCKED, false,
					   __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
}

static bool shed_from(struct counters *counters, u32 at, struct sl_now now)
{
	struct counters_set *set = &counters->set[at];
	u32 least = UTILIZATION_HALF;
	struct places p = { .set = at };

	for (u32 way = 0; way < COUNTERS_WAYS; way++) {
		const struct spec *spec =
			set->key[way] ? counters_spec(counters, set->class[way]) : NULL;
		u32 weight;

		if (!spec || !algorithm_is_log(spec->algo))
			continue;
		weight = counters_way_utilization(counters, set, way, now);
		if (weight >= least)
			continue;
		least = weight;
		p.way = way;
	}
	if (least == UTILIZATION_HALF)
		return false;
	if (least)
		count_evicted_units(counters, &p, now);
	counters_way_free(counters, set, p.way);
	return true;
}

bool counters_shed_log(struct counters *counters, struct sl_now now)
{
	u32 at = __atomic_fetch_add(&counters->shed_at, SHED_SETS, __ATOMIC_RELAXED);
	bool done = false;

	for (u32 i = 0; i < SHED_SETS && i < counters->sets && !done; i++) {
		u32 set = (at + i) % counters->sets;

		if (!try_lock_set(counters, set))
			continue;
		done = shed_from(counters, set, now);
		counters_unlock_set(counters, set);
	}
	return done;
}
