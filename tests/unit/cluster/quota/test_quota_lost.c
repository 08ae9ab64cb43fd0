/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Quota: losses of the store are noticed, and restored; what only looks like a loss is not. */
#include "quota_rig.h"

static const struct spec_def bucket_def = SPEC_DEF(TOKEN_BUCKET, 100, 100 * SEC, .burst = 100);
static const struct spec_def first_def = SPEC_DEF(FIRST_REQUEST, 100, 60 * SEC);
static const struct spec_def log_def = SPEC_DEF(SLIDING_LOG, 100, 60 * SEC);

static struct quotas_stats stats(void)
{
	struct quotas_stats stats;

	quotas_stats(quotas, &stats);
	return stats;
}

/* Sends a command that gets this reply. */
static struct cluster_store_bucket gets_reply(const struct quota_ref *ref,
					      struct cluster_store_state state)
{
	struct cluster_store_bucket bucket = {
		.key = ref->key, .tag = ref->tag, .def = *ref->def, .cost = 1
	};
	struct cluster_store_request request;

	quota_prepare(quotas, ref, &bucket, now);
	pass(MS);
	request = response(true);
	bucket.state = state;
	quota_complete(quotas, ref, &bucket, &request, CLUSTER_STORE_DONE, now);
	return bucket;
}

/* ------------------------------------------------------------------ windows */

TEST_WITH(test_next_command_restores, set_up, tear_down)
{
	struct quota_ref ref = ref_of(1, CONSISTENCY_STRICT, 0);
	struct cluster_store_bucket bucket;
	struct quota_due due;

	asks(&ref, 80, 40, 0);
	/* All is gone, but for this one. */
	asks(&ref, 1, 1, 0);
	assert_int_equal(quota_unflushed(quotas, ref.key), 40);
	bucket = asks(&ref, 42, 42, 0);
	assert_int_equal(bucket.spent, 40);
	assert_int_equal(bucket.window, window());
	assert_int_equal(quota_unflushed(quotas, ref.key), 0);
	bucket = asks(&ref, 43, 43, 0);
	assert_int_equal(bucket.spent, 0);
	assert_int_equal(stats().lost, 40);
	assert_int_equal(stats().restored, 40);
	pass(SEC);
	assert_int_equal(due_now(&due), 0);
}

/* A loss of one request is noticed. */
TEST_WITH(test_window_least, set_up, tear_down)
{
	struct quota_ref ref = ref_of(1, CONSISTENCY_STRICT, 0);

	asks(&ref, 30, 10, 0);
	asks(&ref, 31, 11, 0);
	assert_int_equal(stats().lost, 0);
	asks(&ref, 31, 11, 0);
	assert_int_equal(stats().lost, 1);
}

TEST_WITH(test_restore_unrequested, set_up, tear_down)
{
	struct quota_ref ref = ref_of(1, CONSISTENCY_STRICT, 0);
	struct quota_due due;

	asks(&ref, 80, 40, 0);
	asks(&ref, 1, 1, 0);
	pass(100 * MS);
	assert_int_equal(due_now(&due), 1);
	assert_int_equal(due.bucket.kind, CLUSTER_STORE_CHARGE);
	assert_int_equal(due.bucket.cost, 0);
	assert_int_equal(due.bucket.spent, 40);
	assert_int_equal(due.bucket.window, window());
	assert_int_equal(quota_unflushed(quotas, ref.key), 40);
	/* Not known: again. */
	assert_int_equal(flushed(&due, CLUSTER_STORE_DOWN, 0, 0), 40);
	assert_int_equal(stats().restored, 0);
	pass(400 * MS);
	assert_int_equal(due_now(&due), 1);
	assert_int_equal(due.bucket.spent, 40);
	assert_int_equal(flushed(&due, CLUSTER_STORE_DONE, 41, 41), 0);
	assert_int_equal(stats().lost, 40);
	assert_int_equal(stats().restored, 40);
	/* A charge of a window that is over counts no more. */
	asks(&ref, 1, 1, 0);
	pass(60 * SEC);
	assert_int_equal(due_now(&due), 0);
}

