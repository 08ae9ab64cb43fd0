// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * users.c - see users.h. A little over 500 lines: pairs, sources and the pass over both share all
 * their structs, which nobody else is to see.
 */
#include "http/users.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PAIR_WAYS 16
#define SOURCE_WAYS 8
#define HALF_S 30		/* recent requests: the running half minute and the one before */
#define GRACE_S 2		/* a user at a crowded source has so long to come back */

/* Seconds are of the caller's clock, plus one: 0 is never. */
struct pair {
	u32 source;		/* index */
	u32 rate_mrps;
	u32 first_s;		/* first allowed request; not ok_s: he came back */
	u32 ok_s;		/* last allowed request */
	u32 refused_s;		/* last refusal of his own */
	u16 ok[2];		/* allowed requests by half minute, of ok_s's and the other */
};

/* The upper half of the user's hash; 0: no pair. The lower half picks the set. */
struct pair_set {
	u32 tag[PAIR_WAYS];
};

struct sum {
	u32 pass;		/* which one it is of */
	u32 users, good;
	u32 good_requests;
	u64 rate_urps, good_rate_urps;
};

struct source {
	struct sl_prefix group, address;
	u32 seen_s;		/* 0: an empty place */
	u32 pairs;		/* that point here: it stays */
	u32 crowded_s;		/* when a user was turned away */
	u32 refused_s;		/* last refusal of its own, of a request without a user */
	u32 requests[2];	/* by half minute, of seen_s's and the other */
	u32 plain[2];		/* of them, allowed and without a user */
	struct sum sum[2];	/* of the running pass and the last whole one, by pass & 1 */
};

struct users {
	struct users_rules rules;
	struct sl_seed seed;
	struct pair_set *set;
	struct pair *pair;
	u32 sets;
	struct source *source;
	u32 source_sets;
	u32 next_set;		/* of the running pass */
	u32 pass;		/* the running one; pass - 1 is whole */
	u64 pass_good, good_requests;
	u32 plain_s;		/* of all sources, by half minute: of this one and the other */
	u64 plain[2];
	u32 *listed[2];		/* sources with a sum, by pass & 1 */
	u32 listed_count[2];
	struct users_stats stats;
};

_Static_assert(sizeof(struct pair) + sizeof(u32) == 28, "bytes of a pair");

static u32 seconds(u64 now_ns)
{
	return (u32)(now_ns / SL_NS_PER_SEC) + 1;
}

static bool within(u32 then_s, u32 now_s, u32 span_s)
{
	return then_s && (now_s <= then_s || now_s - then_s <= span_s);
}

static u32 active_s(const struct users *users)
{
	return (u32)(users->rules.active_ns / SL_NS_PER_SEC);
}

static u32 sets_for(u64 places, u32 ways)
{
	return places ? (u32)((places + ways - 1) / ways) : 1;
}

int users_new(const struct users_options *options, struct users **ret)
{
	struct users *users = calloc(1, sizeof(*users));
	u32 sources;

	if (!users)
		return -ENOMEM;
	users->seed = options->seed;
	users->rules = (struct users_rules){ .active_ns = 60 * SL_NS_PER_SEC, .max_users = 500 };
	users->sets = sets_for(options->pairs, PAIR_WAYS);
	users->source_sets = sets_for(options->sources, SOURCE_WAYS);
	sources = users->source_sets * SOURCE_WAYS;
	/* Pages that nobody has written to yet cost nothing. */
	users->set = calloc(users->sets, sizeof(*users->set));
	users->pair = calloc((size_t)users->sets * PAIR_WAYS, sizeof(*users->pair));
	users->source = calloc(sources, sizeof(*users->source));
	users->listed[0] = calloc(sources, sizeof(u32));
	users->listed[1] = calloc(sources, sizeof(u32));
	users->pass = 1;
	users->stats.room = (u64)users->sets * PAIR_WAYS;
	users->stats.bytes = users->sets * (sizeof(*users->set) + PAIR_WAYS * sizeof(struct pair)) +
			     sources * (sizeof(*users->source) + 2 * sizeof(u32));
	if (!users->set || !users->pair || !users->source || !users->listed[0] ||
	    !users->listed[1]) {
		users_free(users);
		return -ENOMEM;
	}
	*ret = users;
	return 0;
}

