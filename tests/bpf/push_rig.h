/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * push_rig.h - push-downs by their text. Of test_push.c and test_push_seen.c.
 */
#ifndef TESTS_BPF_PUSH_RIG_H
#define TESTS_BPF_PUSH_RIG_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "packet/dataplane/dp_push.h"
#include "lib/case.h"
#include "lib/policy_text.h"

#define SECOND SL_NS_PER_SEC
#define LIMITED SL_ACT_DROP, SL_R_PUSH_LIMIT
#define TAGGED SL_ACT_TAG, SL_R_PUSH_TAG
#define NO_NEW SL_ACT_DROP, SL_R_PUSH_NO_NEW
#define DROPPED SL_ACT_DROP, SL_R_PUSH_DROP

/* clang-format off */
#define BAD .src = "192.0.2.66"
/* clang-format on */
static const struct frame_spec bad = { BAD };

/* ------------------------------------------------------------------ writing and reading */

/* "192.0.2.66", for `seconds` from the reset on; `pps` is SL_PUSH_LIMIT's. */
static int put(struct target *t, const char *src, enum sl_push_kind kind, u64 pps, u64 seconds)
{
	const struct dp_push push = {
		.src = prefix_of(src),
		.kind = kind,
		.rate = { pps, SECOND, RATE_PACKETS },
		.until_ns = target_mono(t) - target_time(t) + seconds * SECOND,
		.note = 7,
	};

	return dp_push_put(target_dp(t), &push);
}

#endif
