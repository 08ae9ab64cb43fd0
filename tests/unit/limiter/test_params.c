/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A rate becomes parameters that keep every bound of algo.h, or is refused with a message. */
#include "lib/test.h"
#include "limiter/params.h"
#include "lib/rng.h"

typedef unsigned __int128 u128;

#define SEC SL_NS_PER_SEC

static int compile(enum sl_algo algo, struct rate rate, u64 burst, struct sl_params *p)
{
	const char *reason = NULL;
	int err = params_compile(algo, &rate, burst, 0, p, &reason);

	assert_true(err == 0 || err == -ERANGE);
	assert_int_equal(err == 0, reason == NULL);
	return err;
}

static struct sl_params make(enum sl_algo algo, u64 count, u64 period_ns, enum rate_unit unit,
			     u64 burst)
{
	struct sl_params p;

	assert_int_equal(compile(algo, (struct rate){ count, period_ns, unit }, burst, &p), 0);
	return p;
}

/* Every bound that algo.h and algo_gcra.h state, on exact products. */
static void assert_gcra_bounds(const struct rate *rate, const struct sl_params *p)
{
	bool bytes = rate->unit == RATE_BYTES || rate->unit == RATE_BITS;
	u64 most = p->capacity < SL_COST_MAX ? p->capacity : SL_COST_MAX;
	u128 exact = (u128)rate->period_ns * 16 * (rate->unit == RATE_BITS ? 8 : 1);
	u128 mult_count = (u128)p->mult * rate->count;
	u64 mantissa;

	assert_in_range(p->capacity, 1, SL_BIT(46) - 1);
	assert_true((u128)p->mult * most < SL_BIT(63));
	assert_in_range(p->tau, 1, SL_BIT(60) - 1);
	assert_in_range(p->shift, 0, 40);
	/* The interval is never short, and long by less than one unit of mult. */
	assert_true(mult_count >= exact << p->shift);
	assert_true(mult_count < (exact << p->shift) + rate->count);
	if (bytes)
		assert_true(p->mult >= SL_BIT(37));
	/* tau is the capacity's interval, rounded up. */
	assert_true((u128)p->tau << p->shift >= (u128)p->mult * p->capacity);
	assert_true((u128)(p->tau - 1) << p->shift < (u128)p->mult * p->capacity);
	mantissa = sl_scale_down(p->tau, p->tau_exp);
	assert_in_range(mantissa, SL_BIT(31), SL_BIT(32) - 1);
}

TEST(test_gcra_random)
{
	u32 good = 0;

	rng_start("gcra_random");
	for (int i = 0; i < 200000; i++) {
		struct rate rate = {
			.count = rng_magnitude(48),
			.period_ns = SEC * rng_magnitude(24),
			.unit = rng_below(RATE_UNIT_COUNT),
		};
		u64 burst = rng_below(4) ? rng_magnitude(50) : 0;
		struct sl_params p;

		if (compile(SL_ALGO_TOKEN_BUCKET, rate, burst, &p))
			continue;
		good++;
		assert_gcra_bounds(&rate, &p);
		if (burst)
			assert_true(p.capacity == (rate.unit == RATE_BITS ? burst / 8 : burst));
	}
	assert_in_range(good, 20000, 180000);
}

TEST(test_known_rates)
{
	struct sl_params p;

	p = make(SL_ALGO_TOKEN_BUCKET, 1000, SEC, RATE_PACKETS, 2000);
	assert_true(p.mult == 16000000 && p.shift == 0);
	assert_true(p.tau == 2 * SEC * 16);
	assert_int_equal(p.gen, 0);

	/* 10 Gbit/s: 0.8 ns, 12.8 ticks a byte; the default burst is one second. */
	p = make(SL_ALGO_TOKEN_BUCKET, 10000000000, SEC, RATE_BITS, 0);
	assert_true(p.capacity == 1250000000);
	assert_true(sl_gcra_ticks(&p, 10) == 129); /* 128 and the rounding */
	assert_true(sl_gcra_ticks(&p, 1500) == 19201);

	/* One a day, and three. */
	p = make(SL_ALGO_TOKEN_BUCKET, 1, 86400 * SEC, RATE_CONNECTIONS, 0);
	assert_true(p.capacity == 1);
	p = make(SL_ALGO_TOKEN_BUCKET, 3, 86400 * SEC, RATE_PACKETS, 3);
	assert_true(p.tau == 86400 * SEC * 16);

	/* The largest rates. */
	p = make(SL_ALGO_TOKEN_BUCKET, 1000000000, SEC, RATE_PACKETS, 0);
	p = make(SL_ALGO_TOKEN_BUCKET, 128000000000, SEC, RATE_BYTES, 0);
	p = make(SL_ALGO_TOKEN_BUCKET, 1024000000000, SEC, RATE_BITS, 0);
}

