/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Grace, refunds of windows from the first request, parameters scaled by elastic, and what is
 * remembered of offenders. */
#include "lib/test.h"
#include "algo_make.h"
#include "lib/rng.h"
#include "lib/spec_def.h"
#include "limiter/algorithm.h"

#include <math.h>

typedef unsigned __int128 u128;

#define BOOT (1000 * SEC)
#define ONE SL_ELASTIC_ONE

/* ------------------------------------------------------------------ grace */

TEST(test_grace)
{
	struct rate thirty = { 1, 30 * SEC, RATE_PACKETS };
	struct sl_params p;
	const char *reason;
	u64 bucket_state = 0;

	assert_int_equal(params_compile(SL_ALGO_GRACE, &thirty, 0, 0, &p, &reason), 0);
	assert_true(passes(&bucket_state, &p, BOOT, 1));
	assert_int_equal(sl_utilization(bucket_state, &p, at(BOOT)), 127);
	assert_int_equal(sl_used(bucket_state, &p, at(BOOT)), 1);
	/* Any number, at any time of the 30 s. */
	assert_true(passes(&bucket_state, &p, BOOT, 1 << 20));
	assert_true(passes(&bucket_state, &p, BOOT + 30 * SEC - 1, 1));
	/* Then not, for as long; a refusal does not make it longer. */
	for (u64 s = 30; s < 60; s++) {
		struct sl_result res = sl_step(bucket_state, &p, at(BOOT + s * SEC), 1);

		assert_int_equal(res.verdict, SL_OVER);
		assert_true(res.wait_ns == (60 - s) * SEC && res.bucket_state == bucket_state);
		assert_int_equal(sl_utilization(bucket_state, &p, at(BOOT + s * SEC)), 255);
		assert_false(sl_expired(bucket_state, &p, at(BOOT + s * SEC)));
	}
	/* Then it is as never seen. */
	assert_true(sl_expired(bucket_state, &p, at(BOOT + 60 * SEC)));
	assert_int_equal(sl_utilization(bucket_state, &p, at(BOOT + 60 * SEC)), 0);
	assert_int_equal(sl_used(bucket_state, &p, at(BOOT + 60 * SEC)), 0);
	assert_true(passes(&bucket_state, &p, BOOT + 60 * SEC, 1));
	assert_true(passes(&bucket_state, &p, BOOT + 90 * SEC - 1, 1));
	assert_false(passes(&bucket_state, &p, BOOT + 90 * SEC, 1));
	/* A bucket state that another CPU stored just now is not expired. */
	bucket_state = BOOT + 5;
	assert_false(sl_expired(bucket_state, &p, at(BOOT)));
	assert_true(passes(&bucket_state, &p, BOOT, 1) && bucket_state == BOOT + 5);
}

TEST(test_grace_refund)
{
	struct sl_params p = { .algo = SL_ALGO_GRACE, .capacity = 1, .window_ns = SEC };
	u64 bucket_state = sl_step(0, &p, at(BOOT), 1).bucket_state;

	/* Begun by a packet that is refused after all: not begun. Otherwise there is no further
	 * rule. */
	assert_true(sl_refund(bucket_state, &p, at(BOOT), 1) == 0);
	assert_true(sl_refund(bucket_state, &p, at(BOOT + 1), 1) == bucket_state);
	bucket_state = sl_step(0, &p, at(0), 1).bucket_state;
	assert_true(bucket_state != 0 && sl_refund(bucket_state, &p, at(0), 1) == 0);
}

/* --------------------------------------------------------------- windows from the first request */

TEST(test_first_request_refund)
{
	struct rate rate = { 10, MINUTE, RATE_PACKETS };
	struct sl_params p;
	const char *reason;
	u64 seven, ten;

	assert_int_equal(params_compile(SL_ALGO_FIXED_WINDOW, &rate, 0, 0, &p, &reason), 0);
	assert_int_equal(params_anchor(&p, true, 100, &reason), 0);
	seven = sl_step(0, &p, at(BOOT), 7).bucket_state;
	ten = sl_step(seven, &p, at(BOOT + SEC), 3).bucket_state;
	assert_true(sl_refund(ten, &p, at(BOOT + SEC), 3) == seven);
	assert_int_equal(sl_used(sl_refund(seven, &p, at(BOOT), 9), &p, at(BOOT)), 0);
	/* The window is over: nothing to refund. */
	assert_int_equal(
		sl_used(sl_refund(ten, &p, at(BOOT + 2 * MINUTE), 3), &p, at(BOOT + 2 * MINUTE)),
		0);
}

