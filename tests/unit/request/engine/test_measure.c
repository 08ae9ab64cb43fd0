// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What is measured from reports: shares and quantiles against exact ones, windows, series that
 * stay. */
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <urcu.h>

#include "lib/test.h"
#include "lib/rng.h"
#include "request/engine/measure.h"

#define SEC SL_NS_PER_SEC
#define MS (SEC / 1000)
#define DOMAIN(text) ((struct bytes){ text, sizeof(text) - 1 })
#define WINDOW (2 * SEC)

static const struct measure_def defs[] = { { NULL, WINDOW },
					   { "api", WINDOW },
					   { "api", 10 * SEC } };

static int compare(const void *a, const void *b)
{
	u64 x = *(const u64 *)a, y = *(const u64 *)b;

	return (x > y) - (x < y);
}

TEST(test_quantiles)
{
	static const u32 permille[] = { 1, 500, 950, 999, 1000 };
	struct measures *m = NULL;
	u64 sample[2000], now = 1000 * SEC;

	rng_start("quantiles");
	for (u32 round = 0; round < 100; round++, now += 100 * SEC) {
		u32 count = 1 + rng_below(2000);
		double value;

		assert_int_equal(measures_publish(&m, defs, 1), 0);
		for (u32 i = 0; i < count; i++) {
			/* Above 1 ms: what is not counts as somewhere below it. */
			sample[i] = MS + 1 + rng_below((u64)1 << (10 + rng_below(26)));
			measure_note(&m, DOMAIN("x"), 200, sample[i],
				     now + i * (WINDOW / 2) / count);
		}
		qsort(sample, count, sizeof(*sample), compare);
		for (size_t i = 0; i < COUNT(permille); i++) {
			u32 rank = (u32)ceil(count * permille[i] / 1000.0);
			double exact = sample[rank ? rank - 1 : 0];

			assert_true(measure_quantile(m, 0, permille[i], now + WINDOW / 2, &value));
			if (value < exact / 1.0906 || value > exact * 1.0906)
				fail_msg("%u of 1000 of %u: %g, exactly %g", permille[i], count,
					 value, exact);
		}
	}
	measures_free(m);
}

TEST(test_errors_and_windows)
{
	struct measures *m = NULL;
	u64 now = 77 * SEC;
	double value;

	assert_false(measure_errors(m, 0, now, &value));
	measure_note(&m, DOMAIN("api"), 500, 0, now);
	assert_int_equal(measures_publish(&m, defs, 3), 0);
	assert_false(measure_errors(m, 0, now, &value));
	assert_false(measure_quantile(m, 0, 500, now, &value));
	for (int i = 0; i < 10; i++) {
		measure_note(&m, DOMAIN("api"), i < 3 ? 503 : 499, MEASURE_NO_LATENCY, now);
		measure_note(&m, DOMAIN("apis"), 599, 5 * MS, now);
		measure_note(&m, DOMAIN("other"), 0, 5 * MS, now);
	}
	/* Statuses and latencies that are absent count as none. */
	assert_true(measure_errors(m, 0, now, &value) && value == 0.65);
	assert_true(measure_errors(m, 1, now, &value) && value == 0.3);
	assert_false(measure_quantile(m, 1, 500, now, &value));
	assert_true(measure_quantile(m, 0, 500, now, &value) && value < 5.5 * MS && value > 4 * MS);
	/* For a window, and an eighth at most; then not known. */
	assert_true(measure_errors(m, 1, now + WINDOW, &value));
	assert_false(measure_errors(m, 1, now + WINDOW + WINDOW / 8, &value));
	assert_true(measure_errors(m, 2, now + 10 * SEC, &value) && value == 0.3);
	/* A series with the same definition keeps its samples, in another place; others are
	 * gone. */
	assert_int_equal(measures_publish(&m, defs + 2, 1), 0);
	assert_true(measure_errors(m, 0, now + 10 * SEC, &value) && value == 0.3);
	assert_false(measure_errors(m, 1, now, &value));
	assert_int_equal(measures_publish(&m, defs, 3), 0);
	assert_false(measure_errors(m, 0, now, &value));
	assert_true(measure_errors(m, 2, now + 10 * SEC, &value) && value == 0.3);
	/* Less than a millisecond, and more than a minute. */
	measure_note(&m, DOMAIN("x"), 200, 0, now + 50 * SEC);
	assert_true(measure_quantile(m, 0, 1000, now + 50 * SEC, &value) && value <= MS);
	measure_note(&m, DOMAIN("x"), 200, 86400 * SEC, now + 50 * SEC);
	assert_true(measure_quantile(m, 0, 1000, now + 50 * SEC, &value) && value > 65 * SEC);
	measures_free(m);
}

#define THREADS 4
#define NOTES 20000
static struct measures *shared;

static void *note_many(void *arg)
{
	rcu_register_thread();
	for (u32 i = 0; i < NOTES; i++)
		measure_note(&shared, DOMAIN("api"), i % 4 ? 200 : 500, 3 * MS, 50 * SEC);
	rcu_unregister_thread();
	return NULL;
}

/* While series come and go, a series that stays counts every sample. */
TEST(test_threads)
{
	pthread_t thread[THREADS];
	double value;

	assert_int_equal(measures_publish(&shared, defs + 2, 1), 0);
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, note_many, NULL), 0);
	for (int i = 0; i < 200; i++) {
		assert_int_equal(measures_publish(&shared, defs + i % 3, 3 - i % 3), 0);
		assert_true(!measure_errors(shared, 2 - i % 3, 50 * SEC, &value) || value < 1.01);
	}
	for (int i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	assert_true(measure_errors(shared, 2 - 199 % 3, 50 * SEC, &value) && value == 0.25);
	measures_free(shared);
}

TEST_MAIN
