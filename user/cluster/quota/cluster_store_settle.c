// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * cluster_store_settle.c - the numbers that charge.lua gets for a limit, and what its reply is turned
 * into: waits, the state of a bucket in Redis, and the bucket state of this machine's counter
 * table. By that the steps of spec.h, which have no notion of other nodes, refuse and compute waits
 * according to what all nodes have charged.
 *
 * A window has the same number here and in Redis: time / period, modulo what a bucket state can
 * hold. Where the window in Redis is not the one of now.utc_ns, the steps treat it as any bucket
 * state: an earlier window is over, a later one goes on.
 */
#include <errno.h>

#include "cluster/quota/cluster_store_settle.h"
#include "lib/whole.h"
#include "limiter/anchored.h"

typedef unsigned __int128 u128;

#define EXACT SL_BIT(53)

int cluster_store_rate_make(const struct spec_def *def, struct cluster_store_rate *ret)
{
	struct spec spec;
	u64 step = 1;

	if (def->algo >= HTTP_GRACE || spec_make_def(def, &spec, NULL))
		return -EINVAL;
	*ret = (struct cluster_store_rate){
		.capacity = spec.params.capacity,
		.mult = spec.params.mult,
		.period_us = spec.params.window_ns / 1000,
		.algo = def->algo,
	};
	if (def->algo > HTTP_LEAKY_BUCKET)
		return 0;
	while ((u128)2 * ret->capacity * ((ret->mult + step - 1) & ~(step - 1)) >=
	       (u128)EXACT * step)
		step *= 2;
	ret->mult = (ret->mult + step - 1) & ~(step - 1);
	/* A debt is only a multiple of 128 then, and is rounded by as much: twice that on top. */
	if (step > 128)
		ret->mult += step;
	ret->tau = ret->capacity * ret->mult;
	ret->most = EXACT * step;
	return 0;
}

int cluster_store_request_check(const struct cluster_store_request *ask)
{
	if (!ask->count || ask->count > CLUSTER_STORE_BUCKETS_MAX)
		return -E2BIG;
	for (u32 i = 0; i < ask->count; i++) {
		const struct cluster_store_bucket *b = &ask->bucket[i];

		if (b->kind > CLUSTER_STORE_REFUND)
			return -EINVAL;
		for (u32 k = 0; k < i; k++)
			if (ask->bucket[k].key == b->key && ask->bucket[k].tag == b->tag)
				return -EINVAL;
	}
	return 0;
}

u64 cluster_store_most_debt(const struct cluster_store_rate *rate, u64 above)
{
	u128 most;

	if (rate->algo > HTTP_LEAKY_BUCKET)
		return 0;
	most = ((u128)rate->capacity + (above ? above : rate->capacity)) * rate->mult;
	return most < rate->most ? most : rate->most;
}

static u64 us_to_ns(u64 us)
{
	return us > ~0ULL / 1000 ? ~0ULL : us * 1000;
}

/* How long until floor(previous x left' / W) is `most` or less; left, of a window that goes on. */
static u64 fraction_wait_us(u64 previous, u64 most, u64 left_us, u64 period_us)
{
	/* previous x left' < (most + 1) x W */
	u128 below = (u128)(most + 1) * period_us, highest;

	if (!previous)
		return 0;
	highest = (below + previous - 1) / previous - 1;
	return highest < left_us ? left_us - (u64)highest : 0;
}

static u64 sliding_wait_us(const struct cluster_store_rate *rate,
			   const struct cluster_store_raw *raw, u64 room, u64 cost, u64 now_us)
{
	u64 start = raw->window * rate->period_us;
	u64 early = less(start, now_us), left = rate->period_us - less(now_us, start);
	u64 twice = 2 * rate->capacity, before = min_u64(raw->before, twice);

	if (raw->used <= room - cost)
		return early + fraction_wait_us(before, room - raw->used - cost, left, rate->period_us);
	return early + left +
	       fraction_wait_us(min_u64(raw->used, twice), room - cost, rate->period_us,
				rate->period_us);
}

