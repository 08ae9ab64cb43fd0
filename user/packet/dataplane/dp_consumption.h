/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * dp_consumption.h - limits that nodes have in common: what sources used of them here, and what
 * they used elsewhere.
 *
 *     dp_consumption_look() -> dp_consumption_take() -> others: dp_consumption_charge()
 *
 * Beside the buckets of such a limit counters say what this node let pass (meters_counter.c).
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
#ifndef SLUICE_DP_CONSUMPTION_H
#define SLUICE_DP_CONSUMPTION_H

#include "packet/dataplane/dataplane.h"

struct dp_consumption;

/* Knows `room` sources at a time; of more, those that use most of their limits. */
int dp_consumption_new(struct dp *dp, u32 room, struct dp_consumption **ret);
void dp_consumption_free(struct dp_consumption *consumption);	/* NULL is fine */

/*
 * The rules in force are these now. 0, or -ENOMEM: it then knows no limit. Counters that there
 * are when limits come in for the first time are not told: whoever looked before has done that.
 */
int dp_consumption_rules(struct dp_consumption *consumption, const struct sl_image *image,
			 const struct policy *policy, struct sl_now now);
/* Whether any limit is of all nodes; where none is the rest costs nothing. */
bool dp_consumption_any(const struct dp_consumption *consumption);

/* What is counted together: a limit's rows of one unit and prefix. By the name and kind of a slot. */
const char *dp_consumption_name(const struct dp_consumption *consumption, u32 group, u64 *ret_kind);
/* -ENOENT: these rules have no such one. */
int dp_consumption_find(const struct dp_consumption *consumption, const char *name, u64 kind);

/*
 * Looks at the sources it knows, and for new ones at as much of the table as makes a round in
 * `round_ns` (or DP_CONSUMPTION_WAYS_MAX ways). Every sync interval.
 */
#define DP_CONSUMPTION_WAYS_MAX 2000000
void dp_consumption_look(struct dp_consumption *consumption, struct sl_now now, u64 round_ns);

struct dp_consumption_report {
	u32 group;
	u64 hash;		/* of the key: SL_KEY_HASH_BITS */
	u64 units;		/* let pass here */
	u64 since_ns, until_ns;	/* when: CLOCK_MONOTONIC */
};
/* How fine it is told: so many nodes, so often. */
void dp_consumption_nodes(struct dp_consumption *consumption, u32 nodes, u64 sync_ns);
/* What has to be told now, the largest shares first; it has been told then. The number. */
u32 dp_consumption_take(struct dp_consumption *consumption, struct dp_consumption_report *ret,
			u32 max, struct sl_now now);

/* What another node told. A group that there is not is ignored. */
void dp_consumption_charge(struct dp_consumption *consumption,
			   const struct dp_consumption_report *told, struct sl_now now);

struct dp_consumption_stats {
	u64 known, room;	/* sources */
	u64 displaced;		/* gave way to heavier ones */
	u64 told, charged;	/* entries */
};
void dp_consumption_stats(const struct dp_consumption *consumption,
			  struct dp_consumption_stats *ret);

#endif
