// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * zone.c - see zone.h. A file has the transitions that are known by date (struct reading, 64-bit
 * block), and after these a rule for all later years, as "CET-1CEST,M3.5.0,M10.5.0/3": it is
 * written out as transitions up to LAST_YEAR.
 */
#include "lib/zone.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DIR_DEFAULT "/usr/share/zoneinfo"
#define FILE_MAX (1U << 20)
#define LAST_YEAR 2107
#define DAY_S 86400
#define HOUR_S 3600

s64 zone_days(s64 year, s64 month, s64 day)
{
	s64 years, leap;

	year += (month - 1) / 12;
	month = (month - 1) % 12;
	if (month < 0) {
		month += 12;
		year--;
	}
	/* Years begin in March, so that a leap day is the last one. */
	month = (month + 10) % 12;
	years = year - (month > 9);
	leap = years / 4 - years / 100 + years / 400;
	return 365 * years + leap + (153 * month + 2) / 5 + day - 1 - 719468;
}

static int add_span(struct zone *zone, s64 from_s, s32 offset_s)
{
	struct zone_span *span;

	if (zone->count && from_s <= zone->span[zone->count - 1].from_s)
		return 0;
	span = reallocarray(zone->span, zone->count + 1, sizeof(*span));
	if (!span)
		return -ENOMEM;
	zone->span = span;
	span[zone->count++] = (struct zone_span){ from_s, offset_s };
	return 0;
}

int zone_fixed(s32 offset_s, struct zone *ret)
{
	struct zone zone = { 0 };
	int err = add_span(&zone, INT64_MIN, offset_s);

	if (!err)
		*ret = zone;
	return err;
}

void zone_free(struct zone *zone)
{
	free(zone->span);
	*zone = (struct zone){ 0 };
}

/* ------------------------------------------------------------------ the rule for later years */

struct rule_date {
	char kind; /* 'M': weekday `day` of week `week` of a month, 'J', 'n': a day */
	long month, week, day;
	long time_s;
};

static bool number_read(const char **at, long most, long *ret)
{
	long value = 0;

	if (**at < '0' || **at > '9')
		return false;
	for (; **at >= '0' && **at <= '9'; ++*at) {
		value = value * 10 + (**at - '0');
		if (value > most)
			return false;
	}
	*ret = value;
	return true;
}

/* Letters, or anything in <>. */
static bool name_skip(const char **at)
{
	const char *from = *at;

	if (**at == '<') {
		*at += strcspn(*at, ">");
		return *(*at)++ == '>';
	}
	while ((**at >= 'A' && **at <= 'Z') || (**at >= 'a' && **at <= 'z'))
		++*at;
	return *at > from;
}

/* [+-]h[:mm[:ss]] */
static bool time_read(const char **at, long *ret_s)
{
	long part, sign = **at == '-' ? -1 : 1, unit = HOUR_S;

	if (**at == '-' || **at == '+')
		++*at;
	if (!number_read(at, 167, &part))
		return false;
	*ret_s = part * unit;
	while (**at == ':' && unit > 1) {
		++*at;
		unit /= 60;
		if (!number_read(at, 59, &part))
			return false;
		*ret_s += part * unit;
	}
	*ret_s *= sign;
	return true;
}

static bool date_read(const char **at, struct rule_date *ret)
{
	struct rule_date date = { .kind = 'n', .time_s = 2 * HOUR_S };
	bool ok;

	if (*(*at)++ != ',')
		return false;
	if (**at == 'M' || **at == 'J')
		date.kind = *(*at)++;
	if (date.kind == 'M')
		ok = number_read(at, 12, &date.month) && date.month && *(*at)++ == '.' &&
		     number_read(at, 5, &date.week) && date.week && *(*at)++ == '.' &&
		     number_read(at, 6, &date.day);
	else
		ok = number_read(at, 365, &date.day);
	if (ok && **at == '/') {
		++*at;
		ok = time_read(at, &date.time_s);
	}
	*ret = date;
	return ok;
}

/* Local seconds since 1970. */
static s64 date_of(const struct rule_date *date, s64 year)
{
	bool leap = zone_days(year, 3, 1) - zone_days(year, 2, 1) == 29;
	s64 first, day;

	if (date->kind == 'M') {
		first = zone_days(year, date->month, 1);
		/* 1970 began with a Thursday, day 4 of a week. */
		day = first + (date->day - (first + 4) % 7 + 7) % 7 + 7 * (date->week - 1);
		if (day >= zone_days(year, date->month + 1, 1))
			day -= 7;
	} else {
		day = zone_days(year, 1, 1) + date->day;
		if (date->kind == 'J')
			day -= 1 - (leap && date->day > 59);
	}
	return day * DAY_S + date->time_s;
}

/* 0, -EINVAL or -ENOMEM. `text` is empty: the last offset stays. */
static int rule_add(struct zone *zone, const char *text, s64 first_year)
{
	struct rule_date begin, end;
	long standard, summer;
	bool has_summer = false;

	if (!*text)
		return 0;
	if (!name_skip(&text) || !time_read(&text, &standard))
		return -EINVAL;
	standard = -standard; /* it has the hours to add for UTC */
	summer = standard + HOUR_S;
	if (*text) {
		has_summer = true;
		if (!name_skip(&text))
			return -EINVAL;
		if (*text != ',' && time_read(&text, &summer))
			summer = -summer;
		if (!date_read(&text, &begin) || !date_read(&text, &end) || *text)
			return -EINVAL;
	}
	for (s64 year = first_year; has_summer && year <= LAST_YEAR; year++) {
		s64 on = date_of(&begin, year) - standard, off = date_of(&end, year) - summer;
		bool north = on < off;

		if (add_span(zone, north ? on : off, (s32)(north ? summer : standard)) ||
		    add_span(zone, north ? off : on, (s32)(north ? standard : summer)))
			return -ENOMEM;
	}
	return 0;
}

