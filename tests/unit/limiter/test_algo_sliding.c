/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* algo_sliding.h to the nanosecond, and where counts are rounded. Against whole histories:
 * tests/prop/test_decide.c. */
#include <math.h>

#include "lib/test.h"
#include "algo_make.h"
#include "lib/rng.h"

typedef unsigned __int128 u128;

/* UTC: 1:00:00 of some day. */
#define ONE_O_CLOCK (1700006400ULL / 86400 * 86400 * SEC + 3600 * SEC)

static void check_utilization(u64 bucket_state, const struct sl_params *p, u64 utc)
{
	u64 used = sl_used(bucket_state, p, at(utc));
	u32 utilization = sl_utilization(bucket_state, p, at(utc));

	assert_int_equal(sl_expired(bucket_state, p, at(utc)), used == 0);
	assert_int_equal(utilization == 0, used == 0);
	assert_int_equal(utilization >= 128, used * 2 >= p->capacity);
	if (used >= p->capacity)
		assert_int_equal(utilization, 255);
}

/* What is charged in the window that a clock, set back, is no longer in stays. */
TEST(test_refund_by_a_clock_set_back)
{
	struct sl_params p = make(SL_ALGO_SLIDING_WINDOW, 10, SEC, RATE_PACKETS, 0);
	u64 bucket_state = sl_step(0, &p, at(ONE_O_CLOCK), 3).bucket_state;

	assert_true(sl_refund(bucket_state, &p, at(ONE_O_CLOCK - 1), 3) == bucket_state);
	assert_int_equal(
		sl_used(sl_refund(bucket_state, &p, at(ONE_O_CLOCK), 2), &p, at(ONE_O_CLOCK)), 1);
}

/*
 * Levels and waits where they change, which chance does not find: a nanosecond to either side of
 * each whole unit, in windows of up to two years, of round and of odd lengths.
 */
TEST(test_to_the_nanosecond)
{
	rng_start("to_the_nanosecond");
	for (int i = 0; i < 300000; i++) {
		u64 window_ns = rng_below(2) ? SL_BIT(32 + rng_below(24))
					     : SEC + rng_magnitude(56) % (SL_BIT(56) - SEC);
		struct sl_params p = make(SL_ALGO_SLIDING_WINDOW, SL_SLIDING_COUNT_MAX, window_ns,
					  RATE_PACKETS, 0);
		u64 edge = (2 + rng_below(100)) * window_ns;
		u64 count = rng_below(2) ? rng_magnitude(25) : SL_SLIDING_COUNT_MAX - rng_below(9);
		u64 unit = 1 + rng_below(count), left, cost, bucket_state;
		struct sl_result res;

		count = count <= p.capacity ? count : p.capacity;
		unit = unit <= count ? unit : count;
		bucket_state = sl_step(0, &p, at(edge - 1), 1).bucket_state;
		bucket_state += (count - 1) << SL_SLIDING_COUNT_BITS;
		/* The least `left` at which that many are counted. */
		left = ((u128)unit * window_ns + count - 1) / count;
		assert_true(sl_used(bucket_state, &p, at(edge + window_ns - left)) == unit);
		assert_true(sl_used(bucket_state, &p, at(edge + window_ns - left + 1)) == unit - 1);
		assert_int_equal(sl_expired(bucket_state, &p, at(edge + window_ns - left + 1)),
				 unit == 1);
		check_utilization(bucket_state, &p, edge);
		check_utilization(bucket_state, &p, edge + rng_below(window_ns));
		/* So one more than the rest of the capacity fits only then. */
		cost = p.capacity - unit + 1;
		res = sl_step(bucket_state, &p, at(edge), cost);
		assert_true(res.verdict == SL_OVER && res.wait_ns == window_ns - left + 1);
	}
}

/* ------------------------------------------------------------------ large quanta */

/*
 * A gigabyte a second of frames of one size or of all: charged at random, the bytes that pass in
 * each window are within the stated error.
 */
TEST(test_quanta)
{
	static const struct {
		u64 capacity;
		u32 least, most;
	} runs[] = {
		{ 1000000000, 64, 64 },	     { 1000000000, 1514, 1514 }, { 1000000000, 64, 1514 },
		{ 100000000000, 60, 65535 }, { 33554431, 1, 1 },	 { 33554431, 64, 65 },
	};

	rng_start("quanta");
	for (size_t i = 0; i < COUNT(runs); i++) {
		struct rate rate = { runs[i].capacity, SEC, RATE_BYTES };
		struct sl_params p =
			make(SL_ALGO_SLIDING_WINDOW, rate.count, rate.period_ns, rate.unit, 0);
		double error = params_error_ppm(&p, &rate) / 1e6;
		u64 bucket_state = 0, utc = ONE_O_CLOCK, passed = 0;

		assert_true(p.quantum > 0 && p.capacity >> p.quantum <= SL_SLIDING_COUNT_MAX);
		assert_in_range(error * 1e6, 690, 1000);
		while (utc < ONE_O_CLOCK + SEC) {
			u64 cost = runs[i].least + rng_below(runs[i].most - runs[i].least + 1);

			passed += passes(&bucket_state, &p, utc, cost) ? cost : 0;
			utc += 1 + rng_below(2 * (SEC / 2 * cost / runs[i].capacity + 1));
		}
		/* Six standard deviations, and a frame that no longer fits. */
		if (fabs((double)passed / runs[i].capacity - 1) > error * 1.5 + 65535.0 / 1e8)
			fail_msg("run %zu: %llu of %llu passed, stated error %g", i, passed,
				 runs[i].capacity, error);
	}
}

TEST(test_quanta_refund)
{
	struct sl_params p = make(SL_ALGO_SLIDING_WINDOW, 1ULL << 40, MINUTE, RATE_BYTES, 0);
	u64 utc = ONE_O_CLOCK, bucket_state = sl_step(0, &p, at(utc), 1 << 24).bucket_state;

	rng_start("quanta_refund");
	for (int i = 0; i < 10000; i++) {
		u64 cost = rng_below(1 << 20), charged;

		utc += rng_below(1000);
		charged = sl_step(bucket_state, &p, at(utc), cost).bucket_state;
		assert_true(sl_refund(charged, &p, at(utc), cost) == bucket_state);
	}
}

/* A wait by the cost rounded up; a refusal that holds until then. */
TEST(test_quanta_wait)
{
	struct sl_params p = make(SL_ALGO_SLIDING_WINDOW, 1ULL << 30, 10 * SEC, RATE_BYTES, 0);
	u64 utc = ONE_O_CLOCK, bucket_state = 0;

	rng_start("quanta_wait");
	while (passes(&bucket_state, &p, utc, 1 << 20))
		utc++;
	for (int i = 0; i < 1000; i++) {
		u64 cost = 1 + rng_below(1 << 22), now = utc + rng_below(19 * SEC);
		struct sl_result res = sl_step(bucket_state, &p, at(now), cost);

		if (res.verdict == SL_PASS)
			continue;
		assert_int_equal(sl_step(bucket_state, &p, at(now + res.wait_ns), cost).verdict,
				 SL_PASS);
		assert_int_equal(
			sl_step(bucket_state, &p, at(now + rng_below(res.wait_ns)), cost).verdict,
			SL_OVER);
	}
}

TEST_MAIN
