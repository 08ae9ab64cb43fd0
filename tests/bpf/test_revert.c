// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * test_revert.c - unconfirmed rules: at their deadline the rules before are in force
 * again, by the data path's own clock, with their bucket states.
 */
#include <stdio.h>
#include <string.h>

#include "lib/case.h"

#define SEC SL_NS_PER_SEC
#define DEADLINE (60 * SEC)
#define SPEC(...) (&(struct frame_spec){ __VA_ARGS__ })
#define VICTIM "192.0.2.1"
#define NEIGHBOUR "192.0.2.99"

static void policy_until(struct target *t, const char *yaml)
{
	struct sl_err err = { .message = "" };

	if (target_policy_until(t, yaml, DEADLINE, &err))
		fail_msg("%s: %s", target_name(t), err.message);
}

static void confirm(struct target *t)
{
	struct dp *dp = target_dp(t);
	struct sl_err err;

	assert_int_equal(dp->ops->confirm(dp, &err), 0);
}

/* Lists and limits, prefixes and ports: all of it reverts, at that nanosecond. */
CASE_TEST(by_the_clock)
{
	case_policy(t, "limits: [{name: web, match: {dport: 80}, rate: 10 packets/s}]\n");
	policy_until(t, "block: [" VICTIM "]\n"
			"limits: [{name: dns, match: {dport: 53}, rate: 3 packets/s}]\n");
	assert_non_null(target_dp(t)->ops->fallback(target_dp(t)));
	assert_int_equal(case_send(t, SPEC(.src = VICTIM, .dport = 80), 5), 0);
	assert_int_equal(case_send(t, SPEC(.src = NEIGHBOUR, .dport = 80), 20), 20);
	assert_int_equal(case_send(t, SPEC(.src = NEIGHBOUR, .dport = 53), 20), 3);
	target_set_time(t, DEADLINE - 1);
	assert_int_equal(case_send(t, SPEC(.src = VICTIM, .dport = 80), 5), 0);
	assert_int_equal(case_send(t, SPEC(.src = NEIGHBOUR, .dport = 80), 20), 20);
	target_set_time(t, DEADLINE);
	assert_int_equal(case_send(t, SPEC(.src = VICTIM, .dport = 80), 20), 10);
	assert_int_equal(case_send(t, SPEC(.src = NEIGHBOUR, .dport = 80), 20), 10);
	assert_int_equal(case_send(t, SPEC(.src = NEIGHBOUR, .dport = 53), 20), 20);
	/* For good, until the next apply. */
	target_set_time(t, 1000 * DEADLINE);
	assert_int_equal(case_send(t, SPEC(.src = VICTIM, .dport = 80), 20), 10);
	assert_int_equal(target_errors(t), 0);
}

CASE_TEST(confirmed_stays)
{
	case_policy(t, "limits: []\n");
	policy_until(t, "block: [" VICTIM "]\n");
	confirm(t);
	assert_null(target_dp(t)->ops->fallback(target_dp(t)));
	target_set_time(t, 2 * DEADLINE);
	assert_int_equal(case_send(t, SPEC(.src = VICTIM), 5), 0);
	assert_int_equal(case_send(t, SPEC(.src = NEIGHBOUR), 5), 5);
}

CASE_TEST(applied_anew_stays)
{
	case_policy(t, "limits: []\n");
	policy_until(t, "block: [" NEIGHBOUR "]\n");
	case_policy(t, "block: [" VICTIM "]\n");
	assert_null(target_dp(t)->ops->fallback(target_dp(t)));
	target_set_time(t, 2 * DEADLINE);
	assert_int_equal(case_send(t, SPEC(.src = VICTIM), 5), 0);
	assert_int_equal(case_send(t, SPEC(.src = NEIGHBOUR), 5), 5);
	/* After the deadline as well. */
	case_policy(t, "limits: []\n");
	assert_int_equal(case_send(t, SPEC(.src = VICTIM), 5), 5);
}

/* Unconfirmed rules change again, with other prefixes each time: the first rules come back. */
CASE_TEST(the_first_comes_back)
{
	char yaml[64];
	u32 i;

	case_policy(t, "exempt: [192.0.2.3]\nlimits: [{name: few, rate: 2 packets/s}]\n");
	for (i = 0; i < 6; i++) {
		snprintf(yaml, sizeof(yaml), "block: [192.0.2.%u]\n", i);
		policy_until(t, yaml);
		snprintf(yaml, sizeof(yaml), "192.0.2.%u", i);
		assert_int_equal(case_send(t, SPEC(.src = yaml), 5), 0);
		assert_int_equal(case_send(t, SPEC(.src = NEIGHBOUR), 5), 5);
	}
	target_set_time(t, DEADLINE);
	assert_int_equal(case_send(t, SPEC(.src = "192.0.2.3"), 5), 5);
	assert_int_equal(case_send(t, SPEC(.src = "192.0.2.5"), 5), 2);
	assert_int_equal(target_errors(t), 0);
}

/* A bucket used up at another rate is used up at the old one, and one half full is half full. */
CASE_TEST(bucket_states_are_kept)
{
	case_policy(t, "limits: [{name: one, accounting: exact, rate: 1 packets/h, burst: 10}]\n");
	policy_until(t,
		     "limits: [{name: one, accounting: exact, rate: 1 packets/h, burst: 1000}]\n");
	assert_int_equal(case_send(t, SPEC(.src = VICTIM), 1500), 1000);
	assert_int_equal(case_send(t, SPEC(.src = "192.0.2.2"), 500), 500);
	target_set_time(t, DEADLINE);
	assert_int_equal(case_send(t, SPEC(.src = VICTIM), 20), 0);
	assert_in_range(case_send(t, SPEC(.src = "192.0.2.2"), 20), 4, 6);
	assert_int_equal(case_send(t, SPEC(.src = NEIGHBOUR), 20), 10);
}

/* A limit that only the old rules have: its bucket waits for them, also over a sweep. */
CASE_TEST(gone_limits_wait)
{
	struct sl_now now;

	case_policy(t, "limits: [{name: old, rate: 10 packets/h, burst: 10}]\n");
	assert_int_equal(case_send(t, SPEC(.src = VICTIM), 20), 10);
	policy_until(t, "limits: []\n");
	now.mono_ns = target_dp(t)->ops->rules(target_dp(t))->revert_at_ns - 1;
	now.utc_ns = now.mono_ns;
	dp_sweep(target_dp(t), now);
	policy_until(t, "limits: [{name: new, rate: 5 packets/h, burst: 5}]\n");
	dp_sweep(target_dp(t), now);
	assert_int_equal(case_send(t, SPEC(.src = VICTIM), 20), 5);
	target_set_time(t, DEADLINE);
	assert_int_equal(case_send(t, SPEC(.src = VICTIM), 20), 0);
	assert_int_equal(case_send(t, SPEC(.src = NEIGHBOUR), 20), 10);
	/* Confirmed after all, they are forgotten. */
	confirm(t);
	dp_sweep(target_dp(t), now);
	case_policy(t, "limits: [{name: old, rate: 10 packets/h, burst: 10}]\n");
	assert_int_equal(case_send(t, SPEC(.src = VICTIM), 20), 10);
}

int main(void)
{
	return case_main("revert");
}
