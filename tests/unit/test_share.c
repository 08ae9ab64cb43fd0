/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Shares: what is asked, covered, owed, told and put back, one answer at a time. */
#include <pthread.h>
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

/* ------------------------------------------------------------------ answers */

static u64 window(void)
{
	return (now.utc_ns + STORE_AHEAD_NS) / (60 * SEC);
}

/* Asks, and the store says: so much is used, so much of it this node's, so much of a lease. */
static struct shared_bucket asks(const struct share_ref *ref, u64 used, u64 own, u64 granted)
{
	struct shared_bucket bucket = bucket_of(ref, 1);
	struct shared_ask ask;

	share_ask(shares, ref, &bucket, now);
	pass(MS);
	ask = answer(true);
	bucket.granted = granted < bucket.want ? granted : bucket.want;
	bucket.state = (struct shared_state){ used, 0, window(), own };
	share_answered(shares, ref, &bucket, &ask, SHARED_DONE, now);
	return bucket;
}

static u64 told(struct share_due *due, enum shared_outcome outcome, u64 used, u64 own)
{
	struct shared_ask ask = answer(true);
	u64 unsent;

	due->bucket.state = (struct shared_state){ used, 0, window(), own };
	shares_told(shares, due, &ask, outcome, now, &unsent);
	return unsent;
}

