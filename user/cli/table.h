/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* table.h - columns that line up, and numbers a person reads at a glance. */
#ifndef SLUICE_CLI_TABLE_H
#define SLUICE_CLI_TABLE_H

#include <stddef.h>

struct table;

/*
 * Headings are separated by '|'; one that begins with '>' has its column to the right:
 * "LIMIT|RATE|>PASSED". Memory that runs out ends the program: it is a CLI.
 */
struct table *table_new(const char *headings);
/* The next cell, row by row; cells are formatted at once. */
void table_cell(struct table *table, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* Prints all rows, and frees the table. Without rows it prints `none` on a line. */
void table_print(struct table *table, const char *none);

/* 1234567 -> "1,234,567"; returns buf. */
const char *thousands(unsigned long long value, char *buf, size_t size);
/* A rate in three digits: "0", "12", "1.23k", "4.56M"; returns buf. */
const char *short_rate(double per_second, char *buf, size_t size);

#endif
