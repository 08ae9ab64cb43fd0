/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The used share of sources under long limits over a reboot: the data plane is new, the state
 * directory is not. A file that is torn, cut or foreign changes nothing.
 */
#include "lib/test.h"
#include "lib/daemon_rig.h"
#include "control/running/persist.c"
#include "packet/dataplane/dp_state.c"

#define SEC SL_NS_PER_SEC

/* Windows longer than any test. */
#define WINDOW                                                                                     \
	"limits: [{name: w, rate: 10 packets/365d, algorithm: fixed-window, accounting: exact}]\n"
#define SLIDING                                                                                    \
	"limits: [{name: w, rate: 10 packets/365d, algorithm: sliding-window, accounting: exact}]\n"
#define BUCKET "limits: [{name: w, rate: 10 packets/30d, burst: 10, accounting: exact}]\n"
#define LARGER "limits: [{name: w, rate: 20 packets/30d, burst: 20, accounting: exact}]\n"
/* Of which fingerprints are kept: below 34 hours. */
#define HOURS "limits: [{name: w, rate: 10 packets/20h, burst: 10, accounting: exact}]\n"
#define SHORT "limits: [{name: w, rate: 10 packets/10s, burst: 10, accounting: exact}]\n"
#define OWN                                                                                        \
	"limits: [{name: w, rate: 10 packets/30d, burst: 10, accounting: exact, "                  \
	"overrides: [{src: 192.0.2.1, rate: 40 packets/30d, burst: 40}]}]\n"

static void write_now(struct rig *rig)
{
	size_t size = 0;
	void *data = find_saved(&rig->d->running, &size);

	assert_non_null(data);
	assert_int_equal(do_job(rig->d->running.persist, data, size, NULL), 0);
	free(data);
}

static u32 table_buckets = 4096;

static void reboot(struct rig *rig)
{
	rig_kill(rig);
	rig->dp->ops->close(rig->dp);
	assert_int_equal(dp_sim_open(table_buckets, RIG_CPUS, 256, &rig->dp), 0);
	/* Every table has a seed of its own. */
	rig->dp->ops->state(rig->dp)->seed = (struct sl_seed){ 77, 88 };
	rig->fresh = true;
	rig_start(rig);
}

/* 7 of 10 used; after a reboot under `then` so many are left. */
static void check(const char *text, const char *then, int left)
{
	u64 now = clock_mono_ns();
	struct rig rig;

	rig_open(&rig, text);
	assert_int_equal(rig_passed(&rig, 1, 7, now), 7);
	write_now(&rig);
	rig_write(&rig, then);
	reboot(&rig);
	now = clock_mono_ns();
	assert_int_equal(rig_passed(&rig, 1, 60, now), left);
	assert_int_equal(rig_passed(&rig, 2, 7, now), 7);
	/* Rules that come later do not restore it once more. */
	assert_null(rig.d->running.persist->recalled);
	rig_close(&rig);
}

TEST(test_a_reboot)
{
	check(WINDOW, WINDOW, 3);
	check(SLIDING, SLIDING, 3);
	check(BUCKET, BUCKET, 3);
	check(OWN, OWN, 33);
	/* 7 of 10 are 14 of 20. */
	check(BUCKET, LARGER, 6);
	/* Another kind is another limit. */
	check(WINDOW, BUCKET, 10);
}

/* Buckets that recover within minutes are not written. */
RIG_TEST(test_short)
{
	size_t size;

	rig_open(&rig, SHORT);
	assert_int_equal(rig_passed(&rig, 1, 7, clock_mono_ns()), 7);
	assert_null(find_saved(&rig.d->running, &size));
}

/* Only the daemon was restarted: the pins are newer. */
RIG_TEST(test_a_restart)
{
	u64 now = clock_mono_ns();

	rig_open(&rig, WINDOW);
	rig_passed(&rig, 1, 3, now);
	write_now(&rig);
	rig_passed(&rig, 1, 5, now);
	rig_restart(&rig);
	assert_int_equal(rig_passed(&rig, 1, 10, now), 2);
}

