/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * dp_consumption.h - limits of all nodes together: what sources consumed here, and what they
 * consumed elsewhere.
 *
 *     dp_consumption_look() -> dp_consumption_take() -> other nodes: dp_consumption_charge()
 *
 * Counters next to the buckets of such a limit hold what this node admitted (meters_counter.c).
 * Counters that changed are published; the other nodes charge them to the same buckets, but not to
 * their counters, so that nothing is published twice. So every node's buckets hold what all nodes
 * admitted, and each node refuses by itself. An admission is unknown elsewhere until it is
 * published: in any time t all nodes together may admit
 *
 *     burst + rate x t + (nodes - 1) x (burst + rate x d)
 *
 * where d is the delay of publishing (two sync intervals, and half a second for a source that was
 * not tracked). An excess counts: the source then gets less until the sum is right again, up to one
 * capacity or `beyond`, whichever is more.
 *
 * With `count: all` what a node refuses is counted and published as well, and fills the buckets of
 * the others (dp_consumption_exchange.c).
 *
 * Sources are known only by hashes of keys, equal on all nodes with the same seed.
 */
#ifndef SLUICE_DP_CONSUMPTION_H
#define SLUICE_DP_CONSUMPTION_H

#include "packet/dataplane/dataplane.h"

struct dp_consumption;

/* Tracks `room` sources at a time: those with the highest utilization. */
int dp_consumption_new(struct dp *dp, u32 room, struct dp_consumption **ret);
void dp_consumption_free(struct dp_consumption *consumption); /* NULL is fine */

/*
 * Sets the rules in force. 0, or -ENOMEM, after which it tracks no limit. Counters that exist when
 * limits come in for the first time are not published: the previous daemon did that.
 */
int dp_consumption_rules(struct dp_consumption *consumption, const struct sl_image *image,
			 const struct policy *policy, struct sl_now now);
/* Whether any limit has scope cluster; if none, the rest costs nothing. */
bool dp_consumption_any(const struct dp_consumption *consumption);

/*
 * A group counted together: a limit's meters of one unit and prefix, by the name and kind of a
 * slot. What one of these meters refuses, where that counts, is a group of its own.
 */
const char *dp_consumption_name(const struct dp_consumption *consumption, u32 group, u64 *ret_kind);
/* -ENOENT: these rules have no such group. */
int dp_consumption_find(const struct dp_consumption *consumption, const char *name, u64 kind);

/*
 * Reads the known sources, and for new ones as much of the table as makes a round in `round_ns` (or
 * DP_CONSUMPTION_WAYS_MAX ways). Every sync interval.
 */
#define DP_CONSUMPTION_WAYS_MAX 2000000
void dp_consumption_look(struct dp_consumption *consumption, struct sl_now now, u64 round_ns);

struct dp_consumption_report {
	u32 group;
	u64 hash;		/* of the key: SL_KEY_HASH_BITS */
	u64 units;		/* admitted here, or refused */
	u64 since_ns, until_ns; /* when: CLOCK_MONOTONIC. Refused by a bucket: since the last one */
};
/* The granularity of publishing follows from the number of nodes and the interval. */
void dp_consumption_nodes(struct dp_consumption *consumption, u32 nodes, u64 sync_ns);
/* The entries to publish now, the largest shares first, marked as published. Returns how many;
 * `max` is at least 5. */
u32 dp_consumption_take(struct dp_consumption *consumption, struct dp_consumption_report *ret,
			u32 max, struct sl_now now);

/* Charges an entry of another node. An unknown group is ignored. */
void dp_consumption_charge(struct dp_consumption *consumption,
			   const struct dp_consumption_report *report, struct sl_now now);

struct dp_consumption_stats {
	u64 known, room;	/* sources */
	u64 published, charged; /* entries */
};
void dp_consumption_stats(const struct dp_consumption *consumption,
			  struct dp_consumption_stats *ret);

#endif
