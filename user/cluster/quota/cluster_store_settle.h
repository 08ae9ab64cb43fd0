/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * cluster_store_settle.h - the numbers that charge.lua is given for a limit, and what is made of those that
 * it replies.
 *
 * charge.lua has doubles: what it computes stays below 2^53, or is a multiple of a power of two. A
 * bucket is a debt in ticks of 1/16 ns, as it was at a time in us. Of one that takes longer than 2^52
 * ticks (3.2 days) to empty a request's interval is rounded up to 2^s ticks, where twice its capacity
 * is below 2^(53 + s) ticks: every debt is then a multiple of 2^s, or of 128 where s is more (a
 * microsecond is 125 x 128 ticks). Rounded up means that it admits less, by less than capacity / 2^50
 * of its rate. Below that it is exact.
 */
#ifndef SLUICE_CLUSTER_STORE_SETTLE_H
#define SLUICE_CLUSTER_STORE_SETTLE_H

#include "cluster/quota/cluster_store.h"

/* A limit, as the store sees it. */
struct cluster_store_rate {
	u64 capacity;
	u64 mult;		/* buckets: a request's interval in ticks */
	u64 tau;		/* capacity x mult */
	u64 most;		/* buckets: the largest debt that is kept, ticks; at least 2 tau */
	u64 period_us;		/* windows, logs */
	u8 algo;		/* enum http_algo */
};
/* 0, or -EINVAL where a def makes no limit (a grace, a rate of 0). */
int cluster_store_rate_make(const struct spec_def *def, struct cluster_store_rate *ret);

/* Of a bucket, ticks, where it may be so many requests above its capacity (0: one capacity). */
u64 cluster_store_most_debt(const struct cluster_store_rate *rate, u64 above);

/*
 * 0; -EINVAL, -E2BIG: it is none that a store can answer. Whether its limits are some that a store can
 * answer, cluster_store_rate_make() says, which who asks needs in any case.
 */
int cluster_store_request_check(const struct cluster_store_request *ask);

/* What an ask comes to for a bucket, before waits and states are made of it. */
struct cluster_store_raw {
	u64 used;		/* count; of a bucket ticks of debt; of a log with what is held */
	u64 before, window, own;
	u64 held;		/* of `used` what this node's own lease holds, requests */
	u64 granted;
	u64 excess;
	u64 fits_us;		/* of a log that refused: the time at which it would fit */
	bool over, late;
};
/* Fills a bucket's `out` part. */
void cluster_store_settle(struct cluster_store_bucket *bucket,
			  const struct cluster_store_rate *rate,
			  const struct cluster_store_raw *raw, u64 now_us);

#endif
