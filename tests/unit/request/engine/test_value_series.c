// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* test_value_series.c - what one value sent lately: by periods, at any time. */
#include "lib/test.h"
#include "request/engine/value_series.h"

#define MINUTE (60 * SL_NS_PER_SEC)

static struct rule_limit limit[] = {
	{ .mode = SL_MODE_ENFORCE,
	  .terms.rates = { .rate = { { 2, SL_NS_PER_SEC, RATE_REQUESTS } }, .count = 1 } },
	{ .mode = SL_MODE_SHADOW,
	  .terms.rates = { .rate = { { 9, 60 * MINUTE, RATE_REQUESTS } }, .count = 1 } },
};

TEST(two_periods)
{
	const struct rule rule = { .limit = limit, .limit_count = 2 };
	const struct response_status status = {
		.rule = &rule, .requests = 2, .window_ns = SL_NS_PER_SEC, .capacity = 3
	};
	/* In the 10th and 11th minute; read in the second of `at`. */
	static const struct {
		u64 at, passed[2], refused[2];
	} reads[] = {
		{ 659, { 5, 20 }, { 0, 40 } }, { 660, { 0, 5 }, { 0, 0 } },
		{ 719, { 0, 5 }, { 0, 0 } },   { 720, { 0 }, { 0 } },
		{ 59, { 0 }, { 0 } },
	};
	struct value_series series = { .series.near = 0 };
	struct observe_lately lately;

	value_series_lately(&series, 600 * SL_NS_PER_SEC, &lately);
	assert_int_equal(lately.period_ns, 0);
	value_series_note(&series, &status, false, 99, 100 * SL_NS_PER_SEC);
	value_series_note(&series, &status, false, 20, 540 * SL_NS_PER_SEC);
	value_series_note(&series, &status, true, 40, 599 * SL_NS_PER_SEC);
	value_series_note(&series, &status, false, 5, 600 * SL_NS_PER_SEC);
	for (size_t i = 0; i < COUNT(reads); i++) {
		value_series_lately(&series, reads[i].at * SL_NS_PER_SEC, &lately);
		assert_int_equal(lately.period_ns, MINUTE);
		for (int k = 0; k < 2; k++) {
			assert_int_equal(lately.passed[k], reads[i].passed[k]);
			assert_int_equal(lately.refused[k], reads[i].refused[k]);
		}
		assert_int_equal(lately.requests, 2);
		assert_int_equal(lately.capacity, 3);
	}
}

/* The longest window of an enforced limit, whichever refused; a change of it starts anew. */
TEST(a_longer_window)
{
	struct rule rule = { .limit = limit, .limit_count = 1 };
	const struct response_status status = {
		.rule = &rule, .requests = 2, .window_ns = SL_NS_PER_SEC, .capacity = 3
	};
	struct rule_limit hour[2] = { limit[0], limit[1] };
	struct value_series series = { .series.near = 0 };
	struct observe_lately lately;

	hour[1].mode = SL_MODE_ENFORCE;
	value_series_note(&series, &status, true, 7, 7300 * SL_NS_PER_SEC);
	rule.limit = hour;
	rule.limit_count = 2;
	value_series_note(&series, &status, true, 8, 7310 * SL_NS_PER_SEC);
	value_series_note(&series, &status, false, 1, 10000 * SL_NS_PER_SEC);
	value_series_lately(&series, 10799 * SL_NS_PER_SEC, &lately);
	assert_int_equal(lately.period_ns, 60 * MINUTE);
	assert_int_equal(lately.refused[0], 8);
	assert_int_equal(lately.passed[0], 1);
	value_series_lately(&series, 10800 * SL_NS_PER_SEC, &lately);
	assert_int_equal(lately.refused[1], 8);
}

TEST_MAIN
