/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * share.h - what this node holds of limits that many nodes have in common, and what it owes.
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
 * spent of one lease without having said so; write_back (nodes - 1) x what a node admits in an interval.
 *
 * An entry for each bucket that something is known of: bounded, in memory; a bucket that finds
 * no place is asked for each time. Any thread; share_take() and its kin with the bucket's words
 * in the local store locked, so an entry and its word change together.
 *
 * Time is this node's own everywhere here (store_now(), the same clock for all callers); what the
 * store's clock is ahead of it is added inside.
 */
#ifndef SLUICE_SHARE_H
#define SLUICE_SHARE_H

#include "cluster/quota/shared.h"
#include "limiter/consistency.h"

struct shares;

/* A bucket, as a call met it. */
struct share_ref {
	u64 key, tag;
	const struct spec_def *def;
	enum consistency consistency;
	u64 every_ns;		/* of the lease; between write-backs */
	u32 metric;		/* of its rule: sluice_overshoot_ratio{rule} */
};

/* A bucket that somebody looks at: what the store says has been used of it. */
struct share_look {
	struct share_ref ref;		/* its def is the one below */
	struct spec_def def;
	bool answered;
	u64 used;			/* as shared_state.used */
};

/* `entries` at least, and at least 4096; 242 bytes each, touched as they are used. */
int shares_new(u64 entries, struct shares **ret);
void shares_free(struct shares *shares);	/* NULL is fine */

/* `now` with utc_ns by the store's clock: for the local words of shared buckets, and for those alone. */
struct sl_now shares_now(const struct shares *shares, struct sl_now now);
/* Store time less this machine's UTC, as it was at the last answer or shares_due(). */
s64 shares_clock_offset_ns(const struct shares *shares);
/* How many nodes there are, this one included: for shares of one that knows no better. */
void shares_set_nodes(struct shares *shares, u32 nodes);

enum share_answer { SHARE_COVERED, SHARE_ASK };
/* Whether `cost` is this node's to give away now; covered: taken from the lease, or noted to be written back. */
enum share_answer share_take(struct shares *shares, const struct share_ref *ref, u64 cost,
			     struct sl_now now);
/* What share_take() covered is not charged after all: another bucket refused. */
void share_untake(struct shares *shares, const struct share_ref *ref, u64 cost);

/*
 * Before the store is asked: what else to ask for and to say with it; the bucket is filled in
 * otherwise. Each bucket that goes out passes here and through share_answered(), also SHARED_BACK:
 * one that the store gives back unknown to this looks as if the store had lost it.
 */
void share_ask(struct shares *shares, const struct share_ref *ref, struct shared_bucket *bucket,
	       struct sl_now now);
/*
 * After it has answered (SHARED_DONE, in done() or late()), or never will (SHARED_DOWN): once, not
 * at SHARED_LATE. Then the bucket's local word is shared_word() of bucket->state and share_unsent().
 */
void share_answered(struct shares *shares, const struct share_ref *ref,
		    const struct shared_bucket *bucket, const struct shared_ask *ask,
		    enum shared_outcome outcome, struct sl_now now);
/*
 * The store has said something newer of the bucket, which was heard already: the answer of now_us is
 * not how it stands. To be asked before share_answered() or shares_told() has the answer.
 */
bool share_is_old(const struct shares *shares, u64 key, u64 now_us);
/*
 * Something was charged (hits > 0) or given back here that the store has to be told of: reports,
 * refunds, what a rule let through while the store was away.
 */
void share_owe(struct shares *shares, const struct share_ref *ref, s64 hits, struct sl_now now);
/* The bucket was reset, here or elsewhere: what was known of it is no more; leases of it end. */
void share_forget(struct shares *shares, u64 key);
/*
 * How much was charged here that the store's last answer does not have: spent of a lease, not written
 * back yet, or on its way in asks that have no answer yet.
 */
u64 share_unsent(const struct shares *shares, u64 key);
/* While the store is away: the share of the limit that this node may let through, in permille (1..1000). */
u32 share_permille(const struct shares *shares, u64 key, struct sl_now now);

/* ------------------------------------------------------------------ the cluster's thread */

/*
 * What is due to be told to the store now: write-backs, leases that end, what was owed, what the
 * store lost. At most `max`; returns how many; each stays the store's to answer until
 * shares_told(). Called every few milliseconds until it returns fewer than `max`.
 */
enum share_matter { SHARE_TELLS_LATE, SHARE_TELLS_BACK, SHARE_TELLS_LOST, SHARE_TELLS_LEASE,
		    SHARE_TELLS_NEW };

struct share_due {
	enum share_matter matter;
	struct share_ref ref;
	struct spec_def def;		/* ref.def points here */
	struct shared_bucket bucket;
};
u32 shares_due(struct shares *shares, struct share_due *ret, u32 max, struct sl_now now);
/*
 * This node ends: leases do, and all that there is to tell is due at once; share_take() covers
 * nothing any more.
 */
void shares_end(struct shares *shares);
/*
 * Its answer: DONE or DOWN, once; at LATE, too, before the call from late().
 * `ask` NULL: it was never sent (DOWN). *ret_unsent: what was charged here meanwhile, so that the local word is to be made from the
 * state and this; with that word locked.
 */
void shares_told(struct shares *shares, const struct share_due *due, const struct shared_ask *ask,
		 enum shared_outcome outcome, struct sl_now now, u64 *ret_unsent);

/* ------------------------------------------------------------------ what is measured */

struct shares_stats {
	u64 entries, room, full;	/* full: buckets that found no place */
	u64 leases, credit;		/* held now, in requests */
	u64 unsent;			/* requests not told yet */
	u64 lost, put_back;		/* requests that the store had forgotten, and that were told again */
};
void shares_stats(const struct shares *shares, struct shares_stats *ret);
/* Of the windows that ended within the last hour the largest excess over the limit, as a ratio to it. */
double shares_overshoot(const struct shares *shares, u32 metric);

#endif
