/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * decide_private.h - the state of one decision, shared by the files of the decision core.
 *
 *     decide_collect()   descriptors -> rules -> limits -> buckets, each with its key and cost
 *     decide.c           locks, reads all, decides, charges all or none
 *     decide_ban.c       values that were refused too often
 *     decide_candidate.c limits in shadow beside the enforced ones
 *     decide_response()  buckets -> statuses and policies
 *
 * A bucket of the cluster has two states: the estimated usage of all nodes, and "own", the
 * admissions of this node. The second is compared with this node's part of the limit
 * (quota_permille()) and is used only while Redis is unavailable. The soft part of its limit is a
 * second bucket of the cluster with two states of its own; its grace is a third, without "own".
 */
#ifndef SLUICE_HTTP_DECIDE_PRIVATE_H
#define SLUICE_HTTP_DECIDE_PRIVATE_H

#include "request/engine/decide.h"
#include "counters/counters_table.h"

/* Retry-After of a refusal because the counter table is full, or Redis is unavailable. */
#define DECIDE_CLOSED_WAIT_NS SL_NS_PER_SEC

/* Each descriptor, and the rule of the domain. */
#define DECIDE_PARTS_MAX (REQUEST_DESCRIPTORS_MAX + 1)
#define DECIDE_BUCKETS_MAX (DECIDE_PARTS_MAX * RULE_LIMITS_MAX * PREFIX_HIERARCHY_MAX)
SL_STATIC_ASSERT(5 * DECIDE_BUCKETS_MAX + 2 * DECIDE_PARTS_MAX == COUNTERS_REFS_MAX,
		 "a bucket has up to five states, and a part two of its ban");

/* What spec.h's functions take: of all descriptors together, which may share a bucket. */
SL_STATIC_ASSERT(REQUEST_HITS_MAX *DECIDE_PARTS_MAX <= SPEC_COST_MAX,
		 "no sum or product of a step overflows");

/* One limit for one value; several descriptors may share it. */
struct bucket {
	const struct rule *rule;	/* NULL: a limit in the request, and no rule matched */
	const struct rule_limit *limit; /* NULL: a limit in the request */
	u64 cost;			/* hits of all its descriptors */
	u64 refund;
	u64 ahead;		/* hits that queue before this request */
	u64 wait_ns;		/* over: until it fits */
	u64 ban_left_ns;	/* its value is banned for so long; 0: not */
	u64 tag;		/* cluster: its hash slot in Redis */
	u32 ref;		/* its states: the limit's, its own; soft's, its own; grace's */
	u8 refs;		/* 1..5 */
	u8 soft_ref, grace_ref; /* which of them is soft's, and grace's; 0: none */
	u8 begins;     /* grace of the cluster: 1: no time is open that this node knows of */
	bool has_own;  /* the limit's and soft's states are followed by "own" */
	u8 prefix_len; /* of a prefix hierarchy of several lengths; else 0 */
	bool none;     /* the limit is 0: all requests are refused */
	bool beyond;   /* more hits than REQUEST_HITS_MAX: these never pass */
	bool over;     /* it does not fit */
	bool soft;     /* ... but fits in the soft part */
	bool full;     /* the counter table has no room for its state */
	bool claimed, charged; /* room was found; it was charged */
	bool cluster;	       /* scope: cluster */
	bool needs_store;      /* a command to Redis is needed */
	bool covered;	       /* by quota_acquire(): no command is needed */
	bool grace_needs_store;
	bool retries;	  /* this node would refuse it; Redis decides */
	bool debt;	  /* count: debt */
	bool in_flight;	  /* a concurrency: the request holds a unit until its end */
	bool candidate;	  /* its limit is in shadow, which never decides */
	bool decided;	  /* over, soft and wait_ns are known */
	bool unavailable; /* Redis is unavailable: on_store_failure decided */
	bool by_store;	  /* over, and this node alone would have admitted it */
	bool from_store;  /* Redis decided; of a sliding log by reply_used */
	u64 reply_used;
	/* Of the response: whole requests that fit now, the time until the limit is unused. */
	u64 left, reset_ns;
	bool listed; /* among the enforced ones */
	/* From here on not cleared, but for view.spec: decide_look() fills it in. */
	struct spec_view view; /* the limit as it applies to this request */
	struct sl_result took; /* the result of its main state */
};