/* ------------------------------------------------------------------ elastic */

static struct sl_params scaled(const struct sl_params *p, u32 scale)
{
	struct sl_params copy = *p;

	sl_scale_params(&copy, scale, SL_BIT(32) / scale, 1);
	return copy;
}

/* As the daemon writes it: the inverse rounded up. */
static struct sl_params shrunk(const struct sl_params *p, u32 scale, u64 least)
{
	struct sl_params copy = *p;

	sl_scale_params(&copy, scale, (SL_BIT(32) + scale - 1) / scale, least);
	return copy;
}

static u32 random_scale(void)
{
	return rng_below(8)   ? ONE + rng_below(SL_SCALE_MAX - ONE + 1)
	       : rng_below(2) ? ONE
			      : SL_SCALE_MAX;
}

/* A unit's interval is 1 / scale of what it was: no longer but by rounding, no shorter by 0.16
 * %. */
static void assert_faster(const struct sl_params *from, const struct sl_params *to, u32 scale)
{
	u128 was = (u128)from->mult << 16, is = (u128)to->mult * scale;

	assert_true(to->mult <= from->mult && to->shift == from->shift);
	assert_true(is <= was + scale);
	assert_true(is >= was - was / 640);
}

TEST(test_scaled_buckets)
{
	u32 good = 0;

	rng_start("scaled_buckets");
	for (int i = 0; i < 100000; i++) {
		enum sl_algo algo = rng_below(2) ? SL_ALGO_TOKEN_BUCKET : SL_ALGO_LEAKY_BUCKET;
		struct rate rate = { rng_magnitude(38), SEC * rng_magnitude(20),
				     rng_below(RATE_UNIT_COUNT) };
		u64 burst = algo == SL_ALGO_LEAKY_BUCKET || rng_below(2) ? 0 : rng_magnitude(40);
		u32 scale = random_scale();
		struct sl_params p, s;
		const char *reason;
		u64 most;

		if (params_compile(algo, &rate, burst, 0, &p, &reason))
			continue;
		good++;
		s = scaled(&p, scale);
		assert_faster(&p, &s, scale);
		most = s.capacity < SL_COST_MAX ? s.capacity : SL_COST_MAX;
		assert_true((u128)s.mult * most < (u128)SL_BIT(63) + SL_BIT(31));
		if (algo == SL_ALGO_TOKEN_BUCKET) {
			assert_true(s.tau == p.tau);
			assert_true(s.capacity == (u64)((u128)p.capacity * scale >> 16));
			continue;
		}
		/* Still one packet or frame, and no burst beyond it. */
		assert_true(s.capacity == p.capacity && s.tau <= p.tau);
		assert_int_equal(sl_step(0, &s, at(BOOT), s.capacity).verdict, SL_PASS);
		assert_int_equal(sl_step(sl_step(0, &s, at(BOOT), s.capacity).bucket_state, &s,
					 at(BOOT), s.capacity)
					 .verdict,
				 SL_OVER);
	}
	assert_in_range(good, 10000, 90000);
}

/* Below 1: the interval is never shorter than 1 / scale of what it was, and no product
 * overflows. */
