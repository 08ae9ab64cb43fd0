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

static void show_line(const struct scope *scope, const char *text)
{
	char *line = expanded(scope, text);

	if (line[0])
		printf("%s%s", line, line[strlen(line) - 1] == '\n' ? "" : "\n");
	free(line);
}

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

static void show_item(const struct show_part *part, const struct scope *scope, struct table *table)
{
	if (table)
		add_row(table, scope, part->columns);
	else
		show_line(scope, part->line);
}

/*
 * Each item of the array (or object) at `path`; behind a '/' each item of an array of the item.
 * `outer` is where a member is looked up that an item does not have.
 */
static void show_items(const struct show_part *part, const struct scope *scope,
		       const struct scope *outer, const char *path, struct table *table)
{
	const char *inner = strchr(path, '/');
	size_t length = inner ? (size_t)(inner - path) : strlen(path), i;
	bool always = length && path[length - 1] == '?';
	const json_t *list = scope_find(scope, path, length - always), *item;
	const char *key;

	json_array_foreach(list, i, item) {
		const struct scope one = { item, NULL, outer, scope->brief, !i };

		if (inner)
			show_items(part, &one, &one, inner + 1, table);
		else
			show_item(part, &one, table);
	}
	json_object_foreach((json_t *)list, key, item) {
		const struct scope one = { item, key, outer, scope->brief, false };

		show_item(part, &one, table);
	}
	if (always && !is_there(list)) {
		struct scope one = *scope;

		one.first = true;
		show_item(part, &one, table);
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

	for (; part->line || part->columns; part++) {
		struct table *table;

		if (!applies(part, result))
			continue;
		table = part->columns ? table_new(part->columns) : NULL;
		if (part->of)
			show_items(part, &all, NULL, part->of, table);
		else
			show_line(&all, part->line);
		if (table)
			table_print(table, part->none, width);
	}
}

int show_width(void)
{
	const char *columns = getenv("COLUMNS");
	struct winsize size;

	if (columns && atoi(columns) > 0)
		return atoi(columns);
	return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && isatty(STDOUT_FILENO) ? size.ws_col : 0;
}

void show_color(const char *code)
{
	static int wanted = -1;

	if (wanted < 0) {
		const char *off = getenv("NO_COLOR"), *term = getenv("TERM");

		wanted = isatty(STDOUT_FILENO) && (!off || !off[0]) && term && strcmp(term, "dumb") != 0;
	}
	if (wanted)
		printf("\033[%sm", code ? code : "0");
}
