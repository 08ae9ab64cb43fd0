/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * cluster_store_memory.h - the cluster store as a model in this process: what many nodes are simulated on, and
 * what charge.lua is compared with.
 */
#ifndef SLUICE_TESTS_CLUSTER_STORE_MEMORY_H
#define SLUICE_TESTS_CLUSTER_STORE_MEMORY_H

#include "cluster/quota/cluster_store.h"

/* In this process, any number of nodes: a store, and for each node a view of it. Not thread-safe. */
struct cluster_store_memory;
int cluster_store_memory_new(struct cluster_store_memory **ret);
void cluster_store_memory_free(struct cluster_store_memory *memory);
/* Its clock; asks are answered by cluster_store_memory_run(), each `delay_us` after it was made. */
void cluster_store_memory_set_time(struct cluster_store_memory *memory, u64 now_us);
void cluster_store_memory_set_delay(struct cluster_store_memory *memory, u64 delay_us);
void cluster_store_memory_run(struct cluster_store_memory *memory);
void cluster_store_memory_lose(
	struct cluster_store_memory *memory); /* everything, as an empty restart does */
/* Its clock, not the time that answers take, is so far ahead of what was set. */
void cluster_store_memory_step_clock(struct cluster_store_memory *memory, s64 us);
int cluster_store_memory_node(struct cluster_store_memory *memory, const char *node,
			      struct cluster_store **ret);
/* A node that is cut off: what it asks never arrives, and no answer does: LATE, and then DOWN. */
void cluster_store_memory_cut(struct cluster_store *node, bool cut);
/* Not where they are not: up() is false, ask() -EHOSTUNREACH, as with a breaker open. */
void cluster_store_memory_down(struct cluster_store *node, bool down);
/* Asks answered so far, of all nodes, and buckets there are. */
u64 cluster_store_memory_requests(const struct cluster_store_memory *memory);
u64 cluster_store_memory_buckets(const struct cluster_store_memory *memory);

#endif
