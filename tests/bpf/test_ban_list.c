// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * test_ban_list.c - existing bans: lifted, restored, removed; and more than fit
 * into the map.
 */
#include "ban_rig.h"

/* ------------------------------------------------------------------ the daemon's part */

/* The limit is gone or another: the ban lasts until its end, and is then gone. */
CASE_TEST(outlives_its_limit)
{
	case_policy(t, RULES);
	get_banned(t, 0);
	case_policy(t, "limits: []\n");
	assert_true(is_banned_at(t, 60 * SECOND - 1));
	case_policy(t, "limits: [{" LIMIT "prefix: {ipv4: 24}, " BANS "}]\n");
	assert_true(is_banned_at(t, 60 * SECOND - 1));
	assert_true(is_free_at(t, 60 * SECOND));
}

CASE_TEST(lifted)
{
	struct sl_ban_key key = { .addr.hi = 0xc0000242ULL << 32, .len = 32 };

	case_policy(t, RULES);
	get_banned(t, 0);
	assert_int_equal(dp_ban_delete(target_dp(t), &key), 0);
	assert_int_equal(dp_ban_delete(target_dp(t), &key), -ENOENT);
	assert_true(is_free_at(t, 0));
	/* Its level is forgotten, its drops are not. */
	assert_true(case_meets(t, SECOND, &bad, OVER));
	assert_true(is_banned_at(t, SECOND));
	assert_true(is_banned_at(t, 61 * SECOND - 1));
	assert_true(is_free_at(t, 61 * SECOND));
}

/* A ban of before a reboot, restored: with its level, for the rest of its time. */
TEST(restored)
{
	struct target *t = case_target(state);
	struct dp_ban ban = {
		.key = { .addr.hi = 0xc0000242ULL << 32, .len = 32 },
		.state = { .level = 1 },
	};

	case_policy(t, RULES);
	assert_true(is_free_at(t, 0));
	ban.state.since_ns = target_mono(t) - SECOND / 2;
	ban.state.until_ns = target_mono(t) + 20 * SECOND;
	assert_int_equal(dp_ban_insert(target_dp(t), &ban), 0);
	assert_true(is_banned_at(t, 20 * SECOND - 1));
	assert_true(is_free_at(t, 20 * SECOND));
	get_banned(t, 20 * SECOND);
	assert_true(is_banned_at(t, 219 * SECOND));
}

static u32 filter_bits(struct target *t)
{
	const struct sl_ban_filter *filter = target_dp(t)->ban_filter;
	u32 bits = 0;

	for (u32 i = 0; i < SL_BAN_FILTER_WORDS; i++)
		bits += __builtin_popcountll(filter->w[i]);
	return bits;
}

/* Entries stay while their level counts, and not a moment longer. */
CASE_TEST(expired)
{
	struct dp *dp = target_dp(t);

	case_policy(t, RULES);
	get_banned(t, 0);
	get_banned(t, 60 * SECOND);
	assert_int_equal(filter_bits(t), 1);
	/* 120 s, level 1: worth nothing 240 s after its end. */
	target_set_time(t, (180 + 240) * SECOND - 1);
	assert_int_equal(dp_bans_expire(dp, target_mono(t)), 0);
	assert_int_equal(filter_bits(t), 1);
	target_set_time(t, (180 + 240) * SECOND);
	assert_int_equal(dp_bans_expire(dp, target_mono(t)), 1);
	assert_int_equal(bans_there_are(t), 0);
	assert_int_equal(filter_bits(t), 0);
}

CASE_TEST(refiltered)
{
	struct sl_ban_filter *filter = target_dp(t)->ban_filter;

	case_policy(t, RULES);
	get_banned(t, 0);
	memset(filter, 0xff, sizeof(*filter));
	assert_true(is_banned_at(t, 0));
	assert_int_equal(dp_bans_refilter(target_dp(t)), 0);
	assert_int_equal(filter_bits(t), 1);
	assert_true(is_banned_at(t, 0));
}

/* ------------------------------------------------------------------ full */

/* A spoofed flood filled the map: no new bans, the limit holds, the bans there are hold. */
TEST(full)
{
	struct target *t = case_target(state);
	struct dp *dp = target_dp(t);
	struct dp_ban ban = { .key.len = 32 };
	const struct frame_spec old = { .src = "10.0.0.77" };
	u32 i;

	case_policy(t, RULES);
	ban.state.since_ns = target_mono(t);
	ban.state.until_ns = target_mono(t) + 60 * SECOND;
	for (i = 0; i < SL_BANS_MAX; i++) {
		ban.key.addr.hi = (0x0a000000ULL + i) << 32;
		assert_int_equal(dp_ban_insert(dp, &ban), 0);
	}
	assert_int_equal(bans_there_are(t), SL_BANS_MAX);
	assert_int_equal(case_send(t, &bad, 50), 1);
	assert_true(case_meets(t, 0, &bad_other, OTHER));
	assert_true(case_meets(t, 0, &neighbour, OTHER));
	assert_true(case_meets(t, 0, &old, BAN));
	assert_int_equal(target_errors(t), 50 - 5);
	assert_int_equal(case_counted(t, "web", SL_LV_DROP), 49);
	/* Room for one. */
	assert_int_equal(dp_ban_delete(dp, &ban.key), 0);
	assert_true(case_meets(t, 0, &bad, OVER));
	assert_true(is_banned_at(t, 0));
	target_set_time(t, 120 * SECOND);
	assert_int_equal(dp_bans_expire(dp, target_mono(t)), SL_BANS_MAX);
	assert_int_equal(filter_bits(t), 0);
}

int main(void)
{
	return case_main("list of bans");
}
