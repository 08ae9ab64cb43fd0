/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * decide_private.h - one request on its way to a response, as the files of the decision core share it.
 *
 *     decide_collect()   descriptors -> rules -> limits -> buckets, each with its key and cost
 *     decide.c           locks, looks at all, decides, charges all or none
 *     decide_response()  buckets -> statuses and policies
 *
 * A bucket of the cluster has two states: what all nodes have used, as far as this node knows, and
 * "own", what this node alone admitted. The second is measured by this node's part of the limit
 * (quota_permille()) and is used only while Redis is unavailable.
 */
#ifndef SLUICE_HTTP_DECIDE_PRIVATE_H
#define SLUICE_HTTP_DECIDE_PRIVATE_H

#include "cluster/quota/quota.h"
#include "request/engine/decide.h"
#include "request/engine/refusal_cache.h"
#include "counters/counters_table.h"

/* What one who was refused for want of a table's place, or of a store, is told to wait. */
#define DECIDE_CLOSED_WAIT_NS SL_NS_PER_SEC

#define DECIDE_BUCKETS_MAX (REQUEST_DESCRIPTORS_MAX * RULE_LIMITS_MAX * RULE_PREFIXES_MAX)
SL_STATIC_ASSERT(3 * DECIDE_BUCKETS_MAX == COUNTERS_REFS_MAX, "a bucket has up to three words");

/* One limit for one value, or several descriptors that met the same one. */
struct bucket {
	const struct rule *rule;	/* NULL: a limit that the call brought, and no rule matched */
	const struct rule_limit *limit;	/* NULL: one that the call brought */
	struct spec_view view;		/* the limit as it is for this call */
	struct sl_result took;		/* what its main word said */
	u64 cost;			/* hits of all its descriptors */
	u64 refund;
	u64 ahead;			/* hits that queue before this call */
	u64 wait_ns;			/* over: until it fits */
	u64 tag;			/* shared: which slot it is in at the store of all nodes */
	u32 ref;			/* its words: the limit's; then soft's, grace's, or own's */
	u8 refs;			/* 1..3 */
	u8 prefix_len;			/* of a ladder of several lengths; else 0 */
	bool none;			/* nothing ever passes */
	bool beyond;			/* more hits than REQUEST_HITS_MAX: these never do */
	bool over;			/* it does not fit */
	bool soft;			/* ... but what soft adds takes it */
	bool full;			/* there is no room for its word */
	bool claimed, charged;		/* once is enough */
	bool shared;			/* between nodes: scope: cluster */
	bool needs_store;			/* the store of all nodes has to be asked */
	bool covered;			/* quota_acquire() has: it need not be */
	bool retries;			/* this node would refuse it; the store is to say */
	bool decided;			/* over, soft and wait_ns are known */
	bool unavailable;			/* not by the store, by what the rule says then */
	bool from_store;			/* by the store: of a sliding log reply_used */
	u64 reply_used;
};

/* One descriptor. */
struct part {
	const struct rule *rule;	/* NULL: none, or replaced */
	bool unlimited, shadow, quota;
	bool over;			/* a bucket of it does not fit */
	u8 count;
	u16 bucket[RULE_LIMITS_MAX * RULE_PREFIXES_MAX];
};

/* Not cleared as a whole: only what is counted has been filled in. */
struct decision {
	struct counters *counters;
	struct quotas *quotas;		/* NULL: no limit is shared */
	const struct request *request;
	/* Whom the store of all nodes refused lately; NULL: what this node knows decides. */
	struct refusal_cache *refusal_cache;
	struct cluster_store *shared;		/* the way to it; NULL: it is away */
	struct sl_now now,
		cluster_store_now;	/* by this machine's clock, and by the cluster store's */
	struct sl_now then;		/* when what is charged happened; now but for reports */
	enum priority priority;
	u32 part_count, bucket_count, ref_count;
	u32 cluster_count;		/* of the buckets */
	bool needs_store;			/* one of them has to be asked for: no answer yet */
	struct part part[REQUEST_DESCRIPTORS_MAX];
	struct bucket bucket[DECIDE_BUCKETS_MAX];
	struct counters_ref ref[COUNTERS_REFS_MAX];
	struct counters_locks locks;
};

/* The time for a bucket: windows that nodes share are by the clock of their store. */
static inline struct sl_now decision_now(const struct decision *d, const struct bucket *b)
{
	return b->shared ? d->cluster_store_now : d->now;
}

void decision_init(struct decision *d, const struct ledger *ledger, const struct request *request,
		   struct sl_now now);
/*
 * All of decide(); false: this node lets the call through and has charged it, but others have to
 * be asked for the buckets that `asks` (or only looks: peek, hits 0).
 */
bool decide_here(struct decision *d, const struct ruleset *rules, struct response *ret,
		 struct decide_delay *ret_wait);
void decide_collect(struct decision *d, const struct ruleset *rules);
/* Of `user show`: the buckets of a rule for one value, without a call. */
void decide_collect_one(struct decision *d, const struct rule *rule,
			const struct rule_match *match);
/* Finds a bucket's words and asks them. The store is locked. */
void decide_look(struct decision *d, struct bucket *b, struct decide_delay *wait);
/* Whether the buckets, all looked at, refuse the call; says of each part whether it is over. */
bool decide_refused(struct decision *d);
void decide_response(const struct decision *d, enum response_code code, struct response *ret);
/* What became of a bucket, when a call that had to ask is answered. */
struct decide_result {
	u64 key;
	u64 wait_ns;			/* over: until it fits */
	u64 reply_used;			/* told: what a log that nodes share holds */
	bool over, soft, full, from_store;
	bool unavailable;			/* the store did not say: the rule did */
};
/*
 * The second half: the call was decided as `code` says, and its words are as they are to be. A peek
 * is decided here. Rules may be others by now: a bucket that has no result is only looked at.
 */
void decide_again(struct decision *d, const struct ruleset *rules,
		  const struct decide_result *result, u32 count, enum response_code code,
		  struct response *ret, struct decide_delay *ret_wait);

/* A bucket of the cluster, as quota.h has it. */
struct quota_ref decide_cluster_ref(const struct decision *d, const struct bucket *b);

#endif
