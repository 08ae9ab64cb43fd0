// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The effect of every key of a rule on a decision: with a least, a most and an innocent neighbour. */
#include "lib/decide_rig.h"

static bool allowed_own_limit(const char *text, enum request_api api, u64 requests,
			  enum request_unit unit)
{
	struct request_descriptor descriptor[REQUEST_DESCRIPTORS_MAX];
	struct request request = rig_request(descriptor, text);

	request.api = api;
	descriptor[0].limit_requests = requests;
	descriptor[0].limit_unit = unit;
	return rig_decide(&request) == RESPONSE_OK;
}

/* ------------------------------------------------------------------ envoyproxy/ratelimit's keys */

TEST_WITH(test_shadow, NULL, rig_teardown)
{
	rig_start(D "- {key: user, rate_limit: {unit: minute, requests_per_unit: 3}, shadow_mode: true}\n"
		  "- {key: path, rate_limit: {unit: minute, requests_per_unit: 5}}\n");
	assert_int_equal(allowed_of("user=bob", 10), 10);
	assert_true(rig_answer.status[0].over && rig_answer.status[0].shadow);
	assert_int_equal(rig_answer.policy_count, 0);
	assert_int_equal(allowed_of("user=bob;path=/x", 10), 5);
	/* A refused request is charged nowhere, not even to a rule in shadow. */
	assert_int_equal(allowed_of("user=al;path=/x", 4), 0);
	assert_true(allowed("user=al"));
	assert_int_equal(rig_answer.status[0].remaining, 2);
}

TEST_WITH(test_unlimited, NULL, rig_teardown)
{
	rig_start(D "- {key: user, value: root, rate_limit: {unlimited: true}}\n"
		  "- {key: user, rate_limit: {unit: minute, requests_per_unit: 1}}\n");
	assert_int_equal(allowed_of("user=root", 20), 20);
	assert_true(rig_answer.status[0].unlimited);
	assert_int_equal(rig_answer.status[0].remaining, 0xffffffff);
	assert_int_equal(allowed_of("user=bob", 20), 1);
}

TEST_WITH(test_replaces, NULL, rig_teardown)
{
	rig_start(D "- {key: user, rate_limit: {name: small, unit: minute, requests_per_unit: 2}}\n"
		  "- {key: plan, value: big, rate_limit: {unit: minute, requests_per_unit: 5,\n"
		  "     replaces: [{name: small}]}}\n");
	assert_int_equal(allowed_of("user=bob;plan=big", 9), 5);
	assert_null(rig_answer.status[0].rule);
	/* A replaced rule is not charged. */
	assert_int_equal(allowed_of("user=bob", 9), 2);
	assert_int_equal(allowed_of("user=al;plan=none", 9), 2);
}

/* One quota with units left is enough; the response names the rule without quota, or all of them. */
TEST_WITH(test_quota, NULL, rig_teardown)
{
	rig_start(D "- {key: a, rate_limit: {unit: hour, requests_per_unit: 2}, quota_mode: true}\n"
		  "- {key: b, rate_limit: {unit: minute, requests_per_unit: 4}, quota_mode: true}\n"
		  "- {key: c, rate_limit: {unit: minute, requests_per_unit: 7}}\n");
	assert_int_equal(allowed_of("a=1;b=1", 9), 4);
	assert_true(rig_answer.status[0].over && rig_answer.status[1].over);
	/* The minute is over before the hour: the quota that comes back first. */
	assert_true(rig_answer.retry_after_ns == 60 * SEC);
	assert_int_equal(rig_answer.code, RESPONSE_OVER_LIMIT);
	assert_int_equal(allowed_of("a=1", 9), 0);
	assert_int_equal(allowed_of("a=2;b=2;c=2", 9), 4);
	assert_int_equal(allowed_of("c=2", 9), 3);
	assert_int_equal(allowed_of("b=3;c=2", 9), 0);
	/* b=3 is not charged. */
	assert_int_equal(allowed_of("b=3", 9), 4);
}

