// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * units.c - see units.h. Integers only: a number is digits, at most one point, and a suffix;
 * a result that is not an integer is refused, not rounded.
 */
#include "lib/units.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static const char *const unit_names[RATE_UNIT_COUNT + 1] = {
	[RATE_PACKETS] = "packet",	   [RATE_BYTES] = "byte",	[RATE_BITS] = "bit",
	[RATE_CONNECTIONS] = "connection", [RATE_REQUESTS] = "request",
};

#define US 1000ULL
#define MS 1000000ULL
#define MINUTE (60 * SL_NS_PER_SEC)
#define HOUR (60 * MINUTE)
#define DAY (24 * HOUR)

/* Largest first: a duration is written in this order. */
static const struct duration_unit {
	const char *name;
	u64 ns;
} duration_units[] = {
	{ "d", DAY }, { "h", HOUR }, { "m", MINUTE }, { "s", SL_NS_PER_SEC },
	{ "ms", MS }, { "us", US },  { "ns", 1 },
};

/* Of requests: read and written in place of their days. */
static const struct duration_unit long_units[] = {
	{ "day", DAY },
	{ "week", 7 * DAY },
	{ "month", 30 * DAY },
	{ "year", 365 * DAY },
};

#define LONG_UNITS (sizeof(long_units) / sizeof(long_units[0]))
#define DURATION_UNITS (sizeof(duration_units) / sizeof(duration_units[0]))

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* value x 10 + digit; false on overflow. */
static bool push_digit(u64 *value, char digit)
{
	return !__builtin_mul_overflow(*value, 10ULL, value) &&
	       !__builtin_add_overflow(*value, (u64)(digit - '0'), value);
}

static u64 suffix_value(char c)
{
	switch (c) {
	case 'K':
		return 1000;
	case 'M':
		return 1000000;
	case 'G':
		return 1000000000;
	default:
		return 1;
	}
}

/* NUMBER[K|M|G] at *text; *text then points after it. */
static int number_parse(const char **text, u64 *ret, const char **ret_reason)
{
	const char *p = *text;
	u64 value = 0, scale, fraction_scale = 1;

	*ret_reason = "not a number; accepted: 2000, 10K, 1.5M, 2G";
	if (!is_digit(*p))
		return -EINVAL;
	for (; is_digit(*p); p++)
		if (!push_digit(&value, *p))
			goto too_large;
	if (*p == '.') {
		if (!is_digit(*++p))
			return -EINVAL;
		for (; is_digit(*p); p++) {
			if (fraction_scale >= 1000000000 && *p != '0')
				goto not_whole;
			if (fraction_scale >= 1000000000)
				continue;
			if (!push_digit(&value, *p))
				goto too_large;
			fraction_scale *= 10;
		}
	}
	scale = suffix_value(*p);
	if (scale > 1)
		p++;
	if (__builtin_mul_overflow(value, scale, &value))
		goto too_large;
	if (value % fraction_scale)
		goto not_whole;
	*ret = value / fraction_scale;
	*text = p;
	return 0;
too_large:
	*ret_reason = "number too large; accepted: below 2^64";
	return -EINVAL;
not_whole:
	*ret_reason = "not a whole number; accepted: 2000, 10K, 1.5M, 2G";
	return -EINVAL;
}

int count_parse(const char *text, u64 *ret, const char **ret_reason)
{
	u64 value;

	if (number_parse(&text, &value, ret_reason))
		return -EINVAL;
	if (*text) {
		*ret_reason = "not a number; accepted: 2000, 10K, 1.5M, 2G";
		return -EINVAL;
	}
	*ret = value;
	return 0;
}

/* The unit at the start of `text`; DURATION_UNITS if none. */
static size_t duration_unit_find(const char *text, size_t len)
{
	size_t i;

	for (i = 0; i < DURATION_UNITS; i++)
		if (strlen(duration_units[i].name) == len &&
		    !strncmp(duration_units[i].name, text, len))
			break;
	return i;
}

