/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Quota: requested, covered, unflushed and flushed units, one reply at a time. */
#include "quota_rig.h"

TEST_WITH(test_strict, set_up, tear_down)
{
	static s64 utc_ns;
	struct quota_ref ref = ref_of(1, CONSISTENCY_STRICT, 0);
	struct cluster_store_bucket bucket = bucket_of(&ref, 3);
	struct cluster_store_request request;

	quotas_publish_clock(quotas, &utc_ns);
	for (u32 i = 0; i < 10; i++)
		assert_int_equal(quota_acquire(quotas, &ref, 1, now), QUOTA_NOT_COVERED);
	quota_prepare(quotas, &ref, &bucket, now);
	assert_int_equal(bucket.want + bucket.spent + bucket.returned + bucket.lease_us, 0);
	/* Other requests see units in flight. */
	assert_int_equal(quota_unflushed(quotas, ref.key), 3);
	pass(MS);
	request = response(true);
	bucket.state = (struct cluster_store_state){ 40, 0, now.utc_ns / (60 * SEC), 3 };
	quota_complete(quotas, &ref, &bucket, &request, CLUSTER_STORE_LATE, now);
	assert_int_equal(quota_unflushed(quotas, ref.key), 3);
	quota_complete(quotas, &ref, &bucket, &request, CLUSTER_STORE_DONE, now);
	assert_int_equal(quota_unflushed(quotas, ref.key), 0);
	/* Half of the round trip may be wrong. */
	assert_in_range(quotas_now(quotas, now).utc_ns - now.utc_ns, STORE_AHEAD_NS - MS,
			STORE_AHEAD_NS + MS);
	assert_in_range(utc_ns, STORE_AHEAD_NS - MS, STORE_AHEAD_NS + MS);
}

TEST_WITH(test_unflushed, set_up, tear_down)
{
	struct quota_ref ref = ref_of(1, CONSISTENCY_STRICT, 0),
			 other = ref_of(2, CONSISTENCY_STRICT, 0);
	struct quota_due due[4];
	struct cluster_store_request request;
	u64 unflushed;

	quota_add_unflushed(quotas, &ref, 5, now);
	quota_add_unflushed(quotas, &ref, 4, now);
	quota_add_unflushed(quotas, &ref, -2, now);
	assert_int_equal(quota_unflushed(quotas, ref.key), 7);
	assert_int_equal(quota_unflushed(quotas, other.key), 0);
	assert_int_equal(quotas_due(quotas, due, 4, now), 0);
	pass(100 * MS);
	assert_int_equal(quotas_due(quotas, due, 4, now), 1);
	assert_true(due->ref.key == ref.key && due->ref.def == &due->def);
	assert_int_equal(due->bucket.kind, CLUSTER_STORE_FORCE);
	assert_int_equal(due->bucket.cost, 7);
	assert_int_equal(due->bucket.window, now.utc_ns / (60 * SEC));
	/* The store has to decide. */
	assert_int_equal(quotas_due(quotas, due + 1, 3, now), 0);
	quota_add_unflushed(quotas, &ref, 1, now);
	assert_int_equal(quota_unflushed(quotas, ref.key), 8);
	due->bucket.state = (struct cluster_store_state){ 7, 0, due->bucket.window, 7 };
	request = response(true);
	quotas_flushed(quotas, due, &request, CLUSTER_STORE_DONE, now, &unflushed);
	assert_int_equal(unflushed, 1);
	pass(100 * MS);
	assert_int_equal(quotas_due(quotas, due, 4, now), 1);
	assert_int_equal(due->bucket.cost, 1);
	/* The flush did not arrive: it is sent again, and not at once. */
	quotas_flushed(quotas, due, NULL, CLUSTER_STORE_DOWN, now, &unflushed);
	assert_int_equal(unflushed, 1);
	assert_int_equal(quotas_due(quotas, due, 4, now), 0);
	pass(SEC);
	assert_int_equal(quotas_due(quotas, due, 4, now), 1);
	assert_int_equal(due->bucket.cost, 1);
}

