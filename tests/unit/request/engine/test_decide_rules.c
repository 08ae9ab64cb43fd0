// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What a response states, rule by rule. Counts over time: tests/scenario/requests. */
#include "lib/decide_rig.h"

/* The same entries twice, each with a limit: a request counts as two. */
static bool allowed_own_limits(const char *text, u64 one, u64 other)
{
	struct request_descriptor descriptor[REQUEST_DESCRIPTORS_MAX];
	struct request request = rig_request(descriptor, text);

	request.api = API_GRPC;
	descriptor[0].limit_unit = REQUEST_UNIT_DAY;
	descriptor[0].limit_requests = one;
	descriptor[1] = descriptor[0];
	descriptor[1].limit_requests = other;
	request.count = 2;
	return rig_decide(&request) == RESPONSE_OK;
}

/* ------------------------------------------------------------------ envoyproxy/ratelimit's keys */

TEST_WITH(test_shadow, NULL, rig_teardown)
{
	rig_start(
		"- {key: user, rate_limit: {unit: minute, requests_per_unit: 3}, shadow_mode: true}\n"
		"- {key: path, rate_limit: {unit: minute, requests_per_unit: 5}}\n");
	assert_int_equal(allowed_of("user=bob", 4), 4);
	assert_true(rig_answer.status[0].over && rig_answer.status[0].shadow);
	assert_int_equal(rig_answer.policy_count, 0);
}

TEST_WITH(test_unlimited, NULL, rig_teardown)
{
	rig_start("- {key: user, value: root, rate_limit: {unlimited: true}}\n"
		  "- {key: user, rate_limit: {unit: minute, requests_per_unit: 1}}\n");
	assert_true(allowed("user=root"));
	assert_true(rig_answer.status[0].unlimited);
}

TEST_WITH(test_replaces, NULL, rig_teardown)
{
	rig_start("- {key: user, rate_limit: {name: small, unit: minute, requests_per_unit: 2}}\n"
		  "- {key: plan, value: big, rate_limit: {unit: minute, requests_per_unit: 5,\n"
		  "     replaces: [{name: small}]}}\n");
	assert_true(allowed("user=bob;plan=big"));
	assert_null(rig_answer.status[0].rule);
}

/* The response names the rule without quota, or all of them. */
TEST_WITH(test_quota, NULL, rig_teardown)
{
	rig_start(
		"- {key: a, rate_limit: {unit: hour, requests_per_unit: 2}, quota_mode: true}\n"
		"- {key: b, rate_limit: {unit: minute, requests_per_unit: 4}, quota_mode: true}\n");
	assert_int_equal(allowed_of("a=1;b=1", 9), 4);
	assert_true(rig_answer.status[0].over && rig_answer.status[1].over);
	assert_int_equal(rig_answer.code, RESPONSE_OVER_LIMIT);
}

