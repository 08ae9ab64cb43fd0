// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Decisions while rates change, an operator's view of a user, and which request waits behind
 * which. */
#include "lib/decide_rig.h"

/* ------------------------------------------------------------------ changes while it runs */

TEST_WITH(test_show_and_reset, NULL, rig_teardown)
{
	const struct rule *rule;
	struct response shown;

	rig_start("- {key: user, limits: ['5 requests/m', {name: daily, rate: 9 requests/d}]}\n");
	rule = ruleset_find(rig_rules, "api/user");
	assert_int_equal(allowed_of("user=bob", 3), 3);
	assert_int_equal(decide_show(&(struct ledger){ .counters = rig_store }, rig_rules, rule,
				     (struct bytes){ "bob", 3 }, NULL, 0, rig_now, &shown),
			 0);
	assert_int_equal(shown.policy_count, 2);
	assert_int_equal(shown.policy[0].r, 2);
	assert_int_equal(shown.policy[1].r, 6);
	assert_int_equal(allowed_of("user=bob", 9), 2);
	assert_int_equal(decide_reset(&(struct ledger){ .counters = rig_store }, rig_rules, rule,
				      (struct bytes){ "bob", 3 }, NULL),
			 0);
	assert_int_equal(allowed_of("user=bob", 9), 5);
}

/* A rule of several entries is listed by the values that it leaves open. */
TEST_WITH(test_show_nested, NULL, rig_teardown)
{
	const struct rule *rule;
	struct response shown;

	rig_start("- key: plan\n  value: free\n  descriptors:\n"
		  "  - key: user\n    limits: ['5 requests/m']\n    descriptors:\n"
		  "    - {key: path, limits: ['3 requests/m']}\n");
	assert_int_equal(allowed_of("plan=free,user=bob", 3), 3);
	assert_int_equal(allowed_of("plan=free,user=bob,path=/a", 1), 1);
	rule = ruleset_find(rig_rules, "api/plan=free/user");
	assert_int_equal(decide_show(&(struct ledger){ .counters = rig_store }, rig_rules, rule,
				     (struct bytes){ "bob", 3 }, NULL, 0, rig_now, &shown),
			 0);
	assert_int_equal(shown.policy[0].r, 2);
	assert_int_equal(decide_show(&(struct ledger){ .counters = rig_store }, rig_rules, rule,
				     (struct bytes){ "al", 2 }, NULL, 0, rig_now, &shown),
			 0);
	assert_int_equal(shown.policy[0].r, 5);
	assert_int_equal(decide_reset(&(struct ledger){ .counters = rig_store }, rig_rules, rule,
				      (struct bytes){ "bob", 3 }, NULL),
			 0);
	assert_int_equal(allowed_of("plan=free,user=bob", 9), 5);
	rule = ruleset_find(rig_rules, "api/plan=free/user/path");
	assert_true(allowed("plan=free,user=bob,path=/x"));
	assert_int_equal(decide_show(&(struct ledger){ .counters = rig_store }, rig_rules, rule,
				     (struct bytes){ "bob,/x", 6 }, NULL, 0, rig_now, &shown),
			 0);
	assert_int_equal(shown.policy[0].r, 2);
}

/* ------------------------------------------------------------------ waiting */

static u64 queued;

static u64 ahead(void *arg, u64 key)
{
	return queued;
}

static bool submit_delayed(const char *text)
{
	struct request_descriptor descriptor[REQUEST_DESCRIPTORS_MAX];
	struct request request = rig_request(descriptor, text);

	rig_wait = (struct decide_delay){ .ahead = ahead };
	return rig_decide(&request) == RESPONSE_OK;
}

TEST_WITH(test_delay, NULL, rig_teardown)
{
	rig_start("- {key: user, limits: ['5 requests/s'], algorithm: leaky-bucket,"
		  " on_limit: {wait: 2s, queue: 10}}\n"
		  "- {key: path, limits: ['1 requests/m']}\n");
	queued = 0;
	assert_true(submit_delayed("user=bob"));
	assert_true(!rig_wait.key);
	for (queued = 0; queued < 4; queued++) {
		assert_false(submit_delayed("user=bob"));
		assert_true(rig_wait.key != 0);
		assert_int_equal(rig_wait.before, queued);
		assert_true(rig_wait.wait_ns == (queued + 1) * SEC / 5);
		assert_true(rig_answer.retry_after_ns == rig_wait.wait_ns);
		assert_true(rig_wait.limit_ns == 2 * SEC);
		assert_int_equal(rig_wait.queue, 10);
		assert_int_equal(rig_wait.hits, 1);
	}
	/* A new request queues behind those that wait, also where it would fit. */
	rig_pass(10 * SEC);
	assert_false(submit_delayed("user=bob"));
	queued = 0;
	assert_true(submit_delayed("user=bob"));
	/* Where a limit without waiting refuses, there is nothing to wait for. */
	assert_true(submit_delayed("path=/"));
	assert_false(submit_delayed("user=bob;path=/"));
	assert_true(!rig_wait.key);
}

TEST_WITH(test_wait_for_windows, NULL, rig_teardown)
{
	rig_start("- {key: user, limits: ['3 requests/m'], on_limit: {wait: 2s, queue: 10}}\n");
	queued = 0;
	assert_int_equal(allowed_of("user=bob", 3), 3);
	for (queued = 0; queued < 7; queued++) {
		assert_false(submit_delayed("user=bob"));
		assert_true(rig_wait.wait_ns == (1 + queued / 3) * 60 * SEC);
	}
}

/* Waits beyond 64 bits, after so many that a year's limit takes one by one, never end. */
TEST_WITH(test_wait_beyond_time, NULL, rig_teardown)
{
	static const char *const algorithm[] = { "leaky-bucket", "fixed-window" };

	for (int i = 0; i < 2; i++) {
		char text[256];

		snprintf(
			text, sizeof(text),
			"- {key: user, algorithm: %s, rate_limit: {unit: year, requests_per_unit: 1},"
			" on_limit: {wait: 2s, queue: 10}}\n",
			algorithm[i]);
		rig_start(text);
		queued = 30;
		assert_false(submit_delayed("user=bob"));
		assert_true(rig_wait.key && rig_wait.wait_ns > 29 * 365 * 86400 * SEC);
		/* 37 years are more than 2^64 ticks, 585 more than 2^64 ns. */
		queued = i ? 600 : 40;
		assert_false(submit_delayed("user=bob"));
		assert_true(!rig_wait.key && rig_answer.retry_after_ns == ~0ULL);
	}
}

TEST_MAIN