TEST_WITH(test_permille, set_up, tear_down)
{
	struct quota_ref ref = ref_of(1, CONSISTENCY_STRICT, 0);
	struct cluster_store_bucket bucket = bucket_of(&ref, 1);
	struct cluster_store_request request;

	assert_int_equal(quota_permille(quotas, ref.key, now), 1000);
	quotas_set_nodes(quotas, 4);
	assert_int_equal(quota_permille(quotas, ref.key, now), 250);
	for (u32 own = 1; own <= 90; own += 89) {
		quota_prepare(quotas, &ref, &bucket, now);
		pass(MS);
		bucket.state = (struct cluster_store_state){ 90, 0, now.utc_ns / (60 * SEC), own };
		request = response(true);
		quota_complete(quotas, &ref, &bucket, &request, CLUSTER_STORE_DONE, now);
		/* All but nothing: half an even share; all: the rest of the others' shares. */
		assert_int_equal(quota_permille(quotas, ref.key, now), own == 1 ? 125 : 625);
	}
}

/* ------------------------------------------------------------------ leases */

/* Of a window that is over, what was spent of a lease and what was not still count in a sliding
 * one. */
TEST_WITH(test_lease_of_the_window_before, set_up, tear_down)
{
	struct spec_def sliding = window_def;
	struct cluster_store_bucket bucket;
	const struct quota_ref *ref;
	u64 before;

	sliding.algo = SL_ALGO_SLIDING_WINDOW;
	pass(60 * SEC - store_us() * 1000 % (60 * SEC) - 20 * MS);
	ref = leased(&sliding, 5);
	for (u32 i = 0; i < 2; i++)
		assert_int_equal(quota_acquire(quotas, ref, 1, now), QUOTA_COVERED);
	before = window();
	pass(20 * MS);
	assert_int_equal(window(), before + 1);
	bucket = asks(ref, 7, 0, 0);
	assert_int_equal(bucket.spent, 2);
	assert_int_equal(bucket.returned, 3);
	assert_int_equal(bucket.window, before);
}

TEST_WITH(test_lease, set_up, tear_down)
{
	const struct quota_ref *ref = leased(&window_def, 5);
	struct quota_due due;

	for (u32 i = 0; i < 4; i++)
		assert_int_equal(quota_acquire(quotas, ref, 1, now), QUOTA_COVERED);
	assert_int_equal(quota_acquire(quotas, ref, 2, now), QUOTA_NOT_COVERED);
	assert_int_equal(quota_unflushed(quotas, ref->key), 4);
	/* Another bucket refused the last of them. */
	quota_release(quotas, ref, 1);
	assert_int_equal(quota_unflushed(quotas, ref->key), 3);
	/* Renewed before it ends, with its spent units. */
	pass(80 * MS);
	assert_int_equal(due_now(&due), 1);
	assert_int_equal(due.bucket.kind, CLUSTER_STORE_CHARGE);
	assert_int_equal(due.bucket.cost, 0);
	assert_int_equal(due.bucket.spent, 3);
	assert_true(due.bucket.lease_us >= 100000);
	assert_int_equal(quota_unflushed(quotas, ref->key), 3);
	assert_int_equal(flushed(&due, CLUSTER_STORE_DONE, 7, 7), 0);
}

/* `count: all`: a refused request spends what is left of a lease, as it empties a bucket. */
TEST_WITH(test_refused, set_up, tear_down)
{
	const struct quota_ref *ref = leased(&window_def, 5);
	struct quota_due due;

	assert_int_equal(quota_acquire(quotas, ref, 1, now), QUOTA_COVERED);
	quota_add_refused(quotas, ref, 7, now);
	assert_int_equal(quota_acquire(quotas, ref, 1, now), QUOTA_NOT_COVERED);
	assert_int_equal(quota_refused(quotas, ref->key), 7);
	assert_int_equal(quota_unflushed(quotas, ref->key), 5);
	pass(QUOTA_REFUSED_NS);
	assert_int_equal(due_now(&due), 1);
	assert_int_equal(due.bucket.spent, 5);
	assert_int_equal(flushed(&due, CLUSTER_STORE_DONE, 10, 10), 0);
	/* With the time of the refusal; again if that fails. */
	for (u32 i = 0; i < 2; i++) {
		assert_int_equal(due_now(&due), 1);
		assert_int_equal(due.bucket.cost, 0);
		assert_int_equal(due.bucket.refused, 7);
		assert_in_range(now.utc_ns / 1000 - due.bucket.refused_us, 90000 + i * 1000000,
				120000 + i * 1000000);
		assert_int_equal(quota_refused(quotas, ref->key), 7);
		flushed(&due, i ? CLUSTER_STORE_DONE : CLUSTER_STORE_DOWN, 10, 10);
		pass(SEC);
	}
	assert_int_equal(quota_refused(quotas, ref->key), 0);
	quota_add_refused(quotas, ref, 1, now);
	quota_forget(quotas, ref->key);
	assert_int_equal(quota_refused(quotas, ref->key), 0);
}

