/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * tree_anchor.h - anchors, aliases and merge keys of YAML, for tree.c.
 *
 * An alias becomes a copy of its anchor's node, so code that reads or changes the tree handles
 * neither. The number of copied nodes and their depth are bounded.
 */
#ifndef SLUICE_TREE_ANCHOR_H
#define SLUICE_TREE_ANCHOR_H

#include "conf/tree.h"
#include "lib/hash.h"

struct anchors {
	struct numbers names; /* of `node` */
	struct yaml_node **node;
	size_t count;
	size_t made; /* nodes that aliases and merge keys were copied to */
};

/* Gives the name to the node, and takes it from an earlier one. 0 or -ENOMEM. */
int anchors_name(struct anchors *anchors, const char *name, struct yaml_node *node);
/* The node that has the name at this point; NULL: none. */
struct yaml_node *anchors_find(const struct anchors *anchors, const char *name);
void anchors_free(struct anchors *anchors);

/*
 * A copy of `from` with all below it, linked nowhere yet, for an alias in line `alias_line` (0:
 * each node keeps its own) with room for `depth` levels. Where it was written stays. 0, or
 * -ENOMEM, -E2BIG: more than TREE_ALIASED_MAX nodes in all, -ELOOP: too deep.
 */
int anchors_copy(struct anchors *anchors, struct tree *tree, const struct yaml_node *from,
		 int alias_line, int depth, struct yaml_node **ret);

/*
 * Applies a mapping's merge key, `<<` without quotes: adds the keys of the mapping that it names,
 * or of several in a list, that the mapping itself lacks; of several with a key the first. 0, or as
 * anchors_copy(), or -EINVAL with the node and the error: *ret_at, *ret_message.
 */
int anchors_merge(struct anchors *anchors, struct tree *tree, struct yaml_node *map, int depth,
		  const struct yaml_node **ret_at, const char **ret_message);

#endif