static u32 due_now(struct share_due *due)
{
	return shares_due(shares, due, 1, now);
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

/* ------------------------------------------------------------------ loss */

static void test_lost_window(void **state)
{
	struct share_ref ref = ref_of(1, CONSISTENCY_STRICT, 0);
	struct shares_stats stats;
	struct share_due due;

	asks(&ref, 80, 40, 0);
	/* Gone, but for this one. */
	asks(&ref, 1, 1, 0);
	assert_int_equal(share_unsent(shares, ref.key), 40);
	assert_int_equal(due_now(&due), 0);
	pass(400 * MS);
	assert_int_equal(due_now(&due), 1);
	assert_int_equal(due.bucket.kind, SHARED_FORCE);
	assert_int_equal(due.bucket.cost, 40);
	assert_int_equal(due.bucket.window, window());
	assert_int_equal(told(&due, SHARED_DONE, 41, 41), 0);
	asks(&ref, 42, 42, 0);
	shares_stats(shares, &stats);
	assert_int_equal(stats.lost, 40);
	assert_int_equal(stats.put_back, 40);
	pass(SEC);
	assert_int_equal(due_now(&due), 0);
}

static void test_not_lost(void **state)
{
	struct share_ref ref = ref_of(1, CONSISTENCY_STRICT, 0);
	struct shared_bucket first = bucket_of(&ref, 1), second = first, back = bucket_of(&ref, 5);
	struct shared_ask ask[3];
	struct shares_stats stats;
	struct share_due due;

	asks(&ref, 10, 10, 0);
	/* An answer that was overtaken. */
	share_ask(shares, &ref, &first, now);
	share_ask(shares, &ref, &second, now);
	first.state = (struct shared_state){ 11, 0, window(), 11 };
	second.state = (struct shared_state){ 12, 0, window(), 12 };
	pass(MS);
	ask[0] = answer(true);
	pass(MS);
	ask[1] = answer(true);
	share_answered(shares, &ref, &second, &ask[1], SHARED_DONE, now);
	share_answered(shares, &ref, &first, &ask[0], SHARED_DONE, now);
	/* Given back. */
	back.kind = SHARED_BACK;
	share_ask(shares, &ref, &back, now);
	pass(MS);
	asks(&ref, 8, 8, 0);
	ask[2] = answer(true);
	back.state = (struct shared_state){ 8, 0, window(), 8 };
	share_answered(shares, &ref, &back, &ask[2], SHARED_DONE, now);
	/* Reset: it is said after the store showed it. */
	asks(&ref, 1, 1, 0);
	shares_stats(shares, &stats);
	assert_int_equal(stats.lost, 8);
	share_forget(shares, ref.key);
	/* The next window. */
	pass(60 * SEC);
	asks(&ref, 1, 1, 0);
	pass(SEC);
	assert_int_equal(due_now(&due), 0);
	shares_stats(shares, &stats);
	assert_int_equal(stats.lost, 8);
	assert_int_equal(stats.put_back, 0);
	assert_int_equal(share_unsent(shares, ref.key), 0);
}

/* ------------------------------------------------------------------ the table, and pace */

static void test_full(void **state)
{
	struct share_ref first = ref_of(1, CONSISTENCY_WRITE_BACK, SEC);
	struct shares_stats stats;
	u32 covered = 0;

	asks(&first, 1, 1, 0);
	assert_int_equal(share_take(shares, &first, 1, now), SHARE_COVERED);
	for (u64 key = 1; key <= 20000; key++) {
		struct share_ref ref = ref_of(key * 429496, CONSISTENCY_WRITE_BACK, SEC);

		covered += share_take(shares, &ref, 1, now) == SHARE_COVERED;
	}
	shares_stats(shares, &stats);
	assert_in_range(stats.room, 4096, 4102);
	assert_in_range(covered, 3500, 4102);
	assert_int_equal(stats.full, 20000 - covered);
	assert_int_equal(stats.entries, covered + 1);
	assert_int_equal(stats.unsent, covered + 1);
	assert_int_equal(share_unsent(shares, first.key), 1);
	/* What owes nothing gives its place. */
	for (u64 key = 1; key <= 20000; key++)
		share_forget(shares, ref_of(key * 429496, CONSISTENCY_WRITE_BACK, SEC).key);
	first = ref_of(20001 * 429496ULL, CONSISTENCY_WRITE_BACK, SEC);
	assert_int_equal(share_take(shares, &first, 1, now), SHARE_COVERED);
}

static void test_pace(void **state)
{
	static struct share_due due[1000];
	u32 sent[4] = { 0 }, count = 0;

	for (u64 key = 1; key <= 1000; key++) {
		struct share_ref ref = ref_of(key * 4294967, CONSISTENCY_STRICT, 0);

		share_owe(shares, &ref, 1, now);
	}
	/* The store is away: hardly anything goes out, whatever waits. */
	pass(100 * MS);
	for (u32 i = 0; i < 400; i++) {
		count = shares_due(shares, due, 1000, now);
		sent[0] += count;
		for (u32 k = 0; k < count; k++)
			told(&due[k], SHARED_DOWN, 0, 0);
		pass(5 * MS);
	}
	assert_in_range(sent[0], 1000, 1060);
	/* It is back: each of 100 ms at most twice the one before. */
	for (u32 i = 0; i < 400; i++) {
		count = shares_due(shares, due, 1000, now);
		sent[i < 60 ? 1 : i < 120 ? 2 : 3] += count;
		for (u32 k = 0; k < count; k++)
			assert_int_equal(told(&due[k], SHARED_DONE, 1, 1), 0);
		pass(5 * MS);
	}
	assert_in_range(sent[1], 1, 40);
	assert_in_range(sent[1] + sent[2], 50, 400);
	assert_int_equal(sent[1] + sent[2] + sent[3], 1000);
}

/* ------------------------------------------------------------------ threads */

static u64 covered;
static bool done;

static void *takes(void *arg)
{
	for (u64 i = 0; i < 100000; i++) {
		struct share_ref ref = ref_of(1 + i % 100, CONSISTENCY_WRITE_BACK, SEC);

		if (share_take(shares, &ref, 1, now) == SHARE_COVERED)
			__atomic_add_fetch(&covered, 1, __ATOMIC_RELAXED);
		share_unsent(shares, ref.key);
	}
	return NULL;
}

static void *tells(void *arg)
{
	static struct share_due due[16];
	struct sl_now at = now;
	u64 *sum = arg, unsent;
	bool last;

	do {
		u32 count;

		last = __atomic_load_n(&done, __ATOMIC_ACQUIRE);
		at.mono_ns += SEC;
		while ((count = shares_due(shares, due, 16, at)))
			for (u32 i = 0; i < count; i++) {
				struct shared_ask ask = answer(true);

				*sum += due[i].bucket.cost;
				due[i].bucket.state.window = window();
				shares_told(shares, &due[i], &ask, SHARED_DONE, now, &unsent);
			}
	} while (!last);
	return NULL;
}

/* Whatever is let through is told once. */
static void test_threads(void **state)
{
	pthread_t taker[3], teller;
	u64 sum = 0;

	asks(&(struct share_ref){ 9, 9, &window_def, CONSISTENCY_STRICT, 0, 7 }, 1, 1, 0);
	covered = 0;
	done = false;
	pthread_create(&teller, NULL, tells, &sum);
	for (u32 i = 0; i < 3; i++)
		pthread_create(&taker[i], NULL, takes, NULL);
	for (u32 i = 0; i < 3; i++)
		pthread_join(taker[i], NULL);
	__atomic_store_n(&done, true, __ATOMIC_RELEASE);
	pthread_join(teller, NULL);
	assert_in_range(covered, 1, 300000);
	assert_int_equal(sum, covered);
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
		cmocka_unit_test_setup_teardown(test_late_window, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_spread, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_lost_window, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_not_lost, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_full, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_pace, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_threads, set_up, tear_down),
	};

	return cmocka_run_group_tests_name("share", tests, NULL, NULL);
}
