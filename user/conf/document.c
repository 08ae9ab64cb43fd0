// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* document.c - see document.h. */
#include "conf/document.h"

#include <string.h>

#define TEXT_MAX 2048
#define WIDTH 100 /* of a line in a Markdown list */

/* "`listen`, `grpc`, ..." of the row and those that share its help; returns the number of rows. */
static size_t format_names(const struct keys *keys, size_t i, const char *before, const char *after,
			   const char *apart, char *buf)
{
	size_t first = i;
	char *end = buf;

	do {
		end += sprintf(end, "%s%s%s%s", end == buf ? "" : apart, before, keys->key[i].name,
			       after);
		i++;
	} while (i < keys->count && !keys->key[i].help);
	return i - first;
}

/* "{users: 1M, on_full: open}": the keys of a mapping, each with its default. */
static void format_map(const struct keys *keys, char *buf)
{
	const char *apart = "{";

	*buf = 0;
	for (size_t i = 0; i < keys->count; i++) {
		const struct key *key = &keys->key[i];

		buf += sprintf(buf, "%s%s", apart, key->name);
		apart = ", ";
		if (key->type == &type_map) {
			buf += sprintf(buf, ": ");
			format_map(key->keys, buf);
			buf += strlen(buf);
		} else if (key->usual) {
			buf += sprintf(buf, ": %s", key->usual);
		}
	}
	strcpy(buf, "}");
}

/* The default between the two texts; without a default the row's `unset`, or "". */
static const char *format_usual(const struct key *key, const char *before, const char *after,
				char *buf)
{
	char map[TEXT_MAX / 2];

	if (key->unset)
		return key->unset;
	if (key->type == &type_map)
		format_map(key->keys, map);
	if (key->type == &type_map || key->usual)
		sprintf(buf, "%s%s%s", before, key->type == &type_map ? map : key->usual, after);
	else
		buf[0] = 0;
	return buf;
}

/* Wraps text to lines of WIDTH; lines after the first are indented. */
static void wrap(FILE *out, const char *text)
{
	size_t column = 0, len;

	for (; *text; text += len + (text[len] == ' ')) {
		len = strcspn(text, " ");
		if (column && column + 1 + len > WIDTH)
			column = (size_t)fprintf(out, "\n  ") - 1;
		else if (column)
			column += (size_t)fprintf(out, " ");
		column += (size_t)fprintf(out, "%.*s", (int)len, text);
	}
	fputc('\n', out);
}

void document_list(FILE *out, const struct keys *keys)
{
	char names[TEXT_MAX], usual[TEXT_MAX], text[3 * TEXT_MAX];

	for (size_t i = 0; i < keys->count;) {
		const struct key *key = &keys->key[i];
		const char *otherwise;

		i += format_names(keys, i, "`", "`", ", ", names);
		otherwise = format_usual(key, "`", "`", usual);
		snprintf(text, sizeof(text), "- %s%s%s%s: %s", names,
			 otherwise[0] ? " (default " : "", otherwise, otherwise[0] ? ")" : "",
			 key->help);
		wrap(out, text);
	}
}

/* Markdown as mdoc: `code` in bold, of a link its text, a sentence on each line. */
static void write_mdoc_text(FILE *out, const char *text)
{
	const char *begin = text, *c;
	bool code = false;

	for (c = text; *c; c++) {
		if (c == begin && strchr(".'", *c))
			fputs("\\&", out);
		if (*c == '`') {
			code = !code;
			fputs(code ? "\\fB" : "\\fP", out);
		} else if (*c == ']' && c[1] == '(') {
			c += strcspn(c, ")");
		} else if (*c == '\\') {
			fputs("\\e", out);
		} else if (*c == ' ' && !code && c > text && strchr(".", c[-1])) {
			fputc('\n', out);
			begin = c + 1;
		} else if (*c != '[' || code) {
			fputc(*c, out);
		}
	}
	fputs(c[-1] == '.' ? "\n" : ".\n", out);
}

void document_mdoc(FILE *out, const struct keys *keys)
{
	char names[TEXT_MAX], usual[TEXT_MAX];

	for (size_t i = 0; i < keys->count;) {
		const struct key *key = &keys->key[i];
		const char *otherwise;

		i += format_names(keys, i, "", "", " , ", names);
		otherwise = format_usual(key, "", "", usual);
		fprintf(out, ".It Ic %s%s%s\n", names, otherwise[0] ? " : Cm " : "", otherwise);
		write_mdoc_text(out, key->help);
	}
}
