/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * decide.h - the decision core: a request, the rules and the time in; charged bucket states and a
 * response out. All descriptors and limits of the request are charged, or none.
 *
 * Any number of threads at once. Time and rules are parameters; tests replace both.
 */
#ifndef SLUICE_HTTP_DECIDE_H
#define SLUICE_HTTP_DECIDE_H

#include "cluster/quota/quota_charge.h"
#include "request/rules/request.h"
#include "request/rules/rule.h"
#include "counters/counters.h"

struct decision;

/*
 * The queue for a refused request that may be delayed, and the hits before it. Queued requests come
 * first: decide() calls `ahead` for each bucket of an enforced limit whose rule has on_limit, to
 * get the number of hits queued before this request. If there are any, the request is refused, and
 * its wait is longer: by a whole period for each full window of hits, or by their time at the rate.
 */
struct decide_delay {
	/* In, by the caller; NULL: no queues. Called with the counter table's locks held. */
	u64 (*ahead)(void *arg, u64 key);
	void *arg;
	/* Out; key 0: the request cannot be delayed. */
	u64 key;      /* of the buckets that refused, the one with the longest wait */
	u64 rule_id;  /* of its rule */
	u64 hits;     /* of this request in it */
	u64 before;   /* the result of ahead() for it */
	u64 wait_ns;  /* until it may fit, after those ahead */
	u64 limit_ns; /* the longest wait that the rule allows */
	u64 queue;    /* the most hits in the queue of this key */
	/*
	 * NULL: the request cannot be deferred. Else the rule whose queue it may join, and the
	 * decision, which is valid until the thread's next one; defer_bucket is that of the queue.
	 */
	const struct rule *defer;
	struct decision *decision;
	u32 defer_bucket;
};

/*
 * Decides and charges. `now` is of counters_now(). ret_wait may be NULL. Shadow, unlimited and
 * replaced rules never refuse. peek and hits 0 charge nothing. A report is charged above the limit,
 * up to a debt of one capacity. delayed_ns of the response is 0.
 */
void decide(const struct ledger *ledger, const struct ruleset *rules, const struct request *request,
	    struct sl_now now, struct response *ret, struct decide_delay *ret_wait);

/*
 * Releases the units of a request that has ended; returns how many of them were in flight. A unit
 * that came back already, by an end or by its time, takes nothing from another request of another
 * time.
 */
u32 decide_release(const struct ledger *ledger, const struct permit *permit, struct sl_now now);

/*
 * The state of one rule and value (rule_values.h), for `user show`: charges nothing. -ENOENT: a
 * request with it would not match the rule. -EINVAL: it is missing (at NULL), or not of that form.
 */
int decide_show(const struct ledger *ledger, const struct ruleset *rules, const struct rule *rule,
		struct bytes value, const struct quota_lookup *look, u32 look_count,
		struct sl_now now, struct response *ret);
/*
 * Its buckets of the cluster, at most `max`. After cluster_look() of these decide_show() shows the
 * usage of all nodes. Errors as of decide_show().
 */
int decide_looks(const struct ledger *ledger, const struct ruleset *rules, const struct rule *rule,
		 struct bytes value, struct quota_lookup *ret, u32 max, u32 *ret_count);
#define DECIDE_RESET_MAX 82 /* all states of one rule and value, and two of its ban */
struct decide_reset {
	u64 key[DECIDE_RESET_MAX]; /* of buckets of the cluster */
	u32 count;
};
/*
 * Resets the usage of the value, and its entry in the refusal cache. *ret: the keys that other
 * nodes have to reset too; or NULL.
 */
int decide_reset(const struct ledger *ledger, const struct ruleset *rules, const struct rule *rule,
		 struct bytes value, struct decide_reset *ret);
/* Ends the ban of the value and resets its level. *ret as of decide_reset(); *ret_was: it was
 * banned. */
int decide_unban(const struct ledger *ledger, const struct ruleset *rules, const struct rule *rule,
		 struct bytes value, struct decide_reset *ret, bool *ret_was);
/* What another node sent about a value of a rule with `ban`: refusals to add, and its ban. */
struct decide_ban {
	u64 key;
	u64 offenses;
	u64 left_ns; /* 0: no ban */
	u32 level;
};
void decide_ban_receive(const struct ledger *ledger, const struct rule *rule,
			const struct decide_ban *ban);
/* Another node has reset the bucket: clears its state, quota and refusals here. */
void decide_forget(const struct ledger *ledger, u64 key);

#endif
