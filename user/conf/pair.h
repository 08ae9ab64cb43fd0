/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * pair.h - KEY=VALUE of a live change, read into a struct by the row of its key, as in a file.
 */
#ifndef SLUICE_POLICY_PAIR_H
#define SLUICE_POLICY_PAIR_H

#include "conf/key.h"

/*
 * Applies pairs to `section`, in the order of the table; then calls the table's `check`, with an
 * empty mapping as node. KEY.KEY=VALUE changes a part; an empty VALUE removes the key; a VALUE that
 * begins with a bracket is YAML; its row says whether commas separate the items of a list. Errors
 * begin with r->subject; on failure `section` may be changed.
 */
int pairs_read(struct reader *r, const struct keys *keys, void *section, char *const *pairs,
	       size_t count);
/* Whether each is of a row with this flag. */
bool pairs_are(const struct keys *keys, enum key_flag flag, char *const *pairs, size_t count);

#endif
