// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* test_out.c - numbers of every length, and text that does not fit. */
#include "lib/out.h"
#include "lib/rng.h"
#include "lib/test.h"

static void assert_number(u64 value)
{
	char got[24], want[24];
	struct out out;

	out_begin(&out, got, sizeof(got));
	out_u64(&out, value);
	assert_int_equal(out.len, snprintf(want, sizeof(want), "%llu", value));
	assert_string_equal(out_end(&out), want);
}

TEST(test_numbers)
{
	u64 power = 1;

	for (u64 value = 0; value < 1100; value++)
		assert_number(value);
	for (u32 digits = 0; digits < 20; digits++, power *= 10) {
		assert_number(power - 1);
		assert_number(power);
		assert_number(power + 1);
	}
	assert_number(~0ULL);
	rng_start("out");
	for (u32 i = 0; i < 10000; i++)
		assert_number(rng_magnitude(64));
}

TEST(test_cut)
{
	char got[4];
	struct out out;

	out_begin(&out, got, sizeof(got));
	out_u64(&out, 12345);
	assert_int_equal(out.len, 5);
	assert_string_equal(out_end(&out), "123");
}

TEST_MAIN
