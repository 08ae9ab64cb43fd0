/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Shares: what is asked, covered, owed, told and put back, one answer at a time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "cluster/share.h"

#define MS 1000000ULL
#define SEC 1000000000ULL
#define STORE_AHEAD_NS (5 * MS)

static struct shares *shares;
static struct sl_now now;

static const struct spec_def window_def = {
	.count = 100, .period_ns = 60 * SEC, .scale = 1, .ceiling_percent = 100,
	.algo = HTTP_FIXED_WINDOW,
};

static int set_up(void **state)
{
	now = (struct sl_now){ 1000 * SEC, 1700000000ULL * SEC };
	return shares_new(0, &shares);
}

static int tear_down(void **state)
{
	shares_free(shares);
	return 0;
}

static void pass(u64 ns)
{
	now.mono_ns += ns;
	now.utc_ns += ns;
}

static struct share_ref ref_of(u64 key, enum consistency consistency, u64 every_ns)
{
	return (struct share_ref){ key << 32 | key, key, &window_def, consistency, every_ns, 7 };
}

static u64 store_us(void)
{
	return (now.utc_ns + STORE_AHEAD_NS) / 1000;
}

static struct shared_ask answer(bool passed)
{
	return (struct shared_ask){ .passed = passed, .now_us = store_us() };
}

static struct shared_bucket bucket_of(const struct share_ref *ref, u64 cost)
{
	return (struct shared_bucket){ .key = ref->key, .tag = ref->tag, .def = *ref->def,
				       .cost = cost };
}

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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_strict, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_owed, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_permille, set_up, tear_down),
	};

	return cmocka_run_group_tests_name("share", tests, NULL, NULL);
}
