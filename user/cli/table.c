// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* table.c - see table.h. */
#include "cli/table.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COLUMNS_MAX 16

struct table {
	size_t columns;
	bool right[COLUMNS_MAX];
	int width[COLUMNS_MAX];
	char **cell;		/* the first row has the headings */
	size_t count;
};

static void *need(void *memory)
{
	if (!memory) {
		fputs("sluicectl: out of memory\n", stderr);
		exit(1);
	}
	return memory;
}

/* Characters on the screen: continuation bytes of UTF-8 do not count. */
static int text_width(const char *text)
{
	int width = 0;

	for (; *text; text++)
		width += ((unsigned char)*text & 0xc0) != 0x80;
	return width;
}

static void add_cell(struct table *table, char *text)
{
	size_t column = table->count % table->columns;
	int width = text_width(text);

	table->cell = need(reallocarray(table->cell, table->count + 1, sizeof(*table->cell)));
	table->cell[table->count++] = text;
	if (width > table->width[column])
		table->width[column] = width;
}

struct table *table_new(const char *headings)
{
	struct table *table = need(calloc(1, sizeof(*table)));

	table->columns = 1;
	for (const char *c = headings; *c; c++)
		table->columns += *c == '|';
	for (size_t i = 0; i < table->columns; i++) {
		size_t length = strcspn(headings, "|");

		table->right[i] = headings[0] == '>';
		add_cell(table, need(strndup(headings + table->right[i],
					     length - table->right[i])));
		headings += length + (headings[length] == '|');
	}
	return table;
}

void table_cell(struct table *table, const char *format, ...)
{
	char *text;
	va_list args;

	va_start(args, format);
	if (vasprintf(&text, format, args) < 0)
		text = NULL;
	va_end(args);
	add_cell(table, need(text));
}

static void print_row(const struct table *table, size_t row)
{
	size_t columns = table->columns;

	/* No trailing blanks. */
	while (columns > 1 && !table->cell[row * table->columns + columns - 1][0])
		columns--;
	for (size_t i = 0; i < columns; i++) {
		const char *text = table->cell[row * table->columns + i];
		int pad = table->width[i] - text_width(text);

		if (table->right[i])
			printf("%*s%s", pad, "", text);
		else if (i + 1 < columns)
			printf("%s%*s", text, pad, "");
		else
			printf("%s", text);
		printf("%s", i + 1 < columns ? "  " : "\n");
	}
}

void table_print(struct table *table, const char *none)
{
	size_t rows = table->count / table->columns;

	if (rows < 2)
		printf("%s\n", none);
	for (size_t row = 0; rows > 1 && row < rows; row++)
		print_row(table, row);
	for (size_t i = 0; i < table->count; i++)
		free(table->cell[i]);
	free(table->cell);
	free(table);
}

const char *thousands(unsigned long long value, char *buf, size_t size)
{
	char digits[32], text[48];
	int length = snprintf(digits, sizeof(digits), "%llu", value), at = 0;

	for (int i = 0; i < length; i++) {
		if (i && (length - i) % 3 == 0)
			text[at++] = ',';
		text[at++] = digits[i];
	}
	text[at] = '\0';
	snprintf(buf, size, "%s", text);
	return buf;
}

const char *short_rate(double per_second, char *buf, size_t size)
{
	static const char unit[] = { '\0', 'k', 'M', 'G' };
	size_t step = 0;

	while (per_second >= 999.5 && step + 1 < sizeof(unit)) {
		per_second /= 1000;
		step++;
	}
	if (!step)
		snprintf(buf, size, "%.0f", per_second);
	else
		snprintf(buf, size, "%.*f%c", per_second < 9.995 ? 2 : per_second < 99.95 ? 1 : 0,
			 per_second, unit[step]);
	return buf;
}