void users_free(struct users *users)
{
	if (users) {
		free(users->set);
		free(users->pair);
		free(users->source);
		free(users->listed[0]);
		free(users->listed[1]);
	}
	free(users);
}

void users_set_rules(struct users *users, const struct users_rules *rules)
{
	users->rules = *rules;
	if (users->rules.active_ns < SL_NS_PER_SEC)
		users->rules.active_ns = SL_NS_PER_SEC;
}

/* ------------------------------------------------------------------ sources */

static struct source *source_set(const struct users *users, const struct sl_prefix *group)
{
	struct sl_sip sip;

	sl_sip_start(&sip, users->seed);
	sl_sip_add(&sip, group->addr.hi);
	sl_sip_add(&sip, group->addr.lo);
	sl_sip_add(&sip, (u64)group->family << 8 | group->len);
	return &users->source[(((sl_sip_finish(&sip) >> 32) * users->source_sets) >> 32) *
			      SOURCE_WAYS];
}

static struct source *source_find(const struct users *users, const struct sl_prefix *group)
{
	struct source *set = source_set(users, group);

	for (u32 way = 0; way < SOURCE_WAYS; way++)
		if (set[way].seen_s && sl_prefix_equal(&set[way].group, group))
			return &set[way];
	return NULL;
}

/* An empty place, or that of the source that was seen longest ago and has no users. */
static struct source *source_make(struct users *users, const struct user_note *note)
{
	struct source *set = source_set(users, &note->group), *place = NULL;

	for (u32 way = 0; way < SOURCE_WAYS; way++)
		if (!set[way].pairs && (!place || set[way].seen_s < place->seen_s))
			place = &set[way];
	if (!place)
		return NULL;
	users->stats.sources += !place->seen_s;
	memset(place, 0, sizeof(*place));
	place->group = note->group;
	return place;
}

/* Half minutes since. */
static u32 half_age(u32 then_s, u32 now_s)
{
	return now_s > then_s ? now_s / HALF_S - then_s / HALF_S : 0;
}

static void source_count(struct source *source, const struct user_note *note, u32 now_s)
{
	u32 age = half_age(source->seen_s, now_s);

	if (age) {
		source->requests[1] = age == 1 ? source->requests[0] : 0;
		source->plain[1] = age == 1 ? source->plain[0] : 0;
		source->requests[0] = source->plain[0] = 0;
	}
	source->requests[0] += note->first;
	source->plain[0] += !note->user && note->allowed;
	if (!note->user && note->own_refusal)
		source->refused_s = now_s;
	source->seen_s = now_s;
	source->address = note->address;
}

static u64 recent(const u32 count[2], u32 then_s, u32 now_s)
{
	u32 age = half_age(then_s, now_s);

	return age > 1 ? 0 : age ? count[0] : count[0] + count[1];
}

static void plain_age(struct users *users, u32 now_s)
{
	u32 age = half_age(users->plain_s, now_s);

	if (age) {
		users->plain[1] = age == 1 ? users->plain[0] : 0;
		users->plain[0] = 0;
	}
	users->plain_s = now_s;
}

/* Allowed requests that no user can be told of, of sources that are not refused. */
static void plain_count(struct users *users, const struct source *source, u32 now_s)
{
	plain_age(users, now_s);
	users->plain[0] += !within(source->refused_s, now_s, active_s(users));
}

/* ------------------------------------------------------------------ pairs */

static u32 user_tag(u64 user)
{
	return user >> 32 ? (u32)(user >> 32) : 1;
}

static u32 user_set(const struct users *users, u64 user)
{
	return (u32)((user & 0xffffffff) * users->sets >> 32);
}

static void pair_remove(struct users *users, struct pair_set *set, struct pair *pair, u32 way)
{
	users->source[pair[way].source].pairs--;
	users->stats.pairs--;
	set->tag[way] = 0;
}

static bool came_back(const struct pair *pair)
{
	return pair->first_s != pair->ok_s;
}

