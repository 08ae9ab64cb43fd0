/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * decide_private.h - what the decision core's files share: one call on its way to an answer.
 *
 *     decide_collect()  descriptors -> rules -> limits -> buckets, each with its key and cost
 *     decide.c          locks, looks at all, decides, writes all or none
 *     decide_answer()   what the buckets say, as statuses and policies
 */
#ifndef SLUICE_HTTP_DECIDE_PRIVATE_H
#define SLUICE_HTTP_DECIDE_PRIVATE_H

#include "http/decide.h"
#include "http/store_table.h"

#define DECIDE_BUCKETS_MAX (CALL_DESCRIPTORS_MAX * RULE_LIMITS_MAX * RULE_LADDER_MAX)
SL_STATIC_ASSERT(3 * DECIDE_BUCKETS_MAX == STORE_REFS_MAX, "a bucket has up to three words");

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
	u32 ref;			/* its words: the limit's, then soft's, then grace's */
	u8 words;			/* 1..3 */
	u8 prefix_len;			/* of a ladder of several lengths; else 0 */
	bool none;			/* nothing ever passes */
	bool over;			/* it does not fit */
	bool soft;			/* ... but what soft adds takes it */
	bool full;			/* there is no room for its word */
	bool claimed, charged;		/* once is enough */
};

/* One descriptor. */
struct part {
	const struct rule *rule;	/* NULL: none, or replaced */
	bool unlimited, shadow, quota;
	bool over;			/* a bucket of it does not fit */
	u8 count;
	u16 bucket[RULE_LIMITS_MAX * RULE_LADDER_MAX];
};

/* Not cleared as a whole: only what is counted has been filled in. */
struct decision {
	struct store *store;
	const struct call *call;
	struct sl_now now;
	struct sl_now then;		/* when what is charged happened; now but for reports */
	enum priority priority;
	u32 part_count, bucket_count, ref_count;
	struct part part[CALL_DESCRIPTORS_MAX];
	struct bucket bucket[DECIDE_BUCKETS_MAX];
	struct store_ref ref[STORE_REFS_MAX];
	struct store_locks locks;
};

void decision_init(struct decision *d, struct store *store, const struct call *call,
		   struct sl_now now);
void decide_collect(struct decision *d, const struct ruleset *rules);
/* Of `user show`: the buckets of a rule for one value, without a call. */
void decide_collect_one(struct decision *d, const struct rule *rule,
			const struct rule_match *match);
/* Finds a bucket's words and asks them. The store is locked. */
void decide_look(struct decision *d, struct bucket *b, struct decide_wait *wait);
/* Whether the buckets, all looked at, refuse the call; says of each part whether it is over. */
bool decide_refused(struct decision *d);
void decide_answer(const struct decision *d, enum call_code code, struct answer *ret);

/* As spec.h's, for all algorithms. */
struct sl_result bucket_take(struct decision *d, struct bucket *b, const struct store_ref *ref,
			     u64 cost);
u64 bucket_remaining(const struct bucket *b, const struct store_ref *ref, struct sl_now now);
u64 bucket_reset_ns(struct store *store, const struct bucket *b, const struct store_ref *ref,
		    struct sl_now now);

#endif
