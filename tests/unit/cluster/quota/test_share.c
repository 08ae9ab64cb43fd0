/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Shares: what is asked, covered, owed and told, one answer at a time. */
#include "share_rig.h"

static void test_strict(void **state)
{
	struct share_ref ref = ref_of(1, CONSISTENCY_STRICT, 0);
	struct shared_bucket bucket = bucket_of(&ref, 3);
	struct shared_ask ask;

	for (u32 i = 0; i < 10; i++)
		assert_int_equal(share_take(shares, &ref, 1, now), SHARE_ASK);
	share_ask(shares, &ref, &bucket, now);
	assert_int_equal(bucket.want + bucket.spent + bucket.returned + bucket.lease_us, 0);
	/* Others see what is on its way. */
	assert_int_equal(share_unsent(shares, ref.key), 3);
	pass(MS);
	ask = answer(true);
	bucket.state = (struct shared_state){ 40, 0, now.utc_ns / (60 * SEC), 3 };
	share_answered(shares, &ref, &bucket, &ask, SHARED_LATE, now);
	assert_int_equal(share_unsent(shares, ref.key), 3);
	share_answered(shares, &ref, &bucket, &ask, SHARED_DONE, now);
	assert_int_equal(share_unsent(shares, ref.key), 0);
	/* Half of the round trip may be wrong. */
	assert_in_range(shares_now(shares, now).utc_ns - now.utc_ns, STORE_AHEAD_NS - MS,
			STORE_AHEAD_NS + MS);
	assert_in_range(shares_clock_offset_ns(shares), STORE_AHEAD_NS - MS, STORE_AHEAD_NS + MS);
}

static void test_owed(void **state)
{
	struct share_ref ref = ref_of(1, CONSISTENCY_STRICT, 0), other = ref_of(2, CONSISTENCY_STRICT, 0);
	struct share_due due[4];
	struct shared_ask ask;
	u64 unsent;

	share_owe(shares, &ref, 5, now);
	share_owe(shares, &ref, 4, now);
	share_owe(shares, &ref, -2, now);
	assert_int_equal(share_unsent(shares, ref.key), 7);
	assert_int_equal(share_unsent(shares, other.key), 0);
	assert_int_equal(shares_due(shares, due, 4, now), 0);
	pass(100 * MS);
	assert_int_equal(shares_due(shares, due, 4, now), 1);
	assert_true(due->ref.key == ref.key && due->ref.def == &due->def);
	assert_int_equal(due->bucket.kind, SHARED_FORCE);
	assert_int_equal(due->bucket.cost, 7);
	assert_int_equal(due->bucket.window, now.utc_ns / (60 * SEC));
	/* It is the store's to answer. */
	assert_int_equal(shares_due(shares, due + 1, 3, now), 0);
	share_owe(shares, &ref, 1, now);
	assert_int_equal(share_unsent(shares, ref.key), 8);
	due->bucket.state = (struct shared_state){ 7, 0, due->bucket.window, 7 };
	ask = answer(true);
	shares_told(shares, due, &ask, SHARED_DONE, now, &unsent);
	assert_int_equal(unsent, 1);
	pass(100 * MS);
	assert_int_equal(shares_due(shares, due, 4, now), 1);
	assert_int_equal(due->bucket.cost, 1);
	/* It did not arrive: told again, and not at once. */
	shares_told(shares, due, NULL, SHARED_DOWN, now, &unsent);
	assert_int_equal(unsent, 1);
	assert_int_equal(shares_due(shares, due, 4, now), 0);
	pass(SEC);
	assert_int_equal(shares_due(shares, due, 4, now), 1);
	assert_int_equal(due->bucket.cost, 1);
}

static void test_permille(void **state)
{
	struct share_ref ref = ref_of(1, CONSISTENCY_STRICT, 0);
	struct shared_bucket bucket = bucket_of(&ref, 1);
	struct shared_ask ask;

	assert_int_equal(share_permille(shares, ref.key, now), 1000);
	shares_set_nodes(shares, 4);
	assert_int_equal(share_permille(shares, ref.key, now), 250);
	for (u32 own = 1; own <= 90; own += 89) {
		share_ask(shares, &ref, &bucket, now);
		pass(MS);
		bucket.state = (struct shared_state){ 90, 0, now.utc_ns / (60 * SEC), own };
		ask = answer(true);
		share_answered(shares, &ref, &bucket, &ask, SHARED_DONE, now);
		/* All but nothing: half an even share; all: what that leaves of the others. */
		assert_int_equal(share_permille(shares, ref.key, now), own == 1 ? 125 : 625);
	}
}