/* How long until a refused bucket fits. `hold` is reserved from a cost, not from a look. */
static u64 wait_ns(const struct cluster_store_bucket *bucket, const struct cluster_store_rate *rate,
		   const struct cluster_store_raw *raw, u64 now_us)
{
	u64 room = bucket->cost ? less(rate->capacity, bucket->hold) : rate->capacity;

	if (bucket->cost > room)
		return ~0ULL;
	switch (rate->algo) {
	case HTTP_TOKEN_BUCKET:
	case HTTP_LEAKY_BUCKET:
		return (less(raw->used, (room - bucket->cost) * rate->mult) + SL_TICKS_PER_NS - 1) /
		       SL_TICKS_PER_NS;
	case HTTP_FIXED_WINDOW:
		return us_to_ns(less((raw->window + 1) * rate->period_us, now_us));
	case HTTP_SLIDING_WINDOW:
		return us_to_ns(sliding_wait_us(rate, raw, room, bucket->cost, now_us));
	case HTTP_SLIDING_LOG:
		return us_to_ns(less(raw->fits_us, now_us));
	default:
		return us_to_ns(less(raw->window + rate->period_us, now_us));
	}
}

void cluster_store_settle(struct cluster_store_bucket *bucket,
			  const struct cluster_store_rate *rate,
			  const struct cluster_store_raw *raw, u64 now_us)
{
	u64 used = less(raw->used, raw->held);

	if (rate->algo <= HTTP_LEAKY_BUCKET)
		used = less(raw->used, raw->held * rate->mult) / SL_TICKS_PER_NS;
	bucket->late = raw->late;
	bucket->over = raw->over;
	bucket->granted = raw->granted;
	bucket->excess = raw->excess;
	bucket->wait_ns = raw->over ? wait_ns(bucket, rate, raw, now_us) : 0;
	bucket->state = (struct cluster_store_state){
		.used = used,
		.before = raw->before,
		.window = raw->window,
		.own = raw->own,
	};
}

/* ------------------------------------------------------------------ bucket states of the counter table */

/* A bucket state holds at most twice the limit of forced counts, as spec_force() has it. */
static u64 count_of(const struct spec *spec, u64 used, u64 more)
{
	u64 sum;

	if (__builtin_add_overflow(used, more, &sum))
		sum = ~0ULL;
	return min_u64(sum, 2 * spec->params.capacity);
}

static u64 quanta(const struct spec *spec, u64 count)
{
	u32 quantum = spec->params.quantum & 63;

	return min_u64((count + SL_BIT(quantum) - 1) >> quantum, SL_SLIDING_COUNT_MAX);
}

/*
 * The whole debt counts, beyond one capacity too: it is what nodes with write_back admitted too much.
 * If it were cut at one capacity, n nodes on a bucket that drains in less than an interval would
 * continue at n times its rate.
 */
#define DEBT_MAX_NS (366ULL * 86400 * 1000000000)

static u64 make_bucket_state(const struct spec *spec, const struct cluster_store_state *state,
			     u64 more, struct sl_now now)
{
	const struct sl_params *p = &spec->params;
	u64 debt = min_u64(state->used, DEBT_MAX_NS) * SL_TICKS_PER_NS;

	more = min_u64(more, 2 * p->capacity);
	debt += min_u64(sl_gcra_ticks(p, more), 2 * p->tau);
	return debt ? (now.mono_ns * SL_TICKS_PER_NS + debt) << SL_GCRA_GEN_BITS : 0;
}

static u64 sliding_state(const struct spec *spec, const struct cluster_store_state *state,
			 u64 number, u64 count)
{
	u64 before = quanta(spec, min_u64(state->before, 2 * spec->params.capacity));
	struct sl_sliding s = {
		.number = number & SL_SLIDING_NUMBER_MASK,
		.previous = before,
	};

	count = quanta(spec, count);
	return count || before ? sl_sliding_state(&s, count) : 0;
}