TEST_WITH(test_lease_ends, set_up, tear_down)
{
	const struct quota_ref *ref = leased(&window_def, 5);
	struct quota_due due;

	assert_int_equal(quota_acquire(quotas, ref, 1, now), QUOTA_COVERED);
	pass(98 * MS);
	assert_int_equal(quota_acquire(quotas, ref, 1, now), QUOTA_NOT_COVERED);
	/* Spent units are flushed, the rest is refunded. */
	assert_int_equal(due_now(&due), 1);
	assert_int_equal(due.bucket.spent, 1);
	assert_int_equal(due.bucket.returned, 4);
	assert_int_equal(flushed(&due, CLUSTER_STORE_DOWN, 0, 0), 1);
	pass(SEC);
	assert_int_equal(due_now(&due), 1);
	/* Spent units are flushed again; refunded ones are not granted again. */
	assert_int_equal(due.bucket.spent, 1);
	assert_int_equal(due.bucket.returned, 0);
	assert_int_equal(flushed(&due, CLUSTER_STORE_DONE, 5, 5), 0);
	pass(SEC);
	assert_int_equal(due_now(&due), 0);
}

/* Of a lease that ended unused nothing is left, and nothing is sent. */
TEST_WITH(test_lease_unused, set_up, tear_down)
{
	struct quotas_stats stats;
	struct quota_due due;

	leased(&window_def, 5);
	quotas_stats(quotas, &stats);
	assert_int_equal(stats.leases, 1);
	pass(SEC);
	assert_int_equal(due_now(&due), 0);
	quotas_stats(quotas, &stats);
	assert_int_equal(stats.leases, 0);
}

TEST_WITH(test_end, set_up, tear_down)
{
	const struct quota_ref *ref = leased(&window_def, 5);
	struct quota_ref other = ref_of(2, CONSISTENCY_WRITE_BACK, 3600 * SEC);
	struct quota_due due[3];

	asks(&other, 1, 1, 0);
	assert_int_equal(quota_acquire(quotas, &other, 3, now), QUOTA_COVERED);
	assert_int_equal(quotas_due(quotas, due, 3, now), 0);
	quotas_end(quotas);
	assert_int_equal(quota_acquire(quotas, ref, 1, now), QUOTA_NOT_COVERED);
	assert_int_equal(quota_acquire(quotas, &other, 1, now), QUOTA_NOT_COVERED);
	assert_int_equal(quotas_due(quotas, due, 3, now), 2);
	for (u32 i = 0; i < 2; i++) {
		assert_int_equal(due[i].bucket.returned, due[i].ref.key == ref->key ? 5 : 0);
		assert_int_equal(due[i].bucket.cost, due[i].ref.key == ref->key ? 0 : 3);
		assert_int_equal(flushed(&due[i], CLUSTER_STORE_DONE, 4, 4), 0);
	}
	assert_int_equal(quotas_due(quotas, due, 3, now), 0);
}

TEST_WITH(test_lease_of_a_window, set_up, tear_down)
{
	const struct quota_ref *ref;
	u64 left;

	asks(&(struct quota_ref){ 9, 9, &window_def, CONSISTENCY_STRICT, 0, 7, false }, 1, 1, 0);
	left = 60 * SEC - (now.utc_ns + STORE_AHEAD_NS) % (60 * SEC);
	pass(left - 30 * MS);
	ref = leased(&window_def, 5);
	assert_int_equal(quota_acquire(quotas, ref, 1, now), QUOTA_COVERED);
	pass(26 * MS);
	assert_int_equal(quota_acquire(quotas, ref, 1, now), QUOTA_NOT_COVERED);
	assert_int_equal(quota_unflushed(quotas, ref->key), 1);
}

