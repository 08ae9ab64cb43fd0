/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * dp_usage.h - limits that nodes have in common: what sources used of them here, and what they
 * used elsewhere.
 *
 *     dp_usage_look() -> dp_usage_take() -> others: dp_usage_charge()
 *
 * Beside the buckets of such a limit counters say what this node let pass (rows_counter.c).
 * Those that moved are told; what is told is charged to the same buckets elsewhere, but not to
 * the counters, so that nothing is told twice. Every node's buckets so hold what all nodes let
 * pass, and each refuses by itself. Between an admission and its being told a node knows
 * nothing of it: all together may let pass, over any time t,
 *
 *     burst + rate x t + (nodes - 1) x (burst + rate x d)
 *
 * where d is how long telling takes (two sync intervals, and half a second for a source that
 * was not known). What was let pass too much counts: a source that goes on is paid out less
 * until the sum is right again, up to one capacity or `beyond`, whichever is more.
 *
 * Nothing here names a source: keys are hashes, and those of all nodes agree where their seeds
 * do.
 */
#ifndef SLUICE_DP_USAGE_H
#define SLUICE_DP_USAGE_H

#include "packet/dataplane/dataplane.h"

struct dp_usage;

/* Knows `room` sources at a time; of more, those that use most of their limits. */
int dp_usage_new(struct dp *dp, u32 room, struct dp_usage **ret);
void dp_usage_free(struct dp_usage *usage);	/* NULL is fine */

/*
 * The rules in force are these now. 0, or -ENOMEM: it then knows no limit. Counters that there
 * are when limits come in for the first time are not told: whoever looked before has done that.
 */
int dp_usage_rules(struct dp_usage *usage, const struct sl_image *image,
		   const struct policy *policy, struct sl_now now);
/* Whether any limit is of all nodes; where none is the rest costs nothing. */
bool dp_usage_any(const struct dp_usage *usage);

/* What is counted together: a limit's rows of one unit and prefix. By the name and kind of a slot. */
const char *dp_usage_name(const struct dp_usage *usage, u32 group, u64 *ret_kind);
/* -ENOENT: these rules have no such one. */
int dp_usage_find(const struct dp_usage *usage, const char *name, u64 kind);

/*
 * Looks at the sources it knows, and for new ones at as much of the table as makes a round in
 * `round_ns` (or DP_USAGE_WAYS_MAX ways). Every sync interval.
 */
#define DP_USAGE_WAYS_MAX 2000000
void dp_usage_look(struct dp_usage *usage, struct sl_now now, u64 round_ns);

struct dp_usage_told {
	u32 group;
	u64 hash;		/* of the key: SL_KEY_HASH_BITS */
	u64 units;		/* let pass here */
	u64 since_ns, until_ns;	/* when: CLOCK_MONOTONIC */
};
/* How fine it is told: so many nodes, so often. */
void dp_usage_nodes(struct dp_usage *usage, u32 nodes, u64 sync_ns);
/* What has to be told now, the largest shares first; it has been told then. The number. */
u32 dp_usage_take(struct dp_usage *usage, struct dp_usage_told *ret, u32 max, struct sl_now now);

/* What another node told. A group that there is not is ignored. */
void dp_usage_charge(struct dp_usage *usage, const struct dp_usage_told *told, struct sl_now now);

struct dp_usage_stats {
	u64 known, room;	/* sources */
	u64 displaced;		/* gave way to heavier ones */
	u64 told, charged;	/* entries */
};
void dp_usage_stats(const struct dp_usage *usage, struct dp_usage_stats *ret);

#endif
