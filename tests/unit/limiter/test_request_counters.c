// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Window counters in the chunks of a log, against a list of (bucket, count). */
#include "lib/rng.h"
#include "lib/test.h"
#include "lib/units.h"
#include "lib/spec_def.h"
#include "limiter/request_log.h"

#define SEC SL_NS_PER_SEC
#define CHUNKS 400
#define BUCKETS 60

static struct request_chunk chunk[CHUNKS];
static u32 used;
static struct request_logs logs;
static struct spec spec;

static void open_logs(u64 count, u64 period_s, u8 buckets)
{
	struct spec_def def = SPEC_DEF(WINDOW_COUNTERS, count, period_s * SEC, .buckets = buckets);
	struct sl_err err;

	memset(chunk, 0, sizeof(chunk));
	used = 1;
	logs = (struct request_logs){ .chunk = chunk, .chunks = CHUNKS, .used = &used };
	assert_int_equal(spec_make_def(&def, &spec, &err), 0);
}

static struct sl_now at(u64 utc_ns)
{
	return (struct sl_now){ .mono_ns = utc_ns, .utc_ns = utc_ns };
}

static u64 add(u64 log, u64 utc_ns, u64 n)
{
	u32 one = 0;

	if (request_log_needs(&logs, &spec, log, at(utc_ns), n)) {
		one = request_chunk_get(&logs);
		assert_int_not_equal(one, 0);
	}
	return request_log_add(&logs, &spec, log, at(utc_ns), n, one);
}

/* An hour of a count each minute takes 16 bytes for five of them. */
TEST(test_bytes)
{
	u64 log = 0;

	open_logs(500, 3600, 60);
	for (u32 minute = 0; minute < 600; minute++) {
		log = request_log_expire(&logs, &spec, log, at((6000 + minute) * 60 * SEC));
		log = add(log, (6000 + minute) * 60 * SEC, 8);
		assert_in_range(request_log_count(log), 8, 480);
	}
	assert_int_equal(request_log_count(log), 480);
	assert_in_range(request_logs_used(&logs), 12, 13);
	assert_int_equal(request_log_wait(&logs, &spec, log, at(6599 * 60 * SEC + 5), 1),
			 60 * SEC - 5);
	assert_int_equal(request_log_wait(&logs, &spec, log, at(6599 * 60 * SEC + 5), 9),
			 120 * SEC - 5);
	assert_int_equal(request_log_reset(&logs, &spec, log, at(6599 * 60 * SEC + 5)),
			 3600 * SEC - 5);
	request_log_free(&logs, log);
	assert_int_equal(request_logs_used(&logs), 0);
}

/* ------------------------------------------------------------------ the model */

struct entry {
	s64 number;
	u64 count;
};

static struct entry model[4096];
static u32 entries;

static void model_prune(s64 now)
{
	u32 kept = 0;

	if (entries && model[entries - 1].number > now + spec.buckets)
		entries = 0;
	for (u32 i = 0; i < entries; i++)
		if (model[i].count && model[i].number > now - spec.buckets)
			model[kept++] = model[i];
	entries = kept;
}

static u64 model_sum(void)
{
	u64 sum = 0;

	for (u32 i = 0; i < entries; i++)
		sum += model[i].count;
	return sum;
}

static void model_remove(u64 n)
{
	for (u32 i = entries; i-- && n;) {
		u64 some = model[i].count < n ? model[i].count : n;

		model[i].count -= some;
		n -= some;
	}
	while (entries && !model[entries - 1].count)
		entries--;
}

static void random_walk(u64 count, u64 period_s, u8 buckets)
{
	u64 utc_ns = 1790000000 * SEC, log = 0;

	open_logs(count, period_s, buckets);
	entries = 0;
	for (u32 i = 0; i < 100000; i++) {
		u64 n = 1 + rng_magnitude(rng_below(8) ? 3 : 16);
		s64 now;

		if (rng_below(2))
			utc_ns += rng_below(spec.bucket_ns);
		if (!rng_below(100))
			utc_ns += rng_below(2 * period_s * SEC);
		if (!rng_below(200))
			utc_ns -= rng_below(period_s * SEC * (rng_below(8) ? 1 : 3));
		now = utc_ns / spec.bucket_ns;
		log = request_log_expire(&logs, &spec, log, at(utc_ns));
		model_prune(now);
		assert_int_equal(request_log_count(log), model_sum());
		assert_int_equal(request_log_expired(&logs, &spec, log, at(utc_ns)), !entries);
		if (!rng_below(4)) {
			log = request_log_remove(&logs, &spec, log, n);
			model_remove(n);
			continue;
		}
		if (entries && model[entries - 1].number > now)
			now = model[entries - 1].number;
		if (model_sum() + n > 2 * count || entries == 4096)
			continue;
		log = add(log, utc_ns, n);
		model[entries++] = (struct entry){ now, n };
	}
	request_log_free(&logs, log);
	assert_int_equal(request_logs_used(&logs), 0);
}

TEST(test_random)
{
	rng_start("request_counters");
	random_walk(500, 3600, 60);
	random_walk(10, 1, 5);
	random_walk(20000, 60, 240);
	random_walk(10000000, 60, 60);
}

/* Every state between two writes of an addition is mended to one that counts it, or not. */
TEST(test_mend)
{
	u64 mark[CHUNKS / 64 + 1] = { 0 }, log = 0, mended;

	open_logs(500, 3600, 60);
	for (u32 minute = 0; minute < 5; minute++)
		log = add(log, (6000 + minute) * 60 * SEC, 8);
	/* The count is written, the bucket state is not. */
	add(log, 6004 * 60 * SEC, 3);
	mended = request_log_check(&logs, &spec, log, mark);
	assert_int_equal(request_log_count(mended), 43);
	/* A chunk is added, the bucket state does not have it. */
	memset(mark, 0, sizeof(mark));
	add(mended, 6010 * 60 * SEC, 2);
	mended = request_log_check(&logs, &spec, mended, mark);
	assert_int_equal(request_log_count(mended), 45);
	mended = add(mended, 6010 * 60 * SEC, 1);
	assert_int_equal(request_logs_used(&logs), 2);
	mended = request_log_expire(&logs, &spec, mended, at(6065 * 60 * SEC));
	assert_int_equal(request_log_count(mended), 3);
	assert_int_equal(request_logs_used(&logs), 1);
}

TEST_MAIN
