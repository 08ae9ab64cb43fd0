// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * cluster_store_settle.c - a limit as the store sees it, and from its numbers to states and waits.
 */
#include <errno.h>

#include "cluster/quota/cluster_store_settle.h"
#include "lib/whole.h"

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

/* Until it fits; of one that is refused. `hold` is kept from a cost, not from a look. */
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
