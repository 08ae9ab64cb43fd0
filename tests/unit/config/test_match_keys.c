// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The table of match keys: what the code that uses it relies on. */
#include "config/keys.h"
#include "lib/test.h"

TEST(test_each_dimension_has_one_key)
{
	for (u32 bit = 0; bit < 16; bit++) {
		u32 dim = 1U << bit, keys = 0;
		bool used = bit < 8 ? bit < SL_DIM16_COUNT : bit - 8 < SL_DIM8_COUNT;

		for (u32 i = 0; i < MATCH_KEY_COUNT; i++)
			keys += !!(match_keys[i].dims & dim);
		assert_int_equal(keys, used);
		if (used)
			assert_true(match_key_of(dim)->dims & dim);
	}
}

TEST(test_rows_are_complete)
{
	for (u32 i = 0; i < MATCH_KEY_COUNT; i++) {
		const struct match_key *key = &match_keys[i];
		bool wide = key->dims & 0xff;

		assert_int_equal(!key->dims, key->kind == MATCH_PREFIXES);
		assert_int_equal(key->most && key->accepted && key->one, key->kind == MATCH_RANGES);
		/* A 16-bit dimension is compiled from ranges. */
		if (wide)
			assert_int_equal(key->kind, MATCH_RANGES);
		if (key->kind == MATCH_RANGES)
			assert_true(key->most <= (wide ? 65535 : 255));
	}
}

TEST(test_values_of_any_key)
{
	const struct match_key *key = &match_keys[MATCH_DPORT];
	struct match_def match = { 0 }, copy;
	struct u16_range range = { 80, 90 };
	int rc = 0;

	assert_int_equal(match_append(&match, key, &range), 0);
	range = (struct u16_range){ 443, 443 };
	assert_int_equal(match_append(&match, key, &range), 0);
	copy = match;
	keys_copy(&limit_match_keys, &copy, &rc);
	assert_int_equal(rc, 0);
	assert_true(match_equal(&match, &copy));
	assert_ptr_not_equal(match.dport, copy.dport);
	assert_int_equal(match_count(&copy, key), 2);
	assert_int_equal(copy.dport_count, 2);
	assert_int_equal(copy.dport[1].first, 443);
	assert_true(match_holds(&copy, key, SL_V4, 90));
	assert_false(match_holds(&copy, key, SL_V4, 91));
	assert_true(match_holds(&copy, key, SL_V6, 443));
	assert_int_equal(match_count(&copy, &match_keys[MATCH_SPORT]), 0);
	keys_clear(&limit_match_keys, &match);
	assert_int_equal(match_count(&match, key), 0);
	keys_clear(&limit_match_keys, &copy);
}

TEST_MAIN
