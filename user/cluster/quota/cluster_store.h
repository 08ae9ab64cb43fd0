/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * cluster_store.h - the cluster store: the buckets that all nodes of a cluster charge, in Redis.
 *
 *     struct cluster_store_request: buckets of one hash slot -> send() -> done(): all or none
 *     charged, and the state of each
 *
 * cluster_store_redis.c implements it (redis.h, one script, charge.lua). Tests put
 * tests/lib/cluster_store_memory.c, an exact model in C, behind the same operations. Both admit the
 * same requests, to the last one; tests/prop/test_cluster_store_script.c compares them.
 *
 * A bucket is one limit for one key. Its key and tag are SipHash under a key that all nodes
 * derive from cluster.secret_file, so no value reaches Redis. Buckets with the same tag are in
 * one hash slot: "PREFIX{TAG}KEY", both in base 16.
 *
 * Time is Redis' own (TIME): it numbers the windows, whatever a node's clock shows. A key expires
 * a little after its bucket has drained or its windows are over.
 *
 *     fixed-window    count of the window        first-request   count, and when the window began
 *     sliding-window  counts of two windows      buckets         how long until it is empty
 *     sliding-log     when each was charged
 * Beside them it stores what each node has charged of a window or log (own), and leases.
 *
 * Leases. A grant counts as used at once, and the node may spend it: of a window within that window
 * only, of a bucket or log until the lease ends. In a bucket or log it stays used until the node
 * reports it as spent or returned. So the bucket and all leases together never hold more than the
 * bucket alone would. A grant is
 *
 *     min(want, what is left / 2k, capacity / 10k less what this node holds,
 *         half of capacity / 10 less what all hold)  k: nodes with a lease, this one included
 *
 * in whole requests. So at most a tenth of a limit is leased, at any demand; there is always some
 * left for the next node; and the last requests of a limit are charged one by one. The next command
 * for a bucket returns an expired lease; what its node later reports as spent is charged in any
 * case.
 *
 * `spent` and `returned` are parts of what was granted in the window that Redis has it for. Any
 * `spent` beyond that is charged like CLUSTER_STORE_FORCE, in `window`.
 */
#ifndef SLUICE_CLUSTER_STORE_H
#define SLUICE_CLUSTER_STORE_H

#include <stdbool.h>

#include "limiter/cluster_state.h"

enum cluster_store_kind {
	CLUSTER_STORE_CHARGE,		/* charged if all buckets of the request fit */
	CLUSTER_STORE_FORCE,		/* has happened: charged in any case; debt of logs at most one capacity, of
				   buckets `debt`; windows count all of it */
	CLUSTER_STORE_REFUND,		/* refunded, never below unused */
};

struct cluster_store_bucket {
	/* In. */
	u64 key, tag;
	struct spec_def def;	/* the limit: algorithm, count, period, burst, scale */
	enum cluster_store_kind kind;
	u64 cost;		/* requests; 0: only a look */
	u64 debt;		/* FORCE of buckets: at most so many requests above capacity; 0: one capacity */
	u64 hold;		/* reserved for higher priorities: a cost fits where cost + hold does */
	u64 window;		/* FORCE, REFUND: the window that it is of (0: the current one; as state.window);
				   when that is over only a sliding window's last one still counts, see `late`.
				   CHARGE: the window of `returned` and `spent`. FORCE of buckets: when, us (0: now):
				   one that was empty has drained since. CHARGE of buckets: the earliest time at which
				   it can be empty, us, from an earlier reply; two capacities at most */
	u64 want;		/* lease: up to so many more besides cost; also with a cost of 0, where that fits,
				   whatever else is in the request */
	/*
	 * Lease: `returned` of the earlier grants is not needed any more, `spent` was spent since
	 * the last report; both count even where the request is refused. `spent` beyond what Redis
	 * still has of this node's lease (it expired, or was lost) is charged as by FORCE;
	 * `returned` beyond it is ignored.
	 */
	u64 returned, spent;
	u64 lease_us;		/* > 0: this node's lease lasts so long from now; Redis then ends it and frees
				   what was not reported as spent */
	/* Out. */
	struct cluster_store_state state;	/* after */
	u64 granted;		/* of want */
	u64 wait_ns;		/* refused by this bucket: how long until it fits; ~0 never */
	u64 excess;		/* how far above its capacity it is, in requests, without leases: the overshoot */
	bool over;
	bool late;		/* FORCE, REFUND: `window` is over, so the current one (in `state`) has nothing of
				   this; `excess` is of the one that is over, where it is the last one */
	/*
	 * From quota_prepare() to quota_complete(): when it was sent; what of `spent` restores a
	 * loss.
	 */
	u64 sent_ns, sent_utc_ns, restored;
};

enum cluster_store_outcome {
	CLUSTER_STORE_DONE,		/* Redis replied */
	CLUSTER_STORE_LATE,		/* no reply by the deadline; late() follows */
	CLUSTER_STORE_DOWN,		/* not sent, or the result is unknown */
};

#define CLUSTER_STORE_BUCKETS_MAX 256		/* of one request */

/*
 * The caller keeps it until done(); after CLUSTER_STORE_LATE until late(). All buckets are of one
 * hash slot, no two have the same key. done() is called once, never before send() returns. The
 * periods of windows and logs are whole microseconds.
 */
struct cluster_store_request {
	struct cluster_store_bucket *bucket;
	u32 count;
	u64 deadline_ns;	/* from now */
	void (*done)(struct cluster_store_request *request, enum cluster_store_outcome outcome);
	void (*late)(struct cluster_store_request *request,
		     enum cluster_store_outcome outcome); /* DONE or DOWN */
	void *arg;
	/* Out. */
	bool passed; /* every CLUSTER_STORE_CHARGE bucket fits; else none of those was charged */
	u64 now_us;		/* Redis' time, microseconds since 1970 */
	void *private;
};

/* One for each event loop. */
struct cluster_store {
	const struct cluster_store_ops *ops;
};

struct cluster_store_ops {
	u32 (*slot_of)(struct cluster_store *store, u64 tag);
	/* 0, or -errno where it cannot be sent; then done() is not called. */
	int (*send)(struct cluster_store *store, struct cluster_store_request *request);
	bool (*up)(struct cluster_store *store, u32 place);
	void (*free)(struct cluster_store *store);
};

struct redis;
/* `node` is this node's name in leases and `own`. The client stays the caller's. */
int cluster_store_redis_new(struct redis *redis, const char *prefix, const char *node,
			    struct cluster_store **ret);

#endif