TEST_WITH(test_not_a_loss, set_up, tear_down)
{
	struct quota_ref ref = ref_of(1, CONSISTENCY_STRICT, 0);
	struct cluster_store_bucket first = bucket_of(&ref, 1), second = first,
				    back = bucket_of(&ref, 5);
	struct cluster_store_request request[3];
	struct quota_due due;

	asks(&ref, 10, 10, 0);
	/* A reply that was overtaken. */
	quota_prepare(quotas, &ref, &first, now);
	quota_prepare(quotas, &ref, &second, now);
	first.state = (struct cluster_store_state){ 11, 0, window(), 11 };
	second.state = (struct cluster_store_state){ 12, 0, window(), 12 };
	pass(MS);
	request[0] = response(true);
	pass(MS);
	request[1] = response(true);
	quota_complete(quotas, &ref, &second, &request[1], CLUSTER_STORE_DONE, now);
	quota_complete(quotas, &ref, &first, &request[0], CLUSTER_STORE_DONE, now);
	/* Refunded; two are charged meanwhile over another connection, before that and after it. */
	back.kind = CLUSTER_STORE_REFUND;
	quota_prepare(quotas, &ref, &back, now);
	pass(MS);
	asks(&ref, 13, 13, 0);
	request[2] = response(true);
	pass(MS);
	asks(&ref, 9, 9, 0);
	back.state = (struct cluster_store_state){ 8, 0, window(), 8 };
	quota_complete(quotas, &ref, &back, &request[2], CLUSTER_STORE_DONE, now);
	asks(&ref, 10, 10, 0);
	/* Another node reset it: all is refunded, and this node's own units stay known. */
	asks(&ref, 1, 11, 0);
	/* The next window. */
	pass(60 * SEC);
	asks(&ref, 1, 1, 0);
	pass(SEC);
	assert_int_equal(due_now(&due), 0);
	assert_int_equal(stats().lost, 0);
	assert_int_equal(quota_unflushed(quotas, ref.key), 0);
	/* After all that a loss is noticed as before. */
	asks(&ref, 9, 9, 0);
	asks(&ref, 1, 1, 0);
	assert_int_equal(stats().lost, 9);
}

TEST_WITH(test_first_request, set_up, tear_down)
{
	struct quota_ref ref = ref_of(1, CONSISTENCY_STRICT, 0);
	u64 begun = store_us(), next;

	ref.def = &first_def;
	gets_reply(&ref, (struct cluster_store_state){ 30, 0, begun, 20 });
	/* Reset elsewhere: another window, and that before is known. */
	pass(SEC);
	next = store_us();
	gets_reply(&ref, (struct cluster_store_state){ 1, begun, next, 1 });
	assert_int_equal(stats().lost, 0);
	/* Lost: nothing is known. */
	gets_reply(&ref, (struct cluster_store_state){ 30, begun, next, 20 });
	pass(SEC);
	gets_reply(&ref, (struct cluster_store_state){ 1, 0, store_us(), 1 });
	assert_int_equal(stats().lost, 20);
}

/* ------------------------------------------------------------------ buckets */

TEST_WITH(test_bucket, set_up, tear_down)
{
	struct quota_ref ref = ref_of(1, CONSISTENCY_STRICT, 0);
	struct cluster_store_bucket bucket;
	u64 empty;

	ref.def = &bucket_def;
	gets_reply(&ref, (struct cluster_store_state){ .used = 80 * SEC });
	empty = store_us() + 80000000;
	/* With leases, a loss of less than an eighth may be a lease that has ended. */
	ref.consistency = CONSISTENCY_LEASE;
	gets_reply(&ref, (struct cluster_store_state){ .used = 70 * SEC });
	ref.consistency = CONSISTENCY_STRICT;
	gets_reply(&ref, (struct cluster_store_state){ .used = 80 * SEC });
	/* Its own request, rounded. */
	gets_reply(&ref, (struct cluster_store_state){ .used = 81 * SEC - 2000 });
	assert_int_equal(stats().lost, 0);
	/* Refunded, by another node. */
	quotas_set_nodes(quotas, 2);
	gets_reply(&ref, (struct cluster_store_state){ .used = 20 * SEC, .own = store_us() });
	assert_int_equal(stats().lost, 0);
	quotas_set_nodes(quotas, 1);
	gets_reply(&ref,
		   (struct cluster_store_state){ .used = 80 * SEC, .own = store_us() - 10000 });
	empty = store_us() + 80000000;
	pass(SEC);
	/* Lost: the next command has the time when it would have been empty. */
	gets_reply(&ref, (struct cluster_store_state){ .used = SEC });
	assert_in_range(stats().lost, 1, 80);
	assert_in_range(quota_unflushed(quotas, ref.key), 78, 80);
	/* With the request that found out: the store takes the later of two times, not their
	 * sum. */
	bucket = gets_reply(&ref, (struct cluster_store_state){ .used = 81 * SEC });
	assert_int_equal(bucket.window, empty + 1000000);
	assert_int_equal(bucket.spent, 0);
	assert_int_equal(quota_unflushed(quotas, ref.key), 0);
	assert_int_equal(stats().restored, stats().lost);
	bucket = gets_reply(&ref, (struct cluster_store_state){ .used = 82 * SEC });
	assert_int_equal(bucket.window, 0);
}

