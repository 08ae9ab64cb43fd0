// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* scenario.c - see scenario.h. */
#include "lib/scenario.h"

#include <stdlib.h>
#include <string.h>

/* The end of the word that begins at *ret_begin. */
static const char *word_at(const char *at, const char **ret_begin)
{
	*ret_begin = at + strspn(at, " \t");
	return *ret_begin + strcspn(*ret_begin, " \t");
}

/* "1.5s" at its beginning; *end is behind it. */
static bool time_at(const char *text, const char **ret_end, s64 *ret_ns)
{
	static const struct {
		const char *name;
		double ns;
	} units[] = { { "ns", 1 },   { "us", 1e3 },   { "ms", 1e6 },   { "s", 1e9 },
		      { "m", 60e9 }, { "h", 3600e9 }, { "d", 86400e9 } };
	char *end;
	double value = strtod(text, &end);
	size_t length = strspn(end, "abcdefghijklmnopqrstuvwxyz");

	for (size_t i = 0; i < sizeof(units) / sizeof(*units) && end != text; i++) {
		if (strlen(units[i].name) != length || strncmp(end, units[i].name, length))
			continue;
		*ret_ns = (s64)(value * units[i].ns + (value < 0 ? -0.5 : 0.5));
		*ret_end = end + length;
		return true;
	}
	return false;
}

bool take_time(const char **at, s64 *ret_ns)
{
	const char *begin, *end = word_at(*at, &begin), *rest;

	if (!time_at(begin, &rest, ret_ns) || rest != end)
		return false;
	*at = end;
	return true;
}

bool take_times(const char **at, s64 *ret_from, s64 *ret_to)
{
	const char *begin, *end = word_at(*at, &begin), *rest;

	if (!time_at(begin, &rest, ret_from) || strncmp(rest, "..", 2) ||
	    !time_at(rest + 2, &rest, ret_to) || rest != end || *ret_to < *ret_from)
		return false;
	*at = end;
	return true;
}

bool take_literal(const char **at, const char *literal)
{
	const char *begin, *end = word_at(*at, &begin);

	if ((size_t)(end - begin) != strlen(literal) || strncmp(begin, literal, end - begin))
		return false;
	*at = end;
	return true;
}

bool take_word(const char **at, char *ret, size_t size)
{
	const char *begin, *end = word_at(*at, &begin);

	if (begin == end)
		return false;
	snprintf(ret, size, "%.*s", (int)(end - begin), begin);
	*at = end;
	return true;
}

bool take_number(const char **at, s64 *ret)
{
	const char *begin, *end = word_at(*at, &begin);
	char *rest;

	*ret = strtoll(begin, &rest, 10);
	if (begin == end || rest != end)
		return false;
	*at = end;
	return true;
}

u64 take_count(const char **at)
{
	const char *begin, *end = word_at(*at, &begin);
	char *rest;
	u64 count;

	if (*begin != 'x')
		return 1;
	count = strtoull(begin + 1, &rest, 10);
	if (rest != end || rest == begin + 1)
		return 1;
	*at = end;
	return count;
}

bool take_range(const char **at, struct scenario_range *ret)
{
	const char *begin, *end = word_at(*at, &begin);
	char *rest;

	if (*begin < '0' || *begin > '9')
		return false;
	ret->least = ret->most = strtoull(begin, &rest, 10);
	if (!strncmp(rest, "..", 2) && rest[2] >= '0' && rest[2] <= '9')
		ret->most = strtoull(rest + 2, &rest, 10);
	if (rest != end || ret->most < ret->least)
		return false;
	*at = end;
	return true;
}

bool at_end(const char *at)
{
	return at[strspn(at, " \t")] == 0;
}

bool in_range(const struct scenario_range *range, u64 value)
{
	return value >= range->least && value <= range->most;
}

char *scenario_text(FILE *in, int *line, const char *name, const char *value, bool *ret_varies)
{
	char *text, buf[512], *found;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	bool ended = false;

	*ret_varies = false;
	while (!ended && fgets(buf, sizeof(buf), in)) {
		(*line)++;
		ended = !strcmp(buf, "---\n");
		found = name ? strstr(buf, name) : NULL;
		if (found) {
			*ret_varies = true;
			fprintf(out, "%.*s%s%s", (int)(found - buf), buf, value,
				found + strlen(name));
		} else if (!ended) {
			fputs(buf, out);
		}
	}
	fclose(out);
	if (ended)
		return text;
	free(text);
	return NULL;
}

bool scenario_line(FILE *in, int *line, char *ret, size_t size)
{
	while (fgets(ret, (int)size, in)) {
		(*line)++;
		ret[strcspn(ret, "#\n")] = 0;
		if (!at_end(ret))
			return true;
	}
	return false;
}
