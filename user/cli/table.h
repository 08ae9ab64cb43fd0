/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* table.h - tables with aligned columns that fit the terminal, and numbers formatted for people. */
#ifndef SLUICE_CLI_TABLE_H
#define SLUICE_CLI_TABLE_H

#include <stdbool.h>
#include <stddef.h>

#include "command/command.h"

struct table;

/* Columns up to one without a heading. Out of memory, the program exits: it is a CLI. */
struct table *table_new(const struct column *columns);
/* The next cell, row by row, and (or NULL) a shorter text of the same meaning, "1.23M" for
 * "1,234,567". */
void table_cell(struct table *table, const char *text, const char *brief);
/*
 * Prints all rows and frees the table. Without rows it prints the line `none`. Columns whose cells
 * are all empty are left out. No line is longer than `width` (0: unlimited): numbers get brief,
 * columns that may be hidden are, those of zeros first, and texts are cut; a line below the table
 * names the columns that are hidden.
 */
void table_print(struct table *table, const char *none, int width);

/*
 * From now on rows are sorted by the column with this heading (in any case): numbers from the
 * largest, text from A. NULL: as they come.
 */
void table_sort_by(const char *heading);
/* Whether a table had that column. */
bool table_was_sorted(void);

/* Characters on the screen of `length` bytes of UTF-8. */
size_t text_width(const char *text, size_t length);
/* 1234567 -> "1,234,567"; returns buf. */
const char *thousands(unsigned long long value, char *buf, size_t size);
/* A rate in three digits: "0", "12", "1.23k", "4.56M"; returns buf. */
const char *short_rate(double per_second, char *buf, size_t size);

#endif
