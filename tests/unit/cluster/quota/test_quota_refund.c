// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What is released of a lease: up to what was spent of it it is credit again; the rest, which Redis
 * has counted, is refunded there. The same over two nodes:
 * tests/scenario/requests/refund-shared.scn.
 */
#include "quota_rig.h"

static void assert_refund(u64 cost, u64 unflushed)
{
	struct quota_due due;

	assert_int_equal(due_now(&due), 1);
	assert_int_equal(due.bucket.kind, CLUSTER_STORE_REFUND);
	assert_int_equal(due.bucket.cost, cost);
	assert_int_equal(flushed(&due, CLUSTER_STORE_DONE, 0, 0), unflushed);
}

TEST_WITH(test_released, set_up, tear_down)
{
	const struct quota_ref *ref = leased(&window_def, 5);

	assert_int_equal(quota_acquire(quotas, ref, 4, now), QUOTA_COVERED);
	/* Four of the lease, two that Redis has counted. */
	quota_release(quotas, ref, 6);
	assert_int_equal(quota_unflushed(quotas, ref->key), 0);
	assert_int_equal(quota_acquire(quotas, ref, 5, now), QUOTA_COVERED);
	assert_int_equal(quota_acquire(quotas, ref, 1, now), QUOTA_NOT_COVERED);
	assert_refund(2, 5);
}

/* A refund of more than the lease. */
TEST_WITH(test_refunded, set_up, tear_down)
{
	const struct quota_ref *ref = leased(&window_def, 5);

	assert_int_equal(quota_acquire(quotas, ref, 4, now), QUOTA_COVERED);
	quota_add_unflushed(quotas, ref, -60, now);
	pass(50 * MS);
	assert_refund(60, 4);
	assert_int_equal(quota_acquire(quotas, ref, 1, now), QUOTA_COVERED);
	assert_int_equal(quota_acquire(quotas, ref, 1, now), QUOTA_NOT_COVERED);
}

TEST_MAIN
