/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * push.h - push-downs: limits or drops sources with repeated refusals at the network card, in
 * steps, and ends this.
 *
 *     refusals, time -> push_refused(), push_tick() -> put, del, publish (struct push_callbacks)
 *
 * Pure policy: no clock, no data plane, no files.
 *
 * Abuse is `after` rejections of one user (or key, or address: one set of values under one rule)
 * from one source within the rule's period. Only refusals by the HTTP tier count; drops by the
 * network card do not, so that no push-down feeds itself. The source then gets the rule's first
 * step. While the abuse continues (a quarter of the rejections is enough: a client limited to
 * fewer packets cannot send as many) it moves up one step every `step`; after `down` without
 * abuse it moves down one, and below the first it is free. After `max` it is free in any case,
 * and counting restarts.
 *
 * Each step expires by the data plane's clock within PUSH_LEASE; each tick renews it.
 */
#ifndef SLUICE_HTTP_PUSH_H
#define SLUICE_HTTP_PUSH_H

#include "request/mitigation/aggregate.h"
#include "config/cluster_def.h"

#define PUSH_LEASE_NS (60 * SL_NS_PER_SEC)
#define PUSH_RULE_TEXT 128
#define PUSH_VALUE_TEXT (AGGREGATE_VALUE_MAX + 1)

/* Reasons against a push-down: the label of sluice_pushdowns_refused_total{reason}. */
enum push_refusal {
	PUSH_ALLOWED,
	PUSH_NO_RIGHT,	/* the caller may not push */
	PUSH_PROTECTED, /* never_push_down, exempt, own address, gateway, login */
	PUSH_UNSEEN,	/* the packet tier saw no established traffic from it */
	PUSH_SHARE,	/* more than max_share of the well-behaved requests come from it */
	PUSH_MAX_SOURCES,
	PUSH_FEW_REQUESTS, /* less than min_requests */
	PUSH_USERS,	   /* it has well-behaved users, and every step would affect them */
	PUSH_FAILED,	   /* the data plane returned an error */
	PUSH_REFUSAL_COUNT,
};
const char *push_refusal_name(enum push_refusal refusal); /* "caller", "protected"... */

enum push_event { PUSH_BEGAN, PUSH_WENT_UP, PUSH_WENT_DOWN, PUSH_ENDED, PUSH_REFUSED };

struct push_entry {
	struct sl_prefix group;
	char rule[PUSH_RULE_TEXT];	 /* "domain/path" */
	char value[PUSH_VALUE_TEXT];	 /* of the refused user: truncated, terminated */
	char node[CLUSTER_NODE_MAX + 1]; /* the node that began it; "": this one */
	u64 who;
	u64 rule_id;
	struct push_def def; /* copied at the beginning; its steps are in `steps` */
	struct push_step steps[PUSH_STEPS_MAX];
	u32 step;
	struct rate
		rate; /* SL_PUSH_LIMIT: in force; not below the needs of its well-behaved users */
	u64 began_ns, changed_ns;
	u64 abuse_ns;		     /* last */
	u64 until_ns;		     /* as the data plane has it */
	u64 window, current, before; /* refusals since changed_ns, by def.within_ns */
	bool shadow;		     /* logged only */
	bool used;
	u32 next; /* of its hash chain, 1 + index */
};

/* A push-down for the data plane. */
struct push_down {
	struct sl_prefix src;
	enum sl_push_kind kind;
	struct rate rate; /* SL_PUSH_LIMIT: packets */
	u64 until_ns;	  /* CLOCK_MONOTONIC */
	u64 note;	  /* push_note(): stored with it */
};

struct push_callbacks {
	/* PUSH_ALLOWED, PUSH_PROTECTED or PUSH_UNSEEN (checked only with `seen`). */
	enum push_refusal (*guard)(void *arg, const struct sl_prefix *group,
				   const struct sl_prefix *address, bool seen, u64 now_ns);
	void (*profile)(void *arg, const struct sl_prefix *group, u64 now_ns,
			struct source_profile *ret);
	u64 (*good_requests)(void *arg); /* of all sources in the last minute */
	/* Packets/s for the well-behaved users of a profile; 0: there are none. */
	u64 (*need_pps)(void *arg, const struct source_profile *profile);
	int (*put)(void *arg, const struct push_down *push);
	void (*del)(void *arg, const struct sl_prefix *group);
	void (*notify)(void *arg, const struct push_entry *entry, enum push_event event,
		       enum push_refusal refusal);
	void *arg;
};

struct push;

/* With `seed` clients cannot choose hash collisions. */
int push_new(const struct push_callbacks *callbacks, struct sl_seed seed, struct push **ret);
void push_free(struct push *push); /* NULL is fine; push-downs in force stay */
/* mode off removes all push-downs. */
void push_set_limits(struct push *push, const struct push_limits_def *limits, u64 now_ns);

/* A refusal under a rule with push_down. */
void push_refused(struct push *push, const struct refusal_note *note, const struct rule *rule,
		  u64 now_ns);
/* Several times a second. */
void push_tick(struct push *push, u64 now_ns);

/*
 * Ends a push-down, and clears the refusals that led to it; group NULL: all. Returns their number.
 */
u32 push_clear(struct push *push, const struct sl_prefix *group, u64 now_ns);

/*
 * Restores one that an earlier daemon put in force. Its note has the rule and the step: the lower
 * 60 bits of the rule's id, and 4 of the step. -EEXIST, -ENOMEM.
 */
#define PUSH_NOTE_THEIRS 0ULL /* for one of another node */
int push_adopt(struct push *push, const struct push_entry *entry);
u64 push_note(const struct push_entry *entry);

/*
 * Applies another node's push-down here, too, unless this node's own limits forbid it, until that
 * node stops renewing it. Push-downs that this node began are unchanged.
 */
struct push_message {
	struct sl_prefix group;
	struct push_step step;
	u64 until_ns;
	const char *node, *rule;
};
enum push_refusal push_receive(struct push *push, const struct push_message *message, u64 now_ns);
/*
 * Ends a push-down: its node ended it (`theirs`), or an operator ended this node's push-down on
 * another node.
 */
void push_end(struct push *push, const struct sl_prefix *group, bool theirs, u64 now_ns);

const struct push_entry *push_find(const struct push *push, const struct sl_prefix *group);
/* The n-th entry: NULL after the last; skip entries that are not `used`. */
const struct push_entry *push_at(const struct push *push, u32 n);

struct push_stats {
	u64 active[SL_PUSH_COUNT];
	u64 refused[PUSH_REFUSAL_COUNT];
};
void push_stats(const struct push *push, struct push_stats *ret);

#endif
