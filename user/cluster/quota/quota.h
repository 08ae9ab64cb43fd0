/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * quota.h - what this node holds of limits that many nodes have in common, and what it owes.
 *
 * The local store's word of a bucket is the best this node knows of the whole: the store's last
 * answer, and what this node has charged since. It refuses by itself (who is over costs no round
 * trip); whether what it would let through may pass, the rule's consistency says:
 *
 *     strict       the store is asked each time
 *     lease        the store is asked for more than is needed, and the rest is spent here until
 *                  the lease ends; shares follow demand, and become small where little is left;
 *                  one who asks rarely gets none, so a rare key costs what strict does
 *     write_back   counted here; what is new is added up at the store every interval
 *
 * Largest overshoot, all together: strict 0; lease 0, and for each node that vanished what it had
 * spent of one lease without having said so; write_back (nodes - 1) x what a node admits in an
 * interval.
 *
 * An entry for each bucket that something is known of: bounded, in memory; a bucket that finds
 * no place is asked for each time. Any thread; quota_acquire() and its kin with the bucket's words
 * in the local store locked, so an entry and its word change together.
 *
 * Time is this node's own everywhere here (counters_now(), the same clock for all callers); what
 * the store's clock is ahead of it is added inside.
 */
#ifndef SLUICE_QUOTA_H
#define SLUICE_QUOTA_H

#include "cluster/quota/cluster_store.h"
#include "limiter/consistency.h"

struct quotas;

/* A bucket, as a call met it. */
struct quota_ref {
	u64 key, tag;
	const struct spec_def *def;
	enum consistency consistency;
	u64 every_ns;		/* of the lease; between write-backs */
	u32 metric;		/* of its rule: sluice_overshoot_ratio{rule} */
};

/* A bucket that somebody looks at: what the store says has been used of it. */
struct quota_lookup {
	struct quota_ref ref;		/* its def is the one below */
	struct spec_def def;
	bool answered;
	u64 used;			/* as cluster_store_state.used */
};

/* `entries` at least, and at least 4096; 250 bytes each, touched as they are used. */
int quotas_new(u64 entries, struct quotas **ret);
void quotas_free(struct quotas *quotas);	/* NULL is fine */

/* `now` with utc_ns by the store's clock: for the local words of shared buckets, and for those alone. */
struct sl_now quotas_now(const struct quotas *quotas, struct sl_now now);
/*
 * Where the cluster store's time less this machine's UTC is to be written from now on, as it is at
 * each reply and quotas_due(): a field of the counter table (counters_set_quotas()). Atomic.
 */
void quotas_publish_clock(struct quotas *quotas, s64 *utc_ns);
/* How many nodes there are, this one included: for shares of one that knows no better. */
void quotas_set_nodes(struct quotas *quotas, u32 nodes);

enum quota_verdict { QUOTA_COVERED, QUOTA_NOT_COVERED };
/* Whether `cost` is this node's to give away now; covered: taken from the lease, or noted to be written back. */
enum quota_verdict quota_acquire(struct quotas *quotas, const struct quota_ref *ref, u64 cost,
				 struct sl_now now);
/* What quota_acquire() covered is not charged after all: another bucket refused. */
void quota_release(struct quotas *quotas, const struct quota_ref *ref, u64 cost);

/*
 * Before the store is asked: what else to ask for and to say with it; the bucket is filled in
 * otherwise. Each bucket that goes out passes here and through quota_complete(), also
 * CLUSTER_STORE_REFUND: one that the store gives back unknown to this looks as if the store had
 * lost it.
 */
void quota_prepare(struct quotas *quotas, const struct quota_ref *ref,
		   struct cluster_store_bucket *bucket, struct sl_now now);
/*
 * After it has answered (CLUSTER_STORE_DONE, in done() or late()), or never will
 * (CLUSTER_STORE_DOWN): once, not at CLUSTER_STORE_LATE. Then the bucket's local word is
 * cluster_store_bucket_state() of bucket->state and quota_unflushed().
 */
void quota_complete(struct quotas *quotas, const struct quota_ref *ref,
		    const struct cluster_store_bucket *bucket,
		    const struct cluster_store_request *ask, enum cluster_store_outcome outcome,
		    struct sl_now now);
/*
 * The store has said something newer of the bucket, which was heard already: the answer of now_us is
 * not how it stands. To be asked before quota_complete() or quotas_flushed() has the answer.
 */
bool quota_is_stale(const struct quotas *quotas, u64 key, u64 now_us);
/*
 * Something was charged (hits > 0) or given back here that the store has to be told of: reports,
 * refunds, what a rule let through while the store was away.
 */
void quota_add_unflushed(struct quotas *quotas, const struct quota_ref *ref, s64 hits,
			 struct sl_now now);
/* The bucket was reset, here or elsewhere: what was known of it is no more; leases of it end. */
void quota_forget(struct quotas *quotas, u64 key);
/*
 * How much was charged here that the store's last answer does not have: spent of a lease, not written
 * back yet, or on its way in asks that have no answer yet.
 */
u64 quota_unflushed(const struct quotas *quotas, u64 key);
/* While the store is away: the share of the limit that this node may let through, in permille (1..1000). */
u32 quota_permille(const struct quotas *quotas, u64 key, struct sl_now now);

/* ------------------------------------------------------------------ the cluster's thread */

/*
 * What is due to be told to the store now: write-backs, leases that end, what was owed, what the
 * store lost. At most `max`; returns how many; each stays the store's to answer until
 * quotas_flushed(). Called every few milliseconds until it returns fewer than `max`.
 */
enum quota_due_kind { QUOTA_DUE_LATE, QUOTA_DUE_REFUND, QUOTA_DUE_RESTORE, QUOTA_DUE_LEASE,
		    QUOTA_DUE_FLUSH };

struct quota_due {
	enum quota_due_kind kind;
	struct quota_ref ref;
	struct spec_def def;		/* ref.def points here */
	struct cluster_store_bucket bucket;
};
u32 quotas_due(struct quotas *quotas, struct quota_due *ret, u32 max, struct sl_now now);
/*
 * This node ends: leases do, and all that there is to tell is due at once; quota_acquire() covers
 * nothing any more.
 */
void quotas_end(struct quotas *quotas);
/*
 * Its answer: DONE or DOWN, once; at LATE, too, before the call from late().
 * `ask` NULL: it was never sent (DOWN). *ret_unflushed: what was charged here meanwhile, so that the local word is to be made from the
 * state and this; with that word locked.
 */
void quotas_flushed(struct quotas *quotas, const struct quota_due *due,
		    const struct cluster_store_request *ask, enum cluster_store_outcome outcome,
		    struct sl_now now, u64 *ret_unflushed);

/* ------------------------------------------------------------------ what is measured */

struct quotas_stats {
	u64 entries, room, full;	/* full: buckets that found no place */
	u64 leases, credit;		/* held now, in requests */
	u64 unflushed;			/* requests not told yet */
	u64 lost, restored;		/* requests that the store had forgotten, and that were told again */
};
void quotas_stats(const struct quotas *quotas, struct quotas_stats *ret);
/* Of the windows that ended within the last hour the largest excess over the limit, as a ratio to it. */
double quotas_overshoot(const struct quotas *quotas, u32 metric);

#endif
