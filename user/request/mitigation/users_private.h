/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * users_private.h - the table of users.h, shared by users.c (its entries) and users_pass.c (its
 * sums).
 */
#ifndef SLUICE_HTTP_USERS_PRIVATE_H
#define SLUICE_HTTP_USERS_PRIVATE_H

#include <string.h>

#include "request/mitigation/users.h"

#define PAIR_WAYS 16
#define SOURCE_WAYS 8
#define HALF_S 30 /* recent requests: the running half minute and the one before */
#define GRACE_S 2 /* at a crowded source a user has this long to come back */

/* Seconds of the caller's clock, plus one: 0 is never. */
struct pair {
	u32 source; /* index */
	u32 rate_mrps;
	u32 first_s;   /* first allowed request; differs from ok_s: came back */
	u32 ok_s;      /* last allowed request */
	u32 refused_s; /* last refusal caused by the user */
	u16 ok[2];     /* allowed requests by half minute, of ok_s's and the other */
};

/* The upper half of the user's hash; 0: free. The lower half selects the set. */
struct pair_set {
	u32 tag[PAIR_WAYS];
};

struct sum {
	u32 pass; /* the pass it belongs to */
	u32 users, good;
	u32 good_requests;
	u64 rate_urps, good_rate_urps;
};

struct source {
	struct sl_prefix group, address;
	u32 seen_s;	   /* 0: free */
	u32 pairs;	   /* that point here: it is not evicted */
	u32 crowded_s;	   /* when a user was not admitted */
	u32 refused_s;	   /* last refusal of its own, of a request without a user */
	u32 requests[2];   /* by half minute, of seen_s's and the other */
	u32 plain[2];	   /* of them, allowed and without a user */
	struct sum sum[2]; /* of the running pass and the last whole one, by pass & 1 */
};

struct users {
	struct users_rules rules;
	struct sl_seed seed;
	struct pair_set *set;
	struct pair *pair;
	u32 sets;
	struct source *source;
	u32 source_sets;
	u32 next_set;	 /* of the running pass */
	u32 pass;	 /* the running one; pass - 1 is whole */
	u64 began_ns[2]; /* of both, by pass & 1 */
	u64 pass_good, good_requests;
	u32 plain_s; /* of all sources, by half minute: of this one and the other */
	u64 plain[2];
	u32 *listed[2]; /* sources with a sum, by pass & 1 */
	u32 listed_count[2];
	struct users_stats stats;
};

_Static_assert(sizeof(struct pair) + sizeof(u32) == 28, "bytes of a pair");

static inline u32 seconds(u64 now_ns)
{
	return (u32)(now_ns / SL_NS_PER_SEC) + 1;
}

static inline bool within(u32 then_s, u32 now_s, u32 span_s)
{
	return then_s && (now_s <= then_s || now_s - then_s <= span_s);
}

static inline u32 active_s(const struct users *users)
{
	return (u32)(users->rules.active_ns / SL_NS_PER_SEC);
}

/* Half minutes since. */
static inline u32 half_age(u32 then_s, u32 now_s)
{
	return now_s > then_s ? now_s / HALF_S - then_s / HALF_S : 0;
}

/* Of counts by half minute: those of this one and the one before. */
static inline u64 recent(const u32 count[2], u32 then_s, u32 now_s)
{
	u32 age = half_age(then_s, now_s);

	return age > 1 ? 0 : age ? count[0] : count[0] + count[1];
}

static inline void plain_age(struct users *users, u32 now_s)
{
	u32 age = half_age(users->plain_s, now_s);

	if (age) {
		users->plain[1] = age == 1 ? users->plain[0] : 0;
		users->plain[0] = 0;
	}
	users->plain_s = now_s;
}

/*
 * Whether the pair is kept. A user that is still refused stays known as refused: if the pair ended
 * with the last allowed request, the next allowed one would make a well-behaved user of it.
 */
static inline bool is_kept(const struct users *users, const struct pair *pair, u32 now_s)
{
	return within(pair->ok_s, now_s, active_s(users)) ||
	       within(pair->refused_s, now_s, active_s(users));
}

static inline void pair_remove(struct users *users, struct pair_set *set, struct pair *pair,
			       u32 way)
{
	users->source[pair[way].source].pairs--;
	users->stats.pairs--;
	set->tag[way] = 0;
}

static inline bool has_returned(const struct pair *pair)
{
	return pair->first_s != pair->ok_s;
}

struct source *users_source_find(const struct users *users, const struct sl_prefix *group);

#endif
