// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* table.c - see table.h. */
#include "cli/table.h"
#include "cli/show.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

#define COLUMNS_MAX 16
#define GAP 2	     /* between columns */
#define CUT_LEAST 28 /* columns are hidden before a text is cut to less */

struct cell {
	char *text, *brief; /* brief may be NULL: as the text */
};

struct table {
	const struct column *column;
	size_t columns, count;
	struct cell *cell;
	int width[COLUMNS_MAX]; /* as printed; -1: hidden */
	bool brief;
};

static void *need(void *memory)
{
	if (!memory) {
		fputs("sluicectl: out of memory\n", stderr);
		exit(1);
	}
	return memory;
}

/* Continuation bytes do not count. */
size_t text_width(const char *text, size_t length)
{
	size_t width = 0;

	for (size_t i = 0; i < length; i++)
		width += ((unsigned char)text[i] & 0xc0) != 0x80;
	return width;
}

static int cell_width(const char *text)
{
	return (int)text_width(text, strlen(text));
}

static bool aligns_right(const struct table *table, size_t column)
{
	return table->column[column].heading[0] == '>';
}

static const char *heading(const struct table *table, size_t column)
{
	return table->column[column].heading + aligns_right(table, column);
}

static const char *text_at(const struct table *table, size_t row, size_t column)
{
	const struct cell *cell = &table->cell[row * table->columns + column];

	return table->brief && cell->brief ? cell->brief : cell->text;
}

struct table *table_new(const struct column *columns)
{
	struct table *table = need(calloc(1, sizeof(*table)));

	table->column = columns;
	while (columns[table->columns].heading && table->columns < COLUMNS_MAX)
		table->columns++;
	return table;
}

void table_cell(struct table *table, const char *text, const char *brief)
{
	table->cell = need(reallocarray(table->cell, table->count + 1, sizeof(*table->cell)));
	table->cell[table->count++] = (struct cell){ .text = need(strdup(text)),
						     .brief = brief ? need(strdup(brief)) : NULL };
}

/* ------------------------------------------------------------------ fitting */

static size_t row_count(const struct table *table)
{
	return table->count / table->columns;
}

/* True if every cell of the column is one of the two texts. */
static bool only(const struct table *table, size_t column, const char *a, const char *b)
{
	for (size_t row = 0; row < row_count(table); row++) {
		const char *text = text_at(table, row, column);

		if (strcmp(text, a) != 0 && strcmp(text, b) != 0)
			return false;
	}
	return true;
}

/* `fits`: columns of zeros that may be hidden are; those with `some` are in any case. */
static void measure(struct table *table, bool fits)
{
	for (size_t i = 0; i < table->columns; i++) {
		bool zeros = table->column[i].some || (fits && table->column[i].hide);

		if (only(table, i, "", " ") || (zeros && only(table, i, "0", "-"))) {
			table->width[i] = -1;
			continue;
		}
		table->width[i] = cell_width(heading(table, i));
		for (size_t row = 0; row < row_count(table); row++) {
			int width = cell_width(text_at(table, row, i));

			if (width > table->width[i])
				table->width[i] = width;
		}
	}
}

/* How narrow a column may get: 0 cuts nothing, 1 texts to CUT_LEAST, 2 texts, 3 all, to the
 * heading. */
static int least_width(const struct table *table, size_t column, int level)
{
	int title = cell_width(heading(table, column)), width = table->width[column];
	bool fixed = aligns_right(table, column) || table->column[column].keep;
	int least = level < 2 && title < CUT_LEAST ? CUT_LEAST : title;

	if (!level || (fixed && level < 3) || width < least)
		return width;
	return least;
}

static int total(const struct table *table, int level)
{
	int sum = -GAP;

	for (size_t i = 0; i < table->columns; i++)
		if (table->width[i] >= 0)
			sum += GAP + least_width(table, i, level);
	return sum;
}

/* Hides the next column. False if none is left. */
static bool hide_one(struct table *table)
{
	size_t best = COLUMNS_MAX;

	for (size_t i = 0; i < table->columns; i++)
		if (table->column[i].hide && table->width[i] >= 0 &&
		    (best == COLUMNS_MAX || table->column[i].hide < table->column[best].hide))
			best = i;
	if (best == COLUMNS_MAX)
		return false;
	table->width[best] = -1;
	return true;
}

/* Takes what is too much from the widest columns. */
static void cut(struct table *table, int width, int level)
{
	while (total(table, 0) > width) {
		size_t widest = COLUMNS_MAX;

		for (size_t i = 0; i < table->columns; i++)
			if (table->width[i] > least_width(table, i, level) &&
			    (widest == COLUMNS_MAX || table->width[i] > table->width[widest]))
				widest = i;
		if (widest == COLUMNS_MAX)
			return;
		table->width[widest]--;
	}
}

static void fit(struct table *table, int width)
{
	measure(table, width != 0);
	if (!width)
		return;
	if (total(table, 0) <= width)
		return;
	table->brief = true;
	measure(table, true);
	while (total(table, 1) > width && hide_one(table))
		;
	for (int level = 1; level <= 3; level++)
		cut(table, width, level);
}

/* ------------------------------------------------------------------ sorting */

static const char *sort_heading;
static bool was_sorted;

void table_sort_by(const char *heading)
{
	sort_heading = heading;
}

bool table_was_sorted(void)
{
	return was_sorted;
}