int duration_parse(const char *text, u64 *ret_ns, const char **ret_reason)
{
	size_t unit, least = 0;
	u64 total = 0, value;

	*ret_reason = "not a duration; accepted: 100ms, 10s, 5m, 1h30m, 2d";
	if (!*text)
		return -EINVAL;
	while (*text) {
		size_t len = 0;

		if (!is_digit(*text))
			return -EINVAL;
		for (value = 0; is_digit(*text); text++)
			if (!push_digit(&value, *text))
				goto too_large;
		while (islower((unsigned char)text[len]))
			len++;
		unit = duration_unit_find(text, len);
		if (unit < least || unit == DURATION_UNITS)
			return -EINVAL;
		least = unit + 1; /* each unit once, the larger first */
		text += len;
		if (__builtin_mul_overflow(value, duration_units[unit].ns, &value) ||
		    __builtin_add_overflow(total, value, &total))
			goto too_large;
	}
	*ret_ns = total;
	return 0;
too_large:
	*ret_reason = "duration too long; accepted: up to 213000d";
	return -ERANGE;
}

const char *duration_format(u64 ns, char *buf, size_t size)
{
	size_t i, used = 0;

	snprintf(buf, size, "0s");
	for (i = 0; i < DURATION_UNITS; i++) {
		u64 value = ns / duration_units[i].ns;

		ns %= duration_units[i].ns;
		if (value && used < size)
			used += snprintf(buf + used, size - used, "%llu%s", value,
					 duration_units[i].name);
	}
	return buf;
}

static bool unit_parse(const char *text, size_t len, u8 *ret)
{
	int i;

	for (i = 0; i <= RATE_REQUESTS; i++) {
		size_t name_len = strlen(unit_names[i]);

		if (len >= name_len && !strncmp(text, unit_names[i], name_len) &&
		    (len == name_len || (len == name_len + 1 && text[name_len] == 's'))) {
			*ret = i;
			return true;
		}
	}
	return false;
}

static bool long_unit_parse(const char *text, u64 *ret_ns)
{
	for (size_t i = 0; i < LONG_UNITS; i++)
		if (!strcmp(text, long_units[i].name)) {
			*ret_ns = long_units[i].ns;
			return true;
		}
	return false;
}

/* s, m, h, d mean one of them; other text is a duration. */
static int period_parse(const char *text, bool requests, u64 *ret_ns, const char **ret_reason)
{
	size_t unit = duration_unit_find(text, strlen(text));

	if (unit < DURATION_UNITS)
		*ret_ns = duration_units[unit].ns;
	else if (!(requests && long_unit_parse(text, ret_ns)) &&
		 duration_parse(text, ret_ns, ret_reason)) {
		*ret_reason =
			requests
				? "bad period; accepted: s, m, h, d, week, month, year, or a duration as 10s or 5m"
				: "bad period; accepted: s, m, h, d, or a duration as 10s or 5m";
		return -EINVAL;
	}
	if (*ret_ns < RATE_PERIOD_MIN_NS) {
		*ret_reason = "period too short; accepted: 10ms or more";
		return -EINVAL;
	}
	return 0;
}

/* NUMBER `what`[s]/PERIOD */
static int events_parse(const char *text, const char *what, const char *wanted, u64 *ret_count,
			u64 *ret_period_ns, const char **ret_reason)
{
	u64 count, period;

	if (number_parse(&text, &count, ret_reason)) {
		if (!is_digit(*text))
			*ret_reason = wanted;
		return -EINVAL;
	}
	*ret_reason = wanted;
	if (*text != ' ' || !count)
		return -EINVAL;
	while (*text == ' ')
		text++;
	if (strncmp(text, what, strlen(what)))
		return -EINVAL;
	text += strlen(what);
	text += *text == 's';
	if (*text != '/')
		return -EINVAL;
	if (period_parse(text + 1, false, &period, ret_reason))
		return -EINVAL;
	if (period < SL_NS_PER_SEC) {
		*ret_reason = "period too short; accepted: one second or more";
		return -EINVAL;
	}
	*ret_count = count;
	*ret_period_ns = period;
	return 0;
}