TEST_WITH(test_quota_policies, NULL, rig_teardown)
{
	rig_start(D "- {key: a, rate_limit: {unit: hour, requests_per_unit: 1}, quota_mode: true}\n"
		  "- {key: b, rate_limit: {unit: minute, requests_per_unit: 9}, quota_mode: true}\n");
	assert_true(allowed("a=1;b=1"));
	assert_int_equal(rig_answer.policy_count, 2);
	assert_true(allowed("a=1;b=1"));
	assert_true(rig_answer.status[0].over);
	assert_int_equal(rig_answer.policy_count, 1);
	assert_int_equal(rig_answer.policy[0].q, 9);
	assert_int_equal(rig_answer.policy[0].r, 7);
}

TEST_WITH(test_own_limit, NULL, rig_teardown)
{
	rig_start(D "- {key: user, rate_limit: {unit: minute, requests_per_unit: 2},"
		  " shadow_mode: true}\n");
	for (u32 i = 0; i < 8; i++)
		assert_int_equal(allowed_own_limit("user=bob", API_GRPC, 5, REQUEST_UNIT_MINUTE),
				 i < 5);
	assert_int_equal(rig_answer.status[0].requests, 5);
	/* Another number continues the count; another unit is another limit. */
	for (u32 i = 0; i < 8; i++)
		assert_int_equal(allowed_own_limit("user=bob", API_JSON, 7, REQUEST_UNIT_MINUTE),
				 i < 2);
	assert_true(allowed_own_limit("user=bob", API_GRPC, 5, REQUEST_UNIT_HOUR));
	assert_true(allowed_own_limit("user=al", API_GRPC, 5, REQUEST_UNIT_MINUTE));
	assert_false(allowed_own_limit("user=al", API_GRPC, 0, REQUEST_UNIT_MINUTE));
	assert_true(allowed_own_limit("no=rule", API_GRPC, 1, REQUEST_UNIT_SECOND));
	assert_false(allowed_own_limit("no=rule", API_GRPC, 1, REQUEST_UNIT_SECOND));
	/* Without the right to override the rule holds. */
	for (u32 i = 0; i < 8; i++)
		assert_true(allowed_own_limit("user=bob", API_V1_CHECK, 1, REQUEST_UNIT_MINUTE));
	assert_true(rig_answer.status[0].shadow);
}

/* ------------------------------------------------------------------ hits */

TEST_WITH(test_hits, NULL, rig_teardown)
{
	rig_start(D "- {key: user, limits: ['10 requests/m']}\n");
	assert_true(allowed_hits("user=bob", 7));
	assert_false(allowed_hits("user=bob", 4));
	assert_int_equal(rig_answer.status[0].remaining, 3);
	assert_true(allowed_hits("user=bob", 3));
	assert_true(allowed_hits("user=bob", 0));
	assert_int_equal(rig_answer.status[0].remaining, 0);
	assert_false(allowed_hits("user=al", 11));
	assert_true(rig_answer.retry_after_ns == ~0ULL);
	assert_true(allowed_hits("user=al", 10));
}

TEST_WITH(test_peek, NULL, rig_teardown)
{
	rig_start(D "- {key: user, limits: ['3 requests/m']}\n");
	for (u32 i = 0; i < 5; i++)
		assert_true(peek_hits("user=bob", 3));
	assert_int_equal(rig_answer.status[0].remaining, 3);
	assert_int_equal(allowed_of("user=bob", 5), 3);
	assert_false(peek_hits("user=bob", 1));
}

