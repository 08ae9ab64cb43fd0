/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* table.h - tables with aligned columns, and numbers formatted for people. */
#ifndef SLUICE_CLI_TABLE_H
#define SLUICE_CLI_TABLE_H

#include <stddef.h>

struct table;

/*
 * '|' separates the headings; '>' before a heading aligns its column to the right:
 * "LIMIT|RATE|>PASSED". Out of memory, the program exits: it is a CLI.
 */
struct table *table_new(const char *headings);
/* The next cell, row by row; cells are formatted at once. */
void table_cell(struct table *table, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* Prints all rows and frees the table. Without rows it prints the line `none`. */
void table_print(struct table *table, const char *none);

/* 1234567 -> "1,234,567"; returns buf. */
const char *thousands(unsigned long long value, char *buf, size_t size);
/* A rate in three digits: "0", "12", "1.23k", "4.56M"; returns buf. */
const char *short_rate(double per_second, char *buf, size_t size);

#endif
