// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* entries.c - see entries.h. */
#include "conf/entries.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "conf/emit.h"

int entries_of(const struct editing *e, const struct yaml_node *place, struct entries *ret)
{
	struct entry *entry = calloc(place->count + 1, sizeof(*entry));
	size_t i = 0;

	if (!entry)
		return -ENOMEM;
	*ret = (struct entries){ .entry = entry,
				 .count = place->count,
				 .flow = place->at->flow,
				 .is_map = place->kind == YAML_MAP };
	for (struct yaml_node *item = place->first; item; item = item->next, i++) {
		entry[i].place = item;
		entry[i].start = ret->is_map || ret->flow ? item->at->start : item->at->dash;
		entry[i].end = item->at->end;
		if (ret->is_map && item->value->at->end > item->at->end)
			entry[i].end = item->value->at->end;
	}
	if (!place->at->flow)
		ret->column = entry[0].start - line_begin(e, entry[0].start);
	return 0;
}

size_t entry_lead(const struct editing *e, const struct entries *s, const struct entry *entry)
{
	const struct yaml_node *value = s->is_map ? entry->place->value : entry->place;
	size_t at = s->is_map ? entry->place->at->end : entry->place->at->dash;

	if (value->at->lead)
		return value->at->lead;
	if (s->is_map)
		while (at < e->size && e->text[at] == ' ')
			at++;
	return s->flow ? 0 : at + 1;
}

static void emit_entry(FILE *out, const struct entries *s, const struct yaml_node *node)
{
	const struct yaml_node *value = s->is_map ? node->value : node;
	const struct entry *last = &s->entry[s->count - 1];
	bool in_lines = !s->is_map && value->kind == YAML_MAP && value->count &&
			last->place->kind == YAML_MAP && !last->place->at->flow;

	if (s->is_map)
		emit_text(out, node, s->flow, EMIT_AS_NEEDED);
	if (s->flow) {
		fputs(s->is_map ? ": " : "", out);
		emit_flow(out, value);
		return;
	}
	fputc(s->is_map ? ':' : '-', out);
	if (in_lines ||
	    (!s->is_map && value->kind == YAML_MAP && !emit_fits(value, s->column + 1))) {
		fputc(' ', out);
		emit_block(out, value, s->column + 2);
		return;
	}
	emit_value(out, value, s->column, s->column + 1 + (s->is_map ? strlen(node->text) : 0));
}

size_t entries_kept(const struct entries *s, size_t i)
{
	while (i < s->count && !s->entry[i].node)
		i++;
	return i;
}

void entry_insert_after(struct editing *e, const struct entries *s, const struct entry *entry,
			const struct yaml_node *node)
{
	size_t at = s->flow ? entry->end : line_end(e, entry->end);
	struct writing w;
	FILE *out = splice_begin(e, &w);

	if (!out)
		return;
	if (s->flow)
		fputs(", ", out);
	else
		fprintf(out, "\n%*s", (int)s->column, "");
	emit_entry(out, s, node);
	splice_end(e, &w, at, at);
}

void entry_insert_before(struct editing *e, const struct entries *s, const struct entry *entry,
			 const struct yaml_node *node)
{
	struct writing w;
	FILE *out = splice_begin(e, &w);

	if (!out)
		return;
	emit_entry(out, s, node);
	if (s->flow)
		fputs(", ", out);
	else
		fprintf(out, "\n%*s", (int)s->column, "");
	splice_end(e, &w, entry->start, entry->start);
}

/* The start of the comments that belong to the entries from `i` up to `next`. */
static size_t own_comments(const struct editing *e, const struct entries *s, size_t i, size_t next)
{
	size_t begin = line_begin(e, s->entry[i].start), above;

	if (next < s->count &&
	    next_line(e, s->entry[next - 1].end) == line_begin(e, s->entry[next].start))
		return begin;
	while (begin) {
		above = line_begin(e, begin - 1);
		if (!is_comment_at(e, above, s->column))
			break;
		begin = above;
	}
	return begin;
}

/* Removes the entries from `i` up to `next`, the next one that is kept. */
static void remove_entries(struct editing *e, const struct entries *s, size_t i, size_t next)
{
	size_t begin, end = s->entry[next - 1].end;

	if (s->flow || !is_first_in_line(e, s->entry[i].start)) {
		begin = s->entry[i].start;
		if (next < s->count) {
			splice_cut(e, begin, s->entry[next].start);
			return;
		}
		/* a comma that ends the line before may stay */
		while (begin > s->entry[i - 1].end && e->text[begin - 1] == ' ')
			begin--;
		if (e->text[begin - 1] == '\n')
			begin = s->entry[i].start;
		else
			begin = s->entry[i - 1].end;
		splice_cut(e, begin, end);
		return;
	}
	begin = own_comments(e, s, i, next);
	if (next < s->count)
		splice_cut(e, begin, next_line(e, end));
	else
		splice_cut(e, line_before(e, begin), line_end(e, end));
}

void entries_cut(struct editing *e, const struct entries *s)
{
	for (size_t i = 0; i < s->count;) {
		size_t next = entries_kept(s, i);

		if (next > i)
			remove_entries(e, s, i, next);
		i = next + 1;
	}
}