/* ------------------------------------------------------------------ leases */

static const struct share_ref *leased(u64 granted)
{
	static struct share_ref ref;

	ref = ref_of(1, CONSISTENCY_LEASE, 100 * MS);
	for (u32 i = 0; i < 4; i++) {
		assert_int_equal(share_take(shares, &ref, 1, now), SHARE_ASK);
		asks(&ref, i + 1, i + 1, i == 3 ? granted : 0);
	}
	return &ref;
}

static void test_lease(void **state)
{
	const struct share_ref *ref = leased(5);
	struct share_due due;

	for (u32 i = 0; i < 4; i++)
		assert_int_equal(share_take(shares, ref, 1, now), SHARE_COVERED);
	assert_int_equal(share_take(shares, ref, 2, now), SHARE_ASK);
	assert_int_equal(share_unsent(shares, ref->key), 4);
	/* Another bucket refused the last of them. */
	share_untake(shares, ref, 1);
	assert_int_equal(share_unsent(shares, ref->key), 3);
	/* Renewed before it ends, with what was spent. */
	pass(80 * MS);
	assert_int_equal(due_now(&due), 1);
	assert_int_equal(due.bucket.kind, SHARED_TAKE);
	assert_int_equal(due.bucket.cost, 0);
	assert_int_equal(due.bucket.spent, 3);
	assert_true(due.bucket.lease_us >= 100000);
	assert_int_equal(share_unsent(shares, ref->key), 3);
	assert_int_equal(told(&due, SHARED_DONE, 7, 7), 0);
}

static void test_lease_ends(void **state)
{
	const struct share_ref *ref = leased(5);
	struct share_due due;

	assert_int_equal(share_take(shares, ref, 1, now), SHARE_COVERED);
	pass(98 * MS);
	assert_int_equal(share_take(shares, ref, 1, now), SHARE_ASK);
	/* What was spent is said, what was not is given back. */
	assert_int_equal(due_now(&due), 1);
	assert_int_equal(due.bucket.spent, 1);
	assert_int_equal(due.bucket.returned, 4);
	assert_int_equal(told(&due, SHARED_DOWN, 0, 0), 1);
	pass(SEC);
	assert_int_equal(due_now(&due), 1);
	/* Spent is said again; what was given back is not taken again. */
	assert_int_equal(due.bucket.spent, 1);
	assert_int_equal(due.bucket.returned, 0);
	assert_int_equal(told(&due, SHARED_DONE, 5, 5), 0);
	pass(SEC);
	assert_int_equal(due_now(&due), 0);
}

static void test_end(void **state)
{
	const struct share_ref *ref = leased(5);
	struct share_ref other = ref_of(2, CONSISTENCY_WRITE_BACK, 3600 * SEC);
	struct share_due due[3];

	assert_int_equal(share_take(shares, &other, 3, now), SHARE_COVERED);
	assert_int_equal(shares_due(shares, due, 3, now), 0);
	shares_end(shares);
	assert_int_equal(share_take(shares, ref, 1, now), SHARE_ASK);
	assert_int_equal(share_take(shares, &other, 1, now), SHARE_ASK);
	assert_int_equal(shares_due(shares, due, 3, now), 2);
	for (u32 i = 0; i < 2; i++) {
		assert_int_equal(due[i].bucket.returned, due[i].ref.key == ref->key ? 5 : 0);
		assert_int_equal(due[i].bucket.cost, due[i].ref.key == ref->key ? 0 : 3);
		assert_int_equal(told(&due[i], SHARED_DONE, 3, 3), 0);
	}
	assert_int_equal(shares_due(shares, due, 3, now), 0);
}

static void test_lease_of_a_window(void **state)
{
	const struct share_ref *ref;
	u64 left;

	asks(&(struct share_ref){ 9, 9, &window_def, CONSISTENCY_STRICT, 0, 7 }, 1, 1, 0);
	left = 60 * SEC - (now.utc_ns + STORE_AHEAD_NS) % (60 * SEC);
	pass(left - 30 * MS);
	ref = leased(5);
	assert_int_equal(share_take(shares, ref, 1, now), SHARE_COVERED);
	pass(26 * MS);
	assert_int_equal(share_take(shares, ref, 1, now), SHARE_ASK);
	assert_int_equal(share_unsent(shares, ref->key), 1);
}

