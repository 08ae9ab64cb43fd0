/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * tree_merge.h - what changed from one tree to another, done to a third that means the same as the
 * first in other words: the tree of a file, with its order, its spelling and the defaults it has.
 *
 * Keys of mappings are matched by name, addresses by value; items of a list that are addresses or
 * have a name or a prefix by that, other lists by place or as a whole. What is the same in both
 * trees stays as the file has it.
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
