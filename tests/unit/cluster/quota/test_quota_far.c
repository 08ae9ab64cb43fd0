// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* test_quota_far.c - leases of a node that is far from Redis, and its return after an outage. */
#include "quota_rig.h"

/* What was spent in a fixed window that is over is not reported, but a new lease is requested. */
TEST_WITH(test_lease_over_an_edge, set_up, tear_down)
{
	const struct quota_ref *ref;
	struct quota_due due;

	pass(60 * SEC - store_us() * 1000 % (60 * SEC) - 20 * MS);
	ref = leased(&window_def, 5);
	assert_int_equal(quota_acquire(quotas, ref, 1, now), QUOTA_COVERED);
	pass(60 * MS);
	assert_int_equal(quota_acquire(quotas, ref, 1, now), QUOTA_NOT_COVERED);
	pass(20 * MS);
	assert_int_equal(due_now(&due), 1);
	assert_int_equal(due.kind, QUOTA_DUE_LEASE);
	assert_int_equal(due.bucket.spent, 0);
	assert_true(due.bucket.want);
	due.bucket.granted = 3;
	flushed(&due, CLUSTER_STORE_DONE, 3, 0);
	assert_int_equal(quota_acquire(quotas, ref, 1, now), QUOTA_COVERED);
}

static const struct spec_def bucket_def = SPEC_DEF(TOKEN_BUCKET, 100, SEC, .burst = 100);

/* Four requests, 20 ms apart, each with a round trip of 80 ms; the last gets a lease of 10. */
static void lease_from_afar(const struct quota_ref *ref)
{
	struct cluster_store_bucket bucket[4];
	struct cluster_store_request request;

	for (u32 i = 0; i < 4; i++) {
		assert_int_equal(quota_acquire(quotas, ref, 1, now), QUOTA_NOT_COVERED);
		bucket[i] = bucket_of(ref, 1);
		quota_prepare(quotas, ref, &bucket[i], now);
		pass(20 * MS);
	}
	for (u32 i = 0; i < 4; i++) {
		request = response(true);
		bucket[i].granted = bucket[i].want ? 10 : 0;
		bucket[i].want = bucket[i].granted;
		quota_complete(quotas, ref, &bucket[i], &request, CLUSTER_STORE_DONE, now);
		pass(20 * MS);
	}
}

/* A lease is refilled when three round trips would empty it: then six of them may be held. */
TEST_WITH(test_refill_ahead, set_up, tear_down)
{
	struct quota_ref ref = ref_of(1, CONSISTENCY_LEASE, SEC);
	struct quota_due due;

	ref.def = &bucket_def;
	quotas_set_deadline(quotas, 200 * MS);
	lease_from_afar(&ref);
	assert_int_equal(due_now(&due), 0);
	for (u32 i = 0; i < 3; i++) {
		assert_int_equal(quota_acquire(quotas, &ref, 1, now), QUOTA_COVERED);
		pass(MS);
	}
	assert_int_equal(due_now(&due), 1);
	assert_int_equal(due.kind, QUOTA_DUE_LEASE);
	assert_int_equal(due.bucket.spent, 3);
	assert_in_range(due.bucket.least, 12, 25);
}

/* Without a long deadline nothing is held for round trips. */
TEST_WITH(test_no_refill_ahead, set_up, tear_down)
{
	struct quota_ref ref = ref_of(1, CONSISTENCY_LEASE, SEC);
	struct quota_due due;

	ref.def = &bucket_def;
	lease_from_afar(&ref);
	for (u32 i = 0; i < 3; i++)
		assert_int_equal(quota_acquire(quotas, &ref, 1, now), QUOTA_COVERED);
	assert_int_equal(due_now(&due), 0);
}

/* After an outage a bucket is charged what this node alone would still have in it. */
TEST_WITH(test_return, set_up, tear_down)
{
	struct quota_ref ref = ref_of(1, CONSISTENCY_STRICT, 0);
	struct quota_due due;

	ref.def = &bucket_def;
	asks(&ref, 0, 0, 0);
	quota_add_unflushed(quotas, &ref, 40, now);
	pass(100 * MS);
	assert_int_equal(due_now(&due), 1);
	assert_int_equal(due.bucket.cost, 40);
	flushed(&due, CLUSTER_STORE_DOWN, 0, 0);
	quota_add_unflushed(quotas, &ref, 20, now);
	pass(200 * MS);
	assert_int_equal(due_now(&due), 1);
	/* 60 in 0.3 s, at 100 a second. */
	assert_int_equal(due.bucket.cost, 30);
	flushed(&due, CLUSTER_STORE_DOWN, 0, 0);
	pass(SEC);
	assert_int_equal(due_now(&due), 0);
}

TEST_MAIN
