/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * bus_peers.h - the known nodes: which of their batches were already seen, and which are alive.
 *
 * A batch counts once. Its node numbers it: a number that is not above the last one of the same
 * daemon is refused, and so is a batch of a daemon that started before the last one seen. The
 * table is bounded; the node that was silent longest is evicted. Its batches can be replayed for
 * BUS_FRESH_US at most: older ones are refused by their age.
 *
 * Pure: the caller passes the store's time. Not thread-safe.
 */
#ifndef SLUICE_BUS_PEERS_H
#define SLUICE_BUS_PEERS_H

#include "cluster/bus/bus_batch.h"

#define BUS_PEERS_MAX 1024
#define BUS_FRESH_US (30ULL * 1000000)	/* older batches are refused */
#define BUS_AHEAD_US (5ULL * 1000000)	/* and those sent so much later than now */
#define BUS_SILENT_LEAST_NS (2 * SL_NS_PER_SEC)
#define BUS_SHOWN_NS (3600 * SL_NS_PER_SEC)	/* nodes silent for longer are not listed */
#define BUS_BATCHES_PER_S 120		/* a node's, at most; the shortest sync sends 50 */

struct bus_peers;

int bus_peers_new(struct bus_peers **ret);
void bus_peers_free(struct bus_peers *peers);	/* NULL is fine */

struct bus_time {
	u64 store_us;		/* now, by the store */
	u64 mono_ns;
	u64 own_utc_us;		/* by this machine */
};

/*
 * Notes a batch whose signature is good. *ret_joined: the node is new, was unavailable, or runs a
 * newer daemon. BUS_REPEATED with *ret_twice: two daemons have this name.
 */
enum bus_verdict bus_peers_note(struct bus_peers *peers, const struct bus_head *head,
				const struct bus_time *now, bool *ret_joined, bool *ret_twice);

/* As cluster_peers(): at most `max` nodes seen lately; returns how many. */
size_t bus_peers_list(const struct bus_peers *peers, u64 mono_ns, struct cluster_peer *ret,
		      size_t max);
u32 bus_peers_count(const struct bus_peers *peers);
u32 bus_peers_alive(const struct bus_peers *peers, u64 mono_ns);

#endif
