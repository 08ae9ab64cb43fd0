/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * push.h - when a source that is refused again and again is answered at the network card, how
 * hard, and when that ends.
 *
 *     refusals, time -> push_refused(), push_tick() -> put, del, tell (struct push_callbacks)
 *
 * Pure policy: it reads no clock, knows no data path and keeps nothing on disk.
 *
 * Abuse is `after` rejections of one user (or key, or address: one set of values under one rule)
 * from one source within the rule's period. Only refusals by the HTTP tier are counted; what the
 * network card drops is none, so that no push-down feeds itself. Then the source is at the
 * rule's first step. While the same one goes on (a quarter of the rejections is enough: a paced
 * client cannot ask as often) it is one step up every `step`; after `down` without abuse it is
 * one down, and below the first it is free. After `max` it is free in any case, and counted anew.
 *
 * What is in force ends by the data path's own clock within PUSH_LEASE; each tick says it again.
 */
#ifndef SLUICE_HTTP_PUSH_H
#define SLUICE_HTTP_PUSH_H

#include "request/mitigation/aggregate.h"
#include "config/cluster_def.h"

#define PUSH_LEASE_NS (60 * SL_NS_PER_SEC)
#define PUSH_RULE_TEXT 128
#define PUSH_VALUE_TEXT (AGGREGATE_VALUE_MAX + 1)

/* Why not: the label of sluice_pushdowns_refused_total{reason}. */
enum push_refusal {
	PUSH_ALLOWED,
	PUSH_NO_RIGHT,		/* the caller may not push */
	PUSH_PROTECTED,		/* never_push_down, exempt, this host's, a gateway, who is logged in */
	PUSH_UNSEEN,		/* the packet tier saw no established traffic from it */
	PUSH_SHARE,		/* more than max_share of the well-behaved requests come from it */
	PUSH_MAX_SOURCES,
	PUSH_FEW_REQUESTS,	/* less than min_requests */
	PUSH_USERS,		/* others behind it are well-behaved, and no step spares them */
	PUSH_FAILED,		/* the data path could not take it */
	PUSH_REFUSAL_COUNT,
};
const char *push_refusal_name(enum push_refusal refusal);	/* "caller", "protected"... */

enum push_event { PUSH_BEGAN, PUSH_WENT_UP, PUSH_WENT_DOWN, PUSH_ENDED, PUSH_REFUSED };

struct push_entry {
	struct sl_prefix group;
	char rule[PUSH_RULE_TEXT];	/* "domain/path" */
	char value[PUSH_VALUE_TEXT];	/* whose refusals: cut, as bytes, terminated */
	char node[CLUSTER_NODE_MAX + 1];	/* another node of the cluster began it; "": this one */
	u64 who;
	u64 rule_id;
	struct push_def def;		/* as it was when it began; its steps are in `steps` */
	struct push_step steps[PUSH_STEPS_MAX];
	u32 step;
	struct rate rate;		/* SL_PUSH_LIMIT: in force, not below what users need */
	u64 began_ns, changed_ns;
	u64 abuse_ns;			/* last */
	u64 until_ns;			/* as the data path has it */
	u64 window, current, before;	/* refusals since changed_ns, by def.within_ns */
	bool shadow;			/* only told */
	bool used;
	u32 next;			/* of its hash chain, 1 + index */
};

/* What is to be put in force on the packets of a source. */
struct push_down {
	struct sl_prefix src;
	enum sl_push_kind kind;
	struct rate rate;		/* SL_PUSH_LIMIT: packets */
	u64 until_ns;			/* CLOCK_MONOTONIC */
	u64 note;			/* push_note(): to be kept with it */
};

struct push_callbacks {
	/* PUSH_ALLOWED, PUSH_PROTECTED or PUSH_UNSEEN (asked only where `seen` is wanted). */
	enum push_refusal (*guard)(void *arg, const struct sl_prefix *group,
				   const struct sl_prefix *address, bool seen, u64 now_ns);
	void (*profile)(void *arg, const struct sl_prefix *group, u64 now_ns,
			struct source_profile *ret);
	u64 (*good_requests)(void *arg);	/* of all sources, lately */
	/* Packets a second that the well-behaved users of a standing need; 0: there are none. */
	u64 (*need_pps)(void *arg, const struct source_profile *profile);
	int (*put)(void *arg, const struct push_down *push);
	void (*del)(void *arg, const struct sl_prefix *group);
	void (*notify)(void *arg, const struct push_entry *entry, enum push_event event,
		       enum push_refusal refusal);
	void *arg;
};

struct push;

/* `seed` makes nobody able to choose who shares a place. */
int push_new(const struct push_callbacks *callbacks, struct sl_seed seed, struct push **ret);
void push_free(struct push *push);	/* NULL is fine; what is in force stays */
/* mode off takes everything back. */
void push_set_limits(struct push *push, const struct push_limits_def *limits, u64 now_ns);

/* A refusal under a rule with push_down. */
void push_refused(struct push *push, const struct refusal_note *note, const struct rule *rule,
		  u64 now_ns);
/* Every fraction of a second. */
void push_tick(struct push *push, u64 now_ns);

/* Ends it, and forgets the refusals that led to it; group NULL: all. Returns how many. */
u32 push_clear(struct push *push, const struct sl_prefix *group, u64 now_ns);

/*
 * One that is in force already, of a daemon before. Its note says by which rule and at which
 * step: the lower 60 bits of the rule's id, and 4 of the step. -EEXIST, -ENOMEM.
 */
#define PUSH_NOTE_THEIRS 0ULL	/* of one that another node began */
int push_adopt(struct push *push, const struct push_entry *entry);
u64 push_note(const struct push_entry *entry);

/*
 * Another node says that it pushes a source down: in force here, too, unless this node's own
 * limits are against it, until it is not said any more. What this node began itself goes on as it is.
 */
struct push_message {
	struct sl_prefix group;
	struct push_step step;
	u64 until_ns;
	const char *node, *rule;
};
enum push_refusal push_receive(struct push *push, const struct push_message *told, u64 now_ns);
/* One that another node began has ended there (`theirs`), or somebody there ended this node's, too. */
void push_end(struct push *push, const struct sl_prefix *group, bool theirs, u64 now_ns);

const struct push_entry *push_find(const struct push *push, const struct sl_prefix *group);
/* The n-th place: NULL past the last one; entries that are not `used` are to be skipped. */
const struct push_entry *push_at(const struct push *push, u32 n);

struct push_stats {
	u64 active[SL_PUSH_COUNT];
	u64 refused[PUSH_REFUSAL_COUNT];
};
void push_stats(const struct push *push, struct push_stats *ret);

#endif
