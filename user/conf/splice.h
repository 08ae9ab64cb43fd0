/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* splice.h - a text with a list of removals and insertions, for text_edit.c. */
#ifndef SLUICE_SPLICE_H
#define SLUICE_SPLICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct splice {
	size_t begin, end; /* the removed bytes */
	char *with;
	size_t size, order;
};

struct editing {
	const char *text;
	size_t size;
	struct splice *splice;
	size_t count;
	int rc; /* the first error; nothing is done after it */
};

/* Text written to ->out replaces the bytes given to splice_end(). */
struct writing {
	FILE *out;
	char *text;
	size_t size;
};

/* NULL: an error, which is in e->rc. */
FILE *splice_begin(struct editing *e, struct writing *w);
void splice_end(struct editing *e, struct writing *w, size_t begin, size_t end);
void splice_cut(struct editing *e, size_t begin, size_t end);
/*
 * The text with all splices applied. Insertions at one position are in the order of the calls, and
 * before a removal that starts there. 0, -ENOMEM, or -EINVAL: they overlap.
 */
int splice_all(struct editing *e, char **ret, size_t *ret_size);
void splices_free(struct editing *e);

/* Lines of the text. The end is before the line break. */
size_t line_begin(const struct editing *e, size_t at);
size_t line_end(const struct editing *e, size_t at);
/* The end of the line before. */
size_t line_before(const struct editing *e, size_t at);
size_t next_line(const struct editing *e, size_t at);
bool is_first_in_line(const struct editing *e, size_t at);
/* Whether the line that begins there has only a comment in that column. */
bool is_comment_at(const struct editing *e, size_t begin, size_t column);

#endif
