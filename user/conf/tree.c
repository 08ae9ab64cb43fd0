// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * tree.c - see tree.h. libyaml's events, since its documents copy no aliases and forget where an
 * anchor was; building is a loop over a stack of open nodes, without recursion.
 */
#include "conf/tree.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "conf/config_text.h"
#include "conf/place.h"
#include "conf/tree_anchor.h"

struct builder {
	yaml_parser_t parser;
	struct tree tree;
	struct anchors anchors;
	struct yaml_node *open[TREE_DEPTH_DEEP];
	int depth, depth_max;
	bool written; /* tree_parse_written() */
	struct placing placing;
	const char *file, *text, *text_end;
	struct sl_err *err;
};

struct yaml_node *tree_node(struct tree *tree, enum yaml_node_kind kind, const char *text,
			    size_t len)
{
	struct yaml_node *node = calloc(1, sizeof(*node) + len + 1);

	if (!node)
		return NULL;
	node->kind = kind;
	if (len)
		memcpy(node->text, text, len);
	node->made_before = tree->made_last;
	tree->made_last = node;
	tree->nodes++;
	return node;
}

void tree_free(struct tree *tree)
{
	struct yaml_node *node, *before;

	for (node = tree->made_last; node; node = before) {
		before = node->made_before;
		free(node->at);
		free(node);
	}
	memset(tree, 0, sizeof(*tree));
}

struct yaml_node *tree_take(struct tree *tree, struct tree *from)
{
	struct yaml_node *first = from->made_last, *root = from->root;

	if (first) {
		while (first->made_before)
			first = first->made_before;
		first->made_before = tree->made_last;
		tree->made_last = from->made_last;
		tree->nodes += from->nodes;
	}
	memset(from, 0, sizeof(*from));
	return root;
}

void yaml_node_append(struct yaml_node *parent, struct yaml_node *child)
{
	if (parent->last)
		parent->last->next = child;
	else
		parent->first = child;
	parent->last = child;
	parent->count++;
}

struct yaml_node *yaml_node_search(const struct yaml_node *map, const char *key)
{
	struct yaml_node *k;

	if (map->kind != YAML_MAP)
		return NULL;
	for (k = map->first; k; k = k->next)
		if (!strcmp(k->text, key))
			return k;
	return NULL;
}

void yaml_node_remove(struct yaml_node *map, const struct yaml_node *key)
{
	struct yaml_node *before = NULL, *k;

	for (k = map->first; k && k != key; k = k->next)
		before = k;
	if (!k)
		return;
	if (before)
		before->next = k->next;
	else
		map->first = k->next;
	if (map->last == k)
		map->last = before;
	map->count--;
}

bool yaml_node_is_null(const struct yaml_node *node)
{
	return node->kind == YAML_TEXT && node->plain &&
	       (!node->text[0] || !strcmp(node->text, "~") || !strcmp(node->text, "null"));
}

#define build_fail(b, mark, ...)                                                                   \
	sl_err_at((b)->err, EINVAL, (b)->file, (mark).line + 1, (mark).column + 1, __VA_ARGS__)

/* The byte where a mark is; libyaml counts characters. 0 at the end. */
static char byte_at(const struct builder *b, yaml_mark_t mark)
{
	const char *p = b->text;
	size_t skip = mark.index + 1;

	for (; p < b->text_end; p++)
		if (((unsigned char)*p & 0xc0) != 0x80 && !--skip)
			return *p;
	return 0;
}

/* The parser's error: a message of this file for common mistakes, else libyaml's. */
static int build_fail_parser(struct builder *b)
{
	const yaml_parser_t *p = &b->parser;
	bool scanning = p->error == YAML_SCANNER_ERROR;
	char c;

	if (p->error == YAML_MEMORY_ERROR)
		return sl_err_set(b->err, ENOMEM, "out of memory");
	if (p->error == YAML_READER_ERROR) /* config_text_check() refuses all known cases */
		return sl_err_at(b->err, EINVAL, b->file, 0, 0, "not YAML: %s at byte %zu",
				 p->problem, p->problem_offset);
	c = byte_at(b, p->problem_mark);
	if (scanning && c == '\t')
		return build_fail(b, p->problem_mark, "found a tab; accepted: spaces");
	if (strstr(p->problem, "cannot start any token") && c && strchr("@`%", c))
		return build_fail(b, p->problem_mark,
				  "found '%c' at the start of a value; accepted: "
				  "it in quotes, as '%cname'",
				  c, c);
	if (scanning && p->context && strstr(p->context, "scanning a tag"))
		return build_fail(b, p->context_mark,
				  "found a tag; accepted: no tags, quote a value "
				  "that begins with '!'");
	if (!p->context)
		return build_fail(b, p->problem_mark, "not YAML: %s", p->problem);
	return build_fail(b, p->problem_mark, "not YAML: %s %s (from line %zu, column %zu)",
			  p->problem, p->context, p->context_mark.line + 1,
			  p->context_mark.column + 1);
}

