/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * text_edit.h - changes a YAML text to that of another tree, with as few changes as possible.
 *
 * The new tree is a changed result of tree_parse() or tree_parse_deep(): nodes that were read have
 * their line, new ones have line 0. Unchanged parts keep their bytes: comments, order, quotes,
 * spelling, anchors and aliases.
 *
 *  - An item that is removed takes the comments directly above it along, unless the next item
 *    follows without a blank line or a comment: they may be about both.
 *  - A change to what an alias or a merge key brought is written at that place: the anchor's own
 *    place stays. A change to what has an anchor is written there, and aliases that must not change
 *    with it are written out.
 *  - A merge key with the alias of a list is written out.
 *  - New lists and mappings are written in brackets where they fit into 100 columns.
 */
#ifndef SLUICE_TEXT_EDIT_H
#define SLUICE_TEXT_EDIT_H

#include "conf/tree.h"

/*
 * 0 with *ret to be freed (0-terminated), or -ENOMEM, or -EINVAL with err: the text cannot be
 * changed so. The result is read again and compared with `wanted`. `file` is its name in errors.
 */
int text_edit(const char *file, const char *text, size_t size, const struct yaml_node *wanted,
	      char **ret, size_t *ret_size, struct sl_err *err);

/* Makes a node and all below it new ones. */
void yaml_node_renew(struct yaml_node *node);

#endif