TEST(test_refused)
{
	static const struct {
		enum sl_algo algo;
		struct rate rate;
		u64 burst;
		const char *bucket_state; /* of the reason */
	} table[] = {
		{ SL_ALGO_TOKEN_BUCKET, { 0, SEC, RATE_PACKETS }, 0, "rate is 0" },
		{ SL_ALGO_TOKEN_BUCKET, { 1, SEC / 100 - 1, RATE_PACKETS }, 0, "below 10ms" },
		{ SL_ALGO_TOKEN_BUCKET, { 1, ~0ULL, RATE_PACKETS }, 0, "2.2 years" },
		{ SL_ALGO_TOKEN_BUCKET, { 1000000001, SEC, RATE_PACKETS }, 0, "above 1G" },
		{ SL_ALGO_TOKEN_BUCKET, { 128000000001, SEC, RATE_BYTES }, 0, "128G" },
		{ SL_ALGO_TOKEN_BUCKET, { 1024000000001, SEC, RATE_BITS }, 0, "1024G" },
		{ SL_ALGO_TOKEN_BUCKET, { ~0ULL, SEC, RATE_PACKETS }, 0, "2^46" },
		{ SL_ALGO_TOKEN_BUCKET, { 1000, SEC, RATE_PACKETS }, SL_BIT(46), "2^46" },
		{ SL_ALGO_TOKEN_BUCKET, { 1, 86400 * SEC, RATE_PACKETS }, 1000, "too slow" },
		{ SL_ALGO_TOKEN_BUCKET, { 1, SEC, RATE_PACKETS }, SL_BIT(40), "too slow" },
		{ SL_ALGO_TOKEN_BUCKET, { 1000, SEC, RATE_BYTES }, 63, "64 bytes" },
		{ SL_ALGO_TOKEN_BUCKET, { 1000, SEC, RATE_BITS }, 511, "64 bytes" },
		{ SL_ALGO_FIXED_WINDOW, { 1000, SEC, RATE_PACKETS }, 1, "no burst" },
		{ SL_ALGO_FIXED_WINDOW, { 63, SEC, RATE_BYTES }, 0, "64 bytes" },
		{ SL_ALGO_FIXED_WINDOW, { 511, SEC, RATE_BITS }, 0, "64 bytes" },
		{ SL_ALGO_FIXED_WINDOW, { SL_BIT(46), SEC, RATE_PACKETS }, 0, "2^46" },
		{ SL_ALGO_SLIDING_WINDOW, { 1000, SEC, RATE_PACKETS }, 1, "no burst" },
		{ SL_ALGO_SLIDING_WINDOW, { 1000, SEC / 100 - 1, RATE_PACKETS }, 0, "below 10ms" },
		{ SL_ALGO_SLIDING_WINDOW, { 511, SEC, RATE_BITS }, 0, "64 bytes" },
		{ SL_ALGO_SLIDING_WINDOW, { SL_BIT(46), SEC, RATE_PACKETS }, 0, "2^46" },
		{ SL_ALGO_LEAKY_BUCKET, { 1000, SEC, RATE_PACKETS }, 1, "no burst" },
		{ SL_ALGO_LEAKY_BUCKET, { 1000000001, SEC, RATE_PACKETS }, 0, "above 1G" },
		{ SL_ALGO_LEAKY_BUCKET, { 1, 86400 * SEC, RATE_BYTES }, 0, "too slow" },
		{ SL_ALGO_GRACE, { 1, 0, RATE_PACKETS }, 0, "is 0" },
		{ SL_ALGO_GRACE, { 1, ~0ULL, RATE_PACKETS }, 0, "2.2 years" },
		{ SL_ALGO_COUNT, { 1000, SEC, RATE_PACKETS }, 0, "algorithm" },
	};

	for (size_t i = 0; i < COUNT(table); i++) {
		struct sl_params p, before;
		const char *reason = NULL;

		memset(&p, 0x5a, sizeof(p));
		before = p;
		assert_int_equal(params_compile(table[i].algo, &table[i].rate, table[i].burst, 0,
						&p, &reason),
				 -ERANGE);
		assert_non_null(reason);
		assert_non_null(strstr(reason, table[i].bucket_state));
		assert_memory_equal(&p, &before, sizeof(p));
	}
}

