/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * zone.h - the offset of a time zone's local time to UTC, for each second until 2106.
 *
 * libc has one zone for a whole process (TZ, tzset()), and its look-ups take a lock. This reads a
 * zone's file once (TZif of RFC 8536, with the rule in its last line) into a sorted array, which no
 * thread changes. It does not read the files of "right/", whose clock counts leap seconds.
 */
#ifndef SLUICE_LIB_ZONE_H
#define SLUICE_LIB_ZONE_H

#include <stddef.h>

#include "lib/err.h"
#include "sluice/types.h"

#define ZONE_NAME_MAX 48

struct zone {
	struct zone_span {
		s64 from_s;   /* UTC, seconds since 1970; of the first one INT64_MIN */
		s32 offset_s; /* local time - UTC, until the next one begins */
	} * span;
	size_t count; /* at least 1 */
};

/*
 * `name` as in the tz database ("Europe/Berlin"), below $TZDIR or /usr/share/zoneinfo; "UTC" needs
 * no file. The caller frees the zone. -ENOENT: there is no such file; -EINVAL: not a name, or not a
 * file of a zone.
 */
int zone_read(const char *name, struct zone *ret, struct sl_err *err);
/* The same for a zone that is always so many seconds ahead of UTC. */
int zone_fixed(s32 offset_s, struct zone *ret);
void zone_free(struct zone *zone);

/* Days since 1970 of a date of the Gregorian calendar; months below 1 and above 12 carry over. */
s64 zone_days(s64 year, s64 month, s64 day);

#endif