int drops_parse(const char *text, u64 *ret_count, u64 *ret_period_ns, const char **ret_reason)
{
	return events_parse(text, "drop",
			    "not a count of drops; accepted: NUMBER drops/PERIOD, as "
			    "in 1000 drops/10s",
			    ret_count, ret_period_ns, ret_reason);
}

int rejections_parse(const char *text, u64 *ret_count, u64 *ret_period_ns, const char **ret_reason)
{
	return events_parse(text, "rejection",
			    "not a count of rejections; accepted: NUMBER "
			    "rejections/PERIOD, as in 20 rejections/10s",
			    ret_count, ret_period_ns, ret_reason);
}

/* Up to seven digits, and up to `decimals` behind a point: times 10^decimals. NULL: no. */
static const char *decimal_parse(const char *text, int decimals, u32 *ret)
{
	const char *start = text;
	u32 value = 0;

	for (; is_digit(*text); text++)
		value = value * 10 + (u32)(*text - '0');
	if (text == start || text - start > 7)
		return NULL;
	if (*text == '.') {
		if (!is_digit(*++text))
			return NULL;
		for (; is_digit(*text) && decimals; text++, decimals--)
			value = value * 10 + (u32)(*text - '0');
	}
	for (; decimals; decimals--)
		value *= 10;
	*ret = value;
	return text;
}

int percent_parse(const char *text, u32 *ret_permille)
{
	u32 value;

	text = decimal_parse(text, 1, &value);
	if (!text || strcmp(text, "%") != 0)
		return -EINVAL;
	*ret_permille = value;
	return 0;
}

int factor_parse(const char *text, u32 *ret_percent)
{
	u32 value;

	text = decimal_parse(text, 2, &value);
	if (!text || *text)
		return -EINVAL;
	*ret_percent = value;
	return 0;
}

/* Spellings refused as a rate, each with the accepted one. */
struct rate_words {
	const char *not_a_rate, *unit, *nothing;
};

/* Units as other programs write them: "1000 pps", "10Mbps". */
static const struct other_unit {
	const char *name, *scale, *unit;
} other_units[] = {
	{ "pps", "", "packets/s" },  { "kpps", "K", "packets/s" }, { "Mpps", "M", "packets/s" },
	{ "p/s", "", "packets/s" },  { "pkt/s", "", "packets/s" }, { "bps", "", "bits/s" },
	{ "kbps", "K", "bits/s" },   { "Kbps", "K", "bits/s" },	   { "Mbps", "M", "bits/s" },
	{ "Gbps", "G", "bits/s" },   { "bit", "", "bits/s" },	   { "kbit", "K", "bits/s" },
	{ "mbit", "M", "bits/s" },   { "Mbit", "M", "bits/s" },	   { "Mbit/s", "M", "bits/s" },
	{ "gbit", "G", "bits/s" },   { "Gbit", "G", "bits/s" },	   { "Gbit/s", "G", "bits/s" },
	{ "kB/s", "K", "bytes/s" },  { "MB/s", "M", "bytes/s" },   { "GB/s", "G", "bytes/s" },
	{ "rps", "", "requests/s" }, { "r/s", "", "requests/s" },  { "req/s", "", "requests/s" },
	{ "qps", "", "requests/s" }, { "r/m", "", "requests/m" },  { "rpm", "", "requests/m" },
};