/* Refunds never go below empty; a report charges past requests, up to a debt. */
TEST_WITH(test_reports, NULL, rig_teardown)
{
	static const char *const algorithm_texts[] = {
		"fixed-window", "sliding-window", "sliding-log", "token-bucket",
	};

	for (u32 i = 0; i < 4; i++) {
		char text[256];

		snprintf(text, sizeof(text), D "- {key: user, limits: ['10 requests/m'],"
			 " algorithm: %s%s}\n", algorithm_texts[i], i == 3 ? ", burst: 10" : "");
		rig_start(text);
		assert_int_equal(allowed_of("user=bob", 5), 5);
		report("user=bob", -2, 0);
		assert_int_equal(allowed_of("user=bob", 20), 7);
		report("user=bob", -100, 0);
		assert_int_equal(allowed_of("user=bob", 20), 10);
		report("user=bob", 3, 0);
		report("user=bob", -3, 0);
		assert_int_equal(allowed_of("user=bob", 20), 0);
		/* However much is reported, the debt is ten more and no deeper. */
		report("user=bob", 1000, 0);
		report("user=bob", -9, 0);
		assert_false(allowed_hits("user=bob", 0));
		report("user=bob", -1, 0);
		assert_true(allowed_hits("user=bob", 0));
		report("user=bob", -4, 0);
		assert_int_equal(allowed_of("user=bob", 20), 4);
		assert_int_equal(allowed_of("user=al", 20), 10);
	}
	/* A bucket in debt by one capacity takes two to fill. */
	report("user=bob", 1000, 0);
	assert_true(rig_answer.status[0].reset_ns == 120 * SEC);
	rig_pass(66 * SEC - 1);
	assert_false(allowed("user=bob"));
	rig_pass(1);
	assert_int_equal(allowed_of("user=bob", 9), 1);
}

TEST_WITH(test_late_report, NULL, rig_teardown)
{
	rig_start(D "- {key: user, limits: ['10 requests/m']}\n"
		  "- {key: bucket, limits: ['10 requests/m'], algorithm: token-bucket, burst: 10}\n");
	rig_pass(30 * SEC);
	report("user=bob", 10, 31 * SEC);
	assert_int_equal(allowed_of("user=bob", 20), 10);
	report("user=al", 4, 29 * SEC);
	assert_int_equal(allowed_of("user=al", 20), 6);
	/* Ten of half a minute ago: five have come back. */
	report("bucket=bob", 10, 30 * SEC);
	assert_int_equal(allowed_of("bucket=bob", 20), 5);
}

/* ------------------------------------------------------------------ our keys */

TEST_WITH(test_several_limits, NULL, rig_teardown)
{
	rig_start(D "- {key: user, limits: ['5 requests/s', {name: hourly, rate: 12 requests/h}]}\n");
	assert_int_equal(allowed_of("user=bob", 20), 5);
	assert_int_equal(rig_answer.policy_count, 2);
	assert_string_equal(rig_answer.policy[0].limit->name, "user");
	assert_int_equal(rig_answer.policy[0].w_s, 1);
	assert_true(rig_answer.policy[0].refused && !rig_answer.policy[1].refused);
	rig_pass(SEC);
	assert_int_equal(allowed_of("user=bob", 20), 5);
	rig_pass(SEC);
	assert_int_equal(allowed_of("user=bob", 20), 2);
	assert_string_equal(rig_answer.policy[0].limit->name, "hourly");
	assert_true(rig_answer.retry_after_ns == 3598 * SEC);
	assert_int_equal(allowed_of("user=al", 20), 5);
}

TEST_WITH(test_first_request, NULL, rig_teardown)
{
	rig_start(D "- {key: user, limits: ['3 requests/m'], window: first-request}\n");
	rig_pass(59 * SEC);
	assert_int_equal(allowed_of("user=bob", 5), 3);
	assert_true(rig_answer.retry_after_ns == 60 * SEC);
	rig_pass(60 * SEC - 1);
	assert_int_equal(allowed_of("user=bob", 5), 0);
	assert_int_equal(allowed_of("user=al", 5), 3);
	rig_pass(1);
	assert_int_equal(allowed_of("user=bob", 5), 3);
}

TEST_WITH(test_soft, NULL, rig_teardown)
{
	rig_start(D "- {key: user, limits: ['10 requests/m'], throttle: {soft: 20%}}\n");
	assert_int_equal(allowed_of("user=bob", 10), 10);
	assert_false(rig_answer.status[0].soft);
	assert_int_equal(allowed_of("user=bob", 1), 1);
	assert_true(rig_answer.status[0].soft && !rig_answer.status[0].over);
	assert_int_equal(allowed_of("user=bob", 10), 1);
	assert_true(rig_answer.status[0].over && !rig_answer.status[0].soft);
	assert_int_equal(allowed_of("user=al", 20), 12);
}