/* One descriptor, or the rule of the domain. */
struct part {
	const struct rule *rule; /* NULL: none, or replaced */
	bool unlimited, shadow, quota;
	bool over;	/* a bucket of it does not fit */
	bool ban_began; /* by this request */
	bool ban_cluster;
	u32 ban_ref; /* 1 + of its ban, with that of its offenses behind it; 0: none */
	u8 narrow;   /* buckets of the value itself, not of a wider prefix: the first ones */
	u8 count;
	u16 bucket[RULE_LIMITS_MAX * PREFIX_HIERARCHY_MAX];
	u8 candidates; /* buckets of limits in shadow, which are in none of the above */
	u16 candidate[RESPONSE_CANDIDATES_MAX * PREFIX_HIERARCHY_MAX];
};
SL_STATIC_ASSERT(RESPONSE_CANDIDATES_MAX == RULE_LIMITS_MAX - 1, "one limit of a rule is enforced");

/*
 * Not cleared as a whole: arrays are filled in up to their counts only. It takes 320 KB: on the
 * stack, -fstack-clash-protection would touch each of its pages at each call (600 ns a decision).
 */
struct decision {
	const struct ledger *ledger;
	struct counters *counters;
	struct quotas *quotas; /* NULL: no limits of the cluster */
	const struct request *request;
	/* Keys that Redis refused lately; NULL: only the states here decide. */
	struct refusal_cache *refusal_cache;
	struct cluster_store *store; /* NULL: unavailable */
	struct sl_now now,
		cluster_store_now; /* by this machine's clock, and by the cluster store's */
	struct sl_now then;	   /* time of the charged hits; reports: earlier than now */
	enum priority priority;
	u32 part_count, bucket_count, ref_count;
	bool has_domain;   /* the last part is the rule of the domain */
	u32 cluster_count; /* buckets of the cluster */
	bool bans, candidates,
		chunks;	  /* a part has a ban, a candidate; a log's chunk was claimed */
	bool debts;	  /* a limit has count: debt */
	bool needs_store; /* one of them needs Redis: no response yet */
	/* The results of a first charge that was refused and refunded; this is the second one, of
	 * soft parts. */
	const struct decide_result *first;
	u32 first_count;
	struct permit permit; /* units that the request has taken */
	struct rule_match match[REQUEST_DESCRIPTORS_MAX];
	struct part part[DECIDE_PARTS_MAX];
	struct bucket bucket[DECIDE_BUCKETS_MAX];
	struct counters_ref ref[COUNTERS_REFS_MAX];
	struct counters_locks locks;
};

/* The time for a bucket: windows of the cluster use Redis' clock. */
static inline struct sl_now decision_now(const struct decision *d, const struct bucket *b)
{
	return b->cluster ? d->cluster_store_now : d->now;
}

/* The calling thread's decision, which the next decision_begin() of the same thread overwrites. */
struct decision *decision_begin(const struct ledger *ledger, const struct request *request,
				struct sl_now now);
/*
 * All of decide(). False: this node admits the request and has charged it (not with peek or hits
 * 0), but Redis has to decide the buckets with needs_store.
 */
bool decide_here(struct decision *d, const struct ruleset *rules, struct response *ret,
		 struct decide_delay *ret_wait);
void decide_collect(struct decision *d, const struct ruleset *rules);
/* For `user show`: the buckets of a rule for one value, without a request. */
void decide_collect_one(struct decision *d, const struct rule *rule,
			const struct rule_match *match);
/* The same of a rule of limits in requests (RULE_OF_REQUEST), with its last rate; changes the
 * descriptor. */
void decide_collect_request(struct decision *d, const struct rule *rule,
			    struct request_descriptor *descriptor);
