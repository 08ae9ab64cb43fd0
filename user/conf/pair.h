/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * pair.h - KEY=VALUE of a live change, read by the row of its key as in a file: into a struct, or
 * into nodes as read from a file.
 */
#ifndef SLUICE_POLICY_PAIR_H
#define SLUICE_POLICY_PAIR_H

#include "conf/key.h"

/*
 * Applies KEY=VALUE, or KEY.KEY=VALUE, to a mapping of the tree, to save it in its file. An empty
 * VALUE removes the key; a VALUE that begins with a bracket is YAML; its row says whether commas
 * separate the items of a list. -EINVAL with a message "SUBJECT: ...", -ENOMEM.
 */
int pair_set(struct tree *tree, struct yaml_node *map, const char *subject,
	     const struct keys *keys, const char *pair, struct sl_err *err);

/*
 * Applies the pairs to `section`, in the order of the table; then calls the table's `check`, with
 * an empty mapping as node. Errors begin with r->subject; on failure `section` may be changed.
 */
int pairs_read(struct reader *r, const struct keys *keys, void *section, char *const *pairs,
	       size_t count);

#endif