/* ------------------------------------------------------------------ the file */

struct reading {
	const unsigned char *at, *end;
};

struct counts {
	u32 utc, standard, leap, times, types, chars;
};

static u64 number_be(const unsigned char *at, size_t bytes)
{
	u64 value = 0;

	while (bytes--)
		value = value << 8 | *at++;
	return value;
}

static const unsigned char *take(struct reading *r, size_t bytes)
{
	const unsigned char *at = r->at;

	if ((size_t)(r->end - at) < bytes)
		return NULL;
	r->at += bytes;
	return at;
}

/* A header of version 2 or later. */
static bool header_read(struct reading *r, struct counts *ret)
{
	const unsigned char *at = take(r, 44);

	if (!at || memcmp(at, "TZif", 4) || at[4] < '2')
		return false;
	*ret = (struct counts){
		.utc = (u32)number_be(at + 20, 4),
		.standard = (u32)number_be(at + 24, 4),
		.leap = (u32)number_be(at + 28, 4),
		.times = (u32)number_be(at + 32, 4),
		.types = (u32)number_be(at + 36, 4),
		.chars = (u32)number_be(at + 40, 4),
	};
	return ret->utc < FILE_MAX && ret->standard < FILE_MAX && ret->leap < FILE_MAX &&
	       ret->times < FILE_MAX && ret->types && ret->types <= 256 && ret->chars < FILE_MAX;
}

/* The block after a header, of times of so many bytes; it is skipped if zone is NULL. */
static int block_read(struct reading *r, const struct counts *n, size_t bytes, struct zone *zone)
{
	const unsigned char *times = take(r, n->times * bytes), *type = take(r, n->times);
	const unsigned char *types = take(r, n->types * 6);
	int err = 0;

	if (!times || !type || !types || !take(r, n->chars) || !take(r, n->leap * (bytes + 4)) ||
	    !take(r, n->standard) || !take(r, n->utc))
		return -EINVAL;
	if (!zone)
		return 0;
	if (n->leap)
		return -EINVAL;
	err = add_span(zone, INT64_MIN, (s32)number_be(types, 4));
	for (u32 i = 0; i < n->times && !err; i++) {
		if (type[i] >= n->types)
			return -EINVAL;
		err = add_span(zone, (s64)number_be(times + i * bytes, bytes),
			       (s32)number_be(types + type[i] * 6, 4));
	}
	return err;
}

static int file_parse(const unsigned char *data, size_t size, struct zone *zone)
{
	struct reading r = { data, data + size };
	struct counts n;
	char rule[128];
	size_t len;
	s64 last;
	int err;

	if (!header_read(&r, &n) || block_read(&r, &n, 4, NULL) || !header_read(&r, &n))
		return -EINVAL;
	err = block_read(&r, &n, 8, zone);
	if (err)
		return err;
	len = r.end - r.at;
	if (len < 2 || len >= sizeof(rule) || r.at[0] != '\n' || r.at[len - 1] != '\n')
		return -EINVAL;
	memcpy(rule, r.at + 1, len - 2);
	rule[len - 2] = '\0';
	last = zone->span[zone->count - 1].from_s;
	/* One year early: add_span() takes only what is later than the last one. */
	return rule_add(zone, rule, last < 0 ? 1969 : 1969 + last / (365 * DAY_S + DAY_S / 4));
}

static bool name_is_valid(const char *name)
{
	size_t len = strlen(name);

	return len && len < ZONE_NAME_MAX && name[0] != '/' && !strstr(name, "..") &&
	       strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789/_+-") ==
		       len;
}

static int file_read(const char *name, unsigned char **ret, size_t *ret_size)
{
	const char *dir = getenv("TZDIR");
	unsigned char *data;
	char path[512];
	FILE *file;
	int err = 0;

	snprintf(path, sizeof(path), "%s/%s", dir && *dir ? dir : DIR_DEFAULT, name);
	file = fopen(path, "re");
	if (!file)
		return -errno;
	data = malloc(FILE_MAX);
	*ret_size = data ? fread(data, 1, FILE_MAX, file) : 0;
	if (!data)
		err = -ENOMEM;
	else if (ferror(file))
		err = -EINVAL; /* a directory, as Europe */
	fclose(file);
	if (err)
		free(data);
	else
		*ret = data;
	return err;
}

#define ACCEPTED                                                                                   \
	"accepted: UTC, or a name of the tz database, as Europe/Berlin (its files are in "         \
	"/usr/share/zoneinfo, of the package tzdata)"

int zone_read(const char *name, struct zone *ret, struct sl_err *err)
{
	struct zone zone = { 0 };
	unsigned char *data = NULL;
	size_t size;
	int rc;

	if (!strcmp(name, "UTC"))
		return zone_fixed(0, ret);
	rc = name_is_valid(name) ? file_read(name, &data, &size) : -EINVAL;
	if (!rc)
		rc = file_parse(data, size, &zone);
	free(data);
	if (!rc) {
		*ret = zone;
		return 0;
	}
	zone_free(&zone);
	if (rc == -ENOMEM)
		return sl_err_set(err, ENOMEM, "out of memory");
	if (rc == -EINVAL)
		return sl_err_set(err, EINVAL, "not a time zone; " ACCEPTED);
	return sl_err_set(err, -rc, "its zone cannot be read: %s; " ACCEPTED, strerror(-rc));
}