/* "1,234" and "1.5k" as numbers; false if the text is none. */
static bool number_in(const char *text, double *ret)
{
	static const char unit[] = "kMGT";
	char digits[64];
	size_t used = 0;
	const char *at;
	char *end;

	for (; *text && used + 1 < sizeof(digits); text++)
		if (*text != ',')
			digits[used++] = *text;
	digits[used] = '\0';
	*ret = strtod(digits, &end);
	if (end == digits)
		return false;
	at = *end ? strchr(unit, *end) : NULL;
	for (ptrdiff_t i = 0; at && i <= at - unit; i++)
		*ret *= 1000;
	return true;
}

/* Cells that are numbers before others, the largest first; text from A. */
static int by_cell(const void *pa, const void *pb, void *column)
{
	const char *a = ((const struct cell *)pa)[*(size_t *)column].text;
	const char *b = ((const struct cell *)pb)[*(size_t *)column].text;
	double x, y;
	bool a_counts = number_in(a, &x), b_counts = number_in(b, &y);

	if (a_counts && b_counts)
		return (x < y) - (x > y);
	return a_counts != b_counts ? b_counts - a_counts : strcmp(a, b);
}

static void sort_rows(struct table *table)
{
	for (size_t i = 0; sort_heading && i < table->columns; i++) {
		if (strcasecmp(heading(table, i), sort_heading) != 0)
			continue;
		was_sorted = true;
		if (table->count)
			qsort_r(table->cell, row_count(table),
				table->columns * sizeof(*table->cell), by_cell, &i);
		return;
	}
}

/* ------------------------------------------------------------------ printing */

/* States that a reader looks for. */
static const char *color_of(const char *text)
{
	static const char *const red[] = { "over", "removed", "replaced", "failed", "down",
					   "gone", "drop",    "blocked",  "banned", "REFUSED" };
	static const char *const yellow[] = { "shadow", "generic", "absent", "tag",
					      "pushed", "left",	   "off" };
	static const char *const green[] = { "native", "alive", "up", "exempt" };
	static const struct {
		const char *code;
		const char *const *word;
		size_t count;
	} colors[] = { { "31", red, sizeof(red) / sizeof(red[0]) },
		       { "33", yellow, sizeof(yellow) / sizeof(yellow[0]) },
		       { "32", green, sizeof(green) / sizeof(green[0]) } };

	for (size_t i = 0; i < sizeof(colors) / sizeof(colors[0]); i++)
		for (size_t k = 0; k < colors[i].count; k++)
			if (!strcmp(text, colors[i].word[k]))
				return colors[i].code;
	return NULL;
}

/* The text, or its beginning and an ellipsis. */
static void print_cut(const char *text, int width)
{
	int at = 0;

	if (cell_width(text) <= width) {
		fputs(text, stdout);
		return;
	}
	for (; *text; text++) {
		at += ((unsigned char)*text & 0xc0) != 0x80;
		if (at >= width)
			break;
		putchar(*text);
	}
	fputs("…", stdout);
}

/* `row` is -1 for the headings. */
static void print_row(const struct table *table, ssize_t row)
{
	int blank = 0; /* printed before the next text: no line ends in blanks */

	for (size_t i = 0; i < table->columns; i++) {
		const char *text = row < 0 ? heading(table, i) : text_at(table, (size_t)row, i);
		int width = table->width[i], pad = width - cell_width(text);

		if (width < 0)
			continue;
		if (pad < 0)
			pad = 0;
		if (text[0] && strcmp(text, " ") != 0) {
			const char *color = row < 0 ? "1" : color_of(text);

			printf("%*s", blank + (aligns_right(table, i) ? pad : 0), "");
			if (color)
				show_color(color);
			print_cut(text, width);
			if (color)
				show_color(NULL);
			blank = aligns_right(table, i) ? GAP : pad + GAP;
		} else {
			blank += width + GAP;
		}
	}
	putchar('\n');
}

/* "not shown: SINCE, UNTIL (-o wide shows all)", folded. */
static void print_hidden(const struct table *table, int width)
{
	const char *before = "not shown: ";
	int at = 0;

	for (size_t i = 0; i < table->columns; i++) {
		int length = cell_width(heading(table, i)) + 2;

		if (table->width[i] >= 0 || only(table, i, "", " ") ||
		    (table->column[i].some && only(table, i, "0", "-")))
			continue;
		if (at && at + length + 22 > width) {
			printf(",\n           ");
			before = "";
			at = 11;
		}
		at += printf("%s%s", before, heading(table, i));
		before = ", ";
	}
	if (at)
		printf(" (-o wide shows all)\n");
}

void table_print(struct table *table, const char *none, int width)
{
	sort_rows(table);
	if (!table->count) {
		printf("%s\n", none);
	} else {
		fit(table, width);
		for (ssize_t row = -1; row < (ssize_t)row_count(table); row++)
			print_row(table, row);
		print_hidden(table, width);
	}
	for (size_t i = 0; i < table->count; i++) {
		free(table->cell[i].text);
		free(table->cell[i].brief);
	}
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
		/* Of something that happens now and then, not 0. */
		snprintf(buf, size, "%.*f",
			 per_second >= 0.05 && per_second < 9.95 &&
				 per_second != (double)(int)per_second,
			 per_second);
	else
		snprintf(buf, size, "%.*f%c",
			 per_second < 9.995   ? 2
			 : per_second < 99.95 ? 1
					      : 0,
			 per_second, unit[step]);
	return buf;
}