TEST(test_shrunk_buckets)
{
	u32 good = 0, refused = 0;

	rng_start("shrunk_buckets");
	for (int i = 0; i < 100000; i++) {
		enum sl_algo algo = rng_below(2) ? SL_ALGO_TOKEN_BUCKET : SL_ALGO_LEAKY_BUCKET;
		struct rate rate = { rng_magnitude(38), SEC * rng_magnitude(20),
				     rng_below(RATE_UNIT_COUNT) };
		u64 burst = algo == SL_ALGO_LEAKY_BUCKET || rng_below(2) ? 0 : rng_magnitude(40);
		u32 scale = SL_SCALE_MIN + rng_below(ONE - SL_SCALE_MIN);
		bool bytes = rate.unit == RATE_BYTES || rate.unit == RATE_BITS;
		u64 least = bytes ? SL_FRAME_LARGE : 1, most;
		double was, is;
		struct sl_params p, s;
		const char *reason;

		if (params_compile(algo, &rate, burst, 0, &p, &reason))
			continue;
		if (params_check_floor(&p, scale * 100ULL / ONE, &reason)) {
			refused++;
			continue;
		}
		good++;
		s = shrunk(&p, scale, least);
		was = ldexp(p.mult, -p.shift) * ONE / scale;
		is = ldexp(s.mult, -s.shift);
		assert_true(is >= was * (1 - 1e-12));
		/* A bit of the fraction, or a tick, and the inverse's own rounding. */
		assert_true(is <= was * (1 + ldexp(scale, -32) + 1.0 / s.mult) +
					  1.01 * ldexp(1, -s.shift) * ONE / scale);
		most = s.capacity < SL_COST_MAX ? s.capacity : SL_COST_MAX;
		assert_true((u128)s.mult * most < (u128)SL_BIT(63) + SL_BIT(31));
		assert_true(s.tau < SL_BIT(60) + SL_BIT(40) && s.tau >= p.tau);
		if (algo == SL_ALGO_TOKEN_BUCKET) {
			u64 shrunk_to = (u128)p.capacity * scale >> 16;
			u64 kept = p.capacity < least ? p.capacity : least;

			assert_true(s.capacity == (shrunk_to < kept ? kept : shrunk_to));
			assert_true(s.capacity == kept || s.tau == p.tau);
		}
		/* A unit, or a frame that fitted before, still fits, once. */
		if (least > s.capacity)
			least = s.capacity;
		assert_int_equal(sl_step(0, &s, at(BOOT), least).verdict, SL_PASS);
		if (s.capacity == least)
			assert_int_equal(sl_step(sl_step(0, &s, at(BOOT), least).bucket_state, &s,
						 at(BOOT), least)
						 .verdict,
					 SL_OVER);
	}
	assert_in_range(good, 10000, 90000);
	assert_true(refused > 0);
}

/* Units admitted in ten seconds at a scale, to a source that sends all the time. */
static u64 admitted(const struct sl_params *p, u64 *bucket_state, u64 from)
{
	u64 count = 0;

	for (u64 us = 0; us < 10000000; us += 250)
		while (passes(bucket_state, p, from + us * 1000, 1))
			count++;
	return count;
}

TEST(test_scale_live)
{
	static const struct {
		enum sl_algo algo;
		u64 count, period_s, burst, at_one, at_two;
	} runs[] = {
		{ SL_ALGO_TOKEN_BUCKET, 100, 1, 50, 1000, 2000 },
		{ SL_ALGO_LEAKY_BUCKET, 100, 1, 0, 1000, 2000 },
		{ SL_ALGO_FIXED_WINDOW, 100, 1, 0, 1000, 2000 },
		{ SL_ALGO_SLIDING_WINDOW, 100, 1, 0, 1000, 2000 },
	};

	for (size_t i = 0; i < COUNT(runs); i++) {
		struct sl_params one = make(runs[i].algo, runs[i].count, runs[i].period_s * SEC,
					    RATE_PACKETS, runs[i].burst);
		struct sl_params two = scaled(&one, 2 * ONE);
		u64 bucket_state = 0, slack = 2 + runs[i].burst;

		assert_in_range(admitted(&one, &bucket_state, BOOT), runs[i].at_one - 1,
				runs[i].at_one + slack);
		assert_in_range(admitted(&two, &bucket_state, BOOT + 10 * SEC),
				runs[i].at_two - runs[i].count, runs[i].at_two + slack);
		/* Back: units used at twice the limit count as used. */
		assert_in_range(admitted(&one, &bucket_state, BOOT + 20 * SEC),
				runs[i].at_one - runs[i].count, runs[i].at_one + slack);
		/* A tenth of it, and what was used of the whole limit. */
		two = shrunk(&one, ONE / 10, 1);
		assert_in_range(admitted(&two, &bucket_state, BOOT + 30 * SEC),
				runs[i].at_one / 10 - runs[i].count / 10 - 1,
				runs[i].at_one / 10 + slack);
		assert_in_range(admitted(&one, &bucket_state, BOOT + 40 * SEC),
				runs[i].at_one - runs[i].count, runs[i].at_one + slack);
	}
}

