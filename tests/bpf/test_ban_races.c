// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * test_ban_races.c - bans set by two CPUs at once, by the kernel's clock, while the filter is made
 * made anew beside them without a pause and entries are removed: in the end every ban in the
 * hash is in force, each offender has exactly one, the first of its kind, and no other source has
 * any.
 */
#include "lib/test.h"
#include "bpf/race.h"

#define OFFENDERS 1000
#define SOURCE 0x0a000001
#define AFTER 3
#define PACKETS (1 + AFTER + 1) /* one passes, the last bans */
#define OTHERS 0x0b000001	/* sources whose bans come and go meanwhile */

/* Both send to the same sources, in the same order, so that they meet. */
static void offend(struct rig *rig, void *arg)
{
	struct rig_frame frame;

	rig_frame_make(&frame, &(struct rig_packet){ .proto = 17, .dport = 53, .length = 100 });
	for (u32 i = 0; i < OFFENDERS; i++) {
		rig_frame_src(&frame, SOURCE + i);
		rig_repeat(rig, &frame, PACKETS);
	}
}

/* Other bans come and go, and with them bits that others may need. */
static void churn(struct rig *rig, u32 round)
{
	struct dp_ban ban = { .key.len = 32, .state = { .since_ns = 1, .until_ns = 2 } };

	for (u32 i = 0; i < 64; i++) {
		ban.key.addr.hi = (u64)(OTHERS + round * 64 + i) << 32;
		assert_int_equal(dp_ban_insert(rig->dp, &ban), 0);
	}
	rig_read_time(rig);
	assert_in_range(dp_bans_expire(rig->dp, rig->now.mono_ns), 64, 64);
	assert_int_equal(dp_bans_refilter(rig->dp), 0);
}

static void check_bans(struct rig *rig)
{
	struct rig_frame frame;
	struct dp_ban *bans;
	size_t count;

	assert_int_equal(rig->dp->ops->hash_all(rig->dp, DP_BANS, &bans, &count), 0);
	assert_int_equal(count, OFFENDERS);
	for (size_t i = 0; i < count; i++) {
		u32 src = bans[i].key.addr.hi >> 32;

		assert_in_range(src, SOURCE, SOURCE + OFFENDERS - 1);
		assert_int_equal(bans[i].state.level, 0);
		assert_int_equal(bans[i].state.until_ns - bans[i].state.since_ns,
				 3600 * SL_NS_PER_SEC);
	}
	free(bans);
	/* To a port without a limit: only a ban drops it. */
	rig_frame_make(&frame, &(struct rig_packet){ .proto = 17, .dport = 54, .length = 100 });
	for (u32 i = 0; i < OFFENDERS; i++) {
		rig_frame_src(&frame, SOURCE + i);
		assert_false(rig_passes(rig, 0, &frame));
		rig_frame_src(&frame, OTHERS + i);
		assert_true(rig_passes(rig, 0, &frame));
	}
}

TEST(set_while_refiltered)
{
	struct rate rate = { 1, 3600 * SL_NS_PER_SEC, RATE_PACKETS };
	struct limit_def limit = rig_limit_def("web", rate, 1, SL_ALGO_TOKEN_BUCKET);
	struct u16_range port = { 53, 53 };
	struct rig rig;
	struct race race = { .rig = &rig, .send = offend };
	u32 rounds = 0;

	rig_open_bpf(&rig, 200000, false, 0);
	limit.match.dport = &port;
	limit.match.dport_count = 1;
	limit.ban = (struct ban_def){
		AFTER, 60 * SL_NS_PER_SEC, 3600 * SL_NS_PER_SEC, 7200 * SL_NS_PER_SEC, 200, true,
		false
	};
	rig_apply(&rig, &limit, 1);
	race_begin(&race);
	do
		churn(&rig, rounds++);
	while (!race_over(&race));
	race_end(&race);
	print_message("# %u rounds of the filter\n", rounds);
	check_bans(&rig);
	rig_close(&rig);
}

int main(void)
{
	return test_run_as("ban_races");
}
