// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * write.c - see write.h. All text of a model is printable (tree.c), so quoting is doubling the
 * quote.
 */
#include "conf/write.h"

#include <string.h>

#define FLOW_MAX 8 /* longer lists go one value to a line */

void write_begin(struct writer *w)
{
	if (w->item)
		fprintf(w->out, "%*s- ", w->indent - 2, "");
	else
		fprintf(w->out, "%*s", w->indent, "");
	w->item = false;
	w->any = true;
}

void write_quoted(FILE *out, const char *text, char quote)
{
	fputc(quote, out);
	for (; *text; text++) {
		if (*text == quote)
			fputc(quote, out);
		fputc(*text, out);
	}
	fputc(quote, out);
}

void write_text(FILE *out, const char *text)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				    "0123456789./_-";

	/* a plain null would be an empty value: yaml_node_is_null() */
	if (*text && *text != '-' && strspn(text, plain) == strlen(text) && strcmp(text, "null")) {
		fputs(text, out);
		return;
	}
	write_quoted(out, text, '\'');
}

void write_list(struct writer *w, const char *key, const void *array, size_t count,
		write_format *format)
{
	bool flow = count <= FLOW_MAX;
	char buf[SL_NAME_MAX + 2]; /* a prefix, or a set's name with its '@' */
	size_t i;

	if (!count)
		return;
	write_begin(w);
	fprintf(w->out, flow ? "%s: [" : "%s:\n", key);
	for (i = 0; i < count;) {
		if (!flow)
			fprintf(w->out, "%*s- ", w->indent + 2, "");
		else if (i)
			fputs(", ", w->out);
		i += format(array, i, count, buf, sizeof(buf));
		write_text(w->out, buf);
		if (!flow)
			fputc('\n', w->out);
	}
	if (flow)
		fputs("]\n", w->out);
}

size_t format_prefix(const void *array, size_t i, size_t count, char *buf, size_t size)
{
	sl_prefix_format((const struct sl_prefix *)array + i, buf, size);
	return 1;
}
