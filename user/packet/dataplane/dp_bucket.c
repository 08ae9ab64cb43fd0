// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * dp_bucket.c - see dp_bucket.h.
 *
 * A source that gets, loses or changes its own rates moves to another bucket state, or to another
 * measure of the same one. Its use goes with it: as a share of the capacity (debt by tau), or as
 * the count of its window. If both bucket states have some, the larger share counts, so no live
 * change gives a source more than its limit. The old bucket state is left to expire: if the change
 * is reverted, even by the data path alone, it is there.
 *
 * The daemon makes the other key's bucket state beside the program, which makes its own in steps
 * (bpf/table.h) with the bucket state BUSY in between. A daemon killed there would leave the way
 * BUSY for good; so here key and bucket state change in one 16-byte compare-and-swap. The program
 * detects it: it reads the key again after it has taken a bucket state.
 */
#include <string.h>

#include "packet/dataplane/dp_bucket.h"
#include "packet/compile/override_index.h"

#define TRIES 8

typedef unsigned __int128 u128;

/* ------------------------------------------------------------------ which bucket */

bool dp_bucket_of(const struct sl_image *image, u32 index, const struct sl_prefix *source,
		  u32 longest, struct dp_bucket *ret)
{
	const struct sl_rules *rules = image->rules;
	const struct sl_limit *meter = &rules->limits[index];
	const struct sl_addr none = { 0 };
	const struct sl_override *own;
	u32 own_len = 0;

	if (meter->prefix[source->family] == SL_PREFIX_NONE)
		return false;
	ret->params = meter->params;
	own = override_index_find(image->overrides, rules, index, source->addr, source->family,
				  longest);
	if (own && own->rest & SL_OVERRIDE_SKIP)
		return false;
	if (own) {
		meter = &rules->limits[meter->overridden];
		own_len = sl_override_own(own->rest);
		ret->params = meter->params;
		ret->params.mult = own->mult;
		ret->params.tau = own->tau;
		ret->params.capacity = sl_override_capacity(own->rest);
		ret->params.shift = sl_override_shift(own->rest);
	}
	if (!own_len)
		own_len = sl_link_own(meter, source->family, source->addr);
	ret->key = sl_bucket_key_own(rules, meter, own_len, source->addr, none, source->family, 0,
				     0, 0, 0);
	return true;
}

/* ------------------------------------------------------------------ a bucket state in the table */

static struct sl_way *find_way(struct dp *dp, u64 key)
{
	u32 sets = dp->table_sets;
	struct sl_set *table = dp->table;

	key &= ~SL_KEY_REFUSED;
	for (u32 i = 0; i < 2 * SL_WAYS; i++) {
		struct sl_way *way = &table[sl_table_set(key, i / SL_WAYS, sets)].way[i % SL_WAYS];

		if (sl_key_is(__atomic_load_n(&way->key, __ATOMIC_ACQUIRE), key))
			return way;
	}
	return NULL;
}

/* noinline: clang would inline it into a function without cx16, and call a function that no library
 * has. */
#if defined(__x86_64__)
__attribute__((target("cx16"), noinline))
#endif
static bool
swap_way(struct sl_way *way, struct sl_way from, struct sl_way to)
{
	u128 old = (u128)from.bucket_state << 64 | from.key,
	     new = (u128)to.bucket_state << 64 | to.key;

	return __sync_bool_compare_and_swap((u128 *)way, old, new);
}

/* A way whose key may be replaced at no loss: empty, or with an expired bucket state. */
static bool is_free(struct dp *dp, struct sl_way way, struct sl_now now)
{
	const struct sl_rules *rules = dp->ops->rules(dp);
	u32 slot = sl_key_limit_id(way.key), index;

	if (!way.key || !way.bucket_state)
		return way.bucket_state != SL_STATE_BUSY;
	if (way.bucket_state == SL_STATE_BUSY || !rules || slot >= SL_LIMIT_IDS)
		return false;
	index = rules->limit_of_id[slot];
	return index < SL_METERS_MAX &&
	       sl_expired(way.bucket_state, &rules->limits[index].params, now);
}

