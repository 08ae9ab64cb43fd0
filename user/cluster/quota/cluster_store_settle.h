/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * cluster_store_settle.h - a limit as arguments of charge.lua, and the results of its reply.
 *
 * charge.lua computes in doubles: each number stays below 2^53, or is a multiple of a power of two.
 * A bucket is a debt in ticks of 1/16 ns and the time of that debt in us. If a bucket takes longer
 * than 2^52 ticks (3.2 days) to empty, the interval of a request is rounded up to 2^s ticks, where
 * twice the capacity is below 2^(53 + s) ticks. Every debt is then a multiple of 2^s, or of 128
 * where s is more (a microsecond is 125 x 128 ticks). Rounded up, it admits less, by less than
 * capacity / 2^50 of its rate. Shorter buckets are exact.
 */
#ifndef SLUICE_CLUSTER_STORE_SETTLE_H
#define SLUICE_CLUSTER_STORE_SETTLE_H

#include "cluster/quota/cluster_store.h"

/* 0, or -EINVAL if the def has no limit (a grace, a rate of 0). */
int cluster_store_rate_make(const struct spec_def *def, struct cluster_store_rate *ret);

/* The largest debt of a bucket, ticks, `above` requests above its capacity (0: one capacity). */
u64 cluster_store_most_debt(const struct cluster_store_rate *rate, u64 above);

/*
 * 0; -EINVAL, -E2BIG: not a valid request. Limits are not checked here: the caller calls
 * cluster_store_rate_make() for each.
 */
int cluster_store_request_check(const struct cluster_store_request *request);

/* Fills the `Out` part of a bucket. */
void cluster_store_settle(struct cluster_store_bucket *bucket,
			  const struct cluster_store_rate *rate,
			  const struct cluster_store_raw *raw, u64 now_us);

#endif
