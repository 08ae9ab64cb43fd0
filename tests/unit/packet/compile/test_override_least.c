// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Where the table is full, how much a source with an override has used is weighed by the least of
 * all overrides, whatever their order: so a source over a small one never counts as lightly used.
 */
#include "lib/test.h"
#include "limiter/params.h"
#include "policy_make.h"

static void check_least(enum sl_algo algo, const u64 rate[3])
{
	struct override_def override[3];
	struct rates rates[3];
	struct limit_def limit[] = { make_limit("a") };
	const struct sl_params *weighs;
	struct sl_image *image;

	for (u32 i = 0; i < 3; i++) {
		override[i] =
			(struct override_def){ .src = prefix(SL_V4, (0xc0000201ULL + i) << 32, 32),
					       .rates = i };
		rates[i] = (struct rates){ .rate = { { rate[i], SEC, RATE_PACKETS } }, .count = 1 };
		rates[i].burst[0] = algo == SL_ALGO_TOKEN_BUCKET ? 50 : 0;
	}
	limit[0].terms.algorithm = algo;
	limit[0].terms.rates.burst[0] = algo == SL_ALGO_TOKEN_BUCKET ? 50 : 0;
	limit[0].override = override;
	limit[0].override_rates = rates;
	limit[0].override_count = limit[0].override_rates_count = 3;
	memset(slots, 0, sizeof(slots));
	image = compile_limits(limit, 1);
	assert_true(image->rules->limits[0].overridden < SL_METERS_MAX);
	weighs = &image->rules->limits[image->rules->limits[0].overridden].params;
	for (u32 i = 0; i < 3; i++) {
		struct sl_params p;
		const char *reason;

		assert_int_equal(
			params_compile(algo, &rates[i].rate[0], rates[i].burst[0], 0, &p, &reason),
			0);
		assert_true(weighs->tau <= p.tau && weighs->capacity <= p.capacity);
	}
	image_free(image);
}

TEST(test_least_of_all)
{
	static const u64 rate[][3] = {
		{ 10, 500, 90 }, { 90, 500, 10 }, { 500, 10, 90 }, { 10, 90, 500 }
	};

	for (u32 i = 0; i < COUNT(rate); i++) {
		check_least(SL_ALGO_TOKEN_BUCKET, rate[i]);
		check_least(SL_ALGO_SLIDING_WINDOW, rate[i]);
	}
}

TEST_MAIN