/* A place for a new pair: an empty one, a dead one, or that of the oldest user seen once. */
static u32 pair_place(struct users *users, struct pair_set *set, struct pair *pair, u32 tag,
		      u32 now_s)
{
	u32 place = PAIR_WAYS, same = 0;

	for (u32 way = 0; way < PAIR_WAYS; way++) {
		if (set->tag[way] && !within(pair[way].ok_s, now_s, active_s(users)))
			pair_remove(users, set, pair, way);
		same += set->tag[way] == tag;
	}
	if (same >= USERS_SOURCES_MAX)
		return PAIR_WAYS;
	for (u32 way = 0; way < PAIR_WAYS; way++) {
		if (!set->tag[way])
			return way;
		if (!came_back(&pair[way]) &&
		    (place == PAIR_WAYS || pair[way].ok_s < pair[place].ok_s))
			place = way;
	}
	if (place < PAIR_WAYS) {
		pair_remove(users, set, pair, place);
		users->stats.evicted++;
	}
	return place;
}

static struct pair *pair_make(struct users *users, struct source *source, u64 user, u32 now_s)
{
	struct pair_set *set = &users->set[user_set(users, user)];
	struct pair *pair = &users->pair[(size_t)user_set(users, user) * PAIR_WAYS];
	u32 way = PAIR_WAYS;

	if (source->pairs < users->rules.max_users)
		way = pair_place(users, set, pair, user_tag(user), now_s);
	else
		source->crowded_s = now_s;
	if (way == PAIR_WAYS) {
		users->stats.crowded++;
		return NULL;
	}
	set->tag[way] = user_tag(user);
	pair[way] = (struct pair){ .source = source - users->source, .first_s = now_s,
				   .ok_s = now_s };
	source->pairs++;
	users->stats.pairs++;
	return &pair[way];
}

static struct pair *pair_find(const struct users *users, const struct source *source, u64 user)
{
	u32 set = user_set(users, user), tag = user_tag(user);
	struct pair *pair = &users->pair[(size_t)set * PAIR_WAYS];

	for (u32 way = 0; way < PAIR_WAYS; way++)
		if (users->set[set].tag[way] == tag &&
		    pair[way].source == (u32)(source - users->source))
			return &pair[way];
	return NULL;
}

static void pair_count(struct pair *pair, u32 now_s)
{
	u32 age = half_age(pair->ok_s, now_s);

	if (age) {
		pair->ok[1] = age == 1 ? pair->ok[0] : 0;
		pair->ok[0] = 0;
	}
	if (pair->ok[0] < 0xffff)
		pair->ok[0]++;
	pair->ok_s = now_s;
}

void users_note(struct users *users, const struct user_note *note, u64 now_ns)
{
	struct source *source = source_find(users, &note->group);
	u32 now_s = seconds(now_ns);
	struct pair *pair;

	if (!source)
		source = source_make(users, note);
	if (!source) {
		users->stats.crowded++;
		return;
	}
	source_count(source, note, now_s);
	if (!note->user) {
		if (note->allowed)
			plain_count(users, source, now_s);
		return;
	}
	pair = pair_find(users, source, note->user);
	if (!pair && note->allowed)
		pair = pair_make(users, source, note->user, now_s);
	if (!pair)
		return;
	if (note->allowed) {
		pair_count(pair, now_s);
		pair->rate_mrps = note->rate_mrps;
	} else if (note->own_refusal) {
		pair->refused_s = now_s;
	}
}

/* ------------------------------------------------------------------ the pass */

static struct sum *sum_of(struct users *users, u32 index)
{
	struct sum *sum = &users->source[index].sum[users->pass & 1];

	if (sum->pass != users->pass) {
		memset(sum, 0, sizeof(*sum));
		sum->pass = users->pass;
		users->listed[users->pass & 1][users->listed_count[users->pass & 1]++] = index;
	}
	return sum;
}

/* Invented users come once: at a source with more than it may have, such do not count. */
static bool counts(const struct users *users, const struct pair *pair, u32 now_s)
{
	return came_back(pair) ||
	       !within(users->source[pair->source].crowded_s, now_s, active_s(users));
}

/* And many in a moment: to be spared one counts at once, to raise a budget a second later. */
static bool counts_for_budget(const struct pair *pair, u32 now_s)
{
	return came_back(pair) || pair->first_s < now_s;
}