/* Appends a new node to the innermost open list or mapping. */
static int build_hang(struct builder *b, struct yaml_node *node, yaml_mark_t mark)
{
	struct yaml_node *parent = b->depth ? b->open[b->depth - 1] : NULL;

	if (!parent) {
		b->tree.root = node;
	} else if (parent->kind == YAML_LIST) {
		yaml_node_append(parent, node);
		if (b->written && !parent->at->flow && place_item(&b->placing, parent, node))
			return build_fail(b, mark, "found an item without its dash");
	} else if (parent->last && !parent->last->value) {
		parent->last->value = node;
	} else if (node->kind == YAML_TEXT || node->kind == YAML_ALIAS) {
		yaml_node_append(parent, node);
	} else {
		return build_fail(b, mark, "found a %s as a key; accepted: a name",
				  node->kind == YAML_LIST ? "list" : "mapping");
	}
	return 0;
}

static int build_add(struct builder *b, struct yaml_node *node, const yaml_char_t *anchor,
		     const yaml_event_t *event)
{
	yaml_mark_t mark = event->start_mark;

	if (!node || (anchor && anchors_name(&b->anchors, (const char *)anchor, node)) ||
	    (b->written && place_open(&b->placing, node, event, anchor)))
		return sl_err_set(b->err, ENOMEM, "out of memory");
	if (b->tree.nodes > TREE_NODES_MAX)
		return build_fail(b, mark,
				  "more than %d values; accepted: fewer, and long lists of "
				  "addresses in the file of a set",
				  TREE_NODES_MAX);
	node->line = mark.line + 1;
	node->column = mark.column + 1;
	return build_hang(b, node, mark);
}

static int build_too_deep(struct builder *b, yaml_mark_t mark)
{
	return build_fail(b, mark, "nested too deep; accepted: up to %d levels", b->depth_max);
}

static int build_open(struct builder *b, enum yaml_node_kind kind, const yaml_char_t *anchor,
		      const yaml_event_t *event)
{
	struct yaml_node *node;
	int rc;

	if (b->depth == b->depth_max)
		return build_too_deep(b, event->start_mark);
	node = tree_node(&b->tree, kind, NULL, 0);
	rc = build_add(b, node, anchor, event);
	if (!rc)
		b->open[b->depth++] = node;
	return rc;
}

static int build_fail_copy(struct builder *b, int rc, yaml_mark_t mark)
{
	if (rc == -ENOMEM)
		return sl_err_set(b->err, ENOMEM, "out of memory");
	if (rc == -ELOOP)
		return build_too_deep(b, mark);
	return build_fail(b, mark, "aliases make more than %d values here; accepted: fewer",
			  TREE_ALIASED_MAX);
}

static int build_alias(struct builder *b, const yaml_event_t *event)
{
	const char *name = (const char *)event->data.alias.anchor;
	const struct yaml_node *from = anchors_find(&b->anchors, name);
	yaml_mark_t mark = event->start_mark;
	struct yaml_node *copy;
	int rc;

	if (!from)
		return build_fail(b, mark,
				  "found the alias \"*%.60s\", but no anchor \"&%.60s\" "
				  "before it; accepted: the name of one, and '*' in quotes",
				  name, name);
	for (int i = 0; i < b->depth; i++)
		if (b->open[i] == from)
			return build_fail(b, mark,
					  "found the alias \"*%.60s\" within what its anchor "
					  "in line %d names; accepted: behind it",
					  name, from->line);
	if (b->written) {
		copy = tree_node(&b->tree, YAML_ALIAS, from->text, strlen(from->text));
		rc = build_add(b, copy, NULL, event);
		if (!rc)
			copy->at->target = from;
		return rc;
	}
	rc = anchors_copy(&b->anchors, &b->tree, from, mark.line + 1, b->depth_max - b->depth,
			  &copy);
	return rc ? build_fail_copy(b, rc, mark) : build_hang(b, copy, mark);
}

