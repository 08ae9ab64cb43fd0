/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * cluster_store_requests.h - random commands to the cluster store, for its tests: all kinds, all
 * algorithms, windows that are over, leases that report more than was granted; and their replies.
 */
#ifndef SLUICE_TESTS_CLUSTER_STORE_REQUESTS_H
#define SLUICE_TESTS_CLUSTER_STORE_REQUESTS_H

#include <stdio.h>

#include "cluster/quota/cluster_store.h"
#include "lib/test.h"
#include "lib/rng.h"
#include "lib/spec_def.h"
#include "limiter/algorithm.h"

#define KEYS 16
#define START_US 1790000000000000ULL /* September 2026 */

static inline u64 some_cost(u64 capacity)
{
	u64 costs[] = { 1, 1, 1, 2, 0, capacity, 1 + rng_below(capacity + 2) };

	return costs[rng_below(COUNT(costs))];
}

/* Limits of a second or so, so that all ends within a few steps. */
static inline struct spec_def def_of(u32 key)
{
	static const struct spec_def some[] = {
		SPEC_DEF(TOKEN_BUCKET, 20, SL_NS_PER_SEC),
		SPEC_DEF(TOKEN_BUCKET, 100, SL_NS_PER_SEC, .burst = 300),
		SPEC_DEF(LEAKY_BUCKET, 7, 3 * SL_NS_PER_SEC),
		SPEC_DEF(FIXED_WINDOW, 20, SL_NS_PER_SEC),
		SPEC_DEF(FIXED_WINDOW, 400, 2 * SL_NS_PER_SEC),
		SPEC_DEF(SLIDING_WINDOW, 20, SL_NS_PER_SEC),
		SPEC_DEF(SLIDING_WINDOW, 400, 3 * SL_NS_PER_SEC),
		SPEC_DEF(SLIDING_WINDOW, 20, SL_NS_PER_SEC, .round_up = 1),
		SPEC_DEF(SLIDING_WINDOW, 1ULL << 45, 86400 * SL_NS_PER_SEC),
		SPEC_DEF(FIRST_REQUEST, 20, SL_NS_PER_SEC),
		SPEC_DEF(FIRST_REQUEST, 200, 4 * SL_NS_PER_SEC, .buckets = 2),
		SPEC_DEF(FIRST_REQUEST, 400, 2 * SL_NS_PER_SEC),
		SPEC_DEF(INTERVAL_BUCKET, 4, SL_NS_PER_SEC, .burst = 10),
		SPEC_DEF(SLIDING_LOG, 20, SL_NS_PER_SEC),
		SPEC_DEF(SLIDING_LOG, 200, 2 * SL_NS_PER_SEC),
		SPEC_DEF(WINDOW_COUNTERS, 20, SL_NS_PER_SEC, .buckets = 4),
		SPEC_DEF(WINDOW_COUNTERS, 200, 2 * SL_NS_PER_SEC, .buckets = 10),
	};
	return some[key % COUNT(some)];
}

static inline u64 some_window(u64 now_us, const struct spec_def *def)
{
	u64 period_us = def->period_ns / 1000, number = now_us / period_us;

	/* At times just at its end. */
	if (def->algo == SL_ALGO_FIRST_REQUEST && !rng_below(8))
		return now_us - period_us;
	if (def->algo == SL_ALGO_FIRST_REQUEST || def->algo <= SL_ALGO_LEAKY_BUCKET)
		return now_us - rng_below(3 * period_us);
	return number - rng_below(3) + !rng_below(10);
}

