// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* tree_anchor.c - see tree_anchor.h. */
#include "conf/tree_anchor.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/array.h"

/*
 * A merge compares each key with each, so it is bounded, far above the size of any valid mapping.
 */
#define MERGED_KEYS_MAX 256

static u64 hash_name(const char *name)
{
	return hash_bytes(hash_seed(), 0, name, strlen(name));
}

int anchors_name(struct anchors *anchors, const char *name, struct yaml_node *node)
{
	u32 number;

	if (numbers_find(&anchors->names, hash_name(name), &number)) {
		anchors->node[number] = node;
		return 0;
	}
	if (append(anchors->node, anchors->count, node))
		return -ENOMEM;
	return numbers_add(&anchors->names, hash_name(name), (u32)anchors->count - 1);
}

struct yaml_node *anchors_find(const struct anchors *anchors, const char *name)
{
	u32 number;

	return numbers_find(&anchors->names, hash_name(name), &number) ? anchors->node[number]
								       : NULL;
}

void anchors_free(struct anchors *anchors)
{
	numbers_free(&anchors->names);
	free(anchors->node);
}

static int copy_one(struct anchors *anchors, struct tree *tree, const struct yaml_node *from,
		    int alias_line, struct yaml_node **ret)
{
	if (++anchors->made > TREE_ALIASED_MAX || tree->nodes >= TREE_NODES_MAX)
		return -E2BIG;
	*ret = tree_node(tree, from->kind, from->text, strlen(from->text));
	if (!*ret)
		return -ENOMEM;
	(*ret)->plain = from->plain;
	(*ret)->line = from->line;
	(*ret)->column = from->column;
	(*ret)->alias_line = alias_line ? alias_line : from->alias_line;
	return 0;
}

/* Recursive: `depth` is the depth of a tree at most. */
int anchors_copy(struct anchors *anchors, struct tree *tree, const struct yaml_node *from,
		 int alias_line, int depth, struct yaml_node **ret)
{
	struct yaml_node *copy, *child;
	int rc;

	if (from->kind != YAML_TEXT && !depth)
		return -ELOOP;
	rc = copy_one(anchors, tree, from, alias_line, &copy);
	if (rc)
		return rc;
	/* a text that is a key has its value beside it: that is not its own */
	for (const struct yaml_node *item = from->first; item; item = item->next) {
		if (from->kind == YAML_LIST) {
			rc = anchors_copy(anchors, tree, item, alias_line, depth - 1, &child);
		} else {
			rc = copy_one(anchors, tree, item, alias_line, &child);
			if (!rc)
				rc = anchors_copy(anchors, tree, item->value, alias_line, depth - 1,
						  &child->value);
		}
		if (rc)
			return rc;
		yaml_node_append(copy, child);
	}
	*ret = copy;
	return 0;
}

/* ---- merge keys ---- */

static bool is_merge_key(const struct yaml_node *key)
{
	return key->plain && !strcmp(key->text, "<<");
}

/* Adds copies of the keys that `map` lacks. Copies, since the merged mapping may be used again. */
static int merge_map(struct anchors *anchors, struct tree *tree, struct yaml_node *map,
		     const struct yaml_node *from, int depth, const char **ret_message)
{
	struct yaml_node *key;
	int rc;

	if (from->count > MERGED_KEYS_MAX) {
		*ret_message =
			"found a mapping of more than 256 keys to be merged; accepted: fewer";
		return -EINVAL;
	}
	for (const struct yaml_node *item = from->first; item; item = item->next) {
		if (yaml_node_find(map, item->text))
			continue;
		rc = copy_one(anchors, tree, item, 0, &key);
		if (!rc)
			rc = anchors_copy(anchors, tree, item->value, 0, depth, &key->value);
		if (rc)
			return rc;
		yaml_node_append(map, key);
		if (map->count > MERGED_KEYS_MAX) {
			*ret_message =
				"found a merge into a mapping of more than 256 keys; accepted: "
				"fewer";
			return -EINVAL;
		}
	}
	return 0;
}

static struct yaml_node *merge_key(const struct yaml_node *map)
{
	struct yaml_node *key = map->first;

	while (key && !is_merge_key(key))
		key = key->next;
	return key;
}

int anchors_merge(struct anchors *anchors, struct tree *tree, struct yaml_node *map, int depth,
		  const struct yaml_node **ret_at, const char **ret_message)
{
	struct yaml_node *key = merge_key(map), *value, *item;
	int rc = 0;

	if (!key)
		return 0;
	value = key->value;
	yaml_node_remove(map, key);
	*ret_at = key;
	*ret_message = "found \"<<\" again; accepted: one, with a list of mappings";
	if (merge_key(map))
		return -EINVAL;
	item = value->kind == YAML_LIST ? value->first : value;
	for (; item && !rc; item = item->next) {
		if (item->kind != YAML_MAP) {
			*ret_message = "found \"<<\" with something else than mappings; accepted: "
				       "*NAME of a mapping's anchor, or a list of such";
			return -EINVAL;
		}
		rc = merge_map(anchors, tree, map, item, depth, ret_message);
		if (value->kind != YAML_LIST)
			break;
	}
	return rc;
}
