// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* override_lines.c - see override_lines.h. */
#include "config/override_lines.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "conf/config_text.h"

int override_line_fail(const struct override_lines *lines, int line, size_t column,
		       const char *format, ...)
{
	const struct reader *r = lines->r;
	char words[400];
	va_list args;

	va_start(args, format);
	vsnprintf(words, sizeof(words), format, args);
	va_end(args);
	return sl_err_at(r->err, EINVAL, lines->file, line, (int)column + 1, "%s%s%s: %s",
			 r->subject, r->subject[0] ? ": " : "", r->path, words);
}

/* Terminates a text at `end`, without blanks there. */
static char *cut_text(char *start, char *end)
{
	while (end > start && strchr(" \t\r", end[-1]))
		end--;
	*end = 0;
	return start;
}

char *override_field(char **text, char apart)
{
	char *start = *text + strspn(*text, " \t"), *end = strchrnul(start, apart);

	*text = *end ? end + 1 : end;
	return cut_text(start, end);
}

/* The key at the start of a line: *text then points after its comma. at NULL: no comma. */
static struct bytes cut_key(char **text)
{
	char *start = *text + strspn(*text, " \t"), *end, *to;

	if (*start != '"') {
		if (!strchr(start, ','))
			return (struct bytes){ NULL, 0 };
		*text = start;
		start = override_field(text, ',');
		return (struct bytes){ start, strlen(start) };
	}
	for (to = ++start, end = start; *end && !(*end == '"' && end[1] != '"'); end++) {
		end += *end == '"';
		*to++ = *end;
	}
	*text = *end ? end + 1 : end;
	*text += strspn(*text, " \t");
	if (!*end || **text != ',')
		return (struct bytes){ NULL, 0 };
	++*text;
	*to = 0;
	return (struct bytes){ start, to - start };
}

static bool is_header(const struct override_lines *lines, struct bytes key, const char *rest)
{
	return !strcasecmp(key.at, lines->header[0]) &&
	       !strncasecmp(rest + strspn(rest, " "), lines->header[1], strlen(lines->header[1]));
}

static int find_plan(struct override_lines *lines, char *text, int line, size_t column, u32 *ret)
{
	u64 hash = hash_bytes(hash_seed(), 3, text, strlen(text));
	int rc;

	if (numbers_find(&lines->plans, hash, ret))
		return 0;
	rc = lines->plan(lines->arg, text, line, column, ret);
	return !rc && numbers_add(&lines->plans, hash, *ret) ? read_no_memory(lines->r) : rc;
}

static int take_line(void *arg, char *line, int number)
{
	struct override_lines *lines = arg;
	char *rest = line + strspn(line, " \t\r");
	bool first = !lines->began;
	struct bytes key;
	u32 plan = 0;
	int rc;

	if (!*rest || *rest == '#')
		return 0;
	lines->began = true;
	key = cut_key(&rest);
	if (!key.at)
		return override_line_fail(lines, number, 0, "found no comma after %s; accepted: %s",
					  lines->header[0], lines->form);
	if (first && is_header(lines, key, rest))
		return 0;
	*strchrnul(rest, '#') = 0;
	rc = lines->key(lines->arg, key, number, key.at - line);
	if (!rc && lines->plan)
		rc = find_plan(lines, rest, number, rest - line, &plan);
	return rc || !lines->add ? rc : lines->add(lines->arg, plan);
}

int override_lines_read(struct override_lines *lines)
{
	int rc = config_text_lines(lines->file, take_line, lines, &lines->digest, lines->r->err);

	numbers_free(&lines->plans);
	return rc;
}
