// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * store_table.c - words: locked, found, placed and written.
 *
 * A set's lock is a byte of this process: 0x80 while it is held, and below it a bit for each way
 * that the call has use for, so that it does not throw out one of its words for another. Who
 * waits spins (lib/spin.h).
 *
 * Writes are ordered so that a process that is killed at any instruction leaves a table that
 * another can use. A new entry's key comes last; a way changes hands with its key 0; an entry
 * that gets another class gets it before the word (for the few nanoseconds between the two, a
 * bucket's debt would be read as one of its new rate, cut at twice its capacity).
 */
#include <stdlib.h>

#include "cluster/quota/share.h"
#include "counters/store_table.h"
#include "lib/spin.h"

#define LOCKED 0x80
/* A word at half its limit or more is never thrown out. */
#define WEIGHT_HALF 128

/* ------------------------------------------------------------------ locks */

void store_lock_set(struct store *store, u32 set)
{
	u8 *lock = &store->lock[set];
	u32 turns = 0;
	u8 free = 0;

	/* In one order with block_state(): see store_settle(). */
	while (!__atomic_compare_exchange_n(lock, &free, LOCKED, false, __ATOMIC_SEQ_CST,
					    __ATOMIC_RELAXED)) {
		free = 0;
		spin_wait(&turns);
	}
}

void store_unlock_set(struct store *store, u32 set)
{
	__atomic_store_n(&store->lock[set], 0, __ATOMIC_RELEASE);
}

/* The holder's own: others only ever compare the byte with 0. */
static void keep_way(struct store *store, u32 set, u32 way)
{
	u8 *lock = &store->lock[set];

	__atomic_store_n(lock, __atomic_load_n(lock, __ATOMIC_RELAXED) | 1U << way,
			 __ATOMIC_RELAXED);
}

static bool is_kept(const struct store *store, u32 set, u32 way)
{
	return __atomic_load_n(&store->lock[set], __ATOMIC_RELAXED) & (1U << way);
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

void store_prefetch(const struct store *store, u64 key)
{
	for (u32 which = 0; which < 2; which++) {
		u32 set = sl_key_set(key, which, store->sets);

		__builtin_prefetch(&store->lock[set], 1);
		__builtin_prefetch(&store->set[set], 1);
		__builtin_prefetch((const char *)&store->set[set] + 64, 1);
	}
}

void store_begin(struct store *store, struct store_locks *locks, const struct store_ref *ref,
		 u32 count)
{
	u32 kept = 0;

	locks->store = store;
	locks->count = 0;
	for (u32 i = 0; i < count; i++) {
		locks->set[locks->count++] = sl_key_set(ref[i].key, 0, store->sets);
		locks->set[locks->count++] = sl_key_set(ref[i].key, 1, store->sets);
	}
	sort(locks->set, locks->count);
	for (u32 i = 0; i < locks->count; i++)
		if (!i || locks->set[i] != locks->set[i - 1])
			locks->set[kept++] = locks->set[i];
	locks->count = kept;
	for (u32 i = 0; i < kept; i++)
		store_lock_set(store, locks->set[i]);
}

void store_end(struct store_locks *locks)
{
	for (u32 i = 0; i < locks->count; i++)
		store_unlock_set(locks->store, locks->set[i]);
}

/* ------------------------------------------------------------------ ways */

/* Windows of limits that nodes share are by their store's clock; a word does not say whose it is. */
static struct sl_now shared_time(const struct store *store, struct sl_now now)
{
	if (store->shares)
		now.utc_ns += shares_clock_offset_ns(store->shares);
	return now;
}

static u32 weight_of(const struct store *store, const struct spec *spec, u64 word,
		     struct sl_now now)
{
	u32 here = spec_weight(spec, word, now), there = here;

	if (store->shares)
		there = spec_weight(spec, word, shared_time(store, now));
	return here > there ? here : there;
}

u32 store_way_weight(struct store *store, const struct store_set *set, u32 way,
		     struct sl_now now)
{
	const struct spec *spec = store_spec(store, set->class[way]);
	u64 word = set->word[way], count;

	if (!spec)
		return 0;
	if (spec->algo != HTTP_SLIDING_LOG)
		return weight_of(store, spec, word, now);
	if (request_log_dead(&store->logs, spec, word, now))
		return 0;
	/* What of it has expired counts with the rest: to be counted, it would have to go. */
	count = request_log_count(word);
	return count >= spec->capacity ? 255 : 1 + count * 254 / spec->capacity;
}

static bool way_dead(struct store *store, const struct store_set *set, u32 way, struct sl_now now)
{
	const struct spec *spec = store_spec(store, set->class[way]);

	if (!spec)
		return true;
	if (spec->algo == HTTP_SLIDING_LOG)
		return request_log_dead(&store->logs, spec, set->word[way], now);
	return spec_dead(spec, set->word[way], now) &&
	       spec_dead(spec, set->word[way], shared_time(store, now));
}

void store_way_free(struct store *store, struct store_set *set, u32 way)
{
	const struct spec *spec = store_spec(store, set->class[way]);

	store_touch(store, set);
	__atomic_store_n(&set->key[way], 0, __ATOMIC_RELAXED);
	if (spec && spec->algo == HTTP_SLIDING_LOG)
		request_log_free(&store->logs, set->word[way]);
}

/* ------------------------------------------------------------------ one word */

void store_put(struct store *store, struct store_ref *ref, u64 word)
{
	struct store_set *set = &store->set[ref->set];

	ref->word = word;
	store_touch(store, set);
	if (!word) {
		__atomic_store_n(&set->key[ref->way], 0, __ATOMIC_RELEASE);
		return;
	}
	__atomic_store_n(&set->class[ref->way], ref->class, __ATOMIC_RELEASE);
	__atomic_store_n(&set->word[ref->way], word, __ATOMIC_RELEASE);
	__atomic_store_n(&set->key[ref->way], ref->key, __ATOMIC_RELEASE);
}

void store_forget(struct store *store, struct store_ref *ref)
{
	store_way_free(store, &store->set[ref->set], ref->way);
	ref->present = false;
	ref->word = 0;
}

static bool find(const struct store *store, u64 key, u32 *ret_set, u8 *ret_way)
{
	for (u32 which = 0; which < 2; which++) {
		u32 at = sl_key_set(key, which, store->sets);
		const struct store_set *set = &store->set[at];

		for (u32 way = 0; way < STORE_WAYS; way++) {
			if (set->key[way] != key)
				continue;
			*ret_set = at;
			*ret_way = way;
			return true;
		}
	}
	return false;
}

void store_forget_key(struct store *store, u64 key)
{
	u32 set;
	u8 way;

	if (find(store, key, &set, &way))
		store_way_free(store, &store->set[set], way);
}

void store_look(struct store *store, struct store_ref *ref, struct sl_now now)
{
	const struct spec *from;
	struct store_set *set;
	bool log;
	u16 class;

	ref->word = 0;
	ref->spec = NULL;
	ref->claimed = false;
	ref->class = store_class(store, &ref->def, ref->caller, &ref->spec);
	ref->present = find(store, ref->key, &ref->set, &ref->way);
	if (!ref->present || !ref->class)
		return;
	set = &store->set[ref->set];
	class = set->class[ref->way];
	from = store_spec(store, class);
	log = ref->spec->algo == HTTP_SLIDING_LOG;
	if (!from || from->algo != ref->spec->algo ||
	    (log && from->tick_shift != ref->spec->tick_shift)) {
		/* A limit of another kind: what it counted means nothing here. */
		store_way_free(store, set, ref->way);
		ref->present = false;
		return;
	}
	keep_way(store, ref->set, ref->way);
	ref->word = set->word[ref->way];
	if (log) {
		ref->word = request_log_expire(&store->logs, ref->spec, ref->word, now);
		if (set->word[ref->way] != ref->word) {
			store_touch(store, set);
			set->word[ref->way] = ref->word;
		}
	} else if (class != ref->class) {
		ref->word = spec_convert(from, ref->spec, ref->word, now);
	}
	/* At once, also where the call is refused: a debt drains at its new rate from here on. */
	if (class != ref->class || !ref->word)
		store_put(store, ref, ref->word);
	ref->present = ref->word;
}

struct places {
	u32 set, way;
	u32 free;		/* ways of that set that are empty, or dead */
};

/* Empty ways of a set, or dead ones. */
static struct places places_in(struct store *store, u32 at, bool dead, struct sl_now now)
{
	const struct store_set *set = &store->set[at];
	struct places p = { .set = at };

	for (u32 way = STORE_WAYS; way--;) {
		if (is_kept(store, at, way))
			continue;
		if (set->key[way] && (!dead || !way_dead(store, set, way, now)))
			continue;
		p.way = way;
		p.free++;
	}
	return p;
}

/* The live word of least weight, if that is below half of its limit. */
static bool victim(struct store *store, u64 key, struct sl_now now, struct places *ret)
{
	u32 least = WEIGHT_HALF;

	for (u32 which = 0; which < 2; which++) {
		u32 at = sl_key_set(key, which, store->sets);

		for (u32 way = 0; way < STORE_WAYS; way++) {
			u32 weight;

			if (is_kept(store, at, way))
				continue;
			weight = store_way_weight(store, &store->set[at], way, now);
			if (weight >= least)
				continue;
			least = weight;
			*ret = (struct places){ at, way, 1 };
		}
	}
	return least < WEIGHT_HALF;
}

static void count_forgiven(struct store *store, const struct places *p, struct sl_now now)
{
	const struct store_set *set = &store->set[p->set];
	const struct spec *spec = store_spec(store, set->class[p->way]);
	struct spec_view view;
	u64 used = 1;

	if (spec && spec->algo == HTTP_SLIDING_LOG) {
		used = request_log_count(set->word[p->way]);
	} else if (spec && spec->algo != HTTP_GRACE) {
		spec_view_init(&view, spec, 0, 0);
		used = spec->capacity - spec_remaining(&view, set->word[p->way], now);
	}
	__atomic_fetch_add(&store->evicted, 1, __ATOMIC_RELAXED);
	__atomic_fetch_add(&store->forgiven, used, __ATOMIC_RELAXED);
}

bool store_claim(struct store *store, struct store_ref *ref, struct sl_now now)
{
	u32 a = sl_key_set(ref->key, 0, store->sets), b = sl_key_set(ref->key, 1, store->sets);
	struct places p = { 0 }, q;

	if (!ref->class)
		return false;
	for (u32 dead = 0; dead < 2 && !p.free; dead++) {
		p = places_in(store, a, dead, now);
		q = places_in(store, b, dead, now);
		if (q.free > p.free)
			p = q;
	}
	if (!p.free && !victim(store, ref->key, now, &p))
		return false;
	if (store->set[p.set].key[p.way] &&
	    store_way_weight(store, &store->set[p.set], p.way, now))
		count_forgiven(store, &p, now);
	ref->set = p.set;
	ref->way = p.way;
	ref->claimed = true;
	if (store->set[p.set].key[p.way])
		store_way_free(store, &store->set[p.set], p.way);
	keep_way(store, p.set, p.way);
	return true;
}

/* ------------------------------------------------------------------ the logs' pool */

#define SHED_SETS 256

/* A set that is locked is passed over: it may be the call's own. */
static bool try_lock_set(struct store *store, u32 set)
{
	u8 free = 0;

	return __atomic_compare_exchange_n(&store->lock[set], &free, LOCKED, false,
					   __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
}

static bool shed_from(struct store *store, u32 at, struct sl_now now)
{
	struct store_set *set = &store->set[at];
	u32 least = WEIGHT_HALF;
	struct places p = { .set = at };

	for (u32 way = 0; way < STORE_WAYS; way++) {
		const struct spec *spec = set->key[way] ? store_spec(store, set->class[way]) : NULL;
		u32 weight;

		if (!spec || spec->algo != HTTP_SLIDING_LOG)
			continue;
		weight = store_way_weight(store, set, way, now);
		if (weight >= least)
			continue;
		least = weight;
		p.way = way;
	}
	if (least == WEIGHT_HALF)
		return false;
	if (least)
		count_forgiven(store, &p, now);
	store_way_free(store, set, p.way);
	return true;
}

bool store_shed_log(struct store *store, struct sl_now now)
{
	u32 at = __atomic_fetch_add(&store->shed_at, SHED_SETS, __ATOMIC_RELAXED);
	bool done = false;

	for (u32 i = 0; i < SHED_SETS && i < store->sets && !done; i++) {
		u32 set = (at + i) % store->sets;

		if (!try_lock_set(store, set))
			continue;
		done = shed_from(store, set, now);
		store_unlock_set(store, set);
	}
	return done;
}