TEST_WITH(test_soft_for, NULL, rig_teardown)
{
	rig_start(D "- {key: user, limits: ['10 requests/m'], throttle: {soft: 100%, for: 10s}}\n");
	assert_int_equal(allowed_of("user=bob", 13), 13);
	rig_pass(10 * SEC - 1);
	assert_int_equal(allowed_of("user=bob", 1), 1);
	rig_pass(1);
	assert_int_equal(allowed_of("user=bob", 5), 0);
	assert_int_equal(allowed_of("user=al", 30), 20);
	rig_pass(10 * SEC);
	assert_int_equal(allowed_of("user=bob", 30), 6);
}

static void set_scale(u32 scale, u64 until_ns)
{
	struct rule_limit *limit = &rig_rules->rule[0]->limit[0];

	limit->scale = scale;
	limit->scale_until_ns = until_ns;
}

TEST_WITH(test_elastic, NULL, rig_teardown)
{
	rig_start(D "- {key: user, limits: ['10 requests/m'],"
		  " throttle: {elastic: 300%, while: {cpu: 70%}}}\n");
	assert_int_equal(allowed_of("user=bob", 50), 10);
	set_scale(2 << 16, rig_now.mono_ns + SEC);
	assert_int_equal(allowed_of("user=bob", 50), 10);
	assert_int_equal(rig_answer.policy[0].q, 20);
	assert_int_equal(rig_answer.status[0].requests, 20);
	set_scale(3 << 16, rig_now.mono_ns + SEC);
	assert_int_equal(allowed_of("user=bob", 50), 10);
	/* Nobody renews it. */
	rig_pass(SEC);
	assert_int_equal(allowed_of("user=al", 50), 10);
	assert_int_equal(rig_answer.policy[0].q, 10);
}

TEST_WITH(test_priorities, NULL, rig_teardown)
{
	rig_start(D "- {key: db, limits: ['100 requests/m'], reserve: {critical: 20%, normal: 30%}}\n"
		  "- {key: job, value: report, limits: ['1000 requests/m'], priority: low}\n"
		  "- {key: job, value: pay, limits: ['1000 requests/m'], priority: critical}\n");
	assert_int_equal(allowed_of("db=1;job=report", 200), 50);
	assert_int_equal(rig_answer.policy[0].q, 100);
	assert_int_equal(rig_answer.policy[0].r, 0);
	assert_true(allowed("db=1"));
	assert_int_equal(rig_answer.status[0].remaining, 29);
	assert_int_equal(allowed_of("db=1", 200), 29);
	assert_int_equal(allowed_of("db=1;job=report", 200), 0);
	assert_int_equal(allowed_of("db=1;job=pay", 200), 20);
	assert_int_equal(allowed_of("db=1;job=pay", 200), 0);
	/* The lowest that any of its rules states. */
	assert_int_equal(allowed_of("db=2;job=pay;job=report", 200), 50);
}

TEST_WITH(test_reserve_of_bucket, NULL, rig_teardown)
{
	rig_start(D "- {key: db, limits: ['10 requests/s'], algorithm: token-bucket, burst: 10,"
		  " reserve: {critical: 50%}}\n"
		  "- {key: job, value: pay, limits: ['1000 requests/m'], priority: critical}\n");
	assert_int_equal(allowed_of("db=1;job=pay", 3), 3);
	assert_int_equal(allowed_of("db=1", 20), 2);
	assert_true(rig_answer.retry_after_ns == SEC / 10);
	assert_int_equal(allowed_of("db=1;job=pay", 20), 5);
	/* Emptied by the others, it takes until the half for everybody is there again. */
	assert_false(allowed("db=1"));
	assert_true(rig_answer.retry_after_ns == 6 * SEC / 10);
	rig_pass(6 * SEC / 10 - 1);
	assert_false(allowed("db=1"));
	rig_pass(1);
	assert_int_equal(allowed_of("db=1", 20), 1);
}

TEST_WITH(test_overrides, NULL, rig_teardown)
{
	rig_start(D "- key: user\n  limits: ['3 requests/m']\n"
		  "  overrides:\n  - {value: acme, limits: ['8 requests/m']}\n"
		  "  - {value: eve, block: true}\n  - {value: root, unlimited: true}\n");
	assert_int_equal(allowed_of("user=acme", 20), 8);
	assert_int_equal(rig_answer.status[0].requests, 8);
	assert_int_equal(allowed_of("user=eve", 20), 0);
	assert_true(rig_answer.retry_after_ns == ~0ULL);
	assert_int_equal(rig_answer.policy[0].q, 0);
	assert_int_equal(allowed_of("user=root", 20), 20);
	assert_true(rig_answer.status[0].unlimited);
	assert_int_equal(allowed_of("user=bob", 20), 3);
}

