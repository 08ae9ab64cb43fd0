/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The step of algo_gcra.h against rational numbers (__int128 over the rate's count), and states
 * after a change of the rate. All steps against whole histories: tests/prop/test_decide.c.
 */
#include "lib/test.h"
#include "algo_make.h"
#include "lib/rng.h"

typedef __int128 s128;

#define BOOT (1000 * SEC)

/* ------------------------------------------------------------------ GCRA */

/*
 * The exact bucket, charged with the units that the step admitted. Times are ticks x count, so the
 * interval is a whole number. Its debt must stay within tau (never more than the rate) and a
 * refusal must be due but for the rounding of the steps since the bucket was last full.
 */
struct exact {
	s128 count, interval; /* of a unit */
	s128 tat;
	s128 slack; /* what rounding may have added to the step's debt */
};

static void exact_run(const struct sl_params *p, const struct rate *rate, u64 most_cost)
{
	struct exact e = {
		.count = rate->count,
		.interval = (s128)rate->period_ns * 16 * (rate->unit == RATE_BITS ? 8 : 1),
	};
	u64 mean = (u64)(e.interval / e.count / 16) * (most_cost / 2 + 1) + 1;
	u64 now = BOOT, bucket_state = 0;

	for (int i = 0; i < 2000; i++) {
		u64 cost = 1 + rng_below(most_cost);
		s128 ticks, debt, charge = e.interval * cost;
		struct sl_result res;

		now += rng_below(3) ? rng_below(2 * mean) : 0;
		if (!rng_below(500))
			now += rng_below(p->tau / 8);
		res = sl_step(bucket_state, p, at(now), cost);
		ticks = (s128)now * 16 * e.count;
		debt = e.tat > ticks ? e.tat - ticks : 0;
		if (!sl_utilization(bucket_state, p, at(now)))
			e.slack = 0;
		if (res.verdict == SL_PASS) {
			debt += charge;
			e.tat = ticks + debt;
			/* Up to a tick; for bytes also the interval's own rounding. */
			e.slack += e.count + (charge >> 36);
			assert_true(debt <= (s128)p->tau * e.count);
			assert_int_equal(sl_utilization(res.bucket_state, p, at(now)) > 0, 1);
			bucket_state = res.bucket_state;
			continue;
		}
		assert_true(debt + charge + e.slack + e.count + (charge >> 36) >
			    (s128)p->tau * e.count);
		if (cost > p->capacity) {
			assert_true(res.wait_ns == ~0ULL);
			continue;
		}
		assert_int_equal(sl_step(bucket_state, p, at(now + res.wait_ns), cost).verdict,
				 SL_PASS);
		assert_int_equal(sl_step(bucket_state, p, at(now + res.wait_ns - 1), cost).verdict,
				 SL_OVER);
	}
}

TEST(test_gcra_against_exact)
{
	int runs = 0;

	rng_start("gcra_against_exact");
	for (int i = 0; i < 1000; i++) {
		struct rate rate = {
			.count = rng_magnitude(37),
			.period_ns = SEC * rng_magnitude(12),
			.unit = rng_below(RATE_CONNECTIONS),
		};
		u64 burst = rng_below(2) ? 0 : rng_magnitude(30);
		struct sl_params p;
		const char *reason;

		/* 2000 steps and some pauses must not outrun 2^62 ticks of uptime. */
		if (params_compile(SL_ALGO_TOKEN_BUCKET, &rate, burst, 1514, &p, &reason) ||
		    p.tau > SL_BIT(52) || rate.period_ns / rate.count > SL_BIT(32))
			continue;
		exact_run(&p, &rate, rate.unit == RATE_PACKETS ? 1 : 1514);
		runs++;
	}
	assert_in_range(runs, 200, 1000);
}

/* Never below empty debt, and not across a rate change. */
TEST(test_gcra_refund)
{
	struct sl_params p = make(SL_ALGO_TOKEN_BUCKET, 1000, SEC, RATE_PACKETS, 100), other = p;
	u64 one = sl_step(0, &p, at(BOOT), 1).bucket_state;
	u64 ten = sl_step(one, &p, at(BOOT), 9).bucket_state;

	assert_true(sl_refund(ten, &p, at(BOOT), 9) == one);
	assert_int_equal(sl_utilization(sl_refund(one, &p, at(BOOT), 50), &p, at(BOOT)), 0);
	other.gen = 1;
	assert_true(sl_refund(ten, &other, at(BOOT), 9) == ten);
	assert_int_equal(sl_step(ten, &p, at(BOOT), 0).verdict, SL_PASS);
	assert_true(sl_used(ten, &p, at(BOOT)) >= 9 && sl_used(ten, &p, at(BOOT)) <= 10);
}

/* ------------------------------------------------------------------ a live rate change */

/* Ticks of debt in a bucket state of generation p->gen. */
static u64 debt_of(u64 bucket_state, const struct sl_params *p)
{
	return sl_gcra_debt(bucket_state, p, BOOT * 16);
}

static struct sl_params random_bucket(void)
{
	struct rate rate = { .unit = RATE_BYTES };
	struct sl_params p;
	const char *reason;

	do {
		rate.count = rng_magnitude(36);
		rate.period_ns = SEC * rng_magnitude(16);
	} while (params_compile(SL_ALGO_TOKEN_BUCKET, &rate, 64 + rng_magnitude(40), 0, &p,
				&reason));
	return p;
}

static void assert_share_within(u64 debt, u64 tau, u64 debt_then, u64 tau_then, u64 error)
{
	s128 want = (s128)debt_then * tau / tau_then;
	s128 off = debt > want ? debt - want : want - debt;

	assert_true(off <= error);
}

static void assert_share_kept(u64 debt, u64 tau, u64 debt_then, u64 tau_then)
{
	assert_share_within(debt, tau, debt_then, tau_then, (tau >> 29) + 1);
}

TEST(test_rescale)
{
	rng_start("rescale");
	for (int i = 0; i < 20000; i++) {
		struct sl_limit_id_info slot = { 0 };
		struct sl_params then = random_bucket(), now = random_bucket(), third;
		u64 debt_then = rng() % (then.tau + 1), bucket_state, moved, debt;

		then.gen = rng_below(4);
		now.gen = (then.gen + 1 + rng_below(3)) & 3;
		slot.tau[then.gen] = then.tau;
		slot.tau[now.gen] = now.tau;
		params_rescale(&now, &slot);

		bucket_state = sl_gcra_state(&then, BOOT * 16, debt_then);
		debt = debt_of(bucket_state, &now);
		assert_share_kept(debt, now.tau, debt_then, then.tau);
		/* An empty bucket stays empty, a full one full. */
		assert_true(debt_of(sl_gcra_state(&then, BOOT * 16, 0), &now) == 0);
		debt = debt_of(sl_gcra_state(&then, BOOT * 16, then.tau), &now);
		assert_true(debt <= now.tau && now.tau - debt <= now.tau >> 30);
		/* A generation that is no longer known counts as of the same rate. */
		bucket_state = sl_gcra_state(&(struct sl_params){ .gen = (now.gen + 2) & 3 },
					     BOOT * 16, now.tau / 2);
		if (!slot.tau[(now.gen + 2) & 3])
			assert_share_kept(debt_of(bucket_state, &now), now.tau, now.tau / 2,
					  now.tau);

		/* A chain: moved to the second rate, in ticks of that, then to a third. */
		third = random_bucket();
		do
			third.gen = rng_below(4);
		while (third.gen == then.gen || third.gen == now.gen);
		slot.tau[third.gen] = third.tau;
		params_rescale(&third, &slot);
		bucket_state = sl_gcra_state(&then, BOOT * 16, debt_then);
		moved = sl_gcra_state(&now, BOOT * 16, debt_of(bucket_state, &now));
		assert_share_within(debt_of(moved, &third), third.tau, debt_then, then.tau,
				    (third.tau >> 28) + third.tau / now.tau + 2);
	}
}

/* ------------------------------------------------------------------ windows, weights */

/* Window numbers are cut: a key never seen is not one of the window whose number is 0. */
TEST(test_first_of_a_key)
{
	struct sl_params fixed = make(SL_ALGO_FIXED_WINDOW, 5, SEC, RATE_PACKETS, 0);
	struct sl_params sliding = make(SL_ALGO_SLIDING_WINDOW, 5, SEC, RATE_PACKETS, 0);
	u64 before_0 = ((u64)6000 * (1 << 18) - 1) * SEC, bucket_state = 0;

	assert_int_equal(fit(&bucket_state, &fixed, before_0, 10), 5);
	assert_int_equal(fit(&bucket_state, &fixed, before_0 + SEC, 10), 5);
	bucket_state = 0;
	assert_int_equal(fit(&bucket_state, &sliding, before_0, 10), 5);
	assert_int_equal(fit(&bucket_state, &sliding, before_0 + SEC * 3 / 2, 10), 3);
}

TEST(test_weights)
{
	rng_start("weights");
	for (int i = 0; i < 100000; i++) {
		struct sl_params p = random_bucket();
		u64 debt = rng_below(4) ? rng() % (p.tau + 1) : rng_below(3);
		u32 weight;

		debt = debt < p.tau ? debt : p.tau;
		weight = sl_utilization(sl_gcra_state(&p, BOOT * 16, debt), &p, at(BOOT));
		assert_int_equal(weight == 0, debt == 0);
		/* The half is found to 2^-31 of tau. */
		if (debt >= p.tau / 2 + (p.tau >> 31) + 1)
			assert_in_range(weight, 128, 255);
		if (debt < p.tau / 2 - (p.tau >> 31))
			assert_in_range(weight, 0, 127);
		if (debt == p.tau)
			assert_int_equal(weight, 255);
	}
	assert_int_equal(
		sl_utilization(0, &(struct sl_params){ .tau = 1, .tau_exp = -31 }, at(BOOT)), 0);
}

TEST_MAIN
