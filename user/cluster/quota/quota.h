/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * quota.h - this node's part of limits that several nodes share: acquire, release, refund, flush.
 *
 * The bucket state in the counter table is this node's best estimate of the whole bucket: the last
 * reply of Redis, and what this node has charged since. It can refuse alone, so a refusal costs no
 * round trip. For a request that it would admit, the consistency of the rule decides:
 *
 *     strict       each request goes to Redis
 *     lease        the command acquires more than it needs, and the node spends the rest until the
 *                  lease ends; leases follow demand and get small where little is left; a rare key
 *                  gets none, and costs what strict does
 *     write_back   counted here; each interval flushes what is new to Redis; a request for a key
 *                  without a reply in the last interval goes to Redis
 *
 * Largest overshoot of all nodes together: strict 0; lease 0, and for each node that vanished what
 * it had spent of one lease and not flushed; write_back (nodes - 1) x what a node admits in an
 * interval.
 *
 * Each bucket with quota has an entry, in memory, in a table of fixed size; without a free entry,
 * each request for the bucket goes to Redis. Any thread may call; quota_acquire() and related calls
 * with the bucket's states in the counter table locked, so that an entry and its state change
 * together.
 *
 * All times here are this node's own (counters_now(), the same clock for all callers); the
 * difference to Redis' clock is added inside.
 */
#ifndef SLUICE_QUOTA_H
#define SLUICE_QUOTA_H

#include "cluster/quota/cluster_store.h"
#include "limiter/consistency.h"

struct quotas;

/* A bucket of a request. */
struct quota_ref {
	u64 key, tag;
	const struct spec_def *def;
	enum consistency consistency;
	u64 every_ns;	/* of the lease; between write-backs */
	u32 metric;	/* of its rule: sluice_overshoot_ratio{rule} */
	bool count_all; /* what the limit refuses counts, too */
};

/* A lookup of the usage of a bucket in Redis. */
struct quota_lookup {
	struct quota_ref ref; /* its def is the one below */
	struct spec_def def;
	bool answered;
	u64 used; /* as cluster_store_state.used */
};

/* At least `entries`, and at least 4096; 290 bytes each, touched when first used. */
int quotas_new(u64 entries, struct quotas **ret);
void quotas_free(struct quotas *quotas); /* NULL is fine */

/* `now` with utc_ns by Redis' clock. Use it for the bucket states of cluster limits only. */
struct sl_now quotas_now(const struct quotas *quotas, struct sl_now now);
/*
 * From now on each reply and quotas_due() write Redis' time less this machine's UTC to *utc_ns, a
 * field of the counter table (counters_set_quotas()). Atomic.
 */
void quotas_publish_clock(struct quotas *quotas, s64 *utc_ns);
/* The number of nodes, including this one: gives the part of a limit before the first reply. */
void quotas_set_nodes(struct quotas *quotas, u32 nodes);
/*
 * How long a response may wait for Redis (cluster.deadline), once at the start: the longest round
 * trip that leases and flushes allow for. 0 (default): none.
 */
void quotas_set_deadline(struct quotas *quotas, u64 deadline_ns);

enum quota_verdict { QUOTA_COVERED, QUOTA_NOT_COVERED };
/*
 * Whether this node may admit `cost` without Redis. Covered: spent from the lease, or counted for
 * the next flush.
 */
enum quota_verdict quota_acquire(struct quotas *quotas, const struct quota_ref *ref, u64 cost,
				 struct sl_now now);
/* Releases a cost that quota_acquire() covered, because another bucket refused. */
void quota_release(struct quotas *quotas, const struct quota_ref *ref, u64 cost);

/*
 * Call it before a bucket is sent, with the other fields filled in: adds leases, reports and
 * restores. Each bucket that is sent passes here and through quota_complete(), also
 * CLUSTER_STORE_REFUND: a refund without an entry here would look like a loss in Redis.
 */
void quota_prepare(struct quotas *quotas, const struct quota_ref *ref,
		   struct cluster_store_bucket *bucket, struct sl_now now);
/*
 * Call it once, after the reply (CLUSTER_STORE_DONE, in done() or late()) or when there will be
 * none (CLUSTER_STORE_DOWN), but not at CLUSTER_STORE_LATE. The bucket state in the counter table
 * is then cluster_store_bucket_state() of bucket->state and quota_unflushed().
 */