/* The innermost list or mapping is complete. */
static int build_close(struct builder *b, const yaml_event_t *event)
{
	struct yaml_node *node = b->open[--b->depth];
	const struct yaml_node *at = node;
	const char *words;
	int rc;

	if (b->written)
		place_close(&b->placing, node, event->end_mark);
	if (b->written || node->kind != YAML_MAP)
		return 0;
	rc = anchors_merge(&b->anchors, &b->tree, node, b->depth_max - b->depth - 1, &at, &words);
	if (rc == -EINVAL)
		return sl_err_at(b->err, EINVAL, b->file, at->line, at->column, "%s", words);
	return rc ? build_fail_copy(b, rc, event->start_mark) : 0;
}

static int build_text(struct builder *b, const yaml_event_t *event)
{
	const char *text = (const char *)event->data.scalar.value;
	size_t len = event->data.scalar.length;
	struct yaml_node *node;

	if (!config_text_printable(text, len))
		return build_fail(b, event->start_mark,
				  "found a value with line breaks or control "
				  "characters; accepted: text on one line");
	node = tree_node(&b->tree, YAML_TEXT, text, len);
	if (node)
		node->plain = event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
	return build_add(b, node, event->data.scalar.anchor, event);
}

static int refuse_tag(struct builder *b, const yaml_event_t *event, const yaml_char_t *tag)
{
	if (tag)
		return build_fail(b, event->start_mark,
				  "found the tag \"%.60s\"; accepted: no tags, "
				  "quote a value that begins with '!'",
				  tag);
	return 0;
}

static int build_event(struct builder *b, const yaml_event_t *event)
{
	int rc;

	switch (event->type) {
	case YAML_ALIAS_EVENT:
		return build_alias(b, event);
	case YAML_SCALAR_EVENT:
		rc = refuse_tag(b, event, event->data.scalar.tag);
		return rc ? rc : build_text(b, event);
	case YAML_SEQUENCE_START_EVENT:
		rc = refuse_tag(b, event, event->data.sequence_start.tag);
		return rc ? rc : build_open(b, YAML_LIST, event->data.sequence_start.anchor, event);
	case YAML_MAPPING_START_EVENT:
		rc = refuse_tag(b, event, event->data.mapping_start.tag);
		return rc ? rc : build_open(b, YAML_MAP, event->data.mapping_start.anchor, event);
	case YAML_SEQUENCE_END_EVENT:
	case YAML_MAPPING_END_EVENT:
		return build_close(b, event);
	case YAML_DOCUMENT_START_EVENT:
		if (b->tree.root)
			return build_fail(b, event->start_mark,
					  "found a second document; accepted: "
					  "one to a file");
		return 0;
	default:
		return 0;
	}
}

static int build(struct builder *b)
{
	yaml_event_type_t type;
	yaml_event_t event;
	int rc;

	do {
		if (!yaml_parser_parse(&b->parser, &event))
			return build_fail_parser(b);
		type = event.type;
		rc = build_event(b, &event);
		yaml_event_delete(&event);
	} while (!rc && type != YAML_STREAM_END_EVENT);
	if (!rc && (!b->tree.root || yaml_node_is_null(b->tree.root)))
		rc = sl_err_at(b->err, EINVAL, b->file, 1, 1,
			       "found nothing but blank lines and comments; accepted: a mapping of "
			       "keys");
	return rc;
}

static int parse(const char *file, const char *text, size_t size, int depth_max, bool written,
		 struct tree *ret, struct sl_err *err)
{
	struct builder b = {
		.file = file,
		.text = text,
		.text_end = text + size,
		.err = err,
		.depth_max = depth_max,
		.written = written,
		.placing = { text, size, 0, 0 },
	};
	int rc;

	rc = config_text_check(file, text, size, err);
	if (rc)
		return rc;
	if (!yaml_parser_initialize(&b.parser))
		return sl_err_set(err, ENOMEM, "out of memory");
	/* set explicitly: parts of UTF-16 would pass the check above */
	yaml_parser_set_encoding(&b.parser, YAML_UTF8_ENCODING);
	yaml_parser_set_input_string(&b.parser, (const unsigned char *)text, size);
	rc = build(&b);
	yaml_parser_delete(&b.parser);
	anchors_free(&b.anchors);
	if (rc)
		tree_free(&b.tree);
	else
		*ret = b.tree;
	return rc;
}

int tree_parse(const char *file, const char *text, size_t size, struct tree *ret,
	       struct sl_err *err)
{
	return parse(file, text, size, TREE_DEPTH_MAX, false, ret, err);
}

int tree_parse_deep(const char *file, const char *text, size_t size, struct tree *ret,
		    struct sl_err *err)
{
	return parse(file, text, size, TREE_DEPTH_DEEP, false, ret, err);
}

int tree_parse_written(const char *text, size_t size, struct tree *ret, struct sl_err *err)
{
	return parse("", text, size, TREE_DEPTH_DEEP, true, ret, err);
}