TEST(test_scaled_windows)
{
	struct sl_params p = make(SL_ALGO_FIXED_WINDOW, SL_BIT(46) - 1, SEC, RATE_BYTES, 0);

	assert_true(scaled(&p, ONE).capacity == p.capacity);
	assert_true(scaled(&p, 2 * ONE).capacity == SL_BIT(46) - 1);
	assert_true(shrunk(&p, ONE / 2, SL_FRAME_LARGE).capacity == SL_BIT(45) - 1);
	p = make(SL_ALGO_FIXED_WINDOW, 20000, SEC, RATE_BYTES, 0);
	assert_true(shrunk(&p, ONE / 10, SL_FRAME_LARGE).capacity == SL_FRAME_LARGE);
	p = make(SL_ALGO_FIXED_WINDOW, 1, SEC, RATE_PACKETS, 0);
	assert_true(shrunk(&p, ONE / 10, 1).capacity == 1);
	/* A refill of 0 would be a fixed window. */
	p = make(SL_ALGO_INTERVAL_BUCKET, 5, SEC, RATE_PACKETS, 40);
	assert_true(shrunk(&p, ONE / 2, 1).mult == 2 && shrunk(&p, ONE / 2, 1).capacity == 20);
	assert_true(shrunk(&p, ONE / 10, 1).mult == 1 && shrunk(&p, ONE / 10, 1).capacity == 3);
	p = make(SL_ALGO_FIXED_WINDOW, 1000, SEC, RATE_PACKETS, 0);
	assert_true(scaled(&p, ONE + ONE / 2).capacity == 1500);
	p = make(SL_ALGO_SLIDING_WINDOW, 20000000, SEC, RATE_PACKETS, 0);
	assert_int_equal(p.quantum, 0);
	assert_true(scaled(&p, 10 * ONE).capacity == SL_SLIDING_COUNT_MAX);
	/* With room made for it, it reaches its scale. */
	params_make_room(&p, 1000);
	assert_int_equal(p.quantum, 3);
	assert_true(scaled(&p, 10 * ONE).capacity == 200000000);
	p = (struct sl_params){ .algo = SL_ALGO_GRACE, .capacity = 1, .window_ns = SEC };
	assert_true(scaled(&p, 10 * ONE).capacity == 1 && scaled(&p, 10 * ONE).window_ns == SEC);
}

/* ------------------------------------------------------------ what is remembered of an offender */

/* A spent bucket, of which only the time of its end was kept: never less used than it was, from
 * then on. */
static void check_spent(const struct sl_params *p)
{
	for (u32 i = 0; i < 300; i++) {
		u64 then = BOOT + rng_below(100 * SEC), now, left, state = 0, restored;

		fit(&state, p, then, p->capacity + 1);
		now = then + rng_below(2) * rng_below(sl_left_ns(state, p, at(then)));
		left = sl_left_ns(state, p, at(now));
		restored = sl_spent(p, at(now), left);
		for (u32 k = 0; k < 4; k++) {
			u64 later = k == 3 ? now + left - 1 : now + k * left / 4;

			if (sl_used(restored, p, at(later)) < sl_used(state, p, at(later)))
				fail_msg(
					"algorithm %u, charged at %llu: %llu used at %llu, of the restored %llu",
					p->algo, then, sl_used(state, p, at(later)), later,
					sl_used(restored, p, at(later)));
		}
		assert_true(sl_expired(restored, p, at(now + left + p->window_ns)));
	}
}

