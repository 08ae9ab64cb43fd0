/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * tree.h - YAML text as a tree of nodes with their positions.
 *
 * A subset: one document of mappings, lists and text. Tags are refused, so are values with
 * control characters, and the depth is bounded. An alias becomes a copy of its anchor's node, and a
 * merge key (`<<`) is applied; the number of nodes that they create is bounded, since a few lines
 * could expand to gigabytes. Types are not guessed: `off` and `010` are text.
 */
#ifndef SLUICE_TREE_H
#define SLUICE_TREE_H

#include <stdbool.h>
#include <stddef.h>

#include "lib/err.h"

#define TREE_DEPTH_MAX 16
#define TREE_DEPTH_DEEP 48	/* of a rule file, whose descriptors nest */
#define TREE_NODES_MAX 4000000	/* 350 MB; long lists belong into the file of a set */
#define TREE_ALIASED_MAX 100000 /* of them by aliases and merge keys */

enum yaml_node_kind {
	YAML_TEXT,
	YAML_LIST,
	YAML_MAP,
	YAML_ALIAS, /* of tree_parse_written(); its text is that of its anchor's node */
};

struct yaml_node {
	enum yaml_node_kind kind : 8;
	bool plain : 1;	  /* text without quotes */
	bool beside : 1;  /* of KEY.PART=VALUE (pair.h), not of a file */
	int line, column; /* from 1; where it was written */
	int alias_line;	  /* line of the alias or merge key that copied it here; 0: none */
	size_t count;	  /* items of a list, keys of a mapping */
	struct yaml_node *first, *last; /* items, or keys */
	struct yaml_node *next;		/* the next item or key */
	struct yaml_node *value;	/* of a key */
	struct yaml_node *made_before;	/* all nodes of a tree, for tree_free() */
	struct yaml_place *at;		/* place.h; of tree_parse_written() alone */
	char text[];			/* "" where not text */
};

struct tree {
	struct yaml_node *root;
	struct yaml_node *made_last;
	size_t nodes;
};

/*
 * 0 with *ret to be freed by tree_free(), or -errno and err. A text that holds nothing but
 * comments is an error.
 */
int tree_parse(const char *file, const char *text, size_t size, struct tree *ret,
	       struct sl_err *err);
/* The same, with up to TREE_DEPTH_DEEP levels. */
int tree_parse_deep(const char *file, const char *text, size_t size, struct tree *ret,
		    struct sl_err *err);
/*
 * The same, with aliases and merge keys as they are written, and the bytes of each node: for the
 * text of a tree that was parsed before.
 */
int tree_parse_written(const char *text, size_t size, struct tree *ret, struct sl_err *err);
void tree_free(struct tree *tree);

/* A node of the tree that is linked nowhere yet; NULL: out of memory. */
struct yaml_node *tree_node(struct tree *tree, enum yaml_node_kind kind, const char *text,
			    size_t len);
/* Moves the nodes of `from` to `tree`, linked nowhere yet; returns the root of `from`. */
struct yaml_node *tree_take(struct tree *tree, struct tree *from);
void yaml_node_append(struct yaml_node *list_or_map, struct yaml_node *item_or_key);

struct yaml_node *yaml_node_search(const struct yaml_node *map, const char *key);
/* The key (its ->value holds the value), or NULL: checks of KEY=VALUE have an empty mapping. */
static inline struct yaml_node *yaml_node_find(const struct yaml_node *map, const char *key)
{
	return map->first ? yaml_node_search(map, key) : NULL;
}
void yaml_node_remove(struct yaml_node *map, const struct yaml_node *key);

/* Whether the value is empty: `key:` alone, `~` or `null`. */
bool yaml_node_is_null(const struct yaml_node *node);

#endif