static void test_rare_key(void **state)
{
	struct share_ref ref = ref_of(1, CONSISTENCY_LEASE, 100 * MS);
	struct share_due due;

	for (u32 i = 0; i < 100; i++) {
		struct shared_bucket bucket;

		assert_int_equal(share_take(shares, &ref, 1, now), SHARE_ASK);
		bucket = asks(&ref, i + 1, i + 1, 100);
		assert_true(!bucket.want && !bucket.lease_us);
		pass(50 * MS);
		assert_int_equal(due_now(&due), 0);
	}
}

/* ------------------------------------------------------------------ write-back */

static void test_write_back(void **state)
{
	struct share_ref ref = ref_of(1, CONSISTENCY_WRITE_BACK, SEC), other = ref_of(2, CONSISTENCY_WRITE_BACK, SEC);
	struct share_due due;

	/* Whose window it is nobody knows yet. */
	assert_int_equal(share_take(shares, &ref, 1, now), SHARE_ASK);
	asks(&ref, 1, 1, 0);
	for (u32 i = 0; i < 10; i++)
		assert_int_equal(share_take(shares, &ref, 1, now), SHARE_COVERED);
	assert_int_equal(share_unsent(shares, ref.key), 10);
	for (u32 ms = 0; !due_now(&due); ms++) {
		assert_true(ms <= 1000);
		pass(MS);
	}
	assert_int_equal(due.bucket.kind, SHARED_FORCE);
	assert_int_equal(due.bucket.cost, 10);
	assert_int_equal(share_take(shares, &ref, 1, now), SHARE_COVERED);
	/* Late: no more is let through untold; nor after it failed. The neighbour goes on. */
	assert_int_equal(told(&due, SHARED_LATE, 0, 0), 11);
	assert_int_equal(share_take(shares, &ref, 1, now), SHARE_ASK);
	assert_int_equal(told(&due, SHARED_DOWN, 0, 0), 11);
	assert_int_equal(share_take(shares, &ref, 1, now), SHARE_ASK);
	assert_int_equal(share_take(shares, &other, 1, now), SHARE_COVERED);
	pass(2 * SEC);
	for (u32 i = 0; i < 2; i++) {
		assert_int_equal(due_now(&due), 1);
		assert_int_equal(due.bucket.cost, due.ref.key == ref.key ? 11 : 1);
		assert_int_equal(told(&due, SHARED_DONE, 12, 12), 0);
		pass(SEC);
	}
	assert_int_equal(share_take(shares, &ref, 1, now), SHARE_COVERED);
}

/* Ten a second: of those that came one by one nothing is left, of those at once all. */
static void test_write_back_of_a_bucket(void **state)
{
	static const struct spec_def bucket_def = {
		.count = 10, .period_ns = SEC, .burst = 10, .scale = 1, .ceiling_percent = 100,
		.algo = HTTP_TOKEN_BUCKET,
	};
	struct share_ref ref = ref_of(1, CONSISTENCY_WRITE_BACK, 3600 * SEC);
	struct share_due due;

	ref.def = &bucket_def;
	asks(&ref, 0, 0, 0);
	for (u32 i = 0; i < 5; i++) {
		assert_int_equal(share_take(shares, &ref, 1, now), SHARE_COVERED);
		pass(100 * MS);
	}
	shares_end(shares);
	assert_int_equal(due_now(&due), 1);
	assert_int_equal(due.bucket.cost, 5);
	assert_in_range(store_us() - due.bucket.window, 499000, 501000);
	assert_int_equal(told(&due, SHARED_DOWN, 0, 0), 5);
	pass(5 * SEC);
	/* Nobody knows: as if they had come now. */
	assert_int_equal(due_now(&due), 1);
	assert_in_range(store_us() + 1000 - due.bucket.window, 0, 2000);
	assert_int_equal(told(&due, SHARED_DONE, 0, 0), 0);
	share_owe(shares, &ref, 8, now);
	pass(100 * MS);
	shares_end(shares);
	assert_int_equal(due_now(&due), 1);
	assert_int_equal(due.bucket.cost, 8);
	assert_in_range(store_us() - due.bucket.window, 99000, 102000);
}

