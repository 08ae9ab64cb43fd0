// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* emit.c - see emit.h. */
#include "conf/emit.h"

#include <stdlib.h>
#include <string.h>

#include "conf/write.h"

#define WIDTH 100
#define STEP 2

/* Whether a text from a command is a plain text in YAML, at any place. */
static bool is_plain(const char *text)
{
	static const char accepted[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				       "0123456789./_-+% ";
	size_t len = strlen(text);

	if (!len || strspn(text, accepted) != len || strchr("-+% ", text[0]))
		return false;
	return text[len - 1] != ' ' && strcmp(text, "null");
}

void emit_text(FILE *out, const struct yaml_node *node, bool flow, enum emit_quotes quotes)
{
	bool bare = node->plain ? !flow || !strpbrk(node->text, ",[]{}:?")
				: !node->line && is_plain(node->text);

	if (yaml_node_is_null(node))
		quotes = EMIT_AS_NEEDED;
	if (quotes == EMIT_DOUBLE && bare && !node->line)
		write_quoted(out, node->text, '"');
	else if (quotes == EMIT_SINGLE && !node->line)
		write_quoted(out, node->text, '\'');
	else if (bare)
		fputs(node->text[0] || !flow ? node->text : "null", out);
	else
		write_quoted(out, node->text, '\'');
}

void emit_flow(FILE *out, const struct yaml_node *node)
{
	const char *apart = "";

	if (node->kind == YAML_TEXT) {
		emit_text(out, node, true, EMIT_AS_NEEDED);
		return;
	}
	fputc(node->kind == YAML_LIST ? '[' : '{', out);
	for (const struct yaml_node *item = node->first; item; item = item->next) {
		fputs(apart, out);
		apart = ", ";
		if (node->kind == YAML_LIST) {
			emit_flow(out, item);
			continue;
		}
		emit_text(out, item, true, EMIT_AS_NEEDED);
		fputs(": ", out);
		emit_flow(out, item->value);
	}
	fputc(node->kind == YAML_LIST ? ']' : '}', out);
}

bool emit_fits(const struct yaml_node *node, size_t column)
{
	char *line = NULL;
	size_t size = 0;
	FILE *out;
	bool fits;

	if (node->kind == YAML_TEXT || !node->count)
		return true;
	if (node->count > WIDTH)
		return false;
	out = open_memstream(&line, &size);
	if (!out)
		return true;
	emit_flow(out, node);
	fits = !fclose(out) && column + 1 + size <= WIDTH;
	free(line);
	return fits;
}

void emit_value(FILE *out, const struct yaml_node *node, size_t indent, size_t column)
{
	if (node->kind == YAML_TEXT) {
		if (node->text[0] || !node->plain)
			fputc(' ', out);
		emit_text(out, node, false, EMIT_AS_NEEDED);
	} else if (emit_fits(node, column)) {
		fputc(' ', out);
		emit_flow(out, node);
	} else {
		fputc('\n', out);
		fprintf(out, "%*s", (int)indent + STEP, "");
		emit_block(out, node, indent + STEP);
	}
}

void emit_block(FILE *out, const struct yaml_node *node, size_t indent)
{
	for (const struct yaml_node *item = node->first; item; item = item->next) {
		if (item != node->first)
			fprintf(out, "\n%*s", (int)indent, "");
		if (node->kind == YAML_MAP) {
			emit_text(out, item, false, EMIT_AS_NEEDED);
			fputc(':', out);
			emit_value(out, item->value, indent, indent + strlen(item->text) + 1);
		} else if (item->kind == YAML_MAP && !emit_fits(item, indent + 1)) {
			fputs("- ", out);
			emit_block(out, item, indent + STEP);
		} else {
			fputc('-', out);
			emit_value(out, item, indent, indent + 1);
		}
	}
}
