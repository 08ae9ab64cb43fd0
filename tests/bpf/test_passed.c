// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * test_passed.c - what is remembered of packets that passed (bpf/passed.h): for which packets and
 * how long; and that on two CPUs each of several limits is charged to the packet, no more and no
 * less.
 *
 * That it changes no verdict and no counter is the subject of test_refused.c.
 */
#include "lib/test.h"
#include "bpf/race.h"

#define MS 1000000ULL
#define HOUR (3600 * SL_NS_PER_SEC)
#define SOURCE 0x0a000001
/* packets after which a source is remembered: the first is not a miss in a row   \ */
#define MISSES 5

/* ------------------------------------------------------------ that it is used, and for how long */

static u64 count_of(struct rig *rig, enum sl_reason reason)
{
	struct sl_iface_stats stats;

	rig->dp->ops->iface_stats(rig->dp, 0, &stats);
	return stats.packets[reason][SL_ACT_PASS];
}

/* Whether the next packet of a source is charged without a look at the rules, which have no limit
 * now. */
static bool is_remembered(struct rig *rig, u32 src)
{
	const struct rig_packet packet = { .src = src, .proto = 17, .dport = 9, .length = 74 };
	struct sl_rules *rules = (struct sl_rules *)rig->dp->ops->rules(rig->dp);
	u64 within = count_of(rig, SL_R_WITHIN), limits = rules->limits_count;
	struct rig_frame frame;

	rig_frame_make(&frame, &packet);
	rules->limits_count = 0;
	assert_true(rig_passes(rig, 0, &frame));
	rules->limits_count = limits;
	return count_of(rig, SL_R_WITHIN) > within;
}

static void send(struct rig *rig, u32 src, u32 packets)
{
	const struct rig_packet packet = { .src = src, .proto = 17, .dport = 9, .length = 74 };
	struct rig_frame frame;

	rig_frame_make(&frame, &packet);
	while (packets--)
		assert_true(rig_passes(rig, 0, &frame));
}

static void check_lifetime(struct rig *rig, u32 limits)
{
	struct limit_def limit[SL_PASSED_METERS + 1];
	u64 start = rig->now.mono_ns;
	u32 src = SOURCE + 16 * limits; /* one that was not missed yet */

	for (u32 i = 0; i < limits; i++) {
		limit[i] = rig_limit_def("", (struct rate){ 1000 + i, SL_NS_PER_SEC, RATE_PACKETS },
					 1000, SL_ALGO_TOKEN_BUCKET);
		snprintf(limit[i].name, sizeof(limit[i].name), "limit-%u", i);
	}
	rig_apply(rig, limit, limits);
	send(rig, src, MISSES - 1);
	assert_false(is_remembered(rig, src));
	send(rig, src, MISSES);
	assert_int_equal(is_remembered(rig, src), limits <= SL_PASSED_METERS);
	assert_false(is_remembered(rig, src + 1));
	if (limits > SL_PASSED_METERS)
		return;
	rig_set_time(rig, start + 100 * MS - 1, rig->utc_offset_ns);
	assert_true(is_remembered(rig, src));
	rig_set_time(rig, start + 100 * MS, rig->utc_offset_ns);
	assert_false(is_remembered(rig, src));
	send(rig, src, MISSES);
	assert_true(is_remembered(rig, src));
	dp_epoch_raise(rig->dp);
	assert_false(is_remembered(rig, src));
}

TEST(an_entry_lasts_100_ms_or_until_the_epoch_is_raised)
{
	struct rig rig;

	for (u32 limits = 1; limits <= SL_PASSED_METERS + 1; limits++) {
		rig_open_sim(&rig, 1000, 1, 16);
		check_lifetime(&rig, limits);
		rig_close(&rig);
	}
	rig_open_bpf(&rig, 1000, true, 0);
	for (u32 limits = 1; limits <= SL_PASSED_METERS + 1; limits += 3)
		check_lifetime(&rig, limits);
	rig_close(&rig);
}

/* A flood of forged sources leaves the one that is remembered alone; each of them is not. */
TEST(forged_sources_are_not_remembered)
{
	struct limit_def limit =
		rig_limit_def("sources", (struct rate){ 1000, SL_NS_PER_SEC, RATE_PACKETS }, 1000,
			      SL_ALGO_TOKEN_BUCKET);
	struct rig rig;

	rig_open_sim(&rig, 100000, 1, 16);
	rig_apply(&rig, &limit, 1);
	send(&rig, SOURCE, MISSES);
	for (u32 i = 1; i < 20000; i++)
		send(&rig, SOURCE + i, 1);
	assert_true(is_remembered(&rig, SOURCE));
	for (u32 i = 1; i < 20000; i += 199)
		assert_false(is_remembered(&rig, SOURCE + i));
	rig_close(&rig);
}

/* ------------------------------------------------------------------ two CPUs */

#define PACKETS 300000
#define BATCH 20000

static void flood(struct rig *rig, void *arg)
{
	const struct rig_packet packet = { .src = SOURCE, .proto = 17, .dport = 9, .length = 74 };
	struct rig_frame frame;

	rig_frame_make(&frame, &packet);
	for (u32 i = 0; i < PACKETS; i += BATCH)
		rig_repeat(rig, &frame, BATCH);
}

/*
 * One source meets three windows, of which the last is the smallest. A packet that another CPU
 * overtakes between the second and the third is refunded twice.
 */
TEST(all_of_several_limits_or_none)
{
	static const u64 counts[] = { 500000, 450000, 400000 };
	struct limit_def limit[3];
	struct sl_limit_stats stats;
	struct race race = { .send = flood };
	u64 passed = 0, used, lost = 0;
	struct rig rig;

	rig_open_bpf(&rig, 1000, false, 0);
	race.rig = &rig;
	for (u32 i = 0; i < 3; i++) {
		limit[i] = rig_limit_def("", (struct rate){ counts[i], 24 * HOUR, RATE_PACKETS }, 0,
					 SL_ALGO_FIXED_WINDOW);
		snprintf(limit[i].name, sizeof(limit[i].name), "window-%u", i);
	}
	rig_read_time(&rig);
	rig_apply(&rig, limit, 3);
	race_begin(&race);
	race_end(&race);
	rig_read_time(&rig);
	for (u32 i = 0; i < 3; i++) {
		stats = rig_limit_stats(&rig, i);
		used = sl_used(rig_bucket_state(&rig, i, SOURCE), &rig_limit(&rig, i)->params,
			       rig.now);
		passed = stats.packets[SL_LV_PASS];
		lost += stats.refund_lost;
		print_message(
			"# window-%u: %llu passed, %llu dropped, %llu used, %llu refunds lost\n", i,
			passed, stats.packets[SL_LV_DROP], used, stats.refund_lost);
		assert_int_equal(passed, counts[2]);
		assert_int_equal(used, passed + stats.refund_lost);
	}
	assert_int_equal(stats.packets[SL_LV_DROP], RACERS * PACKETS - passed);
	assert_int_equal(lost, 0);
	rig_close(&rig);
}

TEST_MAIN
