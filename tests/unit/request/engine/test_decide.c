// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Verdicts of decide(), rule by rule; exactness is tested by tests/prop/test_decide.c. */
#include "lib/decide_rig.h"

static const char *const algorithm_texts[] = {
	"fixed-window", "token-bucket", "sliding-window", "sliding-log",
};

static void open_limit(const char *more, const char *algorithm)
{
	char text[1024];

	snprintf(text, sizeof(text),
		 "domain: api\ndescriptors:\n- key: user\n  limits: ['10 requests/m']\n"
		 "  algorithm: %s\n%s", algorithm, more);
	rig_open(text, 1000);
}

TEST(test_ten_a_minute)
{
	for (u32 i = 0; i < sizeof(algorithm_texts) / sizeof(*algorithm_texts); i++) {
		bool bucket = !strcmp(algorithm_texts[i], "token-bucket");

		open_limit(bucket ? "  burst: 10\n" : "", algorithm_texts[i]);
		assert_int_equal(allowed_of("user=bob", 15), 10);
		assert_int_equal(allowed_of("user=al", 1), 1);
		assert_int_equal(rig_answer.status[0].remaining, 9);
		rig_pass(30 * SEC);
		assert_int_equal(allowed_of("user=bob", 15), bucket ? 5 : 0);
		rig_pass(31 * SEC);
		assert_true(allowed_of("user=bob", 15) >= (bucket ? 5 : 1));
		rig_end();
	}
}

TEST(test_all_or_none)
{
	rig_open("domain: api\ndescriptors:\n"
		 "- key: user\n  rate_limit: {unit: minute, requests_per_unit: 10}\n"
		 "- key: path\n  rate_limit: {unit: minute, requests_per_unit: 3}\n", 1000);
	assert_int_equal(allowed_of("user=bob;path=/x", 5), 3);
	assert_true(rig_answer.status[1].over);
	assert_false(rig_answer.status[0].over);
	assert_int_equal(rig_answer.status[0].remaining, 7);
	assert_int_equal(allowed_of("user=bob", 15), 7);
	assert_true(allowed("path=/y"));
	assert_true(allowed("nothing=here"));
	assert_null(rig_answer.status[0].rule);
	rig_end();
}

TEST(test_same_bucket_twice)
{
	rig_open("domain: api\ndescriptors:\n"
		 "- key: user\n  rate_limit: {unit: minute, requests_per_unit: 5}\n", 1000);
	assert_int_equal(allowed_of("user=bob;user=bob", 5), 2);
	assert_int_equal(rig_answer.policy_count, 1);
	assert_true(allowed("user=bob"));
	assert_false(allowed("user=bob"));
	rig_end();
}

TEST_MAIN
