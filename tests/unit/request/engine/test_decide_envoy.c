// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Keys of envoyproxy/ratelimit where several meet, as it decides them; and requests beyond the
 * bounds.
 */
#include "lib/decide_rig.h"

/* By name, by the descriptors of the request; not by a rule whose place the request's own limit
 * takes. */
TEST_WITH(test_replaces_odd, NULL, rig_teardown)
{
	struct request_descriptor descriptor[REQUEST_DESCRIPTORS_MAX];
	struct request request;

	rig_start("- {key: user, rate_limit: {name: small, unit: minute, requests_per_unit: 2}}\n"
		  "- {key: root, rate_limit: {name: small, unlimited: true}}\n"
		  "- {key: plan, value: big, rate_limit: {unit: minute, requests_per_unit: 5,\n"
		  "     replaces: [{name: small}]}}\n");
	/* plan=big brings a limit of 9: it replaces nothing, so user=bob has his 2. */
	for (u32 i = 0; i < 4; i++) {
		request = rig_request(descriptor, "user=bob;plan=big");
		request.api = API_GRPC;
		descriptor[1].limit_requests = 9;
		descriptor[1].limit_unit = REQUEST_UNIT_MINUTE;
		assert_int_equal(rig_decide(&request) == RESPONSE_OK, i < 2);
	}
	/* user=al has a limit of its own: it is not replaced. */
	for (u32 i = 0; i < 4; i++)
		assert_int_equal(
			allowed_own_limit("user=al;plan=big", API_GRPC, 1, REQUEST_UNIT_MINUTE),
			i < 1);
	assert_int_equal(allowed_of("user=carl;plan=big", 9), 4); /* user=al's one was charged */
	/* Of an unlimited one there is nothing to replace. */
	rig_start("- {key: root, rate_limit: {name: small, unlimited: true}}\n"
		  "- {key: plan, rate_limit: {unit: minute, requests_per_unit: 5,\n"
		  "     replaces: [{name: small}]}}\n");
	assert_true(allowed("root=1;plan=big"));
	assert_true(rig_answer.status[0].unlimited);
}

/* A rule in shadow has quota left; an unlimited one has none. */
TEST_WITH(test_quota_odd, NULL, rig_teardown)
{
	rig_start("- {key: a, rate_limit: {unit: hour, requests_per_unit: 1}, quota_mode: true}\n"
		  "- {key: w, rate_limit: {unit: hour, requests_per_unit: 1}, quota_mode: true,\n"
		  "   shadow_mode: true}\n"
		  "- {key: u, rate_limit: {unlimited: true}, quota_mode: true}\n"
		  "- {key: c, rate_limit: {unit: minute, requests_per_unit: 7}}\n");
	assert_int_equal(allowed_of("a=1;w=1", 9), 9);
	assert_true(rig_answer.status[0].over && rig_answer.status[1].over);
	assert_true(rig_answer.status[1].shadow);
	assert_int_equal(allowed_of("w=2", 9), 9);
	assert_int_equal(allowed_of("a=3;w=3;c=3", 9), 7);
	assert_int_equal(allowed_of("a=4;u=4", 9), 1);
	assert_true(rig_answer.retry_after_ns > 0);
	assert_int_equal(allowed_of("u=5", 9), 9);
}

/* Hits beyond the largest count are over every limit that they meet, and charged to none. */
TEST_WITH(test_hits_beyond, NULL, rig_teardown)
{
	rig_start(
		"- {key: user, limits: ['4000000000000 requests/d']}\n"
		"- {key: path, limits: ['10 requests/m']}\n"
		"- {key: both, limits: ['10 requests/m', '4000000000 requests/d']}\n"
		"- {key: log, limits: ['10 requests/m'], algorithm: sliding-log}\n"
		"- {key: bucket, limits: ['1000000 requests/s'], algorithm: token-bucket, burst: 100M}\n"
		"- {key: free, rate_limit: {unlimited: true}}\n"
		"- {key: watch, shadow_mode: true, limits: ['10 requests/m']}\n");
	assert_true(allowed_hits("user=bob", REQUEST_HITS_MAX));
	assert_false(allowed_hits("user=bob", REQUEST_HITS_MAX + 1));
	assert_true(rig_answer.retry_after_ns == ~0ULL && rig_answer.status[0].over);
	assert_true(allowed_hits("user=bob", 0));
	assert_int_equal(rig_answer.status[0].remaining, 4000000000000ULL - REQUEST_HITS_MAX);
	for (u64 hits = REQUEST_HITS_MAX + 1; hits > REQUEST_HITS_MAX; hits <<= 3) {
		assert_false(allowed_hits("bucket=a", hits));
		assert_false(allowed_hits("log=a", hits));
		assert_false(allowed_hits("both=a", hits));
		/* Several descriptors of one bucket, none of which overflows the sum. */
		assert_false(allowed_hits("path=a;path=a;path=a;path=a", hits | ~0ULL << 62));
		assert_true(allowed_hits("free=a", hits));
		assert_true(allowed_hits("no=rule", hits));
		assert_true(allowed_hits("watch=a", hits));
		assert_true(rig_answer.status[0].shadow);
	}
	/* Beside one that fits, nothing is charged; a peek costs nothing, and is refused as
	 * well. */
	assert_false(peek_hits("path=b", REQUEST_HITS_MAX + 1));
	assert_int_equal(allowed_of("path=a", 11), 10);
	assert_int_equal(allowed_of("both=a", 11), 10);
	assert_int_equal(allowed_of("log=a", 11), 10);
	/* Reports are charged: up to so many, and above the limit. */
	report("path=c", 1LL << 40, 0);
	assert_false(allowed("path=c"));
	report("user=al", 1LL << 41, 0);
	assert_true(allowed_hits("user=al", 0));
	assert_int_equal(rig_answer.status[0].remaining, 4000000000000ULL - REQUEST_HITS_MAX);
}

/* No rule matches them, whatever entries there is room for. */
TEST_WITH(test_entries_beyond, NULL, rig_teardown)
{
	struct request_descriptor descriptor[REQUEST_DESCRIPTORS_MAX];
	struct request request;

	rig_start("- {key: user, limits: ['1 requests/m']}\n");
	for (u32 i = 0; i < 3; i++) {
		request = rig_request(descriptor, "user=bob");
		descriptor[0].beyond = true;
		assert_int_equal(rig_decide(&request), RESPONSE_OK);
		assert_null(rig_answer.status[0].rule);
	}
	/* A limit of its own holds. */
	for (u32 i = 0; i < 3; i++) {
		request = rig_request(descriptor, "user=bob");
		request.api = API_GRPC;
		descriptor[0].beyond = true;
		descriptor[0].limit_requests = 1;
		descriptor[0].limit_unit = REQUEST_UNIT_MINUTE;
		assert_int_equal(rig_decide(&request) == RESPONSE_OK, i < 1);
	}
	assert_int_equal(allowed_of("user=bob", 3), 1);
}

TEST_MAIN