TEST(test_default_burst)
{
	static const struct {
		struct rate rate;
		u32 max_frame;
		u64 burst;
	} table[] = {
		{ { 1000, SEC, RATE_PACKETS }, 0, 1000 },
		{ { 1000, 10 * SEC, RATE_PACKETS }, 0, 100 },
		{ { 10, 60 * SEC, RATE_CONNECTIONS }, 0, 1 },
		{ { 1000000, SEC, RATE_BYTES }, 0, 1000000 },
		{ { 1000, SEC, RATE_BYTES }, 0, 9018 },
		{ { 1000, SEC, RATE_BYTES }, 1514, 1514 },
		{ { 8000, SEC, RATE_BITS }, 1514, 12112 },
		{ { 80000000, SEC, RATE_BITS }, 1514, 80000000 },
	};

	for (size_t i = 0; i < COUNT(table); i++)
		assert_true(params_default_burst(&table[i].rate, table[i].max_frame) ==
			    table[i].burst);
}

TEST(test_window)
{
	struct sl_params p;

	p = make(SL_ALGO_FIXED_WINDOW, 1001, 60 * SEC, RATE_PACKETS, 0);
	assert_true(p.capacity == 1001 && p.window_ns == 60 * SEC);
	p = make(SL_ALGO_FIXED_WINDOW, 8007, SEC, RATE_BITS, 0);
	assert_true(p.capacity == 1000);
}

TEST(test_leaky)
{
	struct sl_params p;

	/* One packet, whatever the rate; one frame of the largest size. */
	p = make(SL_ALGO_LEAKY_BUCKET, 1000, SEC, RATE_PACKETS, 0);
	assert_true(p.capacity == 1 && p.mult == 16000000 && p.tau == 16000000);
	p = make(SL_ALGO_LEAKY_BUCKET, 1, 86400 * SEC, RATE_CONNECTIONS, 0);
	assert_true(p.capacity == 1);
	p = make(SL_ALGO_LEAKY_BUCKET, 1000000, SEC, RATE_BYTES, 0);
	assert_true(p.capacity == 9018);
	p = make(SL_ALGO_LEAKY_BUCKET, 10000000000, SEC, RATE_BITS, 0);
	assert_true(p.capacity == 9018);
	assert_gcra_bounds(&(struct rate){ 10000000000, SEC, RATE_BITS }, &p);
}

/* The least quantum that 25 bits of counts allow, and the bits that the times are cut to. */
TEST(test_sliding)
{
	static const struct {
		struct rate rate;
		u64 capacity;
		u8 quantum, shift;
	} table[] = {
		{ { 100, SEC, RATE_PACKETS }, 100, 0, 0 },
		{ { SL_BIT(25) - 2, 60 * SEC, RATE_PACKETS }, SL_BIT(25) - 2, 0, 0 },
		{ { SL_BIT(25) - 1, 60 * SEC, RATE_PACKETS }, SL_BIT(25) - 1, 1, 0 },
		{ { SL_BIT(46) - 1, 274 * SEC, RATE_BYTES }, SL_BIT(46) - 1, 22, 0 },
		{ { 8000000000, 275 * SEC, RATE_BITS }, 1000000000, 5, 1 },
		{ { 1000, 86400 * SEC, RATE_PACKETS }, 1000, 0, 9 },
		{ { 1000, SL_BIT(56), RATE_PACKETS }, 1000, 0, 19 },
	};

	for (size_t i = 0; i < COUNT(table); i++) {
		struct sl_params p;

		assert_int_equal(compile(SL_ALGO_SLIDING_WINDOW, table[i].rate, 0, &p), 0);
		assert_true(p.capacity == table[i].capacity &&
			    p.window_ns == table[i].rate.period_ns);
		assert_int_equal(p.quantum, table[i].quantum);
		assert_int_equal(p.shift, table[i].shift);
		/* As elastic as it can be. */
		params_make_room(&p, 10000);
		assert_in_range(p.quantum, 0, 28);
		assert_true((u128)p.capacity * 100 >> p.quantum <= SL_SLIDING_COUNT_MAX);
	}
}

