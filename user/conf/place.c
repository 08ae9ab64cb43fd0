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
#include <yaml.h>

#define DEPTH_MAX (2 * TREE_DEPTH_DEEP)

struct named {
	struct named *before;
	struct place *place;
	char name[];
};

struct parsing {
	yaml_parser_t parser;
	const char *text;
	size_t size;
	size_t index, byte; /* the last mark: libyaml counts characters */
	struct places places;
	struct named *named;
	int depth;
};

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

static bool is_inside_character(const struct parsing *p, size_t byte)
{
	return byte < p->size && ((unsigned char)p->text[byte] & 0xc0) == 0x80;
}

/* Marks come nearly in order, so all of them together cost one pass over the text. */
static size_t byte_of(struct parsing *p, yaml_mark_t mark)
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
static size_t skip_space(const struct parsing *p, size_t at)
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

static struct place *place_new(struct parsing *p, enum place_kind kind, const char *text,
			       size_t len)
{
	struct place *place = calloc(1, sizeof(*place) + len + 1);

	if (!place)
		return NULL;
	place->kind = kind;
	memcpy(place->text, text, len);
	place->made_before = p->places.made_last;
	p->places.made_last = place;
	return place;
}

static int name_place(struct parsing *p, const char *name, struct place *place)
{
	struct named *named = malloc(sizeof(*named) + strlen(name) + 1);

	if (!named)
		return -ENOMEM;
	named->before = p->named;
	named->place = place;
	strcpy(named->name, name);
	p->named = named;
	return 0;
}

static struct place *place_named(const struct parsing *p, const char *name)
{
	struct named *named = p->named;

	while (named && strcmp(named->name, name))
		named = named->before;
	return named ? named->place : NULL;
}

/* Sets the start of a node, and its anchor. */
static int place_begin(struct parsing *p, struct place *place, const yaml_event_t *event,
		       const yaml_char_t *anchor)
{
	place->line = event->start_mark.line + 1;
	place->column = event->start_mark.column + 1;
	place->start = place->begin = byte_of(p, event->start_mark);
	if (!anchor)
		return 0;
	place->lead = place->start + 1 + strlen((const char *)anchor);
	place->begin = skip_space(p, place->lead);
	return name_place(p, (const char *)anchor, place);
}

static int parse_node(struct parsing *p, const yaml_event_t *event, struct place **ret);

/* The next node, or *ret NULL at the end of the innermost list or mapping. */
static int parse_next(struct parsing *p, yaml_event_type_t end, struct place **ret, size_t *ret_end)
{
	yaml_event_t event;
	int rc = 0;

	*ret = NULL;
	if (!yaml_parser_parse(&p->parser, &event))
		return p->parser.error == YAML_MEMORY_ERROR ? -ENOMEM : -EINVAL;
	if (event.type == end)
		*ret_end = byte_of(p, event.end_mark);
	else
		rc = parse_node(p, &event, ret);
	yaml_event_delete(&event);
	return rc;
}

static size_t line_start(const struct parsing *p, size_t at)
{
	while (at && p->text[at - 1] != '\n')
		at--;
	return at;
}

/* Finds the '-' of an item, which may be in a line above it. 0, or -EINVAL. */
static int find_dash(const struct parsing *p, size_t column, struct place *item)
{
	for (size_t line = line_start(p, item->start);; line = line_start(p, line - 1)) {
		size_t at = line;

		while (at < line + column && at < item->start && p->text[at] != '\n')
			at++;
		if (at == line + column && at < item->start && p->text[at] == '-') {
			item->dash = at;
			return 0;
		}
		if (!line)
			return -EINVAL;
	}
}

static void place_append(struct place *parent, struct place *child)
{
	if (parent->last)
		parent->last->next = child;
	else
		parent->first = child;
	parent->last = child;
	parent->count++;
}

static int parse_list(struct parsing *p, struct place *list, size_t column)
{
	struct place *item;
	size_t end = 0;
	int rc;

	for (;;) {
		rc = parse_next(p, YAML_SEQUENCE_END_EVENT, &item, &end);
		if (!rc && item && !list->flow)
			rc = find_dash(p, column, item);
		if (rc || !item)
			break;
		place_append(list, item);
	}
	if (!rc && list->flow)
		list->end = end;
	if (!rc && !list->flow) {
		list->begin = list->first->dash;
		list->end = list->last->end;
	}
	return rc;
}

