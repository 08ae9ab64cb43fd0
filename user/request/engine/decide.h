/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * decide.h - the decision core: a call, the rules and the time in; charged words and an answer
 * out. All or none over all descriptors and limits of the call.
 *
 * Any number of threads at once. Time and rules are parameters; tests replace both.
 */
#ifndef SLUICE_HTTP_DECIDE_H
#define SLUICE_HTTP_DECIDE_H

#include "request/rules/request.h"
#include "request/rules/rule.h"
#include "counters/counters.h"

struct refusal_cache;			/* refusal_cache.h */
struct quota_lookup;		/* cluster/quota/quota.h */
struct quotas;

/* What decisions read and charge. */
struct ledger {
	struct counters *counters;		/* this machine's counters */
	struct quotas *quotas;		/* of limits that nodes share; NULL: all are this node's alone */
	struct refusal_cache
		*refusal_cache; /* with shares: whom the cluster store refused lately */
};

/*
 * Where a refusal that may wait should queue, and who waits there already. Who queues for a
 * bucket comes first, so decide() asks `ahead` about each bucket of an enforced limit whose rule
 * says on_limit: so many hits queue before this call. Any at all refuse it, and its wait is that
 * much longer: by a whole period for each full window of them, or by their time at the rate.
 */
struct decide_delay {
	/* In, by the caller; NULL: nobody queues. Called with the store's locks held. */
	u64 (*ahead)(void *arg, u64 key);
	void *arg;
	/* Out; key 0: nothing to wait for. */
	u64 key;			/* the bucket that refused and is to be waited for longest */
	u64 rule_id;			/* of its rule */
	u64 hits;			/* that the call wants of it */
	u64 before;			/* what ahead() said of it */
	u64 wait_ns;			/* until it may fit, those ahead having been served */
	u64 limit_ns;			/* how long the rule lets it wait */
	u64 queue;			/* how many may wait for this key */
};

/*
 * Decides and charges. `now` is the store's clock (counters_now()). ret_wait may be NULL.
 * Shadow, unlimited and replaced rules never refuse. peek and hits 0 charge nothing. A report
 * charges above the limit, debt at most one capacity. The answer's delayed_ns is 0.
 */
void decide(const struct ledger *ledger, const struct ruleset *rules, const struct request *request,
	    struct sl_now now, struct response *ret, struct decide_delay *ret_wait);

/*
 * One rule and value as it stands, for `user show`: charges nothing. Where the rule has several
 * entries without a value of their own, `value` has one for each, separated by commas. -ENOENT:
 * a call with these would not meet the rule.
 */
int decide_show(const struct ledger *ledger, const struct ruleset *rules,
		const struct rule *rule, struct bytes value, const struct quota_lookup *look, u32 look_count,
		struct sl_now now, struct response *ret);
/*
 * What of it nodes share, at most `max`: where the store was asked (cluster_look()), decide_show() is of
 * all nodes. As decide_show().
 */
int decide_looks(const struct ledger *ledger, const struct ruleset *rules,
		 const struct rule *rule, struct bytes value, struct quota_lookup *ret, u32 max, u32 *ret_count);
#define DECIDE_RESET_MAX 64
struct decide_reset {
	u64 key[DECIDE_RESET_MAX];	/* of words of limits that nodes share */
	u32 count;
};
/*
 * Forgets what the value has used, and what the cluster store said of it.
 * *ret: what other nodes are to forget, too; or NULL.
 */
int decide_reset(const struct ledger *ledger, const struct ruleset *rules,
		 const struct rule *rule, struct bytes value, struct decide_reset *ret);
/* Another node has had it forgotten: so does this one what it knew of it and has not told. */
void decide_forget(const struct ledger *ledger, u64 key);

#endif