TEST_WITH(test_rare_key, set_up, tear_down)
{
	struct quota_ref ref = ref_of(1, CONSISTENCY_LEASE, 100 * MS);
	struct quota_due due;

	for (u32 i = 0; i < 100; i++) {
		struct cluster_store_bucket bucket;

		assert_int_equal(quota_acquire(quotas, &ref, 1, now), QUOTA_NOT_COVERED);
		bucket = asks(&ref, i + 1, i + 1, 100);
		assert_true(!bucket.want && !bucket.lease_us);
		pass(50 * MS);
		assert_int_equal(due_now(&due), 0);
	}
}

/* ------------------------------------------------------------------ write-back */

TEST_WITH(test_write_back, set_up, tear_down)
{
	struct quota_ref ref = ref_of(1, CONSISTENCY_WRITE_BACK, SEC),
			 other = ref_of(2, CONSISTENCY_WRITE_BACK, SEC);
	struct quota_due due;

	/* What others have charged is not known yet. */
	assert_int_equal(quota_acquire(quotas, &ref, 1, now), QUOTA_NOT_COVERED);
	asks(&ref, 1, 1, 0);
	assert_int_equal(quota_acquire(quotas, &other, 1, now), QUOTA_NOT_COVERED);
	asks(&other, 1, 1, 0);
	for (u32 i = 0; i < 10; i++)
		assert_int_equal(quota_acquire(quotas, &ref, 1, now), QUOTA_COVERED);
	assert_int_equal(quota_unflushed(quotas, ref.key), 10);
	for (u32 ms = 0; !due_now(&due); ms++) {
		assert_true(ms <= 1000);
		pass(MS);
	}
	assert_int_equal(due.bucket.kind, CLUSTER_STORE_FORCE);
	assert_int_equal(due.bucket.cost, 10);
	assert_int_equal(quota_acquire(quotas, &ref, 1, now), QUOTA_COVERED);
	/* Late: nothing more passes unflushed; nor after it failed. The neighbour goes on. */
	assert_int_equal(flushed(&due, CLUSTER_STORE_LATE, 0, 0), 11);
	assert_int_equal(quota_acquire(quotas, &ref, 1, now), QUOTA_NOT_COVERED);
	assert_int_equal(flushed(&due, CLUSTER_STORE_DOWN, 0, 0), 11);
	assert_int_equal(quota_acquire(quotas, &ref, 1, now), QUOTA_NOT_COVERED);
	assert_int_equal(quota_acquire(quotas, &other, 1, now), QUOTA_COVERED);
	pass(2 * SEC);
	for (u32 i = 0; i < 2; i++) {
		assert_int_equal(due_now(&due), 1);
		assert_int_equal(due.bucket.cost, due.ref.key == ref.key ? 11 : 1);
		assert_int_equal(flushed(&due, CLUSTER_STORE_DONE, 12, 12), 0);
		assert_int_equal(quota_acquire(quotas, &due.ref, 1, now), QUOTA_COVERED);
		quota_release(quotas, &due.ref, 1);
		pass(SEC);
	}
}

/* A key is covered for an interval, and 30 ms for a late flush, after a command that Redis replied
 * to. */