/* The scale of an elastic limit, 16.16, while it is valid; 0: it has its own rate. */
u32 decide_scale(const struct decision *d, const struct rule_limit *limit);
/* Finds the states of a bucket and evaluates them. The counter table is locked. */
void decide_look(struct decision *d, struct bucket *b, struct decide_delay *wait);
/* Whether the buckets, after all were read, refuse the request; sets `over` of each part. */
bool decide_refused(struct decision *d);
void decide_response(struct decision *d, enum response_code code, struct response *ret);

/*
 * decide_release.c: the time of a permit, less than a microsecond before now_ns, and no other's: so
 * a permit is an id, too.
 */
u64 decide_permit_time(u64 now_ns);

/* ---- decide_candidate.c; `mode: shadow` of a limit */

/* Charges those that admit the request, as if each stood alone in its rule. Not with peek. */
void decide_candidates(struct decision *d);
void decide_candidate_status(const struct decision *d, const struct part *part,
			     struct response_status *ret);

/* decide.c, for it: whether rules other than this refuse the request; NULL: any rule. */
bool decide_refused_but(const struct decision *d, const struct rule *rule);
/* Finds room for the new state of a bucket that fits. */
bool decide_claim_bucket(struct decision *d, struct bucket *b);
void decide_charge(struct decision *d, struct bucket *b);
/* `count: all` of a limit that refused. */
void decide_count_refused(struct decision *d, struct bucket *b);
void decide_policy(const struct decision *d, const struct bucket *b, struct response_policy *ret);
/* The whole limit with what is reserved from this request. */
u64 decide_capacity(const struct bucket *b);

/* ---- decide_ban.c; `ban` of a rule */

/* Adds the states of a part's ban. `sip` is the hash of its rule and values. */
void decide_ban_collect(struct decision *d, struct part *part, struct sl_sip sip, bool cluster);
/* After the buckets were read: those of banned values are over until the ban ends. */
void decide_ban_look(struct decision *d);
/* Counts the refusals of a request, which may begin bans. */
void decide_ban_note(struct decision *d, enum response_code code);
u64 decide_ban_left(const struct decision *d, const struct part *part, u32 *ret_level);
/* Both keys of a part's ban, for other nodes. */
void decide_ban_keys(const struct decision *d, const struct part *part, struct decide_reset *ret);

/* decide_collect.c */
struct counters_ref *decide_add_ref(struct decision *d, u64 key);
u64 decide_ban_key(struct sl_sip sip);
/* decide.c: finds room for a state that is written. */
bool decide_claim(struct decision *d, struct counters_ref *ref);

/* The result of a bucket after the reply of Redis, or without one. */
struct decide_result {
	u64 key;
	u64 charged_key,
		grace_key; /* of what is charged: the limit or its soft part; 0: no grace */
	u64 wait_ns;	   /* over: until it fits */
	u64 reply_used;	   /* from_store: the number of requests of the log in Redis */
	bool over, soft, full, from_store;
	bool by_store;	  /* ... over, and this node alone would have admitted it */
	bool may_soften;  /* it has a soft part that was not charged */
	bool shadow;	  /* of a rule in shadow mode, which refuses nothing */
	bool unavailable; /* no reply: on_store_failure decided */
};
/*
 * The second half: makes the response of a request that was decided with `code` and charged. A peek
 * is decided here. The rules may have changed: a bucket without a result is only read.
 */
void decide_again(struct decision *d, const struct ruleset *rules,
		  const struct decide_result *result, u32 count, enum response_code code,
		  struct response *ret, struct decide_delay *ret_wait);

/* Which of its states is charged: the limit's (0) or its soft part's. Reports are charged to the
 * limit. */
static inline u32 decide_charged(const struct decision *d, const struct bucket *b)
{
	return b->soft && !d->request->report ? b->soft_ref : 0;
}

/* A reference, for quota.h, to one of the bucket's states in Redis: 0, soft_ref or grace_ref. */
struct quota_ref decide_cluster_ref(const struct decision *d, const struct bucket *b, u32 state);
/* The key of "own" of the limit or of its soft part; 0: none. */
u64 decide_own_key(const struct decision *d, const struct bucket *b, u32 state);

#endif
