/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * quota_charge.h - the cluster limits of one request: one function call, and one callback with the
 * result.
 *
 *     quota_charge() -> a command to Redis for each hash slot -> replies, or the deadline -> done()
 *
 * The caller has charged the request in the counter table of this node. Redis charges all its
 * buckets as well, or none: after a refusal the rest is refunded, here and in Redis. For a bucket
 * without a reply at the deadline on_store_failure decides.
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

/* The counts that decisions read and charge. */
struct ban_outbox;

struct ledger {
	struct counters *counters;	     /* of this machine */
	struct quotas *quotas;		     /* of cluster limits; NULL: all limits are local */
	struct refusal_cache *refusal_cache; /* with quotas: keys that Redis refused lately */
	struct request_rules *request_rules; /* NULL: limits in requests have no rule
						(request/engine/request_rules.h) */
	struct report_ids *ended;	     /* permits that came back; NULL: not remembered
						(request/engine/report_ids.h) */
	struct ban_outbox *bans; /* with quotas: for other nodes (request/engine/ban_outbox.h) */
};

struct quota_charge_command;

struct quota_charge_bucket {
	/* In. The first three hold for cluster limits only; ref.def is set by quota_charge(). */
	struct quota_ref ref;
	enum store_failure on_failure;
	u64 own_key;			  /* of the count of this node's own admissions; 0: none */
	const struct counters_ref *state; /* read by quota_charge() only */
	u64 cost, hold;
	u32 hold_permille; /* `hold` as a part of the limit */
	u32 group;	   /* buckets of a group are charged in Redis all or none */
	bool cluster;	   /* a cluster limit */
	bool needs_store;  /* Redis has to charge it */
	bool covered;	   /* quota_acquire() covered it */
	bool retries;	   /* this node would refuse it; Redis decides */
	bool queued;	   /* deferred requests may wait for it */
	/* Out, of those that need Redis. */
	bool over;
	bool unavailable; /* no reply: on_failure decided */
	bool from_store;  /* a sliding log, of which Redis has reply_used */
	u64 wait_ns;	  /* over: time until it fits */
	u64 reply_used;
	/* Private. */
	struct counters_ref *here, *own;   /* own NULL: none */
	struct cluster_store_bucket *sent; /* NULL: not sent */
	struct quota_charge_command *command;
	bool failed;	/* without a reply, and on_failure refuses that */
	bool unflushed; /* admitted, but unknown whether Redis charged it */
	bool refund;	/* Redis charged it, and the charge is to be refunded */
};

/* Descriptors of the request, each with its buckets; buckets already over are not listed. */
struct quota_charge_part {
	bool shadow; /* never refuses */
	bool quota;  /* one of the parts with `quota` has to fit */
	u32 count;
	const u16 *bucket; /* read by quota_charge() only */
	/* Inside. */
	u16 *of;
	bool over, closed, error;
};

enum quota_charge_result { QUOTA_PASSED, QUOTA_REFUSED, QUOTA_CLOSED, QUOTA_ERROR };

struct quota_charge {
	const struct ledger *ledger;
	struct cluster_store *store; /* NULL: unavailable */
	u64 deadline_ns;	     /* from now */
	u64 *pending;		     /* atomic: charges that wait for replies, also for late ones */
	struct sl_now now;	     /* time of the charge here */
	bool peek;		     /* charges nothing */
	bool quota_watched; /* a shadow with quota_mode fits, regardless of Redis' replies */
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
 * 0: *ret is pending, and done() gets the result; the arrays of `charge` are copied. Or *ret is
 * NULL, no command could be sent, and the result is in `charge`. -ENOMEM: the charge on this node
 * stays.
 */
int quota_charge(struct quota_charge *charge, struct quota_charging **ret);
/* The client disconnected: the request is refunded when the replies arrive. */
void quota_charge_cancel(struct quota_charging *charging);
/*
 * Charges `cost` to this node's own count of a bucket, limited to its part (quota_permille()). The
 * counter table is locked for it; now is Redis' time.
 */
void quota_charge_own(const struct ledger *ledger, struct counters_ref *own,
		      const struct quota_ref *ref, u64 cost, struct sl_now now);

#endif