TEST_WITH(test_write_back_recent, set_up, tear_down)
{
	struct quota_ref ref = ref_of(1, CONSISTENCY_WRITE_BACK, SEC);
	struct cluster_store_bucket old = bucket_of(&ref, 1);
	struct cluster_store_request request;
	struct quota_due due;

	quota_prepare(quotas, &ref, &old, now);
	request = response(true);
	asks(&ref, 1, 1, 0);
	pass(SEC + 29 * MS);
	assert_int_equal(quota_acquire(quotas, &ref, 1, now), QUOTA_COVERED);
	quota_release(quotas, &ref, 1);
	/* A reply that is older than the newest shows nothing new, when ever it arrives. */
	quota_complete(quotas, &ref, &old, &request, CLUSTER_STORE_DONE, now);
	pass(MS);
	assert_int_equal(quota_acquire(quotas, &ref, 1, now), QUOTA_NOT_COVERED);
	/* Nor do reports. */
	quota_add_unflushed(quotas, &ref, 1, now);
	assert_int_equal(quota_acquire(quotas, &ref, 1, now), QUOTA_NOT_COVERED);
	for (u32 ms = 0; !due_now(&due); ms++) {
		assert_true(ms <= 1000);
		pass(MS);
	}
	assert_int_equal(quota_acquire(quotas, &ref, 1, now), QUOTA_NOT_COVERED);
	assert_int_equal(flushed(&due, CLUSTER_STORE_DONE, 2, 2), 0);
	assert_int_equal(quota_acquire(quotas, &ref, 1, now), QUOTA_COVERED);
	/* After a reset on another node, others may have charged it. */
	quota_forget(quotas, ref.key);
	assert_int_equal(quota_acquire(quotas, &ref, 1, now), QUOTA_NOT_COVERED);
}

/* Ten a second. */
static const struct spec_def bucket_def = SPEC_DEF(TOKEN_BUCKET, 10, SEC, .burst = 10);

/* After an outage at most what a node can admit in two intervals is flushed: the burst, and twice
 * ten. */
TEST_WITH(test_write_back_after_an_outage, set_up, tear_down)
{
	struct quota_ref ref = ref_of(1, CONSISTENCY_WRITE_BACK, SEC);
	struct quota_due due;

	ref.def = &bucket_def;
	asks(&ref, 100 * MS, 0, 0);
	quota_add_unflushed(quotas, &ref, 100, now);
	pass(2 * SEC);
	assert_int_equal(due_now(&due), 1);
	assert_int_equal(due.bucket.cost, 30);
}

/* Of requests one by one nothing is left, of requests at once all. */
TEST_WITH(test_write_back_of_a_bucket, set_up, tear_down)
{
	struct quota_ref ref = ref_of(1, CONSISTENCY_WRITE_BACK, 3600 * SEC);
	struct quota_due due;

	ref.def = &bucket_def;
	asks(&ref, 100 * MS, 0, 0);
	pass(200 * MS);
	for (u32 i = 0; i < 5; i++) {
		assert_int_equal(quota_acquire(quotas, &ref, 1, now), QUOTA_COVERED);
		pass(100 * MS);
	}
	quotas_end(quotas);
	assert_int_equal(due_now(&due), 1);
	assert_int_equal(due.bucket.cost, 5);
	assert_in_range(store_us() - due.bucket.window, 499000, 501000);
	assert_int_equal(flushed(&due, CLUSTER_STORE_DOWN, 0, 0), 5);
	pass(5 * SEC);
	/* Times are not known: as if they had come now. */
	assert_int_equal(due_now(&due), 1);
	assert_in_range(store_us() + 1000 - due.bucket.window, 0, 2000);
	assert_int_equal(flushed(&due, CLUSTER_STORE_DONE, 500 * MS, 0), 0);
	pass(SEC);
	quota_add_unflushed(quotas, &ref, 8, now);
	pass(100 * MS);
	quotas_end(quotas);
	assert_int_equal(due_now(&due), 1);
	assert_int_equal(due.bucket.cost, 8);
	assert_in_range(store_us() - due.bucket.window, 99000, 102000);
}

