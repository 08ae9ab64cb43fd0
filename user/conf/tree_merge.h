/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * tree_merge.h - applies the changes from one tree to another to a third, equivalent to the first:
 * the tree of a file, with its own order, spelling and explicit defaults.
 *
 * Keys of mappings are matched by name, addresses by value; items of a list that are addresses or
 * have a name or a prefix by that, other lists by position or as a whole. Parts that are the same
 * in both trees stay as in the file.
 */
#ifndef SLUICE_TREE_MERGE_H
#define SLUICE_TREE_MERGE_H

#include "conf/tree.h"

/*
 * Changes `tree`, for text_edit(); takes the nodes of `after`. 0 or -ENOMEM, and the trees can only
 * be freed. The result need not mean the same as `after`: read it again.
 */
int tree_merge(struct tree *tree, const struct yaml_node *before, struct tree *after);

#endif
