/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * clock.h - the two clocks: monotonic time, which deadlines and buckets use, and UTC, for people.
 *
 * UTC here is monotonic time and an offset that clock_follow() alone changes. So a deadline in UTC,
 * as files and people need it, is as far away as the one that the data path has, also while
 * somebody sets the clock: the deadlines are moved with it (control/running/clock_step.h).
 */
#ifndef SLUICE_DAEMON_CLOCK_H
#define SLUICE_DAEMON_CLOCK_H

#include <time.h>

#include "sluice/algo.h"

static inline u64 clock_read_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (u64)ts.tv_sec * SL_NS_PER_SEC + (u64)ts.tv_nsec;
}

/* The kernel's id of this boot, 36 characters; "" if it cannot be read. */
void clock_boot_id(char *buf, size_t size);

static inline u64 clock_mono_ns(void)
{
	return clock_read_ns(CLOCK_MONOTONIC);
}

/* CPU time of this thread: for shares of a CPU, which a machine that stands still does not use. */
static inline u64 clock_cpu_ns(void)
{
	return clock_read_ns(CLOCK_THREAD_CPUTIME_ID);
}

/* UTC - monotonic time, wrapping: adding it to a monotonic time gives UTC, for either sign. */
u64 clock_utc_offset_ns(void);
/* The same by the time of day of this moment: for windows, which align to it. */
u64 clock_read_utc_offset_ns(void);

/*
 * Reads the time of day again: by how much it was set since the last such time; 0 for less than a
 * quarter of a second, which stays for the next call. On the main thread.
 */
s64 clock_follow(void);

static inline u64 clock_utc_ns(void)
{
	return clock_mono_ns() + clock_utc_offset_ns();
}

/* The current time as parameter of a step, with the UTC offset of the data path. */
static inline struct sl_now clock_now(u64 utc_offset_ns)
{
	u64 mono_ns = clock_mono_ns();

	return (struct sl_now){ .mono_ns = mono_ns, .utc_ns = mono_ns + utc_offset_ns };
}

/* "2026-03-01T12:00:00Z" into buf; returns buf. */
static inline const char *clock_format_utc(u64 utc_ns, char *buf, size_t size)
{
	time_t seconds = (time_t)(utc_ns / SL_NS_PER_SEC);
	struct tm tm;

	gmtime_r(&seconds, &tm);
	strftime(buf, size, "%Y-%m-%dT%H:%M:%SZ", &tm);
	return buf;
}

#endif
