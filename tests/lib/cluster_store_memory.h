/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * cluster_store_memory.h - the cluster store as a model in this process: many nodes are simulated
 * on it, and charge.lua is compared with it.
 */
#ifndef SLUICE_TESTS_CLUSTER_STORE_MEMORY_H
#define SLUICE_TESTS_CLUSTER_STORE_MEMORY_H

#include "cluster/quota/cluster_store.h"

/* In this process, any number of nodes: a store, and for each node a view of it. Not
 * thread-safe. */
struct cluster_store_memory;
int cluster_store_memory_new(struct cluster_store_memory **ret);
void cluster_store_memory_free(struct cluster_store_memory *memory);
/* Its clock; cluster_store_memory_run() replies to each command `delay_us` after it was sent. */
void cluster_store_memory_set_time(struct cluster_store_memory *memory, u64 now_us);
void cluster_store_memory_set_delay(struct cluster_store_memory *memory, u64 delay_us);
void cluster_store_memory_run(struct cluster_store_memory *memory);
void cluster_store_memory_lose(
	struct cluster_store_memory *memory); /* everything, as an empty restart does */
int cluster_store_memory_node(struct cluster_store_memory *memory, const char *node,
			      struct cluster_store **ret);
/* A node that is cut off: neither its commands nor its replies arrive: LATE, and then DOWN. */
void cluster_store_memory_cut(struct cluster_store *node, bool cut);
/* A node without a connection: up() is false, request() -EHOSTUNREACH, as with a breaker open. */
void cluster_store_memory_down(struct cluster_store *node, bool down);

#endif
