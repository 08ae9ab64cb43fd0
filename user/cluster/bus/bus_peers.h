/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * bus_peers.h - the known nodes: the last batch of each, and whether it is alive.
 *
 * A batch is accepted once. Its node numbers it: a number that is not above the last one of the
 * same daemon is refused, and so is a batch of a daemon that started before the last one seen. The
 * table is bounded; the node that has been silent longest is evicted. Its batches can be replayed
 * for at most BUS_FRESH_US: older ones are refused by their age.
 *
 * Pure: the caller passes Redis' time. Not thread-safe.
 */
#ifndef SLUICE_BUS_PEERS_H
#define SLUICE_BUS_PEERS_H

#include "cluster/bus/bus_batch.h"

#define BUS_PEERS_MAX 1024
#define BUS_FRESH_US (30ULL * 1000000) /* older batches are refused */
#define BUS_AHEAD_US (5ULL * 1000000)  /* batches sent further in the future are refused */
#define BUS_SILENT_LEAST_NS (2 * SL_NS_PER_SEC)
#define BUS_SHOWN_NS (3600 * SL_NS_PER_SEC) /* nodes silent for longer are not listed */
#define BUS_BATCHES_PER_S 120		    /* the most of one node; the shortest sync sends 50 */

struct bus_peers;

int bus_peers_new(struct bus_peers **ret);
void bus_peers_free(struct bus_peers *peers); /* NULL is fine */

struct bus_time {
	u64 store_us; /* now, by Redis */
	u64 mono_ns;
	u64 own_utc_us; /* by this machine */
};

/*
 * Records a batch with a valid signature. *ret_joined: the node is new, was unavailable, or runs a
 * newer daemon. BUS_REPEATED with *ret_twice: two daemons have this name.
 */
enum bus_verdict bus_peers_note(struct bus_peers *peers, const struct bus_head *head,
				const struct bus_time *now, bool *ret_joined, bool *ret_twice);

/* As cluster_peers(): at most `max` nodes seen lately; returns their number. */
size_t bus_peers_list(const struct bus_peers *peers, u64 mono_ns, struct cluster_peer *ret,
		      size_t max);
u32 bus_peers_count(const struct bus_peers *peers);
u32 bus_peers_alive(const struct bus_peers *peers, u64 mono_ns);

#endif