/* Inserts a key that is not there. False if there is no room: the source starts anew. */
static bool install(struct dp *dp, u64 key, u64 bucket_state, struct sl_now now)
{
	u32 sets = dp->table_sets;
	struct sl_set *table = dp->table;

	for (u32 i = 0; i < 2 * SL_WAYS; i++) {
		struct sl_way *way = &table[sl_table_set(key & ~SL_KEY_REFUSED, i / SL_WAYS, sets)]
					      .way[i % SL_WAYS];
		struct sl_way seen = { .key = __atomic_load_n(&way->key, __ATOMIC_ACQUIRE),
				       .bucket_state = __atomic_load_n(&way->bucket_state,
								       __ATOMIC_ACQUIRE) };

		if (is_free(dp, seen, now) &&
		    swap_way(way, seen, (struct sl_way){ key, bucket_state }))
			return true;
	}
	return false;
}

/* Computes a key's new bucket state from its current one. */
typedef u64 (*bucket_fn)(u64 bucket_state, const struct dp_bucket *to, struct sl_now now,
			 const void *arg);

static void update(struct dp *dp, const struct dp_bucket *to, struct sl_now now, bucket_fn change,
		   const void *arg)
{
	for (int i = 0; i < TRIES; i++) {
		struct sl_way *way = find_way(dp, to->key);
		u64 old = way ? __atomic_load_n(&way->bucket_state, __ATOMIC_ACQUIRE) : 0, new;
		u64 key = way ? __atomic_load_n(&way->key, __ATOMIC_ACQUIRE) : to->key;

		if (old == SL_STATE_BUSY)
			continue;
		new = change(old, to, now, arg);
		if (new == old)
			return;
		if (!sl_key_is(key, to->key))
			continue;
		if (way ? swap_way(way, (struct sl_way){ key, old }, (struct sl_way){ key, new })
			: install(dp, to->key, new, now))
			return;
		if (!way)
			return;
	}
}

/* ------------------------------------------------------------------ what goes along */

/* Ticks of one bucket as the same share of another's; rounded up. */
static u64 convert(u64 ticks, const struct sl_params *from, const struct sl_params *to)
{
	u128 scaled = ((u128)ticks * to->tau + from->tau - 1) / from->tau;

	return scaled < to->tau ? (u64)scaled : to->tau;
}

struct carried {
	const struct dp_bucket *from;
	u64 bucket_state, amount;
};

static u64 raise_bucket(u64 bucket_state, const struct dp_bucket *to, struct sl_now now,
			const void *arg)
{
	const struct carried *c = arg;
	u64 ticks = now.mono_ns * SL_TICKS_PER_NS, debt;

	/* A window's count is the same number under any limit. */
	if (sl_is_window(&to->params))
		return sl_used(bucket_state, &to->params, now) <
				       sl_used(c->bucket_state, &to->params, now)
			       ? c->bucket_state
			       : bucket_state;
	debt = convert(sl_gcra_debt(c->bucket_state, &c->from->params, ticks), &c->from->params,
		       &to->params);
	return debt > sl_gcra_debt(bucket_state, &to->params, ticks)
		       ? sl_gcra_state(&to->params, ticks, debt)
		       : bucket_state;
}

/* The same bucket state, measured by other parameters. */
static u64 measure_bucket(u64 bucket_state, const struct dp_bucket *to, struct sl_now now,
			  const void *arg)
{
	const struct carried *c = arg;
	u64 ticks = now.mono_ns * SL_TICKS_PER_NS;
	u64 debt = sl_gcra_debt(bucket_state, &c->from->params, ticks);

	if (!debt)
		return bucket_state;
	return sl_gcra_state(&to->params, ticks, convert(debt, &c->from->params, &to->params));
}

