/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * tree_merge.h - applies the changes from one tree to another to a third, equivalent to the first:
 * the tree of a file, with its own order, spelling and explicit defaults.
 *
 * Keys of mappings are matched by name, addresses by value; items of a list that are addresses or
 * have a name, a prefix or a value by that, other lists by position or as a whole. Parts that are
 * the same in both trees stay as in the file.
 */
#ifndef SLUICE_TREE_MERGE_H
#define SLUICE_TREE_MERGE_H

#include "conf/tree.h"

/* What the rows of a model write, before and after a change; an empty one has no keys. */
struct written {
	char *text;
	size_t size;
};

/*
 * Changes *node, a mapping of `tree`, for text_edit(). 0, -ENOMEM or -EINVAL with err, and the tree
 * can only be freed. The result need not mean the same as `after`: read it again.
 */
int tree_merge(struct tree *tree, struct yaml_node **node, const struct written *before,
	       const struct written *after, struct sl_err *err);

#endif
