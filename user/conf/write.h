/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* write.h - lines of YAML. */
#ifndef SLUICE_CONF_WRITE_H
#define SLUICE_CONF_WRITE_H

#include <stdbool.h>
#include <stdio.h>

#include "lib/addr.h"
#include "lib/units.h"

struct writer {
	FILE *out;
	int indent;
	bool item;   /* the next line begins an item of a list: "- " */
	bool any;    /* something was written */
	bool failed; /* out of memory */
};

/* The indent of a line; an item's dash stands in its last two columns. */
void write_begin(struct writer *w);
/* In quotes: text of a tree is printable and on one line (tree.c), so a quote within it is
 * doubled. */
void write_quoted(FILE *out, const char *text, char quote);
/* A value as it is, or in quotes where it needs them. */
void write_text(FILE *out, const char *text);

/* Puts the value at `array`[i] into buf; returns how many elements that was (ICMP's pairs). */
typedef size_t write_format(const void *array, size_t i, size_t count, char *buf, size_t size);
write_format format_prefix;

/* A list, in one line or more; nothing where it is empty. */
void write_list(struct writer *w, const char *key, const void *array, size_t count,
		write_format *format);

#endif
