/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Shares: a full table, the pace after an outage, threads. */
#include <pthread.h>

#include "share_rig.h"

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
	static struct share_due due[1001];
	struct share_ref other = ref_of(1, CONSISTENCY_STRICT, 0);
	u32 sent[4] = { 0 }, count = 0;

	for (u64 key = 1; key <= 1000; key++) {
		struct share_ref ref = ref_of(key * 4294967, CONSISTENCY_STRICT, 0);

		share_owe(shares, &ref, 1, now);
	}
	/* The store is away: each is tried once, and then hardly any, whatever waits. */
	pass(100 * MS);
	for (u32 i = 0; i < 400; i++) {
		count = shares_due(shares, due, 1000, now);
		sent[0] += count;
		for (u32 k = 0; k < count; k++)
			told(&due[k], SHARED_DOWN, 0, 0);
		pass(5 * MS);
	}
	assert_in_range(sent[0], 1050, 1260);
	/* Another server's, that is not away, waits for nobody. */
	share_owe(shares, &other, 1, now);
	pass(80 * MS);
	count = shares_due(shares, due, 1001, now);
	assert_in_range(count, 1, 12);
	for (u32 k = 0; k < count; k++) {
		sent[3] += due[k].ref.key == other.key;
		told(&due[k], due[k].ref.key == other.key ? SHARED_DONE : SHARED_DOWN, 1, 1);
	}
	assert_int_equal(sent[3], 1);
	sent[3] = 0;
	/* It is back: each of 100 ms at most twice the one before. */
	for (u32 i = 0; i < 400; i++) {
		count = shares_due(shares, due, 1000, now);
		sent[i < 40 ? 1 : i < 80 ? 2 : 3] += count;
		for (u32 k = 0; k < count; k++)
			assert_int_equal(told(&due[k], SHARED_DONE, 1, 1), 0);
		pass(5 * MS);
	}
	assert_in_range(sent[1], 10, 150);
	assert_in_range(sent[1] + sent[2], 100, 600);
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
		cmocka_unit_test_setup_teardown(test_full, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_pace, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_threads, set_up, tear_down),
	};

	return cmocka_run_group_tests_name("share_table", tests, NULL, NULL);
}