/* A charge before a restore that lacks it, whose reply follows the restore's: it is restored
 * next. */
TEST_WITH(test_bucket_restored_over, set_up, tear_down)
{
	struct quota_ref ref = ref_of(1, CONSISTENCY_STRICT, 0);
	struct cluster_store_bucket charge, next;
	struct cluster_store_request request;
	struct quota_due due;

	ref.def = &bucket_def;
	for (int room = 0; room < 2; room++) {
		u64 empty;

		ref.key += 1ULL << 40;
		gets_reply(&ref, (struct cluster_store_state){ .used = 80 * SEC });
		empty = store_us() + 80000000;
		gets_reply(&ref, (struct cluster_store_state){ .used = SEC });
		pass(200 * MS);
		assert_int_equal(due_now(&due), 1);
		assert_int_equal(due.bucket.window, empty + 1000000);
		charge = bucket_of(&ref, 1);
		quota_prepare(quotas, &ref, &charge, now);
		pass(MS);
		request = response(true);
		charge.state = (struct cluster_store_state){ .used = 2 * SEC };
		pass(MS);
		/* Without room the store has more than the restore: that charge, too. */
		flushed(&due, CLUSTER_STORE_DONE,
			(empty + 1000000 + !room * 1000000 - store_us()) * 1000, 0);
		quota_complete(quotas, &ref, &charge, &request, CLUSTER_STORE_DONE, now);
		assert_int_equal(quota_unflushed(quotas, ref.key), room);
		next = gets_reply(&ref, (struct cluster_store_state){
						.used = (empty + 3000000 - store_us()) * 1000 });
		assert_int_equal(next.window, room ? empty + 2000000 : 0);
	}
}

/* A loss of one request is noticed; with leases one of more than an eighth of the capacity. */
TEST_WITH(test_bucket_least, set_up, tear_down)
{
	struct quota_ref ref = ref_of(1, CONSISTENCY_STRICT, 0);

	ref.def = &bucket_def;
	gets_reply(&ref, (struct cluster_store_state){ .used = 50 * SEC });
	gets_reply(&ref, (struct cluster_store_state){ .used = 51 * SEC });
	assert_int_equal(stats().lost, 0);
	gets_reply(&ref, (struct cluster_store_state){ .used = 51 * SEC });
	assert_int_equal(quota_unflushed(quotas, ref.key), 1);

	ref = ref_of(2, CONSISTENCY_LEASE, SEC);
	ref.def = &bucket_def;
	gets_reply(&ref, (struct cluster_store_state){ .used = 50 * SEC });
	gets_reply(&ref, (struct cluster_store_state){ .used = 39 * SEC });
	assert_int_equal(quota_unflushed(quotas, ref.key), 0);
	gets_reply(&ref, (struct cluster_store_state){ .used = 27 * SEC });
	assert_int_equal(quota_unflushed(quotas, ref.key), 13);
}

/* ------------------------------------------------------------------ logs */

/* Those of this half of the log's length and of the half before still count, to the last one. */
TEST_WITH(test_log, set_up, tear_down)
{
	struct quota_ref ref = ref_of(1, CONSISTENCY_STRICT, 0);

	ref.def = &log_def;
	for (u32 i = 1; i <= 3; i++)
		gets_reply(&ref, (struct cluster_store_state){ .used = 20 + i, .own = i });
	pass(30 * SEC);
	gets_reply(&ref, (struct cluster_store_state){ .used = 24, .own = 4 });
	assert_int_equal(stats().lost, 0);
	gets_reply(&ref, (struct cluster_store_state){ .used = 24, .own = 4 });
	assert_int_equal(stats().lost, 1);
	assert_int_equal(quota_unflushed(quotas, ref.key), 1);
}

