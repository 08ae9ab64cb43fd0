/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* splice.h - a text, and what is to be cut out of it and put into it, for text_edit.c. */
#ifndef SLUICE_SPLICE_H
#define SLUICE_SPLICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct splice {
	size_t begin, end; /* the bytes that go */
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

/* What is written to ->out goes where splice_end() puts it, in the place of those bytes. */
struct writing {
	FILE *out;
	char *text;
	size_t size;
};

/* NULL: an error, that is in e->rc. */
FILE *splice_begin(struct editing *e, struct writing *w);
void splice_end(struct editing *e, struct writing *w, size_t begin, size_t end);
void splice_cut(struct editing *e, size_t begin, size_t end);
/*
 * The text with all of them done. At one place, what is put in comes in the order of the calls, and
 * before what is cut out behind it. 0, -ENOMEM, or -EINVAL: they overlap.
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
/* The line that begins there is nothing but a comment in that column. */
bool is_comment_at(const struct editing *e, size_t begin, size_t column);

#endif
