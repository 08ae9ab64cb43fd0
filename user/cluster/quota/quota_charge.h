/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * quota_charge.h - the cluster limits of one request: one call, and one callback with the result.
 *
 *     quota_charge() -> a command to Redis for each hash slot -> replies, or the deadline -> done()
 *
 * The caller has charged the request in the counter table of this node. All its buckets are charged
 * in Redis as well, or none: after a refusal the rest is refunded, here and in Redis. A bucket
 * without a reply at the deadline is decided by on_store_failure.
 *
 * Charges stay exact when replies are late: a late reply that charged a refused request is
 * refunded; one that did not charge an admitted request is counted for the next flush. A cancelled
 * request is refunded.
 *
 * A charge belongs to the thread that made it; that thread runs the event loop of `store`.
 */
#ifndef SLUICE_QUOTA_CHARGE_H
#define SLUICE_QUOTA_CHARGE_H

#include "cluster/quota/quota.h"
#include "cluster/quota/refusal_cache.h"
#include "counters/counters_table.h"

/* What decisions read and charge. */
struct ledger {
	struct counters *counters;	/* of this machine */
	struct quotas *quotas;		/* of cluster limits; NULL: every limit is this node's alone */
	struct refusal_cache *refusal_cache;	/* with quotas: keys that Redis refused lately */
};

struct quota_charge_command;

struct quota_charge_bucket {
	/* In. The first three hold for cluster limits only; ref.def is set by quota_charge(). */
	struct quota_ref ref;
	enum store_failure on_failure;
	u64 own_key;			/* of what this node alone admitted; 0: none */
	const struct counters_ref *state;	/* read by quota_charge() only */
	u64 cost, hold;
	u32 hold_permille;		/* of hold, to the whole limit */
	u32 group;			/* buckets of a group are charged in Redis all or none */
	bool cluster;			/* a cluster limit */
	bool needs_store;		/* Redis has to charge it */
	bool covered;			/* quota_acquire() covered it */
	bool retries;			/* this node would refuse it; Redis decides */
	/* Out, of those that need Redis. */
	bool over;
	bool unavailable;		/* no reply: on_failure decided */
	bool from_store;		/* a sliding log, of which Redis has reply_used */
	u64 wait_ns;			/* over: until it fits */
	u64 reply_used;
	/* Inside. */
	struct counters_ref *here, *own;	/* own NULL: none */
	struct cluster_store_bucket *sent;	/* NULL: not sent */
	struct quota_charge_command *command;
	bool failed;			/* without a reply, and on_failure refuses that */
	bool unflushed;			/* admitted, and Redis may have charged it or not */
	bool refund;			/* Redis charged it, and it is to be refunded */
};

/* Descriptors of the request, each with its buckets; those that are over already are not listed. */
struct quota_charge_part {
	bool shadow;			/* never refuses */
	bool quota;			/* of these one has to fit */
	u32 count;
	const u16 *bucket;		/* read by quota_charge() only */
	/* Inside. */
	u16 *of;
	bool over, closed, error;
};

enum quota_charge_result { QUOTA_PASSED, QUOTA_REFUSED, QUOTA_CLOSED, QUOTA_ERROR };

struct quota_charge {
	const struct ledger *ledger;
	struct cluster_store *store;	/* NULL: unavailable */
	u64 deadline_ns;		/* from now */
	u64 *pending;			/* atomic: charges that wait for replies, also for late ones */
	struct sl_now now;		/* when it was charged here */
	bool peek;			/* charges nothing */
	bool quota_watched;		/* a shadow with quota_mode fits, whatever Redis replies */
	u32 bucket_count, part_count;
	struct quota_charge_bucket *bucket;
	struct quota_charge_part *part;
	/* Once, never before quota_charge() returns; not after quota_charge_cancel(). */
	void (*done)(void *arg, const struct quota_charge *charge);
	void *arg;
	/* Out. */
	enum quota_charge_result result;
};

struct quota_charging;
/*
 * 0: *ret is on its way, and done() gets the result; the arrays of `charge` are copied. Or *ret is
 * NULL, nothing could be sent, and the result is in `charge`. -ENOMEM: what was charged here stays.
 */
int quota_charge(struct quota_charge *charge, struct quota_charging **ret);
/* The client disconnected: the request is refunded when the replies are here. */
void quota_charge_cancel(struct quota_charging *charging);
/*
 * Charges `cost` to this node's own count of a bucket, limited to its part (quota_permille()). The
 * counter table is locked for it; now is Redis' time.
 */
void quota_charge_own(const struct ledger *ledger, struct counters_ref *own,
		      const struct quota_ref *ref, u64 cost, struct sl_now now);

#endif
