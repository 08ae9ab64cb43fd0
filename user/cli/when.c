// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* when.c - see when.h. Days are those of the local time zone: mktime() knows their length. */
#include "cli/when.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/units.h"

/* ------------------------------------------------------------------ reading */

/* The day's begin in *ret, and what stands behind the day; NULL: `text` begins with no day. */
static const char *parse_day(const char *text, const struct tm *today, struct tm *ret)
{
	int year, month, day, length = 0;

	*ret = (struct tm){ .tm_year = today->tm_year,
			    .tm_mon = today->tm_mon,
			    .tm_mday = today->tm_mday,
			    .tm_isdst = -1 };
	if (!strncmp(text, "today", 5))
		return text + 5;
	if (!strncmp(text, "yesterday", 9)) {
		ret->tm_mday--;
		return text + 9;
	}
	if (sscanf(text, "%4d-%2d-%2d%n", &year, &month, &day, &length) != 3 || !length ||
	    year < 1970 || month < 1 || month > 12 || day < 1 || day > 31)
		return NULL;
	ret->tm_year = year - 1900;
	ret->tm_mon = month - 1;
	ret->tm_mday = day;
	return text + length;
}

/* "14:03" or "14:03:20" to its end; the seconds are optional. */
static bool parse_clock(const char *text, struct tm *ret, bool *ret_seconds)
{
	int length = 0;

	*ret_seconds = sscanf(text, "%2d:%2d:%2d%n", &ret->tm_hour, &ret->tm_min, &ret->tm_sec,
			      &length) == 3 &&
		       length && !text[length];
	if (!*ret_seconds) {
		ret->tm_sec = length = 0;
		if (sscanf(text, "%2d:%2d%n", &ret->tm_hour, &ret->tm_min, &length) != 2 ||
		    !length || text[length])
			return false;
	}
	return ret->tm_hour >= 0 && ret->tm_hour < 24 && ret->tm_min >= 0 && ret->tm_min < 60 &&
	       ret->tm_sec >= 0 && ret->tm_sec < 61;
}

/* Cuts Z or +01:00 off a text that has a time of day, and makes it the zone of the process. */
static void take_zone(char *text)
{
	size_t length = strlen(text), digits = length;
	unsigned int hours, minutes;
	char zone[32];

	if (!strchr(text, ':'))
		return;
	if (length && text[length - 1] == 'Z') {
		text[length - 1] = '\0';
		setenv("TZ", "UTC0", 1);
		tzset();
		return;
	}
	while (digits && strchr("0123456789:", text[digits - 1]))
		digits--;
	if (!digits || !strchr("+-", text[digits - 1]) || !memchr(text, ':', digits) ||
	    (sscanf(text + digits, "%2u:%2u", &hours, &minutes) != 2 &&
	     sscanf(text + digits, "%2u%2u", &hours, &minutes) != 2) ||
	    hours > 14 || minutes > 59)
		return;
	/* POSIX counts west of Greenwich. */
	snprintf(zone, sizeof(zone), "<%c%02u%02u>%c%02u:%02u", text[digits - 1], hours, minutes,
		 text[digits - 1] == '+' ? '-' : '+', hours, minutes);
	text[digits - 1] = '\0';
	setenv("TZ", zone, 1);
	tzset();
}

bool when_parse(const char *written, time_t now, time_t *ret_from, time_t *ret_to)
{
	struct tm today, at, end;
	const char *rest;
	char text[64];
	bool seconds;

	if ((size_t)snprintf(text, sizeof(text), "%s", written) >= sizeof(text))
		return false;
	take_zone(text);
	localtime_r(&now, &today);
	rest = parse_day(text, &today, &at);
	if (rest && !*rest) {
		end = at;
		end.tm_mday++;
		*ret_from = mktime(&at);
		*ret_to = mktime(&end);
		return true;
	}
	if (rest && *rest != ' ' && *rest != 'T')
		return false;
	if (!parse_clock(rest ? rest + 1 : text, &at, &seconds))
		return false;
	end = at;
	*ret_from = mktime(&at);
	if (!rest && *ret_from > now) {
		end.tm_mday--;
		*ret_from = mktime(&end);
	}
	*ret_to = *ret_from + (seconds ? 1 : 60);
	return true;
}

/* ------------------------------------------------------------------ writing */

#define UTC_LENGTH 20 /* of "2026-03-01T14:03:20Z" */

static void write_local(const char *utc, FILE *out)
{
	char text[UTC_LENGTH + 1], local[40];
	const char *reason;
	time_t seconds;
	struct tm tm;
	u64 ns;

	snprintf(text, sizeof(text), "%s", utc);
	if (utc_parse(text, &ns, &reason) < 0) {
		fputs(text, out);
		return;
	}
	seconds = (time_t)(ns / SL_NS_PER_SEC);
	localtime_r(&seconds, &tm);
	strftime(local, sizeof(local), "%Y-%m-%dT%H:%M:%S", &tm);
	fputs(local, out);
	if (tm.tm_gmtoff)
		fprintf(out, "%c%02ld:%02ld", tm.tm_gmtoff < 0 ? '-' : '+',
			labs(tm.tm_gmtoff) / 3600, labs(tm.tm_gmtoff) / 60 % 60);
	else
		fputc('Z', out);
}

static bool begins_with_utc(const char *text)
{
	static const char form[] = "dddd-dd-ddTdd:dd:ddZ";

	for (size_t i = 0; form[i]; i++)
		if (form[i] == 'd' ? text[i] < '0' || text[i] > '9' : text[i] != form[i])
			return false;
	return true;
}

static json_t *localized(const char *text)
{
	char *written = NULL;
	size_t size;
	FILE *out = open_memstream(&written, &size);
	json_t *string;

	if (!out)
		return NULL;
	while (*text)
		if (begins_with_utc(text)) {
			write_local(text, out);
			text += UTC_LENGTH;
		} else {
			fputc(*text++, out);
		}
	fclose(out);
	string = json_string(written);
	free(written);
	return string;
}

void when_localize(json_t *json)
{
	json_t *member, *string;
	const char *key;
	size_t i;

	json_array_foreach(json, i, member)
		when_localize(member);
	json_object_foreach(json, key, member) {
		string = json_is_string(member) ? localized(json_string_value(member)) : NULL;
		if (string)
			json_object_set_new(json, key, string);
		else
			when_localize(member);
	}
}
