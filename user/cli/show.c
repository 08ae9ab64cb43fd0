// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* show.c - see show.h. */
#include "cli/show.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cli/expand.h"
#include "cli/table.h"

/* ------------------------------------------------------------------ lines */

#define LABEL_MAX 24

/* Where a folded line goes on: behind its label ("file          /etc/..."), else two further in. */
static size_t hanging(const char *line, size_t length)
{
	size_t begin = strspn(line, " "), at = begin;

	while (at < length && at < LABEL_MAX && strncmp(line + at, "  ", 2) != 0)
		at++;
	if (at < length && at < LABEL_MAX)
		return at + strspn(line + at, " ");
	return begin >= 8 ? begin : begin + 2;
}

/*
 * One line, folded at blanks to `width` characters. A word is never divided: names and commands are
 * copied from here.
 */
static void print_folded(const char *line, size_t length, size_t width)
{
	size_t indent = hanging(line, length), column = 0, at = 0;
	bool begins = true;

	if (indent > width / 2)
		indent = 2;
	while (at < length) {
		size_t blanks = strspn(line + at, " "), size;

		at += blanks;
		size = strcspn(line + at, " \n");
		if (!begins && column + blanks + text_width(line + at, size) > width) {
			printf("\n%*s", (int)indent, "");
			column = indent;
		} else {
			printf("%*s", (int)blanks, "");
			column += blanks;
		}
		fwrite(line + at, 1, size, stdout);
		column += text_width(line + at, size);
		at += size;
		begins = false;
	}
	putchar('\n');
}

static void show_line(const struct show_part *part, const struct scope *scope, int width)
{
	struct scope own = *scope;
	char *text;

	own.verbatim = part->verbatim;
	text = expanded(&own, part->line);

	for (const char *line = text; *line;) {
		size_t length = strcspn(line, "\n");

		if (!width || part->verbatim || text_width(line, length) <= (size_t)width)
			printf("%.*s\n", (int)length, line);
		else
			print_folded(line, length, (size_t)width);
		line += length + (line[length] == '\n');
	}
	free(text);
}

/* ------------------------------------------------------------------ parts */

/* Where items go: into the table, or without one to lines of this width. */
struct shown {
	struct table *table;
	int width;
};

static void add_row(struct table *table, const struct scope *scope, const struct column *column)
{
	for (; column->heading; column++) {
		struct scope narrow = *scope;
		char *text = expanded(scope, column->cell), *brief;

		narrow.brief = true;
		brief = expanded(&narrow, column->cell);
		table_cell(table, text, brief);
		free(text);
		free(brief);
	}
}

static void show_item(const struct show_part *part, const struct scope *scope,
		      const struct shown *to)
{
	if (to->table)
		add_row(to->table, scope, part->columns);
	else
		show_line(part, scope, to->width);
}

/*
 * Each item of the array (or object) at `path`; behind a '/' each item of an array of the item.
 * `outer` is where a member is looked up that an item does not have.
 */
static void show_items(const struct show_part *part, const struct scope *scope,
		       const struct scope *outer, const char *path, const struct shown *to)
{
	const char *inner = strchr(path, '/');
	size_t length = inner ? (size_t)(inner - path) : strlen(path), i;
	bool always = length && path[length - 1] == '?';
	const json_t *list = scope_find(scope, path, length - always), *item;
	const char *key;

	json_array_foreach(list, i, item) {
		const struct scope one = { .item = item, .outer = outer, .first = !i };

		if (inner)
			show_items(part, &one, &one, inner + 1, to);
		else
			show_item(part, &one, to);
	}
	json_object_foreach((json_t *)list, key, item) {
		const struct scope one = { .item = item, .key = key, .outer = outer };

		show_item(part, &one, to);
	}
	if (always && !is_there(list)) {
		struct scope one = *scope;

		one.first = true;
		show_item(part, &one, to);
	}
}

static bool applies(const struct show_part *part, const json_t *result)
{
	const char *when = part->when;
	bool reversed = when && when[0] == '!';

	if (!when)
		return true;
	when += reversed;
	/* An empty list is there, too. */
	return reversed != (is_there(json_object_get(result, when)) ||
			    json_is_array(json_object_get(result, when)));
}

void show_parts(const struct show_part *part, const json_t *result, int width)
{
	const struct scope all = { .item = result };
	char *none;

	for (; part->line || part->columns; part++) {
		struct shown to = { .width = width };

		if (!applies(part, result))
			continue;
		to.table = part->columns ? table_new(part->columns) : NULL;
		if (part->of)
			show_items(part, &all, NULL, part->of, &to);
		else
			show_line(part, &all, width);
		if (to.table) {
			none = expanded(&all, part->none);
			table_print(to.table, none, width);
			free(none);
		}
	}
}

int show_width(void)
{
	const char *columns = getenv("COLUMNS");
	struct winsize size;

	if (columns && atoi(columns) > 0)
		return atoi(columns);
	return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && isatty(STDOUT_FILENO) ? size.ws_col
										     : 0;
}

void show_color(const char *code)
{
	static int wanted = -1;

	if (wanted < 0) {
		const char *off = getenv("NO_COLOR"), *term = getenv("TERM");

		wanted = isatty(STDOUT_FILENO) && (!off || !off[0]) && term &&
			 strcmp(term, "dumb") != 0;
	}
	if (wanted)
		printf("\033[%sm", code ? code : "0");
}