TEST(test_spent)
{
	struct sl_params counters = make(SL_ALGO_WINDOW_COUNTERS, 12, 8 * SEC, RATE_PACKETS, 0);
	struct sl_params first = make(SL_ALGO_FIXED_WINDOW, 12, 8 * SEC, RATE_PACKETS, 0);
	struct sl_params some[] = {
		make(SL_ALGO_TOKEN_BUCKET, 10, SEC, RATE_PACKETS, 20),
		make(SL_ALGO_FIXED_WINDOW, 12, 8 * SEC, RATE_PACKETS, 0),
		make(SL_ALGO_SLIDING_WINDOW, 12, 8 * SEC, RATE_PACKETS, 0),
		make(SL_ALGO_INTERVAL_BUCKET, 4, 8 * SEC, RATE_PACKETS, 10),
	};
	const char *reason;

	rng_start("spent");
	for (u32 i = 0; i < COUNT(some); i++)
		check_spent(&some[i]);
	assert_int_equal(params_divide(&counters, 4, 100, &reason), 0);
	check_spent(&counters);
	assert_int_equal(params_anchor(&first, true, 100, &reason), 0);
	check_spent(&first);
}

/* ------------------------------------------------------------------ bounds */

/* Refused ones that count fill a limit, and no more than that. */
TEST(test_filled)
{
	struct sl_params some[] = {
		make(SL_ALGO_TOKEN_BUCKET, 10, SEC, RATE_PACKETS, 20),
		make(SL_ALGO_SLIDING_WINDOW, 12, 8 * SEC, RATE_PACKETS, 0),
	};

	for (u32 i = 0; i < 2; i++)
		for (u64 before = 0; before <= some[i].capacity; before++)
			for (u64 cost = 1; cost < 5; cost++) {
				u64 bucket_state = 0, want = before + cost;

				assert_true(fit(&bucket_state, &some[i], BOOT, before) == before);
				bucket_state = sl_fill(bucket_state, &some[i], at(BOOT), cost);
				assert_true(sl_used(bucket_state, &some[i], at(BOOT)) ==
					    (want < some[i].capacity ? want : some[i].capacity));
			}
}

/* In ticks of more than a ns a window from its first packet is never too short, and longer by less
 * than two. */
TEST(test_first_is_long_enough)
{
	struct sl_params p = make(SL_ALGO_FIXED_WINDOW, 10, 86400 * SEC, RATE_PACKETS, 0);
	const char *reason;

	assert_int_equal(params_anchor(&p, true, 100, &reason), 0);
	assert_true(p.shift);
	for (u64 ns = 0; ns < 200; ns++) {
		u64 bucket_state = 0, left;

		assert_true(passes(&bucket_state, &p, BOOT + ns, 1));
		left = sl_left_ns(bucket_state, &p, at(BOOT + ns));
		assert_true(left >= p.window_ns && left < p.window_ns + SL_BIT(p.shift));
	}
}

/* Counters whose clock was set back by up to a window still count, and for so much longer. */
TEST(test_counters_set_back)
{
	struct sl_params p = make(SL_ALGO_WINDOW_COUNTERS, 12, 8 * SEC, RATE_PACKETS, 0);
	const char *reason;
	u64 bucket_state = 0, left;

	assert_int_equal(params_divide(&p, 4, 100, &reason), 0);
	assert_true(fit(&bucket_state, &p, BOOT + SEC, 20) == 12);
	left = sl_left_ns(bucket_state, &p, at(BOOT + SEC));
	for (u64 k = 0; k <= 4; k++) {
		struct sl_now now = at(BOOT + SEC - k * p.mult);

		assert_true(sl_used(bucket_state, &p, now) == 12);
		assert_true(sl_left_ns(bucket_state, &p, now) == left + k * p.mult);
		assert_true(sl_step(bucket_state, &p, now, 1).wait_ns == left + k * p.mult);
	}
}

