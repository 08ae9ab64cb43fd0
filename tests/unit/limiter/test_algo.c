/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The steps of algo_gcra.h and algo_window.h against exact models: GCRA against rational numbers
 * (__int128 over the rate's count), windows against a log of all that was admitted.
 */
#include "lib/test.h"
#include "algo_make.h"
#include "lib/rng.h"

typedef __int128 s128;

#define BOOT (1000 * SEC)

static struct sl_params bucket(u64 per_s, u64 burst)
{
	return make(SL_ALGO_TOKEN_BUCKET, per_s, SEC, RATE_PACKETS, burst);
}

/* ------------------------------------------------------------------ GCRA */

TEST(test_burst_is_exact)
{
	rng_start("burst_is_exact");
	for (int i = 0; i < 300; i++) {
		u64 per_s = i < 150 ? rng_magnitude(29) : 1 + rng_below(1000);
		u64 burst = 1 + rng_below(5000);
		struct sl_params p = bucket(per_s, burst);
		u64 now = BOOT + rng_below(SEC), bucket_state = 0;
		struct sl_result res;

		for (u64 n = 0; n < burst; n++) {
			res = sl_step(bucket_state, &p, at(now), 1);
			assert_int_equal(res.verdict, SL_PASS);
			bucket_state = res.bucket_state;
		}
		res = sl_step(bucket_state, &p, at(now), 1);
		assert_int_equal(res.verdict, SL_OVER);
		assert_true(res.bucket_state == bucket_state);
		assert_int_equal(sl_utilization(bucket_state, &p, at(now)), 255);
		/* All at once, as a lease takes them, is the same. */
		res = sl_step(0, &p, at(now), burst);
		assert_int_equal(res.verdict, SL_PASS);
		assert_true(res.bucket_state == bucket_state);
		assert_true(sl_step(0, &p, at(now), burst + 1).wait_ns == ~0ULL);
	}
}

TEST(test_byte_burst_is_exact)
{
	rng_start("byte_burst_is_exact");
	for (int i = 0; i < 1000; i++) {
		u64 burst = 64 + rng_below(SL_COST_MAX - 64);
		struct sl_params p = make(SL_ALGO_TOKEN_BUCKET, rng_magnitude(36), SEC, RATE_BYTES,
					  burst);
		struct sl_result res = sl_step(0, &p, at(BOOT), burst);

		assert_int_equal(res.verdict, SL_PASS);
		assert_int_equal(sl_step(res.bucket_state, &p, at(BOOT), 64).verdict, SL_OVER);
	}
}

/*
 * The exact bucket, charged with the units that the step admitted. Times are ticks x count, so the
 * interval is a whole number. Its debt must stay within tau (never more than the rate) and a
 * refusal must be due but for the rounding of the steps since the bucket was last full.
 */
struct exact {
	s128 count, interval;	/* of a unit */
	s128 tat;
	s128 slack;		/* what rounding may have added to the step's debt */
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

TEST(test_gcra_refund)
{
	struct sl_params p = bucket(1000, 100);
	struct sl_params other = p;
	u64 one = sl_step(0, &p, at(BOOT), 1).bucket_state;
	u64 ten = sl_step(one, &p, at(BOOT), 9).bucket_state;

	assert_true(sl_refund(ten, &p, at(BOOT), 9) == one);
	/* Never below empty debt, and not across a rate change. */
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
		bucket_state = sl_gcra_state(&(struct sl_params){.gen = (now.gen + 2) & 3},
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

/* DESIGN's figures: 1000/s -> 10/s must not let 2080 through in 10 s, nor the way back none. */
static u64 admitted_in(u64 bucket_state, const struct sl_params *p, u64 seconds)
{
	u64 admitted = 0;

	for (u64 ms = 0; ms < seconds * 1000; ms++) {
		for (;;) {
			struct sl_result res = sl_step(bucket_state, p, at(BOOT + ms * 1000000), 1);

			if (res.verdict != SL_PASS)
				break;
			bucket_state = res.bucket_state;
			admitted++;
		}
	}
	return admitted;
}

TEST(test_rate_change_live)
{
	struct sl_limit_id_info slot = { 0 };
	struct sl_params fast = bucket(1000, 2000), slow = bucket(10, 2000);
	u64 used_up, moved;

	slow.gen = 1;
	slot.tau[0] = fast.tau;
	slot.tau[1] = slow.tau;
	params_rescale(&fast, &slot);
	params_rescale(&slow, &slot);

	used_up = sl_step(0, &fast, at(BOOT), 2000).bucket_state;
	assert_in_range(admitted_in(used_up, &slow, 10), 99, 101);
	/* A bucket drains at its old rate until its state is stored again: here a token's 100 ms. */
	used_up = sl_step(0, &slow, at(BOOT), 2000).bucket_state;
	assert_in_range(admitted_in(used_up, &fast, 10), 9890, 10001);
	/* The sweep after each apply does it at once. */
	moved = sl_gcra_state(&fast, BOOT * 16, debt_of(used_up, &fast));
	assert_in_range(admitted_in(moved, &fast, 10), 9990, 10001);
}

/* ------------------------------------------------------------------ windows */

TEST(test_window_alignment)
{
	struct sl_params p = make(SL_ALGO_FIXED_WINDOW, 10, 60 * SEC, RATE_PACKETS, 0);
	u64 minute = 28000000ULL * 60 * SEC;	/* UTC, a round minute */
	struct sl_now now = { .mono_ns = 5, .utc_ns = minute + 59 * SEC };
	struct sl_result res = sl_step(0, &p, now, 10);
	u64 bucket_state = res.bucket_state;

	assert_int_equal(res.verdict, SL_PASS);
	res = sl_step(bucket_state, &p, now, 1);
	assert_int_equal(res.verdict, SL_OVER);
	assert_true(res.wait_ns == SEC);
	now.utc_ns = minute + 60 * SEC - 1;
	assert_int_equal(sl_step(bucket_state, &p, now, 1).verdict, SL_OVER);
	now.utc_ns++;
	assert_int_equal(sl_step(bucket_state, &p, now, 10).verdict, SL_PASS);
	assert_int_equal(sl_utilization(bucket_state, &p, now), 0);
	assert_true(sl_step(0, &p, now, 11).wait_ns == ~0ULL);

	/* A step back over the edge: the window that began goes on until its own end. */
	bucket_state = sl_step(bucket_state, &p, now, 4).bucket_state;
	now.utc_ns = minute + 50 * SEC;
	assert_int_equal(sl_step(bucket_state, &p, now, 7).verdict, SL_OVER);
	res = sl_step(bucket_state, &p, now, 6);
	assert_int_equal(res.verdict, SL_PASS);
	now.utc_ns = minute + 119 * SEC;
	assert_int_equal(sl_step(res.bucket_state, &p, now, 1).verdict, SL_OVER);
	now.utc_ns = minute + 120 * SEC;
	assert_int_equal(sl_step(res.bucket_state, &p, now, 1).verdict, SL_PASS);

	/* A step back by more: one fresh window. */
	now.utc_ns = minute - 600 * SEC;
	bucket_state = sl_step(res.bucket_state, &p, now, 10).bucket_state;
	assert_int_equal(sl_step(bucket_state, &p, now, 1).verdict, SL_OVER);
}

/*
 * Random times, some steps back within the last window; the log says what each window had.
 * The model's window never goes back.
 */
TEST(test_window_against_log)
{
	rng_start("window_against_log");
	for (int run = 0; run < 300; run++) {
		u64 window_s = 1 + rng_below(100), capacity = 64 + rng_magnitude(30);
		struct sl_params p = make(SL_ALGO_FIXED_WINDOW, capacity, window_s * SEC,
					  RATE_BYTES, 0);
		u64 utc = 1700000000 * SEC + rng_below(SEC), bucket_state = 0, window = 0, used = 0;

		for (int i = 0; i < 2000; i++) {
			u64 cost = 1 + rng_below(capacity / 8), number;
			struct sl_result res;
			bool fits;

			utc += rng_below(window_s * SEC / 8);
			if (!rng_below(50))
				utc -= rng_below(window_s * SEC);
			number = utc / (window_s * SEC);
			if (number > window || number + 1 < window) {
				window = number;
				used = 0;
			}
			fits = used + cost <= capacity;
			assert_int_equal(sl_utilization(bucket_state, &p, at(utc)) >= 128,
					 used * 2 >= capacity);
			res = sl_step(bucket_state, &p, at(utc), cost);
			assert_int_equal(res.verdict, fits ? SL_PASS : SL_OVER);
			if (!fits)
				continue;
			used += cost;
			bucket_state = res.bucket_state;
			if (!rng_below(10)) {
				bucket_state = sl_refund(bucket_state, &p, at(utc), cost);
				/* A charge made while the clock is behind stays. */
				used -= number == window ? cost : 0;
			}
		}
	}
}

/* A window's wait, where the clock had stepped back, is until the window's own end. */
TEST(test_window_wait)
{
	struct sl_params p = make(SL_ALGO_FIXED_WINDOW, 5, 10 * SEC, RATE_PACKETS, 0);
	u64 edge = 1000000 * 10 * SEC;
	u64 bucket_state = sl_step(0, &p, at(edge + SEC), 5).bucket_state;
	struct sl_result res;

	for (u64 utc = edge - 9 * SEC; utc < edge + 10 * SEC; utc += SEC / 2) {
		res = sl_step(bucket_state, &p, at(utc), 1);
		assert_int_equal(res.verdict, SL_OVER);
		assert_int_equal(sl_step(bucket_state, &p, at(utc + res.wait_ns), 1).verdict,
				 SL_PASS);
	}
}

TEST(test_window_refund)
{
	struct sl_params p = make(SL_ALGO_FIXED_WINDOW, 100, 10 * SEC, RATE_PACKETS, 0);
	u64 utc = 1700000000 * SEC, bucket_state = sl_step(0, &p, at(utc), 30).bucket_state;

	assert_true(sl_refund(bucket_state, &p, at(utc), 10) ==
		    sl_step(0, &p, at(utc), 20).bucket_state);
	assert_int_equal(sl_utilization(sl_refund(bucket_state, &p, at(utc), 31), &p, at(utc)), 0);
	/* The window is over: nothing to refund. */
	assert_true(sl_refund(bucket_state, &p, at(utc + 10 * SEC), 10) == bucket_state);
}

/* ------------------------------------------------------------------ weights */

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
	assert_int_equal(sl_utilization(0, &(struct sl_params){.tau = 1, .tau_exp = -31}, at(BOOT)),
			 0);
}

TEST_MAIN
