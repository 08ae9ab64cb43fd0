// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * test_epoch.c - whatever writes what verdicts are read from raises the epoch; packets that are
 * passed or refused do not.
 */
#include "lib/test.h"
#include "lib/rig.h"
#include "packet/dataplane/dp_push.h"

static u64 last;

static bool raised(struct rig *rig)
{
	u64 before = last;

	last = rig->dp->epoch->count;
	return last != before;
}

static void open_rig(struct rig *rig, struct limit_def *limit)
{
	const struct rate rate = { 1, SL_NS_PER_SEC, RATE_PACKETS };

	rig_open_sim(rig, 1000, 2, 16);
	*limit = rig_limit_def("sources", rate, 1, SL_ALGO_TOKEN_BUCKET);
	rig_apply(rig, limit, 1);
	raised(rig);
}

TEST(rules_clock_and_buckets)
{
	struct limit_def limit;
	struct rig rig;

	open_rig(&rig, &limit);
	rig_apply(&rig, &limit, 1);
	assert_true(raised(&rig));
	assert_int_equal(rig.dp->ops->confirm(rig.dp, NULL), 0);
	assert_true(raised(&rig));
	dp_set_clock(rig.dp, 12345);
	assert_true(raised(&rig));
	dp_set_clock(rig.dp, 12345);
	assert_false(raised(&rig));
	dp_bucket_forget(rig.dp, 1ULL << 52 | 2);
	assert_true(raised(&rig));
	rig_close(&rig);
}

TEST(bans_and_push_downs)
{
	const struct dp_ban ban = { .key = { { 10ULL << 56, 0 }, SL_V4, 32 },
				    .state = { .until_ns = ~0ULL } };
	const struct dp_push push = { .src = { { 10ULL << 56, 0 }, SL_V4, 32 },
				      .kind = SL_PUSH_DROP,
				      .until_ns = ~0ULL };
	struct limit_def limit;
	struct rig rig;

	open_rig(&rig, &limit);
	assert_int_equal(dp_ban_insert(rig.dp, &ban), 0);
	assert_true(raised(&rig));
	assert_int_equal(dp_ban_delete(rig.dp, &ban.key), 0);
	assert_true(raised(&rig));
	assert_int_equal(dp_push_put(rig.dp, &push), 0);
	assert_true(raised(&rig));
	assert_int_equal(dp_push_del(rig.dp, &push.src), 0);
	assert_true(raised(&rig));
	dp_push_watch(rig.dp, true);
	assert_true(raised(&rig));
	rig_close(&rig);
}

TEST(packets_do_not_raise_it)
{
	const struct rig_packet packet = {
		.src = 0x0a000001, .proto = 17, .dport = 9, .length = 74
	};
	struct rig_frame frame;
	struct limit_def limit;
	struct rig rig;

	open_rig(&rig, &limit);
	rig_frame_make(&frame, &packet);
	assert_true(rig_passes(&rig, 0, &frame));
	assert_false(rig_passes(&rig, 0, &frame));
	assert_false(raised(&rig));
	rig_close(&rig);
}

TEST_MAIN