/* Of a bucket in Redis and what comes besides at most two capacities are taken over. */
TEST(test_from_store)
{
	struct spec_def def = SPEC_DEF(TOKEN_BUCKET, 10, SEC, .burst = 20);
	struct cluster_store_state store = { 0 };
	struct spec_view view;
	struct spec spec;

	assert_int_equal(spec_make_def(&def, &spec, NULL), 0);
	spec_view_init(&view, &spec, 0, 0);
	for (u64 more = 0; more < 60; more += 10) {
		u64 counts = cluster_store_bucket_state(&spec, &store, more, at(BOOT));

		assert_true(spec_reset_ns(&view, counts, at(BOOT)) ==
			    (more < 40 ? more : 40) * SEC / 10);
	}
}

/* Requests cost up to SPEC_COST_MAX, beside any limit and at its very bounds: nothing overflows
 * into a fit. */
TEST(test_costs_of_requests)
{
	static const enum sl_algo algos[] = { SL_ALGO_TOKEN_BUCKET,    SL_ALGO_LEAKY_BUCKET,
					      SL_ALGO_FIXED_WINDOW,    SL_ALGO_SLIDING_WINDOW,
					      SL_ALGO_INTERVAL_BUCKET, SL_ALGO_FIRST_REQUEST };
	u32 good[COUNT(algos)] = { 0 };

	rng_start("costs_of_requests");
	for (int i = 0; i < 300000; i++) {
		u32 which = rng_below(COUNT(algos));
		bool burst = algorithms[algos[which]]->default_burst && rng_below(2),
		     elastic = !rng_below(4);
		struct spec_def def = { .count = rng_magnitude(46),
					.period_ns = SEC * rng_magnitude(21),
					.scale = 1,
					.burst = burst ? rng_magnitude(46) : 0,
					.algo = algos[which],
					.ceiling_percent = elastic ? 10000 : 100 };
		struct sl_now now = at(BOOT + rng_below(1000) * SEC);
		struct sl_result res, next;
		struct spec_view view;
		struct spec spec;
		u64 capacity, cost, left, slack;

		if (spec_make_def(&def, &spec, NULL))
			continue;
		good[which]++;
		spec_view_init(&view, &spec, elastic ? random_scale() : 0, 0);
		capacity = view.p.capacity;
		slack = spec.algo == SL_ALGO_SLIDING_WINDOW ? 2 * SL_BIT(view.p.quantum) : 0;
		cost = (u64[]){ SPEC_COST_MAX, SL_BIT(40),   capacity,
				capacity + 1,  capacity - 1, rng_magnitude(46) }[rng_below(6)];
		if (cost > SPEC_COST_MAX)
			cost = SPEC_COST_MAX;
		res = spec_charge(&view, 0, now, cost);
		/* At another scale the interval is rounded: the last of a burst may not fit. */
		if (elastic && cost <= capacity)
			continue;
		assert_true(cost <= capacity ? res.verdict == SL_PASS || cost + slack > capacity
					     : res.verdict == SL_OVER);
		assert_true(cost <= capacity || (res.wait_ns == ~0ULL && !res.bucket_state));
		left = spec_remaining(&view, spec_force(&view, 0, now, cost), now);
		assert_in_range(left, cost + slack < capacity ? capacity - cost - slack : 0,
				cost < capacity ? capacity - cost + slack : slack);
		assert_int_equal(
			spec_refund(&view, spec_force(&view, 0, now, cost), now, SPEC_COST_MAX), 0);
		if (res.verdict == SL_OVER || left + 1 + slack > SPEC_COST_MAX)
			continue;
		left = spec_remaining(&view, res.bucket_state, now);
		next = spec_charge(&view, res.bucket_state, now, left + 1 + slack);
		assert_int_equal(next.verdict, SL_OVER);
		if (left + 1 + 2 * slack <= capacity)
			assert_int_equal(spec_charge(&view, res.bucket_state,
						     at(now.mono_ns + next.wait_ns),
						     left + 1 + slack)
						 .verdict,
					 SL_PASS);
	}
	for (u32 i = 0; i < COUNT(algos); i++)
		assert_in_range(good[i], 3000, 60000);
}

TEST_MAIN