TEST(test_stated_error)
{
	static const struct {
		enum sl_algo algo;
		struct rate rate;
		u32 ceiling_percent, least_ppm, most_ppm;
	} table[] = {
		{ SL_ALGO_SLIDING_WINDOW, { 33554430, SEC, RATE_PACKETS }, 100, 0, 0 },
		{ SL_ALGO_SLIDING_WINDOW, { 33554432, SEC, RATE_PACKETS }, 100, 970, 980 },
		{ SL_ALGO_SLIDING_WINDOW, { 1000, SEC, RATE_PACKETS }, 10000, 0, 0 },
		{ SL_ALGO_SLIDING_WINDOW, { 33554430, SEC, RATE_PACKETS }, 200, 970, 980 },
		/* At worst an elastic ceiling of 100 times: still below 1 %. */
		{ SL_ALGO_SLIDING_WINDOW, { 42949672960, SEC, RATE_BYTES }, 10000, 5000, 9900 },
		{ SL_ALGO_FIXED_WINDOW, { 1000000000000, SEC, RATE_BYTES }, 100, 0, 0 },
		{ SL_ALGO_TOKEN_BUCKET, { 1000, SEC, RATE_PACKETS }, 100, 0, 0 },
		{ SL_ALGO_TOKEN_BUCKET, { 1000000000, SEC, RATE_PACKETS }, 100, 0, 0 },
		/* 16.16 ticks become 17: 5 %. */
		{ SL_ALGO_TOKEN_BUCKET, { 990000000, SEC, RATE_PACKETS }, 100, 51000, 53000 },
		{ SL_ALGO_LEAKY_BUCKET, { 10000000000, SEC, RATE_BITS }, 100, 0, 0 },
	};

	for (size_t i = 0; i < COUNT(table); i++) {
		struct sl_params p;

		assert_int_equal(compile(table[i].algo, table[i].rate, 0, &p), 0);
		params_make_room(&p, table[i].ceiling_percent);
		assert_in_range(params_error_ppm(&p, &table[i].rate), table[i].least_ppm,
				table[i].most_ppm);
	}
}

/* Leases only where there is a quantity that CPUs can share. */
TEST(test_percpu)
{
	for (enum sl_algo algo = 0; algo < SL_ALGO_COUNT; algo++) {
		bool leased = algo == SL_ALGO_TOKEN_BUCKET ||
			      (sl_algo_is_window(algo) && algo != SL_ALGO_WINDOW_COUNTERS);

		assert_int_equal(params_percpu_note(algo) == NULL, leased);
	}
}

TEST(test_lease)
{
	static const struct {
		enum { SLOW, FAST, WINDOW } kind;
		u64 capacity;
		u32 cpus;
		enum sl_unit unit;
		u32 lease, kept;
	} table[] = {
		{ SLOW, 159, 1, SL_UNIT_PACKETS, 0, 0 },
		{ SLOW, 160, 20, SL_UNIT_PACKETS, 2, 0 },
		{ SLOW, 160, 21, SL_UNIT_PACKETS, 0, 0 },
		{ SLOW, 2000, 16, SL_UNIT_PACKETS, 31, 0 },
		{ SLOW, 1000000, 4, SL_UNIT_PACKETS, 62500, 1250 },
		{ SLOW, 1000000, 0, SL_UNIT_PACKETS, 0, 0 },
		{ SLOW, SL_BIT(46) - 1, 2, SL_UNIT_BYTES, SL_LEASE_UNITS_MAX, 20971 },
		{ SLOW, 387583, 64, SL_UNIT_BYTES, 0, 0 },
		{ SLOW, 387584, 64, SL_UNIT_BYTES, 1514, 30 },
		{ FAST, 199, 1, SL_UNIT_PACKETS, 0, 0 },
		{ FAST, 399, 2, SL_UNIT_CONNECTIONS, 0, 0 },
		{ FAST, 400, 2, SL_UNIT_CONNECTIONS, 2, 2 },
		{ WINDOW, 199, 1, SL_UNIT_PACKETS, 0, 0 },
		{ WINDOW, 200, 2, SL_UNIT_PACKETS, 2, 2 },
		{ WINDOW, 1000, 16, SL_UNIT_PACKETS, 3, 3 },
		{ WINDOW, 1000, 64, SL_UNIT_PACKETS, 0, 0 },
		{ WINDOW, 1000000, 4, SL_UNIT_PACKETS, 10000, 10000 },
	};

	for (size_t i = 0; i < COUNT(table); i++) {
		struct sl_params p = {
			.capacity = table[i].capacity,
			.algo = table[i].kind == WINDOW ? SL_ALGO_FIXED_WINDOW
							: SL_ALGO_TOKEN_BUCKET,
			.tau = SL_LEASE_TAU - (table[i].kind == FAST),
		};

		assert_int_equal(sl_lease_batch(&p, table[i].cpus, table[i].unit), table[i].lease);
		assert_int_equal(sl_lease_kept(&p, table[i].lease), table[i].kept);
	}
}

TEST_MAIN
