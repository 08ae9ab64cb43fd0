/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Quota: a full table, the pace after an outage, threads. */
#include <pthread.h>

#include "quota_rig.h"

/* ------------------------------------------------------------------ the table, and pace */

TEST_WITH(test_full, set_up, tear_down)
{
	struct quota_ref first = ref_of(1, CONSISTENCY_WRITE_BACK, SEC);
	struct quotas_stats stats;
	u32 covered = 0;

	asks(&first, 1, 1, 0);
	assert_int_equal(quota_acquire(quotas, &first, 1, now), QUOTA_COVERED);
	for (u64 key = 1; key <= 20000; key++) {
		struct quota_ref ref = ref_of(key * 429496, CONSISTENCY_WRITE_BACK, SEC);

		asks(&ref, 1, 1, 0);
		covered += quota_acquire(quotas, &ref, 1, now) == QUOTA_COVERED;
	}
	quotas_stats(quotas, &stats);
	assert_in_range(stats.room, 4096, 4102);
	assert_in_range(covered, 3500, 4102);
	/* Both calls found no free entry. */
	assert_int_equal(stats.full, 2 * (20000 - covered));
	assert_int_equal(stats.entries, covered + 1);
	assert_int_equal(stats.unflushed, covered + 1);
	assert_int_equal(quota_unflushed(quotas, first.key), 1);
	/* An entry without unflushed units is replaced. */
	for (u64 key = 1; key <= 20000; key++)
		quota_forget(quotas, ref_of(key * 429496, CONSISTENCY_WRITE_BACK, SEC).key);
	first = ref_of(20001 * 429496ULL, CONSISTENCY_WRITE_BACK, SEC);
	assert_int_equal(quota_acquire(quotas, &first, 1, now), QUOTA_NOT_COVERED);
	asks(&first, 1, 1, 0);
	assert_int_equal(quota_acquire(quotas, &first, 1, now), QUOTA_COVERED);
}

TEST_WITH(test_pace, set_up, tear_down)
{
	static struct quota_due due[1001];
	struct quota_ref other = ref_of(1, CONSISTENCY_STRICT, 0);
	u32 sent[4] = { 0 }, count = 0;

	for (u64 key = 1; key <= 1000; key++) {
		struct quota_ref ref = ref_of(key * 4294967, CONSISTENCY_STRICT, 0);

		quota_add_unflushed(quotas, &ref, 1, now);
	}
	/* The store is unavailable: each is tried once, and then hardly any, however many wait. */
	pass(100 * MS);
	for (u32 i = 0; i < 400; i++) {
		count = quotas_due(quotas, due, 1000, now);
		sent[0] += count;
		for (u32 k = 0; k < count; k++)
			flushed(&due[k], CLUSTER_STORE_DOWN, 0, 0);
		pass(5 * MS);
	}
	assert_in_range(sent[0], 1050, 1260);
	/* Entries of another server, which is available, do not wait. */
	quota_add_unflushed(quotas, &other, 1, now);
	pass(80 * MS);
	count = quotas_due(quotas, due, 1001, now);
	assert_in_range(count, 1, 12);
	for (u32 k = 0; k < count; k++) {
		sent[3] += due[k].ref.key == other.key;
		flushed(&due[k],
			due[k].ref.key == other.key ? CLUSTER_STORE_DONE : CLUSTER_STORE_DOWN, 1,
			1);
	}
	assert_int_equal(sent[3], 1);
	sent[3] = 0;
	/* It is back: each of 100 ms at most twice the one before. */
	for (u32 i = 0; i < 400; i++) {
		count = quotas_due(quotas, due, 1000, now);
		sent[i < 40 ? 1 : i < 80 ? 2 : 3] += count;
		for (u32 k = 0; k < count; k++)
			assert_int_equal(flushed(&due[k], CLUSTER_STORE_DONE, 1, 1), 0);
		pass(5 * MS);
	}
	assert_in_range(sent[1], 10, 150);
	assert_in_range(sent[1] + sent[2], 100, 600);
	assert_int_equal(sent[1] + sent[2] + sent[3], 1000);
}

/* ------------------------------------------------------------------ threads */

static u64 covered;
static bool done;

/* Even ones: new keys, which replace each other in one set. Odd ones: known, in sets of their
 * own. */
static struct quota_ref any_ref(u64 i)
{
	return ref_of(i % 2 ? (1 + i % 100) * 42949672 : 1 + i % 100, CONSISTENCY_WRITE_BACK, SEC);
}

static void *spends(void *arg)
{
	for (u64 i = 0; i < 100000; i++) {
		struct quota_ref ref = any_ref(i);

		if (quota_acquire(quotas, &ref, 1, now) == QUOTA_COVERED)
			__atomic_add_fetch(&covered, 1, __ATOMIC_RELAXED);
		quota_unflushed(quotas, ref.key);
	}
	return NULL;
}

static void *flushes(void *arg)
{
	static struct quota_due due[16];
	struct sl_now at = now;
	u64 *sum = arg, unflushed;
	bool last;

	do {
		u32 count;

		last = __atomic_load_n(&done, __ATOMIC_ACQUIRE);
		at.mono_ns += SEC;
		while ((count = quotas_due(quotas, due, 16, at)))
			for (u32 i = 0; i < count; i++) {
				struct cluster_store_request request = response(true);

				*sum += due[i].bucket.cost;
				due[i].bucket.state.window = window();
				quotas_flushed(quotas, &due[i], &request, CLUSTER_STORE_DONE, now,
					       &unflushed);
			}
	} while (!last);
	return NULL;
}

/* Every admitted unit is flushed once. */
TEST_WITH(test_threads, set_up, tear_down)
{
	pthread_t spender[3], flusher;
	u64 sum = 0;

	for (u64 i = 1; i < 100; i += 2) {
		struct quota_ref ref = any_ref(i);

		asks(&ref, 1, 1, 0);
	}
	covered = 0;
	done = false;
	pthread_create(&flusher, NULL, flushes, &sum);
	for (u32 i = 0; i < 3; i++)
		pthread_create(&spender[i], NULL, spends, NULL);
	for (u32 i = 0; i < 3; i++)
		pthread_join(spender[i], NULL);
	__atomic_store_n(&done, true, __ATOMIC_RELEASE);
	pthread_join(flusher, NULL);
	assert_in_range(covered, 1, 300000);
	assert_int_equal(sum, covered);
}

TEST_MAIN
