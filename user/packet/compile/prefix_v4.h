/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* prefix_v4.h - IPv4's part of the prefix index (abi.h): lists of ranges of addresses. */
#ifndef SLUICE_POLICY_PREFIX_V4_H
#define SLUICE_POLICY_PREFIX_V4_H

#include <stddef.h>

#include "packet/compile/prefix_hash.h"

struct v4_lines {
	struct sl_v4_line *line;
	size_t count, room;
	u32 list; /* the line for new lists */
	u32 used; /* its used ranges; SL_V4_RANGES: no line has room */
};

/*
 * Fills `top`'s entries of one dimension, and appends their lines. `node`: the dimension's IPv4
 * prefixes, distinct and sorted. 0, or -ENOMEM, also beyond 2^26 lines.
 */
int prefix_v4_build(const struct prefix_node *node, size_t count, struct sl_v4_top *top,
		    struct v4_lines *lines);

/* The class of an address: the reference for the data path. */
static inline u32 prefix_v4_lookup(const struct sl_v4_top *top, const struct sl_v4_line *line,
				   u32 dim, u32 addr)
{
	u32 entry = top->entry[dim << 16 | addr >> 16];

	if ((entry & SL_V4_KIND) == SL_V4_BLOCK)
		entry = line[SL_V4_LINE(entry) + (addr >> 12 & 15)].entry[addr >> 8 & 15];
	line += SL_V4_LINE(entry);
	switch (entry & SL_V4_KIND) {
	case SL_V4_LIST:
		return sl_v4_list_class(line, SL_V4_FIRST(entry), addr & 0xffff);
	case SL_V4_BYTES:
		return line[addr >> 5 & 7].class[addr & 31];
	default:
		return entry;
	}
}

#endif
