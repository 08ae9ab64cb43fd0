/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * cluster_state.h - the numbers of one bucket in Redis, as input and output of an algorithm. Pure:
 * user/cluster/quota exchanges them with Redis.
 */
#ifndef SLUICE_LIMITER_CLUSTER_STATE_H
#define SLUICE_LIMITER_CLUSTER_STATE_H

#include <stdbool.h>

#include "limiter/spec.h"

/* A limit, as argument of charge.lua. */
struct cluster_store_rate {
	u64 capacity;
	u64 mult;      /* buckets: a request's interval in ticks; interval buckets: the refill;
			  window counters: us of a bucket */
	u64 tau;       /* capacity x mult */
	u64 most;      /* buckets: the largest debt, ticks; at least 2 tau */
	u64 period_us; /* windows, logs */
	u8 algo;       /* enum sl_algo */
	bool round_up; /* sliding window */
	const struct calendar *calendar; /* fixed window: of its numbers; NULL: none */
};

/* The numbers of a reply for one bucket, before waits and states are made of them. */
struct cluster_store_raw {
	u64 used; /* count; of a bucket ticks of debt; of a log including `held` */
	u64 before, window, own;
	u64 held; /* the part of `used` held by this node's own lease, requests */
	u64 granted;
	u64 excess;
	u64 fits_us; /* a log that refused: time at which the request would fit */
	bool over, late;
};

/*
 * The state of a bucket in Redis: of windows counts of requests, of buckets nanoseconds. `used` and
 * `own` exclude the units of this node's own lease (granted, not reported as spent or returned). So
 * the bucket state made of `used` and of the charges here since still admits exactly these units,
 * and only REFUND lowers `own`. `used` includes the leases of other nodes.
 */
struct cluster_store_state {
	u64 used;   /* window, log: requests in it; token and leaky bucket: ns until it is empty,
		       rounded   down, so that a bucket state made of it refuses nothing that fits */
	u64 before; /* sliding-window: of the window before; first-request: when that one began, us,
			       also where all of it was refunded and it ended by that */
	u64 window; /* its absolute number (time / period); first-request: when it began, us */
	u64 own;    /* windows, logs: how much of `used` this node has charged, of windows the
			       current one. Buckets: time of the last refund, us; 0: none that matters
		     */
};

/*
 * The bucket state of the counter table for it, with `more_hits` charged besides; 0: unused.
 * now.utc_ns is Redis' time (counters_shared_now()). For a sliding log 0: its state is a list of
 * times, of which Redis returns only the count; the log here has this node's own charges.
 */
u64 cluster_store_bucket_state(const struct spec *spec, const struct cluster_store_state *state,
			       u64 more_hits, struct sl_now now);

#endif
