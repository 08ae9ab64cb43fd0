// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* when.c - see when.h. Days are those of the local time zone: mktime() knows their length. */
#include "cli/when.h"

#include <stdio.h>
#include <string.h>

/* The day's begin in *ret, and what stands behind the day; NULL: `text` begins with no day. */
static const char *parse_day(const char *text, const struct tm *today, struct tm *ret)
{
	int year, month, day, length = 0;

	*ret = (struct tm){ .tm_year = today->tm_year, .tm_mon = today->tm_mon,
			    .tm_mday = today->tm_mday, .tm_isdst = -1 };
	if (!strncmp(text, "today", 5))
		return text + 5;
	if (!strncmp(text, "yesterday", 9)) {
		ret->tm_mday--;
		return text + 9;
	}
	if (sscanf(text, "%4d-%2d-%2d%n", &year, &month, &day, &length) != 3 || !length || year < 1970 ||
	    month < 1 || month > 12 || day < 1 || day > 31)
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
			      &length) == 3 && length && !text[length];
	if (!*ret_seconds) {
		ret->tm_sec = length = 0;
		if (sscanf(text, "%2d:%2d%n", &ret->tm_hour, &ret->tm_min, &length) != 2 || !length ||
		    text[length])
			return false;
	}
	return ret->tm_hour >= 0 && ret->tm_hour < 24 && ret->tm_min >= 0 && ret->tm_min < 60 &&
	       ret->tm_sec >= 0 && ret->tm_sec < 61;
}

bool when_parse(const char *text, time_t now, time_t *ret_from, time_t *ret_to)
{
	struct tm today, at, end;
	const char *rest;
	bool seconds;

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