static inline struct cluster_store_bucket some_bucket(u64 now_us, u32 key)
{
	struct spec_def def = def_of(key % KEYS);
	struct spec spec;
	struct cluster_store_bucket b = { .key = key % KEYS, .tag = 7, .def = def };
	u32 kind = rng_below(20);

	spec_make_def(&def, &spec, NULL);
	b.kind = kind == 0  ? CLUSTER_STORE_REFUND
		 : kind < 4 ? CLUSTER_STORE_FORCE
			    : CLUSTER_STORE_CHARGE;
	b.cost = some_cost(spec.capacity);
	if (!rng_below(50))
		b.cost *= 3;
	if (!rng_below(5))
		b.hold = rng_below(spec.capacity);
	if (b.kind != CLUSTER_STORE_CHARGE && rng_below(2))
		b.window = some_window(now_us, &def);
	if (b.kind == CLUSTER_STORE_FORCE && !rng_below(4))
		b.debt = rng_below(4 * spec.capacity);
	if (def.algo <= SL_ALGO_LEAKY_BUCKET && rng_below(2))
		b.keep_us = rng_below(2 * def.period_ns / 1000);
	if (b.kind == CLUSTER_STORE_CHARGE && def.algo <= SL_ALGO_LEAKY_BUCKET && !rng_below(4))
		b.window = now_us + rng_below(2 * def.period_ns / 1000);
	b.refusal_counts =
		b.kind == CLUSTER_STORE_CHARGE && algorithm_is_log(def.algo) && rng_below(2);
	if (b.kind == CLUSTER_STORE_CHARGE && !rng_below(4)) {
		b.refused = 1 + rng_below(rng_below(3) ? 3 : 2 * spec.capacity);
		b.refused_us = now_us -
			       rng_below(rng_below(4) ? 200000 : 3 * def.period_ns / 1000) +
			       !rng_below(30) * 1000;
	}
	if (rng_below(3))
		return b;
	b.lease_us = rng_below(8) ? 1500000 : rng_below(3000000);
	b.want = rng_below(2) ? rng_below(spec.capacity) : 0;
	b.least = rng_below(2) ? rng_below(spec.capacity) : 0;
	b.spent = rng_below(2) ? rng_below(8) : 0;
	b.returned = rng_below(4) ? 0 : rng_below(8);
	if (b.spent && !b.window && rng_below(2))
		b.window = some_window(now_us, &def);
	return b;
}

static inline void say(const char *what, const struct cluster_store_bucket *b)
{
	fprintf(stderr,
		"%s: %s kind %u cost %llu hold %llu window %llu want %llu least %llu returned %llu spent %llu lease %llu debt %llu refused %llu at %llu: over %d late %d used %llu before %llu window %llu own %llu granted %llu excess %llu wait %llu\n",
		what, algorithm_name(b->def.algo), b->kind, b->cost, b->hold, b->window, b->want,
		b->least, b->returned, b->spent, b->lease_us, b->debt, b->refused, b->refused_us,
		b->over, b->late, b->state.used, b->state.before, b->state.window, b->state.own,
		b->granted, b->excess, b->wait_ns);
}

static inline bool same(const struct cluster_store_bucket *a, const struct cluster_store_bucket *b)
{
	return a->over == b->over && a->late == b->late && a->state.used == b->state.used &&
	       a->state.before == b->state.before && a->state.window == b->state.window &&
	       a->state.own == b->state.own && a->granted == b->granted && a->excess == b->excess &&
	       a->wait_ns == b->wait_ns;
}

struct response {
	struct cluster_store_request request;
	enum cluster_store_outcome outcome;
	u32 done;
};

static inline void response_done(struct cluster_store_request *request,
				 enum cluster_store_outcome outcome)
{
	struct response *response = request->arg;

	response->outcome = outcome;
	response->done++;
}

/* Sent, and without a reply yet. */
static inline void send_ask(struct cluster_store *store, struct response *response,
			    struct cluster_store_bucket *bucket, u32 count)
{
	*response = (struct response){
		.request = { .bucket = bucket,
			     .count = count,
			     .deadline_ns = 20 * SL_NS_PER_SEC,
			     .done = response_done,
			     .arg = response },
	};
	assert_int_equal(store->ops->send(store, &response->request), 0);
	assert_int_equal(response->done, 0);
}

#endif
