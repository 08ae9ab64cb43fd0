// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * test_clock_step.c - somebody sets the clock, by a day or more, forward and back: what was to end
 * after half an hour does, in the data path and in every list; also after a restart, a rollback, a
 * revert. A date does not move.
 */
#include "txn_rig.h"

#include <sys/syscall.h>

#include "control/running/clock_step.h"
#include "control/running/feeds.h"

#define DAY ((s64)86400 * (s64)SL_NS_PER_SEC)
#define MINUTE (60 * SL_NS_PER_SEC)

static s64 set_by_ns; /* the time of day is so far ahead of this machine's */

int clock_gettime(clockid_t clock, struct timespec *ret)
{
	int r = (int)syscall(SYS_clock_gettime, clock, ret);

	if (clock == CLOCK_REALTIME)
		ret->tv_sec += set_by_ns / (s64)SL_NS_PER_SEC;
	return r;
}

/* As timers.c does each second, and each minute. */
static void set_clock(s64 by_ns)
{
	set_by_ns += by_ns;
	assert_true(clock_step_check(&rig.d->running));
	assert_false(clock_step_check(&rig.d->running));
	dp_set_clock(rig.dp, clock_read_utc_offset_ns());
	rules_expire(&rig.d->running);
}

static bool blocked(u32 host, u64 in_ns)
{
	return rig_packet(&rig, host, clock_mono_ns() + in_ns);
}

/* All of `block list` that has an end: in 29 to 30 minutes, and by the present clock; returns how
 * many. */
static size_t ends_in_half_an_hour(void)
{
	json_t *answer = rig_command(&rig, &rig_reader, "block list"), *entry;
	u64 now_utc_ns = clock_read_ns(CLOCK_REALTIME), until_ns;
	const char *reason;
	size_t i, count = 0;

	json_array_foreach(json_at(answer, "result.entries"), i, entry) {
		u64 left_ns = (u64)json_integer_value(json_object_get(entry, "left_ns"));

		if (!left_ns)
			continue;
		assert_true(left_ns > 29 * MINUTE && left_ns <= 30 * MINUTE);
		assert_int_equal(utc_parse(json_string_value(json_object_get(entry, "until")),
					   &until_ns, &reason),
				 0);
		assert_true(until_ns > now_utc_ns + 29 * MINUTE &&
			    until_ns <= now_utc_ns + 30 * MINUTE);
		count++;
	}
	json_decref(answer);
	return count;
}

static void check_all(void)
{
	for (u32 host = 1; host <= 3; host++) {
		assert_true(blocked(host, 0) && blocked(host, 29 * MINUTE));
		assert_false(blocked(host, 30 * MINUTE));
	}
	assert_int_equal(ends_in_half_an_hour(), 3);
}

#define BLOCK(what) "block add {'prefix':'" what "','for':'30m'}"
/* It drops nothing. */
#define SHADOW "limits: [{name: all, rate: 10 packets/s, burst: 10, mode: shadow}]\n"
#define SETS SHADOW "sets: {bad: [192.0.2.2]}\n"

static void block_all(void)
{
	rig_open(&rig, SETS);
	rig_do(&rig, BLOCK("192.0.2.1"));
	rig_do(&rig, BLOCK("@bad"));
	rig_do(&rig, "block load {'origin':'feed','prefixes':['192.0.2.3 30m']}");
	check_all();
}

RIG_TEST(test_forward_and_back)
{
	block_all();
	set_clock(DAY);
	check_all();
	rig_do(&rig, "reload");
	check_all();
	rig_restart(&rig);
	check_all();
	set_clock(-9 * DAY);
	check_all();
	rig_restart(&rig);
	check_all();
}

/* The changes before it are in the history. */
RIG_TEST(test_rollback)
{
	block_all();
	rig_do(&rig, SET("5"));
	set_clock(DAY);
	rig_do(&rig, "rollback");
	check_all();
}

RIG_TEST(test_unconfirmed)
{
	s64 left_ns;

	block_all();
	rig_do(&rig, apply_line(&rig, SHADOW "sets: {bad: [192.0.2.2]}\n", "1m", true));
	assert_false(blocked(1, 0));
	set_clock(DAY);
	left_ns = (s64)(rig.d->running.pending.deadline_utc_ns - clock_read_ns(CLOCK_REALTIME));
	assert_true(left_ns > 0 && left_ns <= (s64)MINUTE);
	pending_check(&rig.d->running);
	assert_true(pending_is(&rig.d->running));
	rig_do(&rig, "rollback");
	check_all();
}

/* `until` in the file is a date. */
RIG_TEST(test_dates)
{
	char text[32], yaml[160];

	clock_format_utc(clock_utc_ns() + 60 * MINUTE, text, sizeof(text));
	snprintf(yaml, sizeof(yaml), SHADOW "block: [{prefix: 192.0.2.4, until: '%s'}]\n", text);
	rig_open(&rig, yaml);
	assert_true(blocked(4, 0));
	assert_false(blocked(4, 61 * MINUTE));
	set_clock(-DAY);
	assert_true(blocked(4, 61 * MINUTE));
	set_clock(DAY);
	assert_true(blocked(4, 0));
	assert_false(blocked(4, 61 * MINUTE));
	set_clock(DAY);
	assert_false(blocked(4, 0));
}

RIG_TEST(test_ages)
{
	const struct feed *feed;

	block_all();
	set_clock(DAY);
	feed = feeds_find(&rig.d->running, FEED_ORIGIN, "feed");
	assert_true(clock_utc_ns() - feed->changed_utc_ns < MINUTE);
}

TEST_MAIN
