/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * ban_rig.h - one limit that bans, and the sources that it banned. Of test_ban.c and
 * test_ban_list.c.
 */
#ifndef TESTS_BPF_BAN_RIG_H
#define TESTS_BPF_BAN_RIG_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/addr.h"
#include "lib/case.h"

#define SECOND SL_NS_PER_SEC
#define BAN SL_ACT_DROP, SL_R_BAN

/* One packet passes an hour; the 5th drop bans. */
#define LIMIT "name: web, match: {dport: 80}, rate: 1 packets/h, "
#define BANS "ban: {after: 4 drops/10s, for: 60s, factor: 2, max: 200s, spoofable: yes}"
#define RULES "limits: [{" LIMIT BANS "}]\n"
#define TO_BAN 6 /* packets */

/* clang-format off */
#define BAD .src = "192.0.2.66"
/* clang-format on */
static const struct frame_spec bad = { BAD, .dport = 80 }, bad_other = { BAD };
static const struct frame_spec neighbour = { .src = "192.0.2.67" };

static int is_banned_at(struct target *t, u64 at)
{
	return case_meets(t, at, &bad_other, BAN) && case_meets(t, at, &neighbour, OTHER);
}

static int is_free_at(struct target *t, u64 at)
{
	return case_meets(t, at, &bad_other, OTHER);
}

static size_t bans_there_are(struct target *t)
{
	struct dp_ban *bans;
	size_t count;

	assert_int_equal(target_dp(t)->ops->hash_all(target_dp(t), DP_BANS, &bans, &count), 0);
	free(bans);
	return count;
}

/* From this moment on the source is banned, by drops that are all at one instant. */
static void get_banned(struct target *t, u64 at)
{
	target_set_time(t, at);
	case_send(t, &bad, TO_BAN);
	assert_true(is_banned_at(t, at));
}

#endif