/* A window without a begin begins now. */
static u64 first_state(const struct spec *spec, const struct cluster_store_state *state, u64 count,
		       struct sl_now now)
{
	u64 window_ns = spec->params.window_ns, left = window_ns, end;
	s64 gone = (s64)(now.utc_ns - state->window * 1000);

	if (state->window && gone > 0)
		left = (u64)gone < window_ns ? window_ns - gone : 0;
	if (!left)
		return 0;
	end = (now.mono_ns + left + SL_BIT(spec->tick_shift) - 1) >> spec->tick_shift;
	return anchored_state(end & (SL_BIT(64 - spec->count_bits) - 1), spec->count_bits,
			      min_u64(count, SL_BIT(spec->count_bits) - 1));
}

u64 cluster_store_bucket_state(const struct spec *spec, const struct cluster_store_state *state,
			       u64 more_hits, struct sl_now now)
{
	u64 count = count_of(spec, state->used, more_hits);
	u64 number = state->window;

	if (spec->algo <= HTTP_SLIDING_WINDOW && !number && spec->params.window_ns)
		number = now.utc_ns / spec->params.window_ns;
	switch (spec->algo) {
	case HTTP_TOKEN_BUCKET:
	case HTTP_LEAKY_BUCKET:
		return make_bucket_state(spec, state, more_hits, now);
	case HTTP_FIXED_WINDOW:
		count = min_u64(count, SL_WINDOW_COUNT_MASK);
		return count ? sl_window_state(number & SL_WINDOW_NUMBER_MASK, count) : 0;
	case HTTP_SLIDING_WINDOW:
		return sliding_state(spec, state, number, count);
	case HTTP_FIRST_REQUEST:
		return first_state(spec, state, count, now);
	default:
		return 0;
	}
}

/* The whole number of a window whose lowest bits a bucket state has: the current one or a later. */
static u64 whole_number(u64 number, u64 mask, const struct spec *spec, struct sl_now now)
{
	u64 current = now.utc_ns / spec->params.window_ns;

	return current + ((number - current) & mask);
}

struct cluster_store_state cluster_store_state_of(const struct spec *spec, u64 bucket_state,
						  struct sl_now now)
{
	const struct sl_params *p = &spec->params;
	struct cluster_store_state state = { 0 };
	u64 tat, end, left;

	switch (spec->algo) {
	case HTTP_TOKEN_BUCKET:
	case HTTP_LEAKY_BUCKET:
		tat = bucket_state >> SL_GCRA_GEN_BITS;
		if (tat > now.mono_ns * SL_TICKS_PER_NS)
			state.used = (tat - now.mono_ns * SL_TICKS_PER_NS) / SL_TICKS_PER_NS;
		break;
	case HTTP_FIXED_WINDOW:
		state.used = sl_window_count(bucket_state, p, now.utc_ns, &state.window);
		state.window = whole_number(state.window, SL_WINDOW_NUMBER_MASK, spec, now);
		break;
	case HTTP_SLIDING_WINDOW: {
		struct sl_sliding s = sl_sliding_read(bucket_state, p, now.utc_ns);

		state.used = s.current << p->quantum;
		state.before = s.previous << p->quantum;
		state.window = whole_number(s.number, SL_SLIDING_NUMBER_MASK, spec, now);
		break;
	}
	case HTTP_FIRST_REQUEST:
		state.used = anchored_read(bucket_state, spec->count_bits, spec->tick_shift,
					   p->window_ns, now.mono_ns, &end, &left);
		if (state.used)
			state.window = (now.utc_ns + left - p->window_ns) / 1000;
		break;
	case HTTP_SLIDING_LOG:
		state.used = bucket_state & (SL_BIT(28) - 1);
		break;
	default:
		break;
	}
	return state;
}
