/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * shared.h - the store that nodes have in common, as who charges sees it.
 *
 *     struct shared_ask: buckets of one place -> ask() -> done(): all or none, and how each stands
 *
 * Two implementations behind one table of operations: shared_redis.c (redis.h, one script,
 * charge.lua) and shared_memory.c (this process; the exact model, which tests and the simulation
 * of many nodes use). Both do the same to the last request; tests/prop/test_shared.c compares them.
 *
 * A bucket is one limit for one key. Its key and tag are SipHash under a key that all nodes
 * derive from cluster.secret_file, so Redis never sees a value. Buckets with the same tag are in
 * one slot: "PREFIX{TAG}KEY", both in base 16.
 *
 * Time is the store's own (Redis TIME): windows have absolute numbers by it, whatever a node's
 * clock says. A key expires when its bucket would be as unused, plus a little.
 *
 *     fixed-window    count of the window        first-request   count, and when the window began
 *     sliding-window  counts of two windows      buckets         how long until it is empty
 *     sliding-log     when each was charged
 * and beside them, for windows and logs what each node has charged of it (own), and leases.
 */
#ifndef SLUICE_SHARED_H
#define SLUICE_SHARED_H

#include <stdbool.h>

#include "http/spec.h"

/*
 * How a bucket stands. Of windows counts of requests; of buckets nanoseconds. `used` and `own` are
 * without what this node's own lease still holds (granted, not said to be spent or returned): so
 * the word made from `used` and from what was charged here since lets just that much more through,
 * and `own` never goes down but by BACK. What other nodes' leases hold is in `used`.
 */
struct shared_state {
	u64 used;		/* window, log: requests in it; token and leaky bucket: ns until it is empty */
	u64 before;		/* sliding-window: of the window before */
	u64 window;		/* its absolute number (time / period); first-request: when it began, us */
	u64 own;		/* windows, logs: how much of `used` this node has charged, says the store */
};

enum shared_kind {
	SHARED_TAKE,		/* charged if all of the ask's buckets fit */
	SHARED_FORCE,		/* has happened: charged in any case; of logs debt at most one capacity, of buckets
				   as `debt` says; counts of windows are what was charged */
	SHARED_BACK,		/* given back, never below unused */
};

struct shared_bucket {
	/* In. */
	u64 key, tag;
	struct spec_def def;	/* the limit: algorithm, count, period, burst, scale */
	enum shared_kind kind;
	u64 cost;		/* requests; 0 looks */
	u64 debt;		/* FORCE of buckets: so many requests above capacity at most; 0: one capacity */
	u64 hold;		/* kept for higher priorities: a cost fits where cost + hold does */
	u64 window;		/* FORCE, BACK: of which window (0: the current one; as state.window); of one that is over
				   only a sliding window's last one still counts, but `excess` and
				   state.window are then of that one. TAKE: of which `returned` and `spent` are */
	u64 want;		/* lease: besides cost so many more, as far as there are */
	/*
	 * Lease: of what was granted before this is given back, and this was spent since it was last
	 * said; both count also where the ask is refused. More spent than the store still has as this
	 * node's (it was taken back, or lost) is charged as by FORCE, more returned is nothing.
	 */
	u64 returned, spent;
	u64 lease_us;		/* > 0: this node's lease lasts so long from now; what it has not said to be spent
				   by then the store takes back */
	/* Out. */
	struct shared_state state;	/* after */
	u64 granted;		/* of want */
	u64 wait_ns;		/* refused by this one: how long until it fits; ~0 never */
	u64 excess;		/* how far above its capacity it is, in requests: the overshoot */
	bool over;
	/* share.c's, from share_ask() to share_answered(): when it was asked. */
	u64 asked_ns, asked_utc_ns;
};

enum shared_outcome {
	SHARED_DONE,		/* the store has answered */
	SHARED_LATE,		/* not by the deadline; late() follows */
	SHARED_DOWN,		/* it was not asked, or nobody knows */
};

#define SHARED_BUCKETS_MAX 256		/* of one ask */

/*
 * The caller's, until done(); after SHARED_LATE until late(). All buckets are of one place.
 * done() is called once, never before ask() returns.
 */
struct shared_ask {
	struct shared_bucket *bucket;
	u32 count;
	u64 deadline_ns;	/* from now */
	void (*done)(struct shared_ask *ask, enum shared_outcome outcome);
	void (*late)(struct shared_ask *ask, enum shared_outcome outcome);	/* DONE or DOWN */
	void *arg;
	/* Out. */
	bool passed;		/* every SHARED_TAKE bucket fits; else none of those was charged */
	u64 now_us;		/* the store's time, microseconds since 1970 */
	void *private;
};

/* One for each event loop that asks. */
struct shared {
	const struct shared_ops *ops;
};

struct shared_ops {
	u32 (*place)(struct shared *shared, u64 tag);
	/* 0, or -errno where it cannot be asked; then done() is not called. */
	int (*ask)(struct shared *shared, struct shared_ask *ask);
	bool (*up)(struct shared *shared, u32 place);
	void (*free)(struct shared *shared);
};

struct redis;
/* Names this node in leases and `own`. The client stays the caller's. */
int shared_redis_new(struct redis *redis, const char *prefix, const char *node,
		     struct shared **ret);

/* In this process, any number of nodes: a store, and for each node a view of it. Not thread-safe. */
struct shared_memory;
int shared_memory_new(struct shared_memory **ret);
void shared_memory_free(struct shared_memory *memory);
/* Its clock; asks are answered by shared_memory_run(), each `delay_us` after it was made. */
void shared_memory_set_time(struct shared_memory *memory, u64 now_us);
void shared_memory_set_delay(struct shared_memory *memory, u64 delay_us);
void shared_memory_run(struct shared_memory *memory);
void shared_memory_lose(struct shared_memory *memory);	/* everything, as an empty restart does */
int shared_memory_node(struct shared_memory *memory, const char *node, struct shared **ret);

#endif
