// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The windows of calendars, against Python's zoneinfo (tests/lib/calendar.py), and limits by them:
 * a whole limit in each window and no more, waits that end with it to the nanosecond, counts that
 * do not change if the zone does.
 */
#include "lib/rng.h"
#include "lib/test.h"
#include "limiter/algorithm.h"

#define SEC SL_NS_PER_SEC
#define LIMIT 3

static enum calendar_unit unit_named(const char *name)
{
	static const char *const names[] = { "day", "week", "month", "year" };

	for (int i = 0; i < 4; i++)
		if (!strcmp(name, names[i]))
			return (enum calendar_unit)(CALENDAR_DAY + i);
	fail_msg("%s", name);
	return CALENDAR_NONE;
}

static void calendar_spec(const struct calendar *calendar, struct spec *ret)
{
	struct spec_def def = { .count = LIMIT,
				.period_ns = calendar->window_ns,
				.scale = 1,
				.ceiling_percent = 100,
				.algo = SL_ALGO_FIXED_WINDOW,
				.calendar = calendar->id };
	struct sl_err err;

	assert_int_equal(spec_make_def(&def, ret, &err), 0);
}

static struct sl_now at(u64 utc_ns)
{
	return (struct sl_now){ .utc_ns = utc_ns };
}

static bool take(const struct spec_view *view, u64 *state, u64 utc_ns, u64 *ret_wait)
{
	struct sl_result res = spec_charge(view, *state, at(utc_ns), 1);

	*state = res.bucket_state;
	*ret_wait = res.wait_ns;
	return res.verdict == SL_PASS;
}

/* From a used-up window on. */
static void play(const struct calendar *calendar, u64 utc_ns, u64 begin_ns, u64 end_ns)
{
	u64 state = 0, wait, next_end_ns, ignored;
	struct spec_view view;
	struct spec spec;

	calendar_spec(calendar, &spec);
	spec_view_init(&view, &spec, 0, 0);
	for (int i = 0; i < LIMIT; i++)
		assert_true(
			take(&view, &state, begin_ns + rng_below(utc_ns - begin_ns + 1), &wait));
	assert_false(take(&view, &state, utc_ns, &wait));
	assert_int_equal(wait, end_ns - utc_ns);
	assert_int_equal(spec_reset_ns(&view, state, at(utc_ns)), end_ns - utc_ns);
	assert_int_equal(spec_remaining(&view, state, at(end_ns - 1)), 0);
	assert_false(spec_expired(&spec, state, at(end_ns - 1)));
	assert_true(spec_expired(&spec, state, at(end_ns)));
	/* A report of a window that is over, and one of this window. */
	assert_true(spec_report(&view, 0, at(end_ns), at(end_ns - 1), 1) == 0);
	assert_int_equal(spec_remaining(&view,
					spec_report(&view, 0, at(end_ns - 1), at(begin_ns), 1),
					at(end_ns - 1)),
			 LIMIT - 1);
	for (int i = 0; i < LIMIT; i++)
		assert_true(take(&view, &state, end_ns, &wait));
	assert_false(take(&view, &state, end_ns, &wait));
	/* A clock that is stepped back over the edge, not over a skipped day: the new window goes
	 * on. */
	if (calendar_window(calendar, end_ns, &ignored, &next_end_ns) !=
	    calendar_window(calendar, utc_ns, &ignored, &ignored) + 1)
		return;
	assert_false(take(&view, &state, end_ns - 1, &wait));
	assert_int_equal(wait, next_end_ns - end_ns + 1);
}

static void check_row(const char *zone, const char *unit, u64 instant_s, u64 begin_s, u64 end_s)
{
	u64 utc_ns = instant_s * SEC + rng_below(SEC), begin, end, number, ignored;
	const struct calendar *calendar;
	struct sl_now now;
	struct sl_err err;

	assert_int_equal(calendar_open(zone, unit_named(unit), &calendar, &err), 0);
	number = calendar_window(calendar, utc_ns, &begin, &end);
	if (begin != begin_s * SEC || end != end_s * SEC)
		fail_msg("%s %s at %llu: %llu to %llu, by Python %llu to %llu", zone, unit,
			 instant_s, begin / SEC, end / SEC, begin_s, end_s);
	now = calendar_now(calendar, at(utc_ns));
	assert_int_equal(now.utc_ns / calendar->window_ns, number);
	assert_int_equal(calendar->window_ns - now.utc_ns % calendar->window_ns, end - utc_ns);
	/* A day without a second has a number, too. */
	assert_true(calendar_window(calendar, end, &ignored, &ignored) > number);
	assert_true(calendar_window(calendar, begin - 1, &ignored, &ignored) < number);
	play(calendar, utc_ns, begin, end);
}

