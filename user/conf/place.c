// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * place.c - see place.h. libyaml's events have the marks of their first and last characters, with
 * these exceptions: the end of a list or mapping without brackets is that of its last item; a
 * node with an anchor begins at the anchor; and the '-' of an item has no mark, but is in the
 * column of the list.
 */
#include "conf/place.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

static bool is_inside_character(const struct placing *p, size_t byte)
{
	return byte < p->size && ((unsigned char)p->text[byte] & 0xc0) == 0x80;
}

/* Marks come nearly in order, so all of them together cost one pass over the text. */
static size_t byte_of(struct placing *p, yaml_mark_t mark)
{
	for (; p->index < mark.index && p->byte < p->size; p->index++)
		do
			p->byte++;
		while (is_inside_character(p, p->byte));
	for (; p->index > mark.index && p->byte; p->index--)
		do
			p->byte--;
		while (is_inside_character(p, p->byte));
	return p->byte;
}

/* Skips blanks, line breaks and comments. */
static size_t skip_space(const struct placing *p, size_t at)
{
	while (at < p->size && (is_blank(p->text[at]) || strchr("\r\n#", p->text[at]))) {
		if (p->text[at] == '#')
			while (at < p->size && p->text[at] != '\n')
				at++;
		else
			at++;
	}
	return at;
}

static size_t line_start(const struct placing *p, size_t at)
{
	while (at && p->text[at - 1] != '\n')
		at--;
	return at;
}

/* The column of a list's dashes. The list's first mark may be that of an anchor before it. */
static size_t dash_column(struct placing *p, const yaml_event_t *event)
{
	bool anchored = event->data.sequence_start.anchor;
	size_t at = byte_of(p, anchored ? event->end_mark : event->start_mark);

	if (at && p->text[at] != '-')
		at--; /* of a list with the same indent as its key: after the dash */
	return at - line_start(p, at);
}

static void end_text(const struct placing *p, struct yaml_place *at)
{
	if (at->lead && at->end <= at->lead)
		at->begin = at->end = at->lead; /* nothing but the anchor */
	while (at->end > at->begin && strchr(" \t\r\n", p->text[at->end - 1]))
		at->end--; /* a block of text includes the line breaks after it */
}

int place_open(struct placing *p, struct yaml_node *node, const yaml_event_t *event,
	       const yaml_char_t *anchor)
{
	struct yaml_place *at = node->at = calloc(1, sizeof(*at));

	if (!at)
		return -ENOMEM;
	if (event->type == YAML_SEQUENCE_START_EVENT) {
		at->flow = event->data.sequence_start.style == YAML_FLOW_SEQUENCE_STYLE;
		at->column = at->flow ? 0 : dash_column(p, event);
	} else if (event->type == YAML_MAPPING_START_EVENT) {
		at->flow = event->data.mapping_start.style == YAML_FLOW_MAPPING_STYLE;
	}
	at->start = at->begin = byte_of(p, event->start_mark);
	if (anchor) {
		at->lead = at->start + 1 + strlen((const char *)anchor);
		at->begin = skip_space(p, at->lead);
	}
	at->end = byte_of(p, event->end_mark);
	if (event->type == YAML_SCALAR_EVENT)
		end_text(p, at);
	return 0;
}

/* The '-' may be in a line above the item. */
int place_item(const struct placing *p, const struct yaml_node *list, struct yaml_node *item)
{
	size_t start = item->at->start;

	for (size_t line = line_start(p, start);; line = line_start(p, line - 1)) {
		size_t at = line, dash = line + list->at->column;

		while (at < dash && at < start && p->text[at] != '\n')
			at++;
		if (at == dash && at < start && p->text[at] == '-') {
			item->at->dash = at;
			return 0;
		}
		if (!line)
			return -EINVAL;
	}
}

void place_close(struct placing *p, struct yaml_node *node, yaml_mark_t end)
{
	const struct yaml_node *last = node->last;
	struct yaml_place *at = node->at;

	if (at->flow) {
		at->end = byte_of(p, end);
		return;
	}
	at->begin = node->kind == YAML_LIST ? node->first->at->dash : node->first->at->start;
	at->end = last->at->end;
	if (node->kind == YAML_MAP && last->value->at->end > at->end)
		at->end = last->value->at->end;
}