static int parse_map(struct parsing *p, struct place *map)
{
	struct place *key;
	size_t end = 0;
	int rc;

	for (;;) {
		rc = parse_next(p, YAML_MAPPING_END_EVENT, &key, &end);
		if (!rc && key)
			rc = parse_next(p, YAML_NO_EVENT, &key->value, &end);
		if (rc || !key)
			break;
		place_append(map, key);
	}
	if (!rc && map->flow)
		map->end = end;
	if (!rc && !map->flow) {
		map->begin = map->first->start;
		map->end = map->last->value->end > map->last->end ? map->last->value->end
								  : map->last->end;
	}
	return rc;
}

/* The column of a list's dashes. The list's first mark may be that of an anchor before it. */
static size_t dash_column(struct parsing *p, const yaml_event_t *event)
{
	size_t at =
		byte_of(p, event->data.sequence_start.anchor ? event->end_mark : event->start_mark);

	if (at && p->text[at] != '-')
		at--; /* of a list with the same indent as its key: after the dash */
	return at - line_start(p, at);
}

static int parse_text(struct parsing *p, const yaml_event_t *event, struct place **ret)
{
	struct place *place = place_new(p, PLACE_TEXT, (const char *)event->data.scalar.value,
					event->data.scalar.length);
	int rc;

	if (!place)
		return -ENOMEM;
	place->plain = event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
	rc = place_begin(p, place, event, event->data.scalar.anchor);
	place->end = byte_of(p, event->end_mark);
	if (place->lead && place->end <= place->lead)
		place->begin = place->end = place->lead; /* nothing but the anchor */
	while (place->end > place->begin && strchr(" \t\r\n", p->text[place->end - 1]))
		place->end--; /* a block of text includes the line breaks after it */
	*ret = place;
	return rc;
}

static int parse_alias(struct parsing *p, const yaml_event_t *event, struct place **ret)
{
	struct place *target = place_named(p, (const char *)event->data.alias.anchor), *place;

	if (!target)
		return -EINVAL;
	place = place_new(p, PLACE_ALIAS, target->text, strlen(target->text));
	if (!place)
		return -ENOMEM;
	place->target = target;
	*ret = place;
	place->end = byte_of(p, event->end_mark);
	return place_begin(p, place, event, NULL);
}

static int parse_node(struct parsing *p, const yaml_event_t *event, struct place **ret)
{
	bool is_list = event->type == YAML_SEQUENCE_START_EVENT;
	size_t column = 0;
	int rc;

	if (event->type == YAML_ALIAS_EVENT)
		return parse_alias(p, event, ret);
	if (event->type == YAML_SCALAR_EVENT)
		return parse_text(p, event, ret);
	if ((!is_list && event->type != YAML_MAPPING_START_EVENT) || p->depth == DEPTH_MAX)
		return -EINVAL;
	*ret = place_new(p, is_list ? PLACE_LIST : PLACE_MAP, "", 0);
	if (!*ret)
		return -ENOMEM;
	(*ret)->flow = is_list ? event->data.sequence_start.style == YAML_FLOW_SEQUENCE_STYLE
			       : event->data.mapping_start.style == YAML_FLOW_MAPPING_STYLE;
	if (is_list && !(*ret)->flow)
		column = dash_column(p, event);
	rc = place_begin(p, *ret, event,
			 is_list ? event->data.sequence_start.anchor
				 : event->data.mapping_start.anchor);
	p->depth++;
	if (!rc)
		rc = is_list ? parse_list(p, *ret, column) : parse_map(p, *ret);
	p->depth--;
	return rc;
}

int places_parse(const char *text, size_t size, struct places *ret)
{
	struct parsing p = {.text = text, .size = size};
	yaml_event_type_t type = YAML_NO_EVENT;
	yaml_event_t event;
	struct named *before;
	int rc = 0;

	if (!yaml_parser_initialize(&p.parser))
		return -ENOMEM;
	yaml_parser_set_encoding(&p.parser, YAML_UTF8_ENCODING);
	yaml_parser_set_input_string(&p.parser, (const unsigned char *)text, size);
	while (!rc && type != YAML_DOCUMENT_START_EVENT) {
		if (!yaml_parser_parse(&p.parser, &event)) {
			rc = -EINVAL;
			break;
		}
		type = event.type;
		yaml_event_delete(&event);
		if (type == YAML_STREAM_END_EVENT)
			rc = -EINVAL;
	}
	if (!rc)
		rc = parse_next(&p, YAML_NO_EVENT, &p.places.root, &(size_t){0});
	yaml_parser_delete(&p.parser);
	for (; p.named; p.named = before) {
		before = p.named->before;
		free(p.named);
	}
	if (rc)
		places_free(&p.places);
	else
		*ret = p.places;
	return rc;
}

void places_free(struct places *places)
{
	struct place *place, *before;

	for (place = places->made_last; place; place = before) {
		before = place->made_before;
		free(place);
	}
	memset(places, 0, sizeof(*places));
}