static void sum_pair(struct users *users, const struct pair *pair, u32 k, u32 now_s)
{
	struct sum *sum = sum_of(users, pair->source);
	u64 rate_urps = (u64)pair->rate_mrps * 1000 / k;
	bool good = !within(pair->refused_s, now_s, active_s(users));
	u32 age = half_age(pair->ok_s, now_s);
	u32 requests = age > 1 ? 0 : age ? pair->ok[0] : pair->ok[0] + pair->ok[1];

	if (counts_for_budget(pair, now_s) && sum->users < users->rules.max_users) {
		sum->users++;
		sum->rate_urps += rate_urps;
	}
	if (good) {
		sum->good_rate_urps += rate_urps;
		sum->good++;
		sum->good_requests += requests;
		users->pass_good += requests;
	}
}

static void pass_set(struct users *users, u32 at, u32 now_s)
{
	struct pair *pair = &users->pair[(size_t)at * PAIR_WAYS];
	struct pair_set *set = &users->set[at];
	bool on[PAIR_WAYS];

	for (u32 way = 0; way < PAIR_WAYS; way++) {
		const struct pair *p = &pair[way];

		on[way] = false;
		if (!set->tag[way])
			continue;
		if (!within(p->ok_s, now_s, active_s(users)))
			pair_remove(users, set, pair, way);
		else if (counts(users, p, now_s))
			on[way] = true;
		else if (!within(p->ok_s, now_s, GRACE_S))
			pair_remove(users, set, pair, way);
	}
	for (u32 way = 0; way < PAIR_WAYS; way++) {
		u32 k = 0;

		for (u32 other = 0; on[way] && other < PAIR_WAYS; other++)
			k += on[other] && set->tag[other] == set->tag[way];
		if (on[way])
			sum_pair(users, &pair[way], k, now_s);
	}
}

bool users_pass(struct users *users, u32 share, u64 now_ns)
{
	u32 end = users->sets - users->next_set, part = users->sets / share + 1, now_s = seconds(now_ns);

	end = users->next_set + (end < part ? end : part);
	for (; users->next_set < end; users->next_set++)
		pass_set(users, users->next_set, now_s);
	if (users->next_set < users->sets)
		return false;
	users->next_set = 0;
	plain_age(users, now_s);
	users->good_requests = users->pass_good;
	users->pass_good = 0;
	users->pass++;
	users->listed_count[users->pass & 1] = 0;
	return true;
}

/* ------------------------------------------------------------------ what is known */

static void standing_of(const struct users *users, const struct source *source, u64 now_ns,
			struct user_standing *ret)
{
	u32 whole = users->pass - 1;
	const struct sum *sum = &source->sum[whole & 1];

	*ret = (struct user_standing){
		.group = source->group,
		.address = source->address,
		.requests = recent(source->requests, source->seen_s, seconds(now_ns)),
		.seen_ns = (u64)(source->seen_s - 1) * SL_NS_PER_SEC,
	};
	if (!within(source->refused_s, seconds(now_ns), active_s(users)))
		ret->good_requests = recent(source->plain, source->seen_s, seconds(now_ns));
	if (sum->pass != whole || !whole)
		return;
	ret->users = sum->users;
	ret->good = sum->good;
	ret->rate_urps = sum->rate_urps;
	ret->good_rate_urps = sum->good_rate_urps;
	ret->good_requests += sum->good_requests;
}

bool users_standing(const struct users *users, const struct sl_prefix *group, u64 now_ns,
		    struct user_standing *ret)
{
	const struct source *source = source_find(users, group);

	memset(ret, 0, sizeof(*ret));
	ret->group = *group;
	if (source)
		standing_of(users, source, now_ns, ret);
	return source;
}

void users_sources(const struct users *users, u64 now_ns,
		   void (*each)(const struct user_standing *standing, void *arg), void *arg)
{
	u32 whole = (users->pass - 1) & 1;
	struct user_standing standing;

	for (u32 i = 0; i < users->listed_count[whole]; i++) {
		standing_of(users, &users->source[users->listed[whole][i]], now_ns, &standing);
		if (standing.users)
			each(&standing, arg);
	}
}

u64 users_good_requests(const struct users *users)
{
	return users->good_requests + users->plain[0] + users->plain[1];
}

void users_stats(const struct users *users, struct users_stats *ret)
{
	*ret = users->stats;
}
