// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * test_lease_spend.c - the short way to spend a lease (lease_spend_here()) gives what lease_use()
 * gives, to the unit: for leases of any fill, age and generation, and limits whose batch is smaller
 * now.
 */
#pragma GCC diagnostic ignored "-Wunused-function"

#include "lib/test.h"
#include "lib/rng.h"
#include "packet/dataplane/sim_env.h"
#include "bpf/lease.h"

#define ROUNDS 300000
#define MS 1000000ULL
#define NOW (50000 * MS)

/* Of sim_env.h: a packet's way goes on nowhere here. */
__attribute__((unused)) static int sim_stage(env_ctx *ctx, enum sl_stage stage)
{
	return ctx && stage ? ENV_DROP : ENV_PASS;
}

static struct sl_limit limit;
static struct evaluation ev;

/* A limit and a lease of its key, of one rate generation or another. */
static struct sl_lease_hint make_lease(u64 key)
{
	struct sl_lease_hint hint = { .key = key };

	memset(&limit, 0, sizeof(limit));
	limit.params.gen = rng_below(4);
	limit.params.algo = rng_below(2) ? SL_ALGO_TOKEN_BUCKET : SL_ALGO_LEAKY_BUCKET;
	hint.lease = lease_state(lease_tag(key, &limit), NOW + rng_below(12) * MS - 6 * MS,
				 rng_below(20));
	if (!rng_below(4))
		limit.params.gen = rng_below(4);
	limit.lease = 1 + rng_below(15);
	return hint;
}

TEST(as_by_the_long_way)
{
	u64 spent = 0;
	struct dp *dp;

	rng_start("lease_spend");
	assert_int_equal(dp_sim_open(64, 1, 1, &dp), 0);
	sim = (struct dp_sim *)dp;
	sim_cpu = sim->cpu;
	ev.pkt.now.mono_ns = NOW;
	for (u32 i = 0; i < ROUNDS; i++) {
		u64 key = rng() | 2, cost = 1 + rng_below(4);
		struct sl_lease_hint hint = make_lease(key), *other = lease_hint(key);
		int wanted;

		*other = hint;
		ev.meter.key = key;
		ev.meter.lease = limit.lease;
		ev.meter.cost = cost;
		wanted = lease_use(&limit, &ev, LEASE_SPEND);
		assert_int_equal(lease_spend_here(&limit, &ev.pkt, &hint, key, cost), wanted);
		assert_int_equal(hint.lease, other->lease);
		spent += wanted;
	}
	assert_in_range(spent, ROUNDS / 8, ROUNDS / 2);
	dp->ops->close(dp);
}

/* Of another key, or of a window, which ends: nothing is spent here. */
TEST(what_it_leaves_to_the_long_way)
{
	struct sl_lease_hint hint = { .key = 6 }, was;

	memset(&limit, 0, sizeof(limit));
	limit.lease = 10;
	limit.params.window_ns = SL_NS_PER_SEC;
	hint.lease = lease_state(lease_tag(6, &limit), NOW + 5 * MS, 10);
	was = hint;
	ev.pkt.now.mono_ns = NOW;
	assert_int_equal(lease_spend_here(&limit, &ev.pkt, NULL, 6, 1), 0);
	assert_int_equal(lease_spend_here(&limit, &ev.pkt, &hint, 10, 1), 0);
	limit.params.algo = SL_ALGO_FIXED_WINDOW;
	assert_int_equal(lease_spend_here(&limit, &ev.pkt, &hint, 6, 1), 0);
	assert_memory_equal(&hint, &was, sizeof(hint));
	limit.params.algo = SL_ALGO_TOKEN_BUCKET;
	assert_int_equal(lease_spend_here(&limit, &ev.pkt, &hint, 6, 1), 1);
	assert_int_equal(hint.lease & SL_LEASE_UNITS_MAX, 9);
}

TEST_MAIN
