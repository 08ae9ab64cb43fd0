// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* splice.c - see splice.h. */
#include "conf/splice.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/array.h"

static void splice(struct editing *e, size_t begin, size_t end, char *with, size_t size)
{
	struct splice one = { begin, end, with, size, e->count };

	if (e->rc || append(e->splice, e->count, one)) {
		free(with);
		e->rc = e->rc ? e->rc : -ENOMEM;
	}
}

FILE *splice_begin(struct editing *e, struct writing *w)
{
	*w = (struct writing){ 0 };
	w->out = e->rc ? NULL : open_memstream(&w->text, &w->size);
	if (!w->out && !e->rc)
		e->rc = -ENOMEM;
	return w->out;
}

void splice_end(struct editing *e, struct writing *w, size_t begin, size_t end)
{
	if (fclose(w->out)) {
		free(w->text);
		e->rc = -ENOMEM;
		return;
	}
	splice(e, begin, end, w->text, w->size);
}

void splice_cut(struct editing *e, size_t begin, size_t end)
{
	if (begin < end)
		splice(e, begin, end, NULL, 0);
}

/* An insertion at a position comes before a removal that starts there. */
static int compare_splices(const void *left, const void *right)
{
	const struct splice *a = left, *b = right;

	if (a->begin != b->begin)
		return a->begin < b->begin ? -1 : 1;
	if ((a->begin == a->end) != (b->begin == b->end))
		return a->begin == a->end ? -1 : 1;
	return a->order < b->order ? -1 : 1;
}

/* Uses the line breaks of the text. */
static void put_lines(FILE *out, const char *text, size_t size, bool crlf)
{
	for (size_t i = 0; i < size; i++) {
		if (crlf && text[i] == '\n')
			fputc('\r', out);
		fputc(text[i], out);
	}
}

int splice_all(struct editing *e, char **ret, size_t *ret_size)
{
	const char *line = memchr(e->text, '\n', e->size);
	bool crlf = line && line > e->text && line[-1] == '\r';
	FILE *out = open_memstream(ret, ret_size);
	size_t at = 0;
	int rc = 0;

	if (!out)
		return -ENOMEM;
	if (e->count)
		qsort(e->splice, e->count, sizeof(*e->splice), compare_splices);
	for (size_t i = 0; i < e->count && !rc; i++) {
		const struct splice *one = &e->splice[i];

		if (one->begin < at) {
			rc = -EINVAL;
			break;
		}
		fwrite(e->text + at, 1, one->begin - at, out);
		put_lines(out, one->with, one->size, crlf);
		at = one->end;
	}
	fwrite(e->text + at, 1, e->size - at, out);
	if (fclose(out) && !rc)
		rc = -ENOMEM;
	if (rc) {
		free(*ret);
		*ret = NULL;
	}
	return rc;
}

void splices_free(struct editing *e)
{
	for (size_t i = 0; i < e->count; i++)
		free(e->splice[i].with);
	free(e->splice);
}

/* ---- lines ---- */

size_t line_begin(const struct editing *e, size_t at)
{
	while (at && e->text[at - 1] != '\n')
		at--;
	return at;
}

size_t line_end(const struct editing *e, size_t at)
{
	const char *end = memchr(e->text + at, '\n', e->size - at);

	if (!end)
		return e->size;
	return (size_t)(end - e->text) - (end > e->text + at && end[-1] == '\r');
}

size_t line_before(const struct editing *e, size_t at)
{
	at = line_begin(e, at);
	return at ? line_end(e, line_begin(e, at - 1)) : 0;
}

size_t next_line(const struct editing *e, size_t at)
{
	const char *end = memchr(e->text + at, '\n', e->size - at);

	return end ? (size_t)(end + 1 - e->text) : e->size;
}

bool is_first_in_line(const struct editing *e, size_t at)
{
	while (at && e->text[at - 1] == ' ')
		at--;
	return !at || e->text[at - 1] == '\n';
}

bool is_comment_at(const struct editing *e, size_t begin, size_t column)
{
	size_t at = begin;

	while (at < e->size && e->text[at] == ' ')
		at++;
	return at < e->size && e->text[at] == '#' && at - begin == column;
}