/* A customer with a higher limit keeps the used count. */
TEST_WITH(test_override_comes, NULL, rig_teardown)
{
	rig_start(D "- {key: user, limits: ['10 requests/m']}\n");
	assert_int_equal(allowed_of("user=acme", 7), 7);
	rig_load(D "- {key: user, limits: ['10 requests/m'],"
		 " overrides: [{value: acme, limits: ['12 requests/m']}]}\n");
	assert_int_equal(allowed_of("user=acme", 20), 5);
	assert_int_equal(allowed_of("user=bob", 20), 10);
}

TEST_WITH(test_addresses, NULL, rig_teardown)
{
	rig_start(D "- {key: ip, limits: ['5 requests/m']}\n"
		  "- {key: exact, limits: ['5 requests/m'], prefix: none}\n");
	ALLOWED_ROWS({ "ip=2001:db8::1", 3, 3 },
		 { "ip=2001:DB8:0:0:ffff::7", 9, 2 },
		 { "ip=2001:db8:0:1::1", 9, 5 },
		 { "ip=192.0.2.1", 3, 3 },
		 { "ip=::ffff:192.0.2.1", 3, 2 },
		 { "ip=::ffff:c000:201", 3, 0 },
		 { "ip=192.0.2.2", 9, 5 },
		 /* Names stay names. */
		 { "ip=2001:db8::1%eth0", 9, 5 },
		 { "ip=192.0.2.1:80", 9, 5 },
		 { "exact=2001:db8::1", 3, 3 },
		 { "exact=2001:db8::2", 9, 5 });
}

TEST_WITH(test_prefix_hierarchy, NULL, rig_teardown)
{
	rig_start(D "- key: ip\n  limits: ['5 requests/m']\n"
		  "  prefix: {ipv4: [32, 24], ipv6: [64, 48]}\n"
		  "  prefix_scale: {ipv4: [1, 2], ipv6: [1, 3]}\n"
		  "  overrides: [{value: 192.0.2.9, limits: ['20 requests/m']}]\n");
	assert_int_equal(allowed_of("ip=192.0.2.1", 9), 5);
	assert_int_equal(allowed_of("ip=192.0.2.2", 9), 5);
	assert_int_equal(allowed_of("ip=192.0.2.3", 9), 0);
	assert_int_equal(rig_answer.policy[0].prefix_len, 24);
	assert_int_equal(rig_answer.policy[0].q, 10);
	assert_int_equal(allowed_of("ip=192.0.3.3", 9), 5);
	/* A user with limits of its own is not charged to the others of its /24. */
	assert_int_equal(allowed_of("ip=192.0.2.9", 90), 20);
	for (u32 i = 0; i < 4; i++) {
		char text[64];

		snprintf(text, sizeof(text), "ip=2001:db8:0:%u::1", i);
		assert_int_equal(allowed_of(text, 9), i < 3 ? 5 : 0);
	}
	assert_int_equal(allowed_of("ip=2001:db8:1::1", 9), 5);
}

/* Values are bytes: no two are confused, however they are cut. */
TEST_WITH(test_values_are_apart, NULL, rig_teardown)
{
	static const char *const text[] = {
		"a=x,b=yz", "a=xy,b=z", "a=,b=xyz", "a=xyz,b=", "a=xyz", "a=xyzabcdefghijkl",
		"a=xyzabcdefghijkm", "a=xyzabcde", "a=xyzabcdf",
	};

	rig_start(D "- key: a\n  limits: ['2 requests/m']\n  descriptors:\n"
		  "  - {key: b, limits: ['2 requests/m']}\n");
	for (u32 i = 0; i < sizeof(text) / sizeof(*text); i++)
		assert_int_equal(allowed_of(text[i], 5), 2);
}

TEST_MAIN
