/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* units.h - rates, durations and sizes as users write them, and back. */
#ifndef SLUICE_LIB_UNITS_H
#define SLUICE_LIB_UNITS_H

#include <stddef.h>

#include "sluice/types.h"

/* The shortest period of a rate. */
#define RATE_PERIOD_MIN_NS (SL_NS_PER_SEC / 100)

enum rate_unit {
	RATE_PACKETS,
	RATE_BYTES,
	RATE_BITS,
	RATE_CONNECTIONS,
	RATE_UNIT_COUNT,
	RATE_REQUESTS = RATE_UNIT_COUNT, /* of the HTTP tier's rules alone */
	RATE_IN_FLIGHT, /* the same: `count` requests at once, each for period_ns at most */
};

/* "1000 packets/s": `count` units each `period_ns`. */
struct rate {
	u64 count;     /* >= 1 */
	u64 period_ns; /* >= 1 s */
	u8 unit;       /* enum rate_unit */
};

/*
 * NUMBER[K|M|G] UNIT/PERIOD; decimals allowed where the result is whole ("1.5K"). PERIOD is
 * s, m, h, d or a duration ("10s"). Singular and plural unit names. 0, or -EINVAL with
 * *ret_reason a static string with the accepted forms.
 */
int rate_parse(const char *text, struct rate *ret, const char **ret_reason);
/*
 * The same of the HTTP tier: "10 requests/m", and no other unit; PERIOD may also be day, week,
 * month (30 days) or year (365); or "concurrency 20", "concurrency 20 for 30s" (RATE_IN_FLIGHT).
 */
int requests_parse(const char *text, struct rate *ret, const char **ret_reason);
/* "20" or "20 for 30s": what stands after "concurrency". */
int concurrency_parse(const char *text, struct rate *ret, const char **ret_reason);
const char *rate_format(const struct rate *rate, char *buf, size_t size);

/*
 * "1000 drops/10s": a count in a period of a second or more. 0, or -EINVAL with
 * *ret_reason.
 */
int drops_parse(const char *text, u64 *ret_count, u64 *ret_period_ns, const char **ret_reason);
/* The same of rejections: "20 rejections/10s". */
int rejections_parse(const char *text, u64 *ret_count, u64 *ret_period_ns, const char **ret_reason);

/* "10%", "12.5%" -> permille, and "2", "1.25" -> percent. 0 or -EINVAL. */
int percent_parse(const char *text, u32 *ret_permille);
int factor_parse(const char *text, u32 *ret_percent);

/* "10s", "5m", "1h30m", "2d", "100ms" -> ns. A bare number is refused. -ERANGE: more than a u64
 * holds. */
int duration_parse(const char *text, u64 *ret_ns, const char **ret_reason);
const char *duration_format(u64 ns, char *buf, size_t size);

/* "2000", "1M" (decimal: 1000000) -> a count. */
int count_parse(const char *text, u64 *ret, const char **ret_reason);

/* "2030-01-31T12:00:00Z", a fraction allowed, always UTC <-> ns since 1970. */
int utc_parse(const char *text, u64 *ret_ns, const char **ret_reason);
const char *utc_format(u64 ns, char *buf, size_t size);

#endif
