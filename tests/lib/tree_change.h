/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * tree_change.h - changes to a tree, written as text, for tests of text_edit():
 *
 *     limits.0.rate=5 packets/s    a new value, which is YAML; the key is added where it is missing
 *     limits.0.rate=               removes a key or an item
 *     block+=192.0.2.1             appends an item
 */
#ifndef SLUICE_TESTS_TREE_CHANGE_H
#define SLUICE_TESTS_TREE_CHANGE_H

#include <stdlib.h>
#include <string.h>

#include "conf/text_edit.h"
#include "lib/test.h"

static inline struct yaml_node *tree_of_value(struct tree *tree, const char *yaml)
{
	struct tree own = { 0 };
	struct yaml_node *node;
	struct sl_err err;
	char text[1024];

	snprintf(text, sizeof(text), "v: %s", yaml);
	if (tree_parse_deep("", text, strlen(text), &own, &err))
		fail_msg("%s: %s", yaml, err.message);
	node = tree_take(tree, &own)->first->value;
	yaml_node_renew(node);
	return node;
}

/* The key or item of that name or number; NULL: there is none. */
static inline struct yaml_node *tree_child(struct yaml_node *parent, const char *name)
{
	struct yaml_node *item = parent->first;

	if (parent->kind == YAML_MAP)
		return yaml_node_find(parent, name);
	for (int i = atoi(name); item && i > 0; i--)
		item = item->next;
	return item;
}

static inline void tree_put(struct tree *tree, struct yaml_node *parent, const char *name,
			    struct yaml_node *value)
{
	struct yaml_node *child = tree_child(parent, name), *next, **link = &parent->first;

	if (parent->kind == YAML_MAP) {
		if (!child) {
			child = tree_node(tree, YAML_TEXT, name, strlen(name));
			yaml_node_append(parent, child);
		}
		child->value = value;
		return;
	}
	assert_non_null(child);
	next = child->next;
	while (*link != child)
		link = &(*link)->next;
	*link = value;
	value->next = next;
	if (parent->last == child)
		parent->last = value;
}

static inline void tree_change(struct tree *tree, const char *change)
{
	struct yaml_node *at = tree->root, *child;
	char *path = strdup(change), *value = strchr(path, '='), *name = path, *dot;
	bool appends = value > path && value[-1] == '+';

	value[appends ? -1 : 0] = 0;
	value++;
	for (; (dot = strchr(name, '.')); name = dot + 1) {
		*dot = 0;
		child = tree_child(at, name);
		assert_non_null(child);
		at = at->kind == YAML_MAP ? child->value : child;
	}
	child = tree_child(at, name);
	if (appends)
		yaml_node_append(at->kind == YAML_MAP ? child->value : child,
				 tree_of_value(tree, value));
	else if (value[0])
		tree_put(tree, at, name, tree_of_value(tree, value));
	else if (child)
		yaml_node_remove(at, child);
	free(path);
}

#endif