/* The reason with "did you mean", if the text has such a unit; else the reason. */
static const char *with_suggestion(const char *text, bool requests, const char *reason)
{
	static _Thread_local char buf[256];
	size_t digits = strspn(text, "0123456789."),
	       scale = text[digits] && strchr("KMG", text[digits]) ? 1 : 0;
	const char *rest = text + digits + scale;

	for (size_t tries = 0; digits && digits < 16 && tries < 2;
	     tries++, scale = 0, rest = text + digits) {
		rest += strspn(rest, " ");
		for (size_t i = 0; i < sizeof(other_units) / sizeof(other_units[0]); i++) {
			const struct other_unit *at = &other_units[i];

			if (strcmp(rest, at->name) != 0 || (at->unit[0] == 'r') != requests ||
			    (scale && at->scale[0]))
				continue;
			snprintf(
				buf, sizeof(buf),
				"not a rate (did you mean '%.*s%s %s'?); accepted: NUMBER[K|M|G] UNIT/PERIOD",
				(int)(digits + scale), text, at->scale, at->unit);
			return buf;
		}
	}
	return reason;
}

/* NUMBER UNIT/PERIOD; the unit is `requests` only, or any other. */
static int parse_rate_of(const char *text, bool requests, const struct rate_words *words,
			 struct rate *ret, const char **ret_reason)
{
	const char *slash;
	struct rate rate;

	if (number_parse(&text, &rate.count, ret_reason)) {
		if (!is_digit(*text))
			*ret_reason = words->not_a_rate;
		return -EINVAL;
	}
	*ret_reason = words->not_a_rate;
	slash = strchr(text, '/');
	if (*text != ' ' || !slash)
		return -EINVAL;
	while (*text == ' ')
		text++;
	*ret_reason = words->unit;
	if (!unit_parse(text, slash - text, &rate.unit)) {
		if (!requests && !strncmp(text, "request", 7))
			goto tier;
		return -EINVAL;
	}
	if (requests != (rate.unit == RATE_REQUESTS))
		goto tier;
	if (period_parse(slash + 1, requests, &rate.period_ns, ret_reason))
		return -EINVAL;
	*ret_reason = words->nothing;
	if (!rate.count)
		return -EINVAL;
	*ret = rate;
	return 0;
tier:
	*ret_reason = requests ? "packets, bytes, bits and connections are counted by the packet "
				 "tier's limits; accepted here: requests"
			       : "requests are counted by the HTTP tier's rules; accepted "
				 "here: packets, bytes, bits, connections";
	return -EINVAL;
}

int rate_parse(const char *text, struct rate *ret, const char **ret_reason)
{
	static const struct rate_words words = {
		"not a rate; accepted: NUMBER[K|M|G] UNIT/PERIOD, as in 1000 packets/s",
		"unknown unit; accepted: packets, bytes, bits, connections",
		"a rate of 0 would pass nothing; accepted: 1 or more (to refuse all, use block)",
	};

	if (parse_rate_of(text, false, &words, ret, ret_reason) == 0)
		return 0;
	*ret_reason = with_suggestion(text, false, *ret_reason);
	return -EINVAL;
}

/* How long a request in flight is counted if nobody reports its end. */
#define IN_FLIGHT_NS MINUTE

int concurrency_parse(const char *text, struct rate *ret, const char **ret_reason)
{
	struct rate rate = { .period_ns = IN_FLIGHT_NS, .unit = RATE_IN_FLIGHT };
	const char *ignored;

	*ret_reason =
		"not a concurrency; accepted: NUMBER, or NUMBER for PERIOD of 2s to 1d, as in 20 for 60s";
	if (number_parse(&text, &rate.count, &ignored))
		return -EINVAL;
	if (*text &&
	    (strncmp(text, " for ", 5) || duration_parse(text + 5, &rate.period_ns, &ignored)))
		return -EINVAL;
	if (rate.period_ns < 2 * SL_NS_PER_SEC || rate.period_ns > DAY)
		return -EINVAL;
	*ret_reason =
		"a concurrency of 0 would pass nothing; accepted: 1 or more (to refuse a value, use block)";
	if (!rate.count)
		return -EINVAL;
	*ret = rate;
	return 0;
}

#define CONCURRENCY "concurrency "