static void test_late_window(void **state)
{
	struct share_ref ref = ref_of(1, CONSISTENCY_WRITE_BACK, SEC);
	struct share_due due;
	u64 left, first;

	asks(&ref, 1, 1, 0);
	left = 60 * SEC - (now.utc_ns + STORE_AHEAD_NS) % (60 * SEC);
	pass(left - 20 * MS);
	first = window();
	assert_int_equal(share_take(shares, &ref, 3, now), SHARE_COVERED);
	pass(40 * MS);
	assert_int_equal(share_take(shares, &ref, 2, now), SHARE_COVERED);
	/* What was let through in a window is told for that one, soon. */
	assert_int_equal(due_now(&due), 1);
	assert_int_equal(due.bucket.cost, 3);
	assert_int_equal(due.bucket.window, first);
	due.bucket.late = true;
	due.bucket.excess = 50;
	assert_int_equal(told(&due, SHARED_DONE, 0, 0), 2);
	for (u32 ms = 0; !due_now(&due); ms++) {
		assert_true(ms <= 1000);
		pass(MS);
	}
	assert_int_equal(due.bucket.cost, 2);
	assert_int_equal(due.bucket.window, first + 1);
	/* The excess of the one that is over, until an hour after its end. */
	assert_true(shares_overshoot(shares, 7) == 0.5);
	assert_true(shares_overshoot(shares, 8) == 0);
	pass(3590 * SEC);
	due_now(&due);
	assert_true(shares_overshoot(shares, 7) == 0.5);
	pass(400 * SEC);
	due_now(&due);
	assert_true(shares_overshoot(shares, 7) == 0);
}

/*
 * While the flush of a window that is over fails, that of newer charges waits behind it: nothing more
 * passes unflushed. Once it has arrived they follow at once, for their own time may have passed.
 */
static void test_late_window_fails(void **state)
{
	struct share_ref ref = ref_of(1, CONSISTENCY_WRITE_BACK, SEC);
	enum shared_outcome outcome[] = { SHARED_LATE, SHARED_DOWN };
	struct share_due due;
	u64 left;

	asks(&ref, 1, 1, 0);
	left = 60 * SEC - (now.utc_ns + STORE_AHEAD_NS) % (60 * SEC);
	pass(left - 20 * MS);
	assert_int_equal(share_take(shares, &ref, 3, now), SHARE_COVERED);
	pass(40 * MS);
	assert_int_equal(share_take(shares, &ref, 2, now), SHARE_COVERED);
	assert_int_equal(due_now(&due), 1);
	assert_int_equal(due.matter, SHARE_TELLS_LATE);
	for (u32 i = 0; i < 2; i++) {
		assert_int_equal(told(&due, outcome[i], 0, 0), 2);
		assert_int_equal(share_take(shares, &ref, 1, now), SHARE_ASK);
	}
	for (u32 ms = 0; !due_now(&due); ms++) {
		assert_true(ms <= 2000);
		pass(MS);
	}
	assert_int_equal(due.matter, SHARE_TELLS_LATE);
	due.bucket.late = true;
	assert_int_equal(told(&due, SHARED_DONE, 0, 0), 2);
	assert_int_equal(share_take(shares, &ref, 1, now), SHARE_ASK);
	pass(MS);
	assert_int_equal(due_now(&due), 1);
	assert_int_equal(due.matter, SHARE_TELLS_NEW);
	assert_int_equal(due.bucket.cost, 2);
	assert_int_equal(told(&due, SHARED_DONE, 2, 2), 0);
	assert_int_equal(share_take(shares, &ref, 1, now), SHARE_COVERED);
}

static void test_spread(void **state)
{
	static struct share_due due[512];
	u32 most = 0, sum = 0;

	asks(&(struct share_ref){ 9, 9, &window_def, CONSISTENCY_STRICT, 0, 7 }, 1, 1, 0);
	for (u64 key = 1; key <= 500; key++) {
		struct share_ref ref = ref_of(key * 8589935, CONSISTENCY_WRITE_BACK, SEC);

		assert_int_equal(share_take(shares, &ref, 1, now), SHARE_COVERED);
	}
	for (u32 i = 0; i <= 100; i++) {
		u32 count = shares_due(shares, due, 512, now);

		sum += count;
		most = count > most ? count : most;
		pass(10 * MS);
	}
	assert_int_equal(sum, 500);
	assert_in_range(most, 5, 25);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_strict, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_owed, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_permille, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_lease, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_lease_ends, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_end, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_lease_of_a_window, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_rare_key, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_write_back, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_write_back_of_a_bucket, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_late_window, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_late_window_fails, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_spread, set_up, tear_down),
	};

	return cmocka_run_group_tests_name("share", tests, NULL, NULL);
}