void quota_complete(struct quotas *quotas, const struct quota_ref *ref,
		    const struct cluster_store_bucket *bucket,
		    const struct cluster_store_request *request, enum cluster_store_outcome outcome,
		    struct sl_now now);
/*
 * Whether a newer reply for the bucket has been applied already, so the reply of now_us is
 * outdated. Call it before quota_complete() or quotas_flushed() gets the reply.
 */
bool quota_is_stale(const struct quotas *quotas, u64 key, u64 now_us);
/*
 * Counts hits for the next flush: charged here (> 0) or refunded (< 0). They come from reports,
 * refunds, and requests admitted while Redis was unavailable.
 */
void quota_add_unflushed(struct quotas *quotas, const struct quota_ref *ref, s64 hits,
			 struct sl_now now);
/*
 * `count: all`: counts hits that the limit refused, for the next command of this bucket; without
 * one the cluster's thread sends them within QUOTA_REFUSED_NS. The rest of a lease is spent by
 * that.
 */
#define QUOTA_REFUSED_NS 100000000ULL
void quota_add_refused(struct quotas *quotas, const struct quota_ref *ref, u64 hits,
		       struct sl_now now);
/* Those that the last reply does not contain. */
u64 quota_refused(const struct quotas *quotas, u64 key);
/* The bucket was reset, here or on another node: clears its entry and ends its leases. */
void quota_forget(struct quotas *quotas, u64 key);
/*
 * Charges of this node that the last reply does not contain: spent from a lease, not flushed yet,
 * or in commands without a reply so far.
 */
u64 quota_unflushed(const struct quotas *quotas, u64 key);
/* Of these, the charges that Redis still decides: their requests have no answer yet. */
u64 quota_undecided(const struct quotas *quotas, u64 key);
/* A request was admitted without a reply, which is still to come (hits > 0), or it came (< 0). */
void quota_add_overdue(struct quotas *quotas, u64 key, s64 hits);
/*
 * While Redis is unavailable: the part of the limit that this node may admit, in permille
 * (1..1000).
 */
u32 quota_permille(const struct quotas *quotas, u64 key, struct sl_now now);
/* An even part, in permille (1..1000): those of all nodes together are no more than the whole. */
u32 quota_even_permille(const struct quotas *quotas);

/* ------------------------------------------------------------------ the cluster's thread */

/*
 * The flushes due now: counts of write-back, leases that end, refunds, restores. Returns their
 * number, at most `max`; each is pending until quotas_flushed(). Call it every few milliseconds,
 * and again until it returns fewer than `max`.
 */
enum quota_due_kind {
	QUOTA_DUE_LATE,
	QUOTA_DUE_REFUND,
	QUOTA_DUE_RESTORE,
	QUOTA_DUE_LEASE,
	QUOTA_DUE_FLUSH,
	QUOTA_DUE_REFUSED
};

struct quota_due {
	enum quota_due_kind kind;
	struct quota_ref ref;
	struct spec_def def; /* ref.def points here */
	struct cluster_store_bucket bucket;
	u64 empty_ns; /* of its entry, when it was sent */
};
u32 quotas_due(struct quotas *quotas, struct quota_due *ret, u32 max, struct sl_now now);
/*
 * Before this node exits: ends all leases, makes all flushes due; quota_acquire() covers nothing
 * more.
 */
void quotas_end(struct quotas *quotas);
/*
 * The result of a flush: DONE or DOWN, once; also at LATE, before the call from late(). `request`
 * NULL: it was never sent (DOWN). *ret_unflushed: charges here in the meantime; the caller, which
 * has the bucket state locked, computes the new state from the reply and these.
 */
void quotas_flushed(struct quotas *quotas, const struct quota_due *due,
		    const struct cluster_store_request *request, enum cluster_store_outcome outcome,
		    struct sl_now now, u64 *ret_unflushed);

/* ------------------------------------------------------------------ what is measured */

struct quotas_stats {
	u64 entries, room, full; /* full: buckets that found no free entry */
	u64 leases, credit;	 /* current ones; credit in requests */
	u64 unflushed;		 /* requests not flushed yet */
	u64 lost, restored;	 /* requests lost by Redis, and requests restored */
};
void quotas_stats(const struct quotas *quotas, struct quotas_stats *ret);
/*
 * The largest excess over the limit of all windows that ended in the last hour, as a ratio to the
 * limit.
 */
double quotas_overshoot(const struct quotas *quotas, u32 metric);

#endif