TEST_WITH(test_late_window, set_up, tear_down)
{
	struct quota_ref ref = ref_of(1, CONSISTENCY_WRITE_BACK, SEC);
	struct quota_due due;
	u64 left, first;

	left = 60 * SEC - (now.utc_ns + STORE_AHEAD_NS) % (60 * SEC);
	pass(left - 21 * MS);
	asks(&ref, 1, 1, 0);
	first = window();
	assert_int_equal(quota_acquire(quotas, &ref, 3, now), QUOTA_COVERED);
	pass(40 * MS);
	assert_int_equal(quota_acquire(quotas, &ref, 2, now), QUOTA_COVERED);
	/* Units admitted in a window are flushed for that window, soon. */
	assert_int_equal(due_now(&due), 1);
	assert_int_equal(due.bucket.cost, 3);
	assert_int_equal(due.bucket.window, first);
	due.bucket.late = true;
	due.bucket.excess = 50;
	assert_int_equal(flushed(&due, CLUSTER_STORE_DONE, 0, 0), 2);
	for (u32 ms = 0; !due_now(&due); ms++) {
		assert_true(ms <= 1000);
		pass(MS);
	}
	assert_int_equal(due.bucket.cost, 2);
	assert_int_equal(due.bucket.window, first + 1);
	/* The excess of the window that is over, until an hour after its end. */
	assert_true(quotas_overshoot(quotas, 7) == 0.5);
	assert_true(quotas_overshoot(quotas, 8) == 0);
	pass(3590 * SEC);
	due_now(&due);
	assert_true(quotas_overshoot(quotas, 7) == 0.5);
	pass(400 * SEC);
	due_now(&due);
	assert_true(quotas_overshoot(quotas, 7) == 0);
}

/*
 * While the flush of a window that is over fails, that of newer charges waits behind it: nothing
 * more passes unflushed. Once it has arrived they follow at once, for their own time may have
 * passed.
 */
TEST_WITH(test_late_window_fails, set_up, tear_down)
{
	struct quota_ref ref = ref_of(1, CONSISTENCY_WRITE_BACK, SEC);
	enum cluster_store_outcome outcome[] = { CLUSTER_STORE_LATE, CLUSTER_STORE_DOWN };
	struct quota_due due;
	u64 left;

	left = 60 * SEC - (now.utc_ns + STORE_AHEAD_NS) % (60 * SEC);
	pass(left - 21 * MS);
	asks(&ref, 1, 1, 0);
	assert_int_equal(quota_acquire(quotas, &ref, 3, now), QUOTA_COVERED);
	pass(40 * MS);
	assert_int_equal(quota_acquire(quotas, &ref, 2, now), QUOTA_COVERED);
	assert_int_equal(due_now(&due), 1);
	assert_int_equal(due.kind, QUOTA_DUE_LATE);
	for (u32 i = 0; i < 2; i++) {
		assert_int_equal(flushed(&due, outcome[i], 0, 0), 2);
		assert_int_equal(quota_acquire(quotas, &ref, 1, now), QUOTA_NOT_COVERED);
	}
	for (u32 ms = 0; !due_now(&due); ms++) {
		assert_true(ms <= 2000);
		pass(MS);
	}
	assert_int_equal(due.kind, QUOTA_DUE_LATE);
	due.bucket.late = true;
	assert_int_equal(flushed(&due, CLUSTER_STORE_DONE, 0, 0), 2);
	assert_int_equal(quota_acquire(quotas, &ref, 1, now), QUOTA_NOT_COVERED);
	pass(MS);
	assert_int_equal(due_now(&due), 1);
	assert_int_equal(due.kind, QUOTA_DUE_FLUSH);
	assert_int_equal(due.bucket.cost, 2);
	assert_int_equal(flushed(&due, CLUSTER_STORE_DONE, 2, 2), 0);
	assert_int_equal(quota_acquire(quotas, &ref, 1, now), QUOTA_COVERED);
}

TEST_WITH(test_replication, set_up, tear_down)
{
	static struct quota_due due[512];
	u32 most = 0, sum = 0;

	for (u64 key = 1; key <= 500; key++) {
		struct quota_ref ref = ref_of(key * 8589935, CONSISTENCY_WRITE_BACK, SEC);

		asks(&ref, 1, 1, 0);
	}
	for (u64 key = 1; key <= 500; key++) {
		struct quota_ref ref = ref_of(key * 8589935, CONSISTENCY_WRITE_BACK, SEC);

		assert_int_equal(quota_acquire(quotas, &ref, 1, now), QUOTA_COVERED);
	}
	for (u32 i = 0; i <= 100; i++) {
		u32 count = quotas_due(quotas, due, 512, now);

		sum += count;
		most = count > most ? count : most;
		pass(10 * MS);
	}
	assert_int_equal(sum, 500);
	assert_in_range(most, 5, 25);
}

TEST_MAIN
