// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * cluster_store_settle.c - converts a limit to the arguments of charge.lua, and its reply to waits,
 * the state of a bucket in Redis, and the bucket state of this machine's counter table. With that
 * bucket state the steps of spec.h, which handle one node only, refuse and compute waits by the
 * charges of all nodes.
 *
 * A window has the same number here and in Redis: time / period, or that of its calendar, modulo
 * the range of a bucket state. If the window in Redis is not the one of now.utc_ns, the steps treat
 * it as any bucket state: an earlier window is over, a later one continues.
 */
#include <errno.h>

#include "cluster/quota/cluster_store_settle.h"
#include "lib/whole.h"
#include "limiter/algorithm.h"

typedef unsigned __int128 u128;

#define EXACT SL_BIT(53)

int cluster_store_rate_make(const struct spec_def *def, struct cluster_store_rate *ret)
{
	struct spec spec;
	u64 step = 1;

	if (def->algo >= SL_ALGO_COUNT || !algorithms[def->algo]->from_store ||
	    spec_make_def(def, &spec, NULL))
		return -EINVAL;
	*ret = (struct cluster_store_rate){
		.capacity = spec.params.capacity,
		.mult = spec.params.mult,
		.period_us = spec.params.window_ns / 1000,
		.algo = def->algo,
		.round_up = def->round_up,
		.calendar = spec.calendar,
	};
	if (spec.buckets) {
		ret->mult = ret->period_us / spec.buckets;
		ret->period_us = ret->mult * spec.buckets;
	}
	if (!algorithm_is_bucket(def->algo))
		return 0;
	while ((u128)2 * ret->capacity * ((ret->mult + step - 1) & ~(step - 1)) >=
	       (u128)EXACT * step)
		step *= 2;
	ret->mult = (ret->mult + step - 1) & ~(step - 1);
	/* Every debt is then a multiple of 128 and rounded up to one, so twice that is added. */
	if (step > 128)
		ret->mult += step;
	ret->tau = ret->capacity * ret->mult;
	ret->most = EXACT * step;
	return 0;
}

int cluster_store_request_check(const struct cluster_store_request *request)
{
	if (!request->count || request->count > CLUSTER_STORE_BUCKETS_MAX)
		return -E2BIG;
	for (u32 i = 0; i < request->count; i++) {
		const struct cluster_store_bucket *b = &request->bucket[i];

		if (b->kind > CLUSTER_STORE_REFUND)
			return -EINVAL;
		for (u32 k = 0; k < i; k++)
			if (request->bucket[k].key == b->key && request->bucket[k].tag == b->tag)
				return -EINVAL;
	}
	return 0;
}

u64 cluster_store_most_debt(const struct cluster_store_rate *rate, u64 above)
{
	u128 most;

	if (!algorithm_is_bucket(rate->algo))
		return 0;
	most = ((u128)rate->capacity + (above ? above : rate->capacity)) * rate->mult;
	return most < rate->most ? most : rate->most;
}

/* Time until a refused bucket fits. `hold` applies to a cost, not to a request that only reads. */
static u64 wait_ns(const struct cluster_store_bucket *bucket, const struct cluster_store_rate *rate,
		   const struct cluster_store_raw *raw, u64 now_us)
{
	u64 room = bucket->cost ? less(rate->capacity, bucket->hold) : rate->capacity;

	if (bucket->cost > room)
		return ~0ULL;
	return algorithms[rate->algo]->store_wait_ns(rate, raw, room, bucket->cost, now_us);
}

void cluster_store_settle(struct cluster_store_bucket *bucket,
			  const struct cluster_store_rate *rate,
			  const struct cluster_store_raw *raw, u64 now_us)
{
	u64 used = less(raw->used, raw->held);

	if (algorithm_is_bucket(rate->algo))
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

/*
 * ------------------------------------------------------------------ bucket states of the counter
 * table
 */

u64 cluster_store_bucket_state(const struct spec *spec, const struct cluster_store_state *state,
			       u64 more_hits, struct sl_now now)
{
	return algorithms[spec->algo]->from_store(spec, state, more_hits,
						  calendar_now(spec->calendar, now));
}