TEST_WITH(test_quota_policies, NULL, rig_teardown)
{
	rig_start(
		"- {key: a, rate_limit: {unit: hour, requests_per_unit: 1}, quota_mode: true}\n"
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
	rig_start("- {key: user, rate_limit: {unit: minute, requests_per_unit: 2},"
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
	for (u32 i = 0; i < 2; i++) {
		assert_int_equal(allowed_own_limit("query=1", API_NGINX, 1, REQUEST_UNIT_DAY), !i);
		assert_int_equal(
			allowed_own_limit("query=2", API_FORWARD_AUTH, 1, REQUEST_UNIT_DAY), !i);
	}
	/* Of two descriptors with the same entries both limits hold. */
	for (u32 i = 0; i < 8; i++)
		assert_int_equal(allowed_own_limits("two=1", 8, 6), i < 3);
	assert_false(allowed_own_limits("two=2", 8, 0));
	assert_false(allowed_own_limits("two=2", 0, 8));
	/* Without the right to override the rule holds. */
	for (u32 i = 0; i < 8; i++)
		assert_true(allowed_own_limit("user=bob", API_V1_CHECK, 1, REQUEST_UNIT_MINUTE));
	assert_true(rig_answer.status[0].shadow);
}

/* ------------------------------------------------------------------ our keys */

TEST_WITH(test_same_bucket_twice, NULL, rig_teardown)
{
	rig_start("- {key: user, limits: ['5 requests/m']}\n");
	assert_true(allowed("user=bob;user=bob"));
	assert_int_equal(rig_answer.policy_count, 1);
}

TEST_WITH(test_peek, NULL, rig_teardown)
{
	rig_start("- {key: user, limits: ['3 requests/m']}\n");
	for (u32 i = 0; i < 5; i++)
		assert_true(peek_hits("user=bob", 3));
	assert_int_equal(rig_answer.status[0].remaining, 3);
	assert_int_equal(allowed_of("user=bob", 5), 3);
	assert_false(peek_hits("user=bob", 1));
}

/* A bucket in debt by one capacity takes two to fill. */
TEST_WITH(test_debt, NULL, rig_teardown)
{
	rig_start("- {key: user, limits: ['10 requests/m'], algorithm: token-bucket, burst: 10}\n");
	report("user=bob", 1000, 0);
	assert_true(rig_answer.status[0].reset_ns == 120 * SEC);
}

TEST_WITH(test_over, NULL, rig_teardown)
{
	rig_start(
		"- {key: user, limits: ['10 requests/m']}\n- {key: path, limits: ['1 requests/m']}\n");
	assert_int_equal(allowed_of("user=bob;path=/x", 2), 1);
	assert_true(rig_answer.status[1].over);
	assert_false(rig_answer.status[0].over);
	assert_true(allowed("nothing=here"));
	assert_null(rig_answer.status[0].rule);
}

TEST_WITH(test_several_limits, NULL, rig_teardown)
{
	rig_start("- {key: user, limits: ['5 requests/s', {name: hourly, rate: 12 requests/h}]}\n");
	assert_int_equal(allowed_of("user=bob", 20), 5);
	assert_int_equal(rig_answer.policy_count, 2);
	assert_string_equal(rig_answer.policy[0].limit->name, "user");
	assert_int_equal(rig_answer.policy[0].w_s, 1);
	assert_true(rig_answer.policy[0].refused && !rig_answer.policy[1].refused);
	rig_pass(2 * SEC);
	assert_int_equal(allowed_hits("user=bob", 5), 1);
	rig_pass(SEC);
	assert_int_equal(allowed_of("user=bob", 20), 2);
	assert_string_equal(rig_answer.policy[0].limit->name, "hourly");
}

/* A response has no room for all limits: the one that binds is among them, and first. */
TEST_WITH(test_limits_beyond_policies, NULL, rig_teardown)
{
	static const char *const rest[] = { "a", "a-2", "a-3", "a-4", "b", "b-2", "b-3" };

	rig_start(
		"- {key: a, limits: ['91 requests/s', '92 requests/m', '93 requests/h', '94 requests/d']}\n"
		"- {key: b, limits: ['91 requests/s', '92 requests/m', '93 requests/h', '94 requests/d']}\n"
		"- {key: c, limits: ['91 requests/s', '92 requests/m', '93 requests/h',\n"
		"     {name: tight, rate: 2 requests/d}]}\n");
	assert_int_equal(allowed_of("a=1;b=1;c=1", 3), 2);
	assert_int_equal(rig_answer.policy_count, RESPONSE_POLICIES_MAX);
	assert_string_equal(rig_answer.policy[0].limit->name, "tight");
	assert_true(rig_answer.policy[0].refused);
	for (u32 i = 1; i < RESPONSE_POLICIES_MAX; i++) {
		if (strcmp(rig_answer.policy[i].limit->name, rest[i - 1]))
			fail_msg("%u: %s", i, rig_answer.policy[i].limit->name);
	}
}

/* While a value is banned nothing is left of its limit, though the window is over, nor before the
 * ban ends. */
TEST_WITH(test_banned_left, NULL, rig_teardown)
{
	rig_start(
		"- {key: user, limits: ['2 requests/s'], ban: {after: 1 rejections/1m, for: 1h}}\n");
	assert_int_equal(allowed_of("user=bob", 9), 2);
	rig_pass(10 * SEC);
	assert_false(peek_hits("user=bob", 1));
	assert_int_equal(rig_answer.status[0].remaining, 0);
	assert_int_equal(rig_answer.policy[0].r, 0);
	assert_true(rig_answer.status[0].reset_ns > 3500 * SEC);
	assert_true(rig_answer.policy[0].t_ns == rig_answer.status[0].reset_ns);
}

TEST_WITH(test_soft, NULL, rig_teardown)
{
	rig_start("- {key: user, limits: ['10 requests/m'], throttle: {soft: 20%}}\n");
	assert_int_equal(allowed_of("user=bob", 10), 10);
	assert_false(rig_answer.status[0].soft);
	assert_int_equal(allowed_of("user=bob", 1), 1);
	assert_true(rig_answer.status[0].soft && !rig_answer.status[0].over);
	assert_int_equal(allowed_of("user=bob", 10), 1);
	assert_true(rig_answer.status[0].over && !rig_answer.status[0].soft);
}

static void set_scale(u32 scale, u64 until_ns)
{
	struct rule_limit *limit = &rig_rules->rule[0]->limit[0];

	limit->scale = scale;
	limit->scale_until_ns = until_ns;
}

TEST_WITH(test_elastic, NULL, rig_teardown)
{
	rig_start("- {key: user, limits: ['10 requests/m'],"
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

#define CLASSES                                                                                    \
	"- {key: class, value: vital, priority: critical}\n"                                       \
	"- {key: class, value: bulk, priority: low}\n"
#define VITAL "backend=x;class=vital"
#define BULK "backend=x;class=bulk"

/* A limit that shrank: low requests first, then normal ones; for critical ones it does not
 * shrink. */
TEST_WITH(test_elastic_floor, NULL, rig_teardown)
{
	static const char *const algorithm[] = { "fixed-window", "sliding-log", "token-bucket" };
	char text[512];

	for (size_t i = 0; i < COUNT(algorithm); i++) {
		bool bucket = i == 2;

		snprintf(text, sizeof(text),
			 "- {key: backend, limits: ['100 requests/h'], algorithm: %s%s,"
			 " throttle: {elastic: 100%%, floor: 10%%, while: {cpu: 70%%}}}\n" CLASSES,
			 algorithm[i], bucket ? ", burst: 100" : "");
		rig_start(text);
		set_scale(1 << 14, rig_now.mono_ns + SEC);
		/* 25 are left. Of a bucket 9 are kept from normal ones, 14 from low ones; of a
		 * window 0, 9. */
		assert_int_equal(allowed_of(BULK, 99), bucket ? 11 : 16);
		assert_int_equal(allowed_of("backend=x", 99), bucket ? 5 : 9);
		assert_int_equal(allowed_of(BULK, 99), 0);
		/* Of a bucket 16/25 are used, of a window 25. */
		assert_int_equal(allowed_of(VITAL, 999), bucket ? 36 : 75);
		assert_int_equal(allowed_of("backend=x", 9), 0);
		rig_pass(SEC);
		assert_int_equal(allowed_of(BULK, 9), 0);
		rig_teardown(NULL);
	}
	/* A reserve that is larger holds. */
	rig_start("- {key: backend, limits: ['100 requests/h'], reserve: {critical: 80%},"
		  " throttle: {elastic: 100%, floor: 10%, while: {cpu: 70%}}}\n" CLASSES);
	set_scale(1 << 15, rig_now.mono_ns + SEC);
	assert_int_equal(allowed_of("backend=x", 99), 10);
	assert_int_equal(allowed_of(VITAL, 999), 90);
}

TEST_WITH(test_overrides, NULL, rig_teardown)
{
	rig_start("- key: user\n  limits: ['3 requests/m']\n"
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

TEST_WITH(test_prefix_hierarchy, NULL, rig_teardown)
{
	rig_start("- key: ip\n  limits: ['5 requests/m']\n"
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

TEST_MAIN
