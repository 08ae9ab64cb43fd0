/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * cluster_store.h - the store that nodes have in common, as who charges sees it.
 *
 *     struct cluster_store_request: buckets of one place -> ask() -> done(): all or none, and how
 * each stands
 *
 * cluster_store_redis.c is the store (redis.h, one script, charge.lua). Tests put another one
 * behind the same operations: tests/lib/cluster_store_memory.c, an exact model in C. Both do the
 * same to the last request; tests/prop/test_cluster_store_script.c compares them.
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
 *
 * Leases. What is granted counts as used at once and is the node's to spend: of a window within
 * that window only, of a bucket or log until the lease ends. Of a bucket and a log it stays used,
 * however long it is held, until it is said to be spent or given back, so at no time do the
 * bucket and all leases together hold more than the bucket alone would. A grant is
 *
 *     min(want, what is left / 2k, capacity / 10k less what this node holds,
 *         half of capacity / 10 less what all hold)  k: nodes with a lease, this one included
 *
 * in whole requests, so never more than a tenth of a limit is out, at any demand, whoever comes
 * next finds some of it, and the last requests of a limit are given one by one. A lease that has
 * run out is given back by whoever comes next; what its node says later to have spent of it is
 * charged in any case.
 *
 * `spent` and `returned` are of what was granted in the window that the store has it for; beyond
 * that `spent` is charged like CLUSTER_STORE_FORCE, in `window`.
 */
#ifndef SLUICE_CLUSTER_STORE_H
#define SLUICE_CLUSTER_STORE_H

#include <stdbool.h>

#include "limiter/spec.h"

/*
 * How a bucket stands. Of windows counts of requests; of buckets nanoseconds. `used` and `own` are
 * without what this node's own lease still holds (granted, not said to be spent or returned): so
 * the word made from `used` and from what was charged here since lets just that much more through,
 * and `own` never goes down but by BACK. What other nodes' leases hold is in `used`.
 */
struct cluster_store_state {
	u64 used;		/* window, log: requests in it; token and leaky bucket: ns until it is empty, rounded
				   down, so that a word made of it refuses nothing that fits there */
	u64 before;		/* sliding-window: of the window before; first-request: when that one began, us,
				   also where all of it was given back and with that it ended */
	u64 window;		/* its absolute number (time / period); first-request: when it began, us */
	u64 own;		/* windows, logs: how much of `used` this node has charged, says the store;
				   of a window the current one. Buckets: when something was last given back, us;
				   0: nothing that anybody may still count on */
};

/*
 * The local store's word that says so, with `more_hits` charged besides; 0 unused. now.utc_ns is
 * the store's time (counters_shared_now()). A sliding log's word is a list of times, of
 * which a state has only the count: 0; what this node has charged itself is what its log knows.
 */
u64 cluster_store_bucket_state(const struct spec *spec, const struct cluster_store_state *state,
			       u64 more_hits, struct sl_now now);
/* Back again; `own` is 0. */
struct cluster_store_state cluster_store_state_of(const struct spec *spec, u64 bucket_state,
						  struct sl_now now);

enum cluster_store_kind {
	CLUSTER_STORE_CHARGE,		/* charged if all of the ask's buckets fit */
	CLUSTER_STORE_FORCE,		/* has happened: charged in any case; of logs debt at most one capacity, of buckets
				   as `debt` says; counts of windows are what was charged */
	CLUSTER_STORE_REFUND,		/* given back, never below unused */
};

struct cluster_store_bucket {
	/* In. */
	u64 key, tag;
	struct spec_def def;	/* the limit: algorithm, count, period, burst, scale */
	enum cluster_store_kind kind;
	u64 cost;		/* requests; 0 looks */
	u64 debt;		/* FORCE of buckets: so many requests above capacity at most; 0: one capacity */
	u64 hold;		/* kept for higher priorities: a cost fits where cost + hold does */
	u64 window;		/* FORCE, BACK: of which window (0: the current one; as state.window); of one that is over
				   only a sliding window's last one still counts, see `late`. TAKE: of which
				   `returned` and `spent` are. FORCE of buckets: when, us (0: now): one that was
				   empty has drained since. TAKE of buckets: when it would have been empty, us,
				   says a node that has heard so: it is no emptier than that; two capacities at most */
	u64 want;		/* lease: besides cost so many more, as far as there are; also of a cost of 0, where
				   that fits, whatever else is asked for */
	/*
	 * Lease: of what was granted before this is given back, and this was spent since it was last
	 * said; both count also where the ask is refused. More spent than the store still has as this
	 * node's (it was taken back, or lost) is charged as by FORCE, more returned is nothing.
	 */
	u64 returned, spent;
	u64 lease_us;		/* > 0: this node's lease lasts so long from now; what it has not said to be spent
				   by then the store takes back */
	/* Out. */
	struct cluster_store_state state;	/* after */
	u64 granted;		/* of want */
	u64 wait_ns;		/* refused by this one: how long until it fits; ~0 never */
	u64 excess;		/* how far above its capacity it is, in requests, without leases: the overshoot */
	bool over;
	bool late;		/* FORCE, BACK: `window` is over, so the current one, which `state` is of, has nothing
				   of this; `excess` is of the one that is over, where it is the last one */
	/* quota.c's, from quota_prepare() to quota_complete(): when it was asked; what of `spent` is put back. */
	u64 sent_ns, sent_utc_ns, restored;
};

enum cluster_store_outcome {
	CLUSTER_STORE_DONE,		/* the store has answered */
	CLUSTER_STORE_LATE,		/* not by the deadline; late() follows */
	CLUSTER_STORE_DOWN,		/* it was not asked, or nobody knows */
};

#define CLUSTER_STORE_BUCKETS_MAX 256		/* of one ask */

/*
 * The caller's, until done(); after CLUSTER_STORE_LATE until late(). All buckets are of one place,
 * and no two are the same key. done() is called once, never before ask() returns. The periods of
 * windows and logs are whole microseconds.
 */
struct cluster_store_request {
	struct cluster_store_bucket *bucket;
	u32 count;
	u64 deadline_ns;	/* from now */
	void (*done)(struct cluster_store_request *ask, enum cluster_store_outcome outcome);
	void (*late)(struct cluster_store_request *ask,
		     enum cluster_store_outcome outcome); /* DONE or DOWN */
	void *arg;
	/* Out. */
	bool passed; /* every CLUSTER_STORE_CHARGE bucket fits; else none of those was charged */
	u64 now_us;		/* the store's time, microseconds since 1970 */
	void *private;
};

/* One for each event loop that asks. */
struct cluster_store {
	const struct cluster_store_ops *ops;
};

struct cluster_store_ops {
	u32 (*slot_of)(struct cluster_store *shared, u64 tag);
	/* 0, or -errno where it cannot be asked; then done() is not called. */
	int (*send)(struct cluster_store *shared, struct cluster_store_request *ask);
	bool (*up)(struct cluster_store *shared, u32 place);
	void (*free)(struct cluster_store *shared);
};

struct redis;
/* Names this node in leases and `own`. The client stays the caller's. */
int cluster_store_redis_new(struct redis *redis, const char *prefix, const char *node,
			    struct cluster_store **ret);

#endif
