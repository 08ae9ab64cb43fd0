/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * shared_memory.h - the cluster store as a model in this process: what many nodes are simulated on, and
 * what charge.lua is compared with.
 */
#ifndef SLUICE_TESTS_SHARED_MEMORY_H
#define SLUICE_TESTS_SHARED_MEMORY_H

#include "cluster/quota/shared.h"

/* In this process, any number of nodes: a store, and for each node a view of it. Not thread-safe. */
struct shared_memory;
int shared_memory_new(struct shared_memory **ret);
void shared_memory_free(struct shared_memory *memory);
/* Its clock; asks are answered by shared_memory_run(), each `delay_us` after it was made. */
void shared_memory_set_time(struct shared_memory *memory, u64 now_us);
void shared_memory_set_delay(struct shared_memory *memory, u64 delay_us);
void shared_memory_run(struct shared_memory *memory);
void shared_memory_lose(struct shared_memory *memory);	/* everything, as an empty restart does */
/* Its clock, not the time that answers take, is so far ahead of what was set. */
void shared_memory_step_clock(struct shared_memory *memory, s64 us);
int shared_memory_node(struct shared_memory *memory, const char *node, struct shared **ret);
/* A node that is cut off: what it asks never arrives, and no answer does: LATE, and then DOWN. */
void shared_memory_cut(struct shared *node, bool cut);
/* Not where they are not: up() is false, ask() -EHOSTUNREACH, as with a breaker open. */
void shared_memory_down(struct shared *node, bool down);
/* Asks answered so far, of all nodes, and buckets there are. */
u64 shared_memory_asks(const struct shared_memory *memory);
u64 shared_memory_buckets(const struct shared_memory *memory);

#endif