/* By the thread, within its time; and once more at the end. */
RIG_TEST(test_the_thread)
{
	u64 now = clock_mono_ns();
	struct sl_err err;
	bool busy = true;

	rig_open(&rig, WINDOW);
	rig_passed(&rig, 1, 4, now);
	assert_int_equal(persist_run(&rig.d->running, &err), 0);
	persist_tick(&rig.d->running);
	assert_in_range(rig.d->running.persist->next_ns, now + 9 * SEC, ~0ULL);
	for (int i = 0; i < 1000 && busy; i++) {
		usleep(10000);
		pthread_mutex_lock(&rig.d->running.persist->lock);
		busy = rig.d->running.persist->job;
		pthread_mutex_unlock(&rig.d->running.persist->lock);
	}
	assert_false(busy);
	assert_int_equal(rig.d->running.persist->failed, 0);
	rig_passed(&rig, 1, 3, now);
	reboot(&rig); /* closes it in order */
	assert_int_equal(rig_passed(&rig, 1, 10, clock_mono_ns()), 3);
}

static const struct dp_ops *sim;

static struct sl_set *table_after_a_stall(struct dp *dp, u32 *ret_sets)
{
	usleep(200000);
	return sim->table(dp, ret_sets);
}

/* A machine that stands still takes none of the share of a CPU: the next time stays ten seconds
 * away. */
RIG_TEST(test_a_stall)
{
	struct dp_ops stalls;
	u64 now;

	rig_open(&rig, WINDOW);
	rig_passed(&rig, 1, 4, clock_mono_ns());
	rig.d->running.persist->running = true;
	sim = rig.dp->ops;
	stalls = *sim;
	stalls.table = table_after_a_stall;
	rig.dp->ops = &stalls;
	now = clock_mono_ns();
	persist_tick(&rig.d->running);
	rig.dp->ops = sim;
	assert_true(clock_mono_ns() >= now + SEC / 5);
	assert_in_range(rig.d->running.persist->next_ns, now + 9 * SEC, clock_mono_ns() + 11 * SEC);
	free(rig.d->running.persist->data);
	rig.d->running.persist->running = false;
}

#define OFFENDERS 12000

static u64 count_records(struct rig *rig)
{
	u64 count = 0;
	u32 sets;
	const struct sl_set *table = rig->dp->ops->table(rig->dp, &sets);

	for (u32 i = 0; i < sets * SL_WAYS; i++)
		count += sl_key_is_record(table[i / SL_WAYS].way[i % SL_WAYS].key);
	return count;
}

/* How many packets pass of one each of the offenders. */
static u64 offenders_passed(struct rig *rig, u64 now)
{
	u64 passed = 0;

	for (u32 i = 0; i < OFFENDERS; i++)
		passed += rig_passed(rig, 1000 + i, 1, now);
	return passed;
}

/*
 * Twice as many offenders as the table has ways: nearly half of them are fingerprints alone. After
 * a reboot all are refused still, also where another limit comes before theirs: its slot is what
 * the fingerprints were made of. In a table of another size fingerprints mean nothing.
 */
static void evicted_offenders(const char *text, const char *then)
{
	u64 now = clock_mono_ns(), records, freed;
	struct rig rig;

	rig_open(&rig, text);
	for (u32 i = 0; i < OFFENDERS; i++)
		rig_passed(&rig, 1000 + i, 11, now);
	records = count_records(&rig);
	assert_true(records > 500);
	assert_int_equal(offenders_passed(&rig, now), 0);
	records = count_records(&rig);
	write_now(&rig);
	rig_write(&rig, then);
	reboot(&rig);
	assert_int_equal(count_records(&rig), records);
	now = clock_mono_ns();
	assert_int_equal(offenders_passed(&rig, now), 0);
	/* A new source has the whole limit. */
	assert_int_equal(rig_passed(&rig, 900000, 12, now), 10);
	rig_write(&rig, then);
	write_now(&rig);
	table_buckets = 8192;
	reboot(&rig);
	table_buckets = 4096;
	assert_int_equal(count_records(&rig), 0);
	freed = offenders_passed(&rig, clock_mono_ns());
	assert_in_range(freed, OFFENDERS / 4, OFFENDERS * 3 / 4);
	rig_close(&rig);
}

TEST(test_evicted_offenders)
{
	evicted_offenders(HOURS, HOURS);
	evicted_offenders(
		HOURS, "limits: [{name: other, rate: 20 packets/20h, burst: 20, "
		       "match: {proto: udp, dport: 7}}, {name: w, rate: 10 packets/20h, burst: 10, "
		       "accounting: exact}]\n");
}