/* Two halves later they may have expired. */
TEST_WITH(test_log_expires, set_up, tear_down)
{
	struct quota_ref ref = ref_of(1, CONSISTENCY_STRICT, 0);

	ref.def = &log_def;
	for (u32 i = 1; i <= 3; i++)
		gets_reply(&ref, (struct cluster_store_state){ .used = i, .own = i });
	pass(60 * SEC);
	gets_reply(&ref, (struct cluster_store_state){ .used = 1, .own = 1 });
	assert_int_equal(stats().lost, 0);
	gets_reply(&ref, (struct cluster_store_state){ .used = 1, .own = 1 });
	assert_int_equal(stats().lost, 1);
}

/* A charge whose reply follows that of a newer one: units charged before the store forgot are lost,
 * too. */
TEST_WITH(test_old_reply, set_up, tear_down)
{
	struct quota_ref ref = ref_of(1, CONSISTENCY_WRITE_BACK, SEC);
	struct cluster_store_bucket first, second;
	struct cluster_store_request request[2];

	for (int refunded = 0; refunded < 2; refunded++) {
		ref.key += 1ULL << 40;
		asks(&ref, 20, 20, 0);
		first = bucket_of(&ref, 10);
		second = bucket_of(&ref, refunded ? 25 : 1);
		second.kind = refunded ? CLUSTER_STORE_REFUND : CLUSTER_STORE_CHARGE;
		quota_prepare(quotas, &ref, &first, now);
		quota_prepare(quotas, &ref, &second, now);
		pass(MS);
		request[0] = response(true);
		first.state = (struct cluster_store_state){ 30, 0, window(), 30 };
		pass(MS);
		request[1] = response(true);
		/* Lost in between, or refunded here: the two look alike. */
		second.state = (struct cluster_store_state){ refunded ? 5 : 1, 0, window(),
							     refunded ? 5 : 1 };
		quota_complete(quotas, &ref, &second, &request[1], CLUSTER_STORE_DONE, now);
		quota_complete(quotas, &ref, &first, &request[0], CLUSTER_STORE_DONE, now);
		assert_int_equal(stats().lost, 30);
		assert_int_equal(quota_unflushed(quotas, ref.key), refunded ? 0 : 30);
	}
}

/* ------------------------------------------------------------------ others */

/* After a first loss all buckets without a reply since are looked up; once. */
TEST_WITH(test_lookups, set_up, tear_down)
{
	struct quota_ref ref = ref_of(1, CONSISTENCY_STRICT, 0),
			 other = ref_of(2, CONSISTENCY_STRICT, 0);
	struct quota_ref third = ref_of(3, CONSISTENCY_STRICT, 0),
			 old = ref_of(4, CONSISTENCY_STRICT, 0);
	struct quota_due due;

	asks(&old, 5, 5, 0);
	pass(60 * SEC);
	asks(&ref, 20, 20, 0);
	asks(&other, 30, 30, 0);
	asks(&third, 30, 30, 0);
	pass(SEC);
	assert_int_equal(due_now(&due), 0);
	asks(&ref, 1, 1, 0);
	asks(&third, 1, 1, 0);
	asks(&ref, 22, 22, 0);
	asks(&third, 32, 32, 0);
	due_now(&due);
	pass(200 * MS);
	assert_int_equal(due_now(&due), 1);
	assert_int_equal(due.ref.key, other.key);
	assert_int_equal(due.bucket.kind, CLUSTER_STORE_CHARGE);
	assert_int_equal(due.bucket.cost + due.bucket.spent, 0);
	assert_int_equal(flushed(&due, CLUSTER_STORE_DONE, 0, 0), 30);
	pass(200 * MS);
	assert_int_equal(due_now(&due), 1);
	assert_int_equal(due.bucket.spent, 30);
	assert_int_equal(flushed(&due, CLUSTER_STORE_DONE, 30, 30), 0);
	assert_int_equal(stats().lost, 20 + 30 + 30);
	assert_int_equal(stats().restored, 20 + 30 + 30);
	for (u32 i = 0; i < 100; i++) {
		pass(100 * MS);
		if (due_now(&due))
			assert_int_equal(flushed(&due, CLUSTER_STORE_DONE, 100, 100), 0);
		if (i > 55)
			assert_int_equal(due_now(&due), 0);
	}
}

TEST_MAIN