int requests_parse(const char *text, struct rate *ret, const char **ret_reason)
{
	static const struct rate_words words = {
		"not a limit; accepted: NUMBER[K|M|G] requests/PERIOD, as in 10 requests/m, or "
		"concurrency NUMBER",
		"unknown unit; accepted: requests",
		"a limit of 0 would pass nothing; accepted: 1 or more (to refuse a value, use "
		"block)",
	};

	if (!strncmp(text, CONCURRENCY, strlen(CONCURRENCY)))
		return concurrency_parse(text + strlen(CONCURRENCY), ret, ret_reason);
	if (parse_rate_of(text, true, &words, ret, ret_reason) == 0)
		return 0;
	*ret_reason = with_suggestion(text, true, *ret_reason);
	return -EINVAL;
}

const char *rate_format(const struct rate *rate, char *buf, size_t size)
{
	const char *unit = rate->unit <= RATE_REQUESTS ? unit_names[rate->unit] : "?";
	const char *suffix = "";
	u64 count = rate->count;
	char period[48];
	size_t i;

	if (count && count % 1000000000 == 0) {
		count /= 1000000000;
		suffix = "G";
	} else if (count && count % 1000000 == 0) {
		count /= 1000000;
		suffix = "M";
	}
	duration_format(rate->period_ns, period, sizeof(period));
	if (rate->unit == RATE_IN_FLIGHT) {
		bool usual = rate->period_ns == IN_FLIGHT_NS;

		snprintf(buf, size, CONCURRENCY "%llu%s%s%s", count, suffix, usual ? "" : " for ",
			 usual ? "" : period);
		return buf;
	}
	for (i = 0; i < DURATION_UNITS; i++)
		if (duration_units[i].ns == rate->period_ns)
			snprintf(period, sizeof(period), "%s", duration_units[i].name);
	for (i = 1; i < LONG_UNITS && rate->unit == RATE_REQUESTS; i++)
		if (long_units[i].ns == rate->period_ns)
			snprintf(period, sizeof(period), "%s", long_units[i].name);
	snprintf(buf, size, "%llu%s %s%s/%s", count, suffix, unit, rate->count == 1 ? "" : "s",
		 period);
	return buf;
}

int utc_parse(const char *text, u64 *ret_ns, const char **ret_reason)
{
	u64 fraction = 0, scale = SL_NS_PER_SEC;
	struct tm tm = { 0 }, back;
	const char *rest;
	time_t seconds;

	*ret_reason = "not a time; accepted: 2030-01-31T12:00:00Z, in UTC, from 1970 to 2500";
	if (!is_digit(*text))
		return -EINVAL;
	rest = strptime(text, "%Y-%m-%dT%H:%M:%S", &tm);
	if (!rest)
		return -EINVAL;
	if (*rest == '.') {
		for (rest++; is_digit(*rest) && scale > 1; rest++) {
			scale /= 10;
			fraction += (*rest - '0') * scale;
		}
	}
	if (strcmp(rest, "Z") || tm.tm_year < 70 || tm.tm_year > 600)
		return -EINVAL;
	back = tm;
	seconds = timegm(&back);
	if (back.tm_mday != tm.tm_mday || back.tm_sec != tm.tm_sec) /* 31 June, second 60 */
		return -EINVAL;
	*ret_ns = (u64)seconds * SL_NS_PER_SEC + fraction;
	return 0;
}

const char *utc_format(u64 ns, char *buf, size_t size)
{
	time_t seconds = ns / SL_NS_PER_SEC;
	u64 fraction = ns % SL_NS_PER_SEC;
	size_t used;
	struct tm tm;

	gmtime_r(&seconds, &tm);
	used = strftime(buf, size, "%Y-%m-%dT%H:%M:%S", &tm);
	if (fraction)
		snprintf(buf + used, size - used, ".%09lluZ", fraction);
	else
		snprintf(buf + used, size - used, "Z");
	return buf;
}
