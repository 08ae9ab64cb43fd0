// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * test_push_races.c - push-downs under traffic from two CPUs, by the kernel's clock: a limit that
 * both charge, exact in all its counts; and, while others come and go beside it and it is renewed
 * without a pause, a limit that stays within its rate and a drop that passes nothing.
 */
#include <unistd.h>

#include "lib/test.h"
#include "bpf/race.h"
#include "packet/dataplane/dp_push.h"

#define SECOND SL_NS_PER_SEC
#define BATCH 50000 /* a test run begins with some milliseconds of waiting */
#define BATCHES 8
#define PPS 1000
#define LIMITED 0x0a000001
#define DROPPED 0x0a000002

static void send_frames(struct rig *rig, void *arg)
{
	struct rig_frame frame;

	rig_frame_make(&frame, &(struct rig_packet){ .proto = 17, .dport = 53, .length = 100 });
	for (u32 i = 0; i < BATCHES; i++) {
		rig_frame_src(&frame, LIMITED);
		rig_repeat(rig, &frame, BATCH);
		rig_frame_src(&frame, DROPPED);
		rig_repeat(rig, &frame, BATCH);
	}
}

static struct dp_push push_for(u32 src, u8 len, enum sl_push_kind kind)
{
	return (struct dp_push){ .src = { { (u64)src << 32, 0 }, SL_V4, len },
				 .kind = kind,
				 .rate = { PPS, SECOND, RATE_PACKETS },
				 .until_ns = ~0ULL };
}

/* Returns how long it took: units refilled in that time are not in the bucket's count. */
static u64 renew(struct rig *rig)
{
	const struct dp_push limited = push_for(LIMITED, 32, SL_PUSH_LIMIT);
	u64 begin;

	rig_read_time(rig);
	begin = rig->now.mono_ns;
	assert_int_equal(dp_push_put(rig->dp, &limited), 0);
	rig_read_time(rig);
	return rig->now.mono_ns - begin;
}

/* Others, of lengths that come and go with them; and the filter made anew. */
static void churn(struct rig *rig, u32 round)
{
	for (u32 len = 29 + round % 3; len < 32; len++) {
		struct dp_push push =
			push_for(0x0b000000 + (round << 8 & 0xffff00), len, SL_PUSH_TAG);

		push.until_ns = 1;
		assert_int_equal(dp_push_put(rig->dp, &push), 0);
	}
	assert_true(dp_pushes_expire(rig->dp, 1) > 0);
}

static u64 packets_passed(struct rig *rig)
{
	struct sl_iface_stats stats;

	assert_int_equal(rig->dp->ops->iface_stats(rig->dp, 0, &stats), 0);
	return stats.packets[SL_R_NO_MATCH][SL_ACT_PASS];
}

/* Both senders, and beside them renewals where asked for. Returns how long all that took. */
static u64 run_race(struct rig *rig, bool renewing, u64 *ret_blind_ns, u32 *ret_renewals)
{
	struct race race = { .rig = rig, .send = send_frames };
	u64 begin;

	rig_read_time(rig);
	begin = rig->now.mono_ns;
	race_begin(&race);
	do {
		if (renewing) {
			*ret_blind_ns += renew(rig);
			churn(rig, ++*ret_renewals);
		}
		usleep(500);
	} while (!race_over(&race));
	race_end(&race);
	rig_read_time(rig);
	return rig->now.mono_ns - begin;
}

TEST(two_cpus)
{
	const struct dp_push limited = push_for(LIMITED, 32, SL_PUSH_LIMIT);
	const struct dp_push dropped = push_for(DROPPED, 32, SL_PUSH_DROP);
	struct dp_push now;
	struct rig rig;

	for (u32 renewing = 0; renewing < 2; renewing++) {
		u64 took_ns, blind_ns = 0, most;
		u32 renewals = 0;

		rig_open_bpf(&rig, 4096, false, 0);
		rig_apply(&rig, NULL, 0);
		assert_int_equal(dp_push_put(rig.dp, &limited), 0);
		assert_int_equal(dp_push_put(rig.dp, &dropped), 0);
		took_ns = run_race(&rig, renewing, &blind_ns, &renewals);
		most = PPS + PPS * (took_ns + blind_ns) / SECOND + 1 + renewals;
		print_message("# %llu passed of at most %llu, %u renewals\n", packets_passed(&rig),
			      most, renewals);
		/* All that passed was of the limited one. */
		assert_in_range(packets_passed(&rig), PPS, most);
		assert_int_equal(dp_push_get(rig.dp, &dropped.src, &now), 0);
		assert_int_equal(now.refused, RACERS * BATCHES * BATCH);
		assert_int_equal(dp_push_get(rig.dp, &limited.src, &now), 0);
		if (!renewing) {
			assert_int_equal(now.packets, RACERS * BATCHES * BATCH);
			assert_int_equal(now.packets - now.refused, packets_passed(&rig));
		}
		rig_close(&rig);
	}
}

int main(void)
{
	return test_run_as("push_races");
}