static u64 add_bucket(u64 bucket_state, const struct dp_bucket *to, struct sl_now now,
		      const void *arg)
{
	const struct carried *c = arg;
	u64 ticks = now.mono_ns * SL_TICKS_PER_NS, debt;
	struct sl_result res;

	if (sl_is_window(&to->params)) {
		u64 used = sl_used(bucket_state, &to->params, now), left, cost = c->amount;

		left = used < to->params.capacity ? to->params.capacity - used : 0;
		if (cost > left)
			cost = left;
		if (cost > SL_COST_MAX)
			cost = SL_COST_MAX;
		res = sl_step(bucket_state, &to->params, now, cost);
		return cost && res.verdict == SL_PASS ? res.bucket_state : bucket_state;
	}
	debt = sl_gcra_debt(bucket_state, &to->params, ticks) +
	       convert(c->amount, &c->from->params, &to->params);
	if (debt > to->params.tau)
		debt = to->params.tau;
	return sl_gcra_state(&to->params, ticks, debt);
}

void dp_bucket_carry(struct dp *dp, const struct dp_bucket *from, const struct dp_bucket *to,
		     struct sl_now now, u64 *ret_word)
{
	struct carried c = { .from = from, .bucket_state = dp_bucket_state(dp, from->key) };

	*ret_word = c.bucket_state;
	if (!c.bucket_state || sl_expired(c.bucket_state, &from->params, now))
		return;
	if (from->key != to->key)
		update(dp, to, now, raise_bucket, &c);
	else if (to->params.tau > from->params.tau)
		update(dp, to, now, measure_bucket, &c);
	/* With a smaller tau the debt is smaller; before the change that would be too little. */
}

void dp_bucket_carry_rest(struct dp *dp, const struct dp_bucket *from, const struct dp_bucket *to,
			  struct sl_now then, struct sl_now now, u64 bucket_state)
{
	struct carried c = { .from = from, .bucket_state = dp_bucket_state(dp, from->key) };
	u64 began = bucket_state >> SL_GCRA_GEN_BITS, ends = c.bucket_state >> SL_GCRA_GEN_BITS;

	if (from->key == to->key) {
		if (c.bucket_state && to->params.tau < from->params.tau)
			update(dp, to, now, measure_bucket, &c);
		return;
	}
	if (c.bucket_state == bucket_state || !c.bucket_state)
		return;
	if (sl_is_window(&from->params)) {
		u64 before = bucket_state ? sl_used(bucket_state, &from->params, now) : 0;

		c.amount = sl_used(c.bucket_state, &from->params, now);
		c.amount -= c.amount < before ? c.amount : before;
	} else {
		if (began < then.mono_ns * SL_TICKS_PER_NS)
			began = then.mono_ns * SL_TICKS_PER_NS;
		c.amount = ends > began ? ends - began : 0;
	}
	if (c.amount)
		update(dp, to, now, add_bucket, &c);
}

/* ------------------------------------------------------------------ what others let through */

static u64 at_most(u64 x, u64 most)
{
	return x < most ? x : most;
}

/* Units before a time, as if they had come evenly from `since` to `until`. */
static u64 units_before(const struct dp_charge *charge, u64 at_ns)
{
	u64 since = charge->since.utc_ns, until = charge->until.utc_ns;

	if (at_ns <= since)
		return 0;
	return at_ns < until ? (u64)((u128)charge->units * (at_ns - since) / (until - since))
			     : charge->units;
}

/* The units of the window that begins at `from_ns`. Of several windows together none is lost to
 * rounding. */
static u64 units_within(const struct dp_charge *charge, u64 from_ns, u64 window_ns)
{
	return units_before(charge, from_ns + window_ns) - units_before(charge, from_ns);
}

static u64 charge_window(u64 bucket_state, const struct sl_params *p, struct sl_now now,
			 const struct dp_charge *charge)
{
	u64 number, count = sl_window_count(bucket_state, p, now.utc_ns, &number);
	u64 most = at_most(2 * p->capacity, SL_WINDOW_COUNT_MASK - 1);
	/* Units of earlier windows count in an interval bucket, too. */
	u64 units = p->mult ? charge->units
			    : units_within(charge, now.utc_ns - now.utc_ns % p->window_ns,
					   p->window_ns);

	if (!units || count >= most)
		return bucket_state;
	return sl_window_state(number, count + at_most(units, most - count));
}