TEST(windows_are_those_of_zoneinfo)
{
	char command[128], zone[48], unit[8];
	u64 instant, begin, end, rows = 0;
	FILE *python;

	rng_start("windows_are_those_of_zoneinfo");
	snprintf(command, sizeof(command), "python3 tests/lib/calendar.py %llu 60", rng());
	python = popen(command, "r");
	assert_non_null(python);
	while (fscanf(python, "%47s %7s %llu %llu %llu", zone, unit, &instant, &begin, &end) == 5) {
		check_row(zone, unit, instant, begin, end);
		rows++;
	}
	assert_int_equal(pclose(python), 0);
	assert_true(rows > 1000);
}

/* An hour of two zones in which one has the next day: a count goes on in both. */
TEST(zones_that_differ_share_a_window)
{
	const u64 noon = 1767268800ULL * SEC; /* 2026-01-01T12:00:00Z */
	const struct calendar *berlin, *lisbon;
	struct spec_view of_berlin, of_lisbon;
	struct spec spec[2];
	u64 bucket = 0, wait, hours = 0;

	assert_int_equal(calendar_open("Europe/Berlin", CALENDAR_DAY, &berlin, NULL), 0);
	assert_int_equal(calendar_open("Europe/Lisbon", CALENDAR_DAY, &lisbon, NULL), 0);
	calendar_spec(berlin, &spec[0]);
	calendar_spec(lisbon, &spec[1]);
	spec_view_init(&of_berlin, &spec[0], 0, 0);
	spec_view_init(&of_lisbon, &spec[1], 0, 0);
	/* From 23:00 in Lisbon on: Berlin's next day has begun. */
	for (u64 s = 0; s < 2 * 86400; s += 600) {
		u64 passed = 0;

		for (int i = 0; i < 2 * LIMIT; i++)
			passed += take(i % 2 ? &of_lisbon : &of_berlin, &bucket, noon + s * SEC,
				       &wait);
		hours += passed;
		if (passed)
			assert_int_equal((noon / SEC + s) % 86400, s ? 23 * 3600 : 12 * 3600);
	}
	assert_int_equal(hours, 3 * LIMIT);
}

/* Of a file of counters, before the rules are read: until its window is over everywhere. */
TEST(a_calendar_without_a_name_ends_last)
{
	const struct calendar *unnamed = calendar_find(12345, 36 * 3600 * SEC), *named;
	u64 begin, end, midnight = 1767225600ULL * SEC;

	assert_non_null(unnamed);
	calendar_window(unnamed, midnight, &begin, &end);
	assert_int_equal(end, midnight + 12 * 3600 * SEC);
	assert_null(calendar_find(12345, 86400 * SEC));
	assert_int_equal(calendar_open("Etc/GMT+12", CALENDAR_DAY, &named, NULL), 0);
	assert_int_equal(calendar_window(named, midnight, &begin, &end), 20454);
	assert_ptr_equal(calendar_find(named->id, named->window_ns), named);
}

TEST(what_is_no_zone)
{
	static const char *const names[] = { "Europe/Berlim",	   "Europe",	      "",
					     "/etc/passwd",	   "../zoneinfo/UTC", "zone.tab",
					     "right/Europe/Berlin" };
	const struct calendar *ignored;
	struct sl_err err;

	for (size_t i = 0; i < COUNT(names); i++) {
		assert_true(calendar_open(names[i], CALENDAR_DAY, &ignored, &err) < 0);
		assert_non_null(strstr(err.message, "accepted: UTC, or a name of the tz database"));
	}
}

TEST_MAIN
