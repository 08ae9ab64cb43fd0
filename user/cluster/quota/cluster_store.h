/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * cluster_store.h - the cluster store: buckets in Redis that all nodes of a cluster charge.
 *
 *     struct cluster_store_request: buckets of one hash slot -> send() -> done(): all charged or
 *     none, and the state of each
 *
 * cluster_store_redis.c implements it (redis.h, one script, charge.lua). Tests put
 * tests/lib/cluster_store_memory.c, an exact model in C, behind the same operations. Both admit the
 * same requests, to the last one; tests/prop/test_cluster_store_script.c compares them.
 *
 * A bucket is one limit for one key. Its key and tag are SipHash under a key that all nodes derive
 * from cluster.secret_file, so no value reaches Redis. Buckets with the same tag are in one hash
 * slot: "PREFIX{TAG}KEY", both in base 16.
 *
 * Time is Redis' own (TIME). Windows are numbered by it, independent of the clocks of the nodes. A
 * key expires shortly after its bucket is empty, or its window or log no longer counts.
 *
 *     fixed-window    count of the window        first-request   count and begin of the window
 *     sliding-window  counts of two windows      buckets         time until it is empty
 *     sliding-log     time of each charge
 * It also stores each node's own charges of a window or log (own), and leases.
 *
 * Leases. A grant counts as used at once. The node may spend it: in a window only within that
 * window, in a bucket or log until the lease ends. In a bucket or log it stays used until the node
 * reports it as spent or returned. So the bucket and all leases together never hold more than the
 * bucket alone would. A grant is
 *
 *     min(want, remaining / 2k, capacity / 10k - leased by this node,
 *         (capacity / 10 - leased by all nodes) / 2)  k: nodes with a lease, this one included
 *
 * in whole requests. So at most a tenth of a limit is leased, at any demand; some always remains
 * for the next node; and the last requests of a limit are charged one by one. The next command for
 * a bucket refunds an expired lease; a later report of its node as spent is charged in any case.
 *
 * `spent` and `returned` are parts of the grant, in the window of the grant. Any `spent` beyond it
 * is charged like CLUSTER_STORE_FORCE, in `window`.
 */
#ifndef SLUICE_CLUSTER_STORE_H
#define SLUICE_CLUSTER_STORE_H

#include <stdbool.h>

#include "limiter/cluster_state.h"

enum cluster_store_kind {
	CLUSTER_STORE_CHARGE, /* charged if all buckets of the request fit */
	CLUSTER_STORE_FORCE,  /* charged in any case; debt of logs at most one capacity, of
				 buckets `debt`; windows count all of it */
	CLUSTER_STORE_REFUND, /* refunded, never below unused */
};

struct cluster_store_bucket {
	/* In. */
	u64 key, tag;
	struct spec_def def; /* the limit: algorithm, count, period, burst, scale */
	enum cluster_store_kind kind;
	u64 cost; /* requests; 0: only read */
	u64 debt; /* FORCE of buckets: the largest debt above capacity, requests; 0: one capacity */
	u64 keep_us; /* buckets: Redis keeps the time at which one became empty for so long */
	u64 hold;    /* reserved for higher priorities: a cost fits if cost + hold fits */
	/*
	 * FORCE, REFUND: the window of the cost, as in state.window; 0: the current one. After its
	 * end only the last window of a sliding window counts, see `late`. CHARGE: the window of
	 * `returned` and `spent`. FORCE of buckets: the time of the charge, us (0: now); a bucket
	 * that was empty then has drained since. CHARGE of buckets: by an earlier reply, the
	 * earliest time at which the bucket can be empty, us; at most two capacities.
	 */
	u64 window;
	/*
	 * Lease: the most to grant in addition to cost. With a cost of 0 a bucket that fits gets a
	 * grant even if the rest of the request is refused. All leases of a bucket are at most a
	 * tenth of the capacity, but each node may have `least`, as long as all are at most a
	 * quarter.
	 */
	u64 want, least;
	/*
	 * Lease: units of earlier grants to refund, and units spent since the last report. Both
	 * apply even if the request is refused. `spent` beyond this node's lease in Redis (it
	 * expired, or was lost) is charged as by FORCE; `returned` beyond it is ignored.
	 */
	u64 returned, spent;
	/*
	 * CHARGE: requests refused at `refused_us`, Redis' time, that count (`count: all`). They
	 * fill the bucket up to its capacity as it was then, and of a log the oldest ones leave,
	 * before the rest is decided; also if that is refused. Fixed windows and interval buckets
	 * ignore them.
	 */
	u64 refused, refused_us;
	/* CHARGE of logs: a refusal counts (`count: all`), so wait_ns includes it. */
	bool refusal_counts;
	/* CHARGE, in Redis on one server: it is over while deferred requests wait for it
	 * (defer_store.h). */
	bool queued;
	u64 lease_us; /* > 0: new duration of the lease; at its end Redis refunds the unreported
			 rest */
	/* Out. */
	struct cluster_store_state state; /* after the command */
	u64 granted;			  /* of want */
	u64 wait_ns;			  /* refused by this bucket: time until it fits; ~0 never */
	u64 excess; /* the overshoot: requests above capacity, without leases */
	bool over;
	/*
	 * FORCE, REFUND: `window` is over, so the current one (in `state`) is unchanged. If
	 * `window` is the previous one, `excess` is that of `window`.
	 */
	bool late;
	/*
	 * From quota_prepare() to quota_complete(): when it was sent; the part of `spent` that
	 * restores a loss.
	 */
	u64 sent_ns, sent_utc_ns, restored;
};

enum cluster_store_outcome {
	CLUSTER_STORE_DONE, /* Redis replied */
	CLUSTER_STORE_LATE, /* no reply by the deadline; late() follows */
	CLUSTER_STORE_DOWN, /* not sent, or the result is unknown */
};

#define CLUSTER_STORE_BUCKETS_MAX 256 /* of one request */

/*
 * Stays valid until done(); after CLUSTER_STORE_LATE until late(). All buckets are of one hash
 * slot, and no two have the same key. done() is called once, never before send() returns. The
 * periods of windows and logs are whole microseconds.
 */
struct cluster_store_request {
	struct cluster_store_bucket *bucket;
	u32 count;
	u64 deadline_ns; /* from now */
	void (*done)(struct cluster_store_request *request, enum cluster_store_outcome outcome);
	void (*late)(struct cluster_store_request *request,
		     enum cluster_store_outcome outcome); /* DONE or DOWN */
	void *arg;
	/* Out. */
	bool passed; /* every CLUSTER_STORE_CHARGE bucket fits; else none of those was charged */
	u64 now_us;  /* Redis' time, microseconds since 1970 */
	void *private;
};

/* One for each event loop. */
struct cluster_store {
	const struct cluster_store_ops *ops;
};

struct cluster_store_ops {
	u32 (*slot_of)(struct cluster_store *store, u64 tag);
	/* 0, or -errno if it cannot be sent; then done() is not called. */
	int (*send)(struct cluster_store *store, struct cluster_store_request *request);
	bool (*up)(struct cluster_store *store, u32 place);
	void (*free)(struct cluster_store *store);
};

struct redis;
/* `node` is this node's name in leases and `own`. The caller keeps the ownership of `redis`. */
int cluster_store_redis_new(struct redis *redis, const char *prefix, const char *node,
			    struct cluster_store **ret);

#endif
