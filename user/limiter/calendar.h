/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * calendar.h - days, weeks (from Monday on), months and years of a time zone as windows of a limit.
 *
 * The steps (include/sluice/algo_window.h) know windows of one length, numbered by time / length. A
 * calendar's windows have different lengths: a day has 23 to 25 hours, a month 28 to 31 days. So
 * the steps get another time: calendar_now() stretches each window to `window_ns`, longer than any.
 * It skips the difference at the window's begin, so what is left until its end is exact:
 *
 *     UTC                28 days          |           31 days            |
 *     calendar_now()  (4) 28 days         | (1)       31 days            |    each 32 days
 *
 * Numbers follow from the date alone (the first window is the one with 1969-12-31), so a count
 * stays that of its day or month if the zone changes, and nodes whose zones differ by an hour share
 * a window.
 *
 * The begins of all windows up to 2106 are in one table, which is made when a rule is read and
 * changed by no thread: 200 kB for days, 7 kB for months. They stay until the process ends.
 */
#ifndef SLUICE_LIMITER_CALENDAR_H
#define SLUICE_LIMITER_CALENDAR_H

#include "lib/zone.h"
#include "sluice/algo.h"

enum calendar_unit {
	CALENDAR_NONE,
	CALENDAR_DAY,
	CALENDAR_WEEK, /* from Monday on */
	CALENDAR_MONTH,
	CALENDAR_YEAR,
	CALENDAR_UNIT_COUNT,
};

/* Of a rate: that of 1d, 7d, 30d, 365d. */
enum calendar_unit calendar_unit_of(u64 period_ns);

struct calendar_edges;

struct calendar {
	u32 id; /* of the zone's name and the unit, in all processes */
	enum calendar_unit unit;
	u64 window_ns; /* of calendar_now(); the steps' window_ns */
	char zone[ZONE_NAME_MAX];
	const struct calendar_edges *edges;
};

/* Zones x units of one process. */
#define CALENDARS_MAX 128

/*
 * Reads the zone, also for its calendars of other units that there are. The calendar is valid until
 * the process ends. Errors as of zone_read(); -ENOSPC: there are CALENDARS_MAX others. Any thread.
 */
int calendar_open(const char *zone, enum calendar_unit unit, const struct calendar **ret,
		  struct sl_err *err);
/* The same zone's calendar of another unit; does not read the zone again if that is there. */
int calendar_of_unit(const struct calendar *calendar, enum calendar_unit unit,
		     const struct calendar **ret, struct sl_err *err);
/*
 * By its id. Of a calendar that no rule has named in this process (a limit in a file of counters):
 * one by the time of UTC-12, where each window ends last. NULL: there is no room for it.
 */
const struct calendar *calendar_find(u32 id, u64 window_ns);

/* `now` for a step. A calendar of NULL changes nothing, here and below. */
struct sl_now calendar_now(const struct calendar *calendar, struct sl_now now);
/* A step's duration, from utc_ns on, as real time. ~0 (never) stays. */
u64 calendar_wait_ns(const struct calendar *calendar, u64 utc_ns, u64 wait_ns);
/* The number of the window that has utc_ns, its begin and its end in UTC; not of NULL. */
u64 calendar_window(const struct calendar *calendar, u64 utc_ns, u64 *ret_begin_ns,
		    u64 *ret_end_ns);
/* When a window begins, UTC; not of NULL. */
u64 calendar_begin_ns(const struct calendar *calendar, u64 number);

#endif