/* Quanta, rounded as the steps round them. `times`: the capacity is the most. */
static u64 add_quanta(u64 count, u64 units, u32 times, const struct sl_params *p, struct sl_now now)
{
	u64 most = at_most(times * (p->capacity >> (p->quantum & 63)), SL_SLIDING_COUNT_MAX);
	u64 quanta = (units + sl_sliding_random(p, now.utc_ns)) >> (p->quantum & 63);

	return count >= most || !units ? count : count + at_most(quanta, most - count);
}

static u64 charge_sliding(u64 bucket_state, const struct sl_params *p, struct sl_now now,
			  const struct dp_charge *charge)
{
	struct sl_sliding s = sl_sliding_read(bucket_state, p, now.utc_ns);
	u64 began = now.utc_ns - now.utc_ns % p->window_ns;
	u64 is = units_within(charge, began, p->window_ns);
	u64 was = units_within(charge, began - p->window_ns, p->window_ns);
	u32 times = charge->refused ? 1 : 2;

	if (!is && !was)
		return bucket_state;
	s.previous = add_quanta(s.previous, was, times, p, now);
	return sl_sliding_state(&s, add_quanta(s.current, is, times, p, now));
}

/*
 * Units count in the sub-counters of their time: all in the newest would count for up to one too
 * long. What was refused elsewhere fills each up to the limit; what was admitted is a debt, in all
 * up to twice the limit.
 */
static u64 charge_counters(u64 bucket_state, const struct sl_params *p, struct sl_now now,
			   const struct dp_charge *charge)
{
	struct sl_counters c = sl_counters_read(bucket_state, p, now.utc_ns);
	u64 began = now.utc_ns - now.utc_ns % p->mult, used = sl_counters_sum(&c, p);
	u64 most = charge->refused ? p->capacity : sl_counters_mask(p) - 1;

	for (u32 age = 0; age < p->quantum; age++) {
		u64 count = sl_counters_at(&c, p, age),
		    units = units_within(charge, began - age * p->mult, p->mult);

		units = at_most(units, count < most ? most - count : 0);
		if (!charge->refused)
			units = at_most(units, used < 2 * p->capacity ? 2 * p->capacity - used : 0);
		used += units;
		c.counts += units << (age * p->shift);
	}
	return sl_counters_state(&c);
}

/* A debt beyond tau shows only its time: the steps take any such debt for tau, and refuse. */
static u64 charge_bucket(u64 bucket_state, const struct sl_params *p, struct sl_now now,
			 const struct dp_charge *charge)
{
	u64 ticks = now.mono_ns * SL_TICKS_PER_NS, full = bucket_state >> SL_GCRA_GEN_BITS, most;
	u64 since = charge->since.mono_ns * SL_TICKS_PER_NS;

	if ((bucket_state & SL_GCRA_GEN_MASK) != p->gen)
		full = ticks + sl_gcra_debt(bucket_state, p, ticks);
	most = ticks + p->tau + at_most(charge->beyond_ns, SL_BIT(55)) * SL_TICKS_PER_NS;
	if (full >= most)
		return bucket_state;
	if (!charge->refused && full < since)
		full = since;
	full += at_most(charge->ticks, most - full);
	if (charge->refused && full < since + p->tau)
		full = since + p->tau;
	return full > ticks ? sl_gcra_state(p, full, 0) : bucket_state;
}

static u64 charge_state(u64 bucket_state, const struct dp_bucket *to, struct sl_now now,
			const void *arg)
{
	const struct sl_params *p = &to->params;

	if (sl_is_bucket(p))
		return charge_bucket(bucket_state, p, now, arg);
	if (p->algo == SL_ALGO_WINDOW_COUNTERS)
		return charge_counters(bucket_state, p, now, arg);
	return sl_algo_is_sliding(p->algo) ? charge_sliding(bucket_state, p, now, arg)
					   : charge_window(bucket_state, p, now, arg);
}

void dp_bucket_charge(struct dp *dp, const struct dp_bucket *to, const struct dp_charge *charge,
		      struct sl_now now)
{
	if (charge->units)
		update(dp, to, now, charge_state, charge);
}