/* By its time: written in UTC, it ends when it would have, whatever the new uptime is. */
TEST(test_a_record_ends)
{
	const u64 hour = 3600 * SEC;
	struct sl_now then = { 5000 * hour, 400000 * hour }, now = { 7 * SEC, then.utc_ns + hour };
	struct sl_way way = { 0 };
	struct dp_saved_state saved = { 0 };
	struct saved_bucket *bucket_state;

	way = sl_record_add(way, 1234, sl_record_units(2 * hour, then.mono_ns), then.mono_ns);
	saved.data = calloc(1, sizeof(struct head) + sizeof(struct saved_bucket));
	save_record(way, 3, then, &saved);
	bucket_state = buckets_of(saved.data);
	assert_int_equal(saved.words, 1);
	assert_int_equal(bucket_state->set, 3);
	way = record_now(bucket_state, then.utc_ns, now);
	assert_true(sl_record_has(way, 1234));
	/* An hour is left; rounded up by two units of 17 s at most. */
	assert_in_range(sl_record_left_ns(sl_record_left(way.key, way.bucket_state, now.mono_ns),
					  now.mono_ns),
			hour, hour + 3 * SL_BIT(SL_RECORD_SHIFT));
	now.utc_ns += hour + 60 * SEC;
	assert_int_equal(record_now(bucket_state, then.utc_ns, now).bucket_state, 0);
	/* Its time is modulo 39 hours: a machine that was off for longer reads nothing into it. */
	for (u64 hours = 2; hours < 100; hours++) {
		now.utc_ns = then.utc_ns + hours * hour + 60 * SEC;
		assert_int_equal(record_now(bucket_state, then.utc_ns, now).bucket_state, 0);
	}
	/* One that has ended is not written. */
	save_record(way, 3, (struct sl_now){ 5 * hour, then.utc_ns + 5 * hour }, &saved);
	assert_int_equal(saved.words, 1);
	free(saved.data);
}

static void spoil(const char *path, long at, int change, long cut)
{
	FILE *file = fopen(path, "r+");
	int byte;

	assert_non_null(file);
	if (cut) {
		assert_int_equal(fseek(file, 0, SEEK_END), 0);
		assert_int_equal(ftruncate(fileno(file), ftell(file) - cut), 0);
	} else {
		assert_int_equal(fseek(file, at, SEEK_SET), 0);
		byte = fgetc(file);
		assert_int_equal(fseek(file, at, SEEK_SET), 0);
		fputc(byte ^ change, file);
	}
	assert_int_equal(fclose(file), 0);
}

TEST(test_bad_files)
{
	static const struct {
		long at;
		int change;
		long cut;
	} bad[] = {
		{ 0, 1, 0 },	 /* the magic */
		{ 8, 1, 0 },	 /* the checksum */
		{ 16, 4, 0 },	 /* the version */
		{ 24, 1, 0 },	 /* the time */
		{ 56, 0x7f, 0 }, /* the number of rows */
		{ 68, 0x7f, 0 }, /* of words, in its upper half */
		{ 78, 1, 0 },	 /* a name */
		{ 0, 0, 1 },	 { 0, 0, 24 }, { 0, 0, 100 },
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		char path[96], aside[104];
		struct rig rig;

		rig_open(&rig, WINDOW);
		rig_passed(&rig, 1, 7, clock_mono_ns());
		write_now(&rig);
		snprintf(path, sizeof(path), "%s/buckets", rig.dir);
		snprintf(aside, sizeof(aside), "%s.bad", path);
		spoil(path, bad[i].at, bad[i].change, bad[i].cut);
		log_open("test", LOG_LEVEL_ERROR - 1);
		reboot(&rig);
		log_open("test", LOG_LEVEL_ERROR);
		assert_int_equal(rig.dp->ops->state(rig.dp)->seed.k0, 77);
		assert_int_equal(rig_passed(&rig, 1, 12, clock_mono_ns()), 10);
		assert_int_equal(access(aside, F_OK), 0);
		assert_int_not_equal(access(path, F_OK), 0);
		rig_close(&rig);
	}
}

TEST_MAIN
