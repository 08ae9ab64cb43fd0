/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * networks.h - the networks that carry the traffic: hierarchical heavy hitters in a list of
 * sources.
 *
 * A flood of spoofed addresses is thousands of sources that send little each. A prefix is named if
 * it has at least a tenth of a measure (NETWORKS_SHARE) without what longer named prefixes have:
 * the discounted definition of Cormode, Korn, Muthukrishnan and Srivastava, "Finding Hierarchical
 * Heavy Hitters in Data Streams" (VLDB 2003), computed exactly over the list, from the source up:
 * IPv4 by /32, /24, /16, /8, IPv6 by /64, /56, /48, /32. So of each measure about ten prefixes are
 * named at most, and sources that have a tenth of it together and share a /8 or /32 are in one of
 * them.
 *
 * A named prefix is then narrowed bit by bit while one half of it has 95% of the measure: the flood
 * of a /20 is not called its /16, which has innocent neighbors.
 *
 * Costs one walk over the list for each length, and no memory beyond the caller's.
 */
#ifndef SLUICE_LIB_NETWORKS_H
#define SLUICE_LIB_NETWORKS_H

#include "lib/addr.h"

#define NETWORKS_MEASURES 4
#define NETWORKS_SHARE 10 /* one in so many parts */
#define NETWORKS_MAX 48	  /* NETWORKS_MEASURES * NETWORKS_SHARE, and what narrowing adds */

struct networks_row {
	struct sl_prefix source;       /* a /32 or a /64 */
	u64 amount[NETWORKS_MEASURES]; /* sums must fit into 60 bits */
	u32 network;		       /* set: 1 + the index of the prefix named for it; 0: none */
};

struct network {
	struct sl_prefix prefix; /* one source with a tenth of its own is named, too */
	u32 sources;		 /* rows, like `amount` without those of longer named prefixes */
	u64 amount[NETWORKS_MEASURES];
};

/*
 * Names prefixes of `count` rows, which are in the order of sl_prefix_compare(), each source once.
 * Returns how many are in `ret`, longer ones first.
 */
size_t networks_find(struct networks_row *row, size_t count, struct network ret[NETWORKS_MAX]);

#endif
