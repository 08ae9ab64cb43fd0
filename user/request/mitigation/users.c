// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* users.c - see users.h: which pairs and sources are in the table, and the counts of each. */
#include "request/mitigation/users_private.h"

#include <errno.h>
#include <stdlib.h>

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
	/* Pages that were never written use no memory. */
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

struct source *users_source_find(const struct users *users, const struct sl_prefix *group)
{
	struct source *set = source_set(users, group);

	for (u32 way = 0; way < SOURCE_WAYS; way++)
		if (set[way].seen_s && sl_prefix_equal(&set[way].group, group))
			return &set[way];
	return NULL;
}

/* A free entry, or the entry of the source without users that was seen longest ago. */
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

/* Allowed requests without a known user, of sources that are not refused. */
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

/* An entry for a new pair: a free one, an expired one, or that of the oldest user seen once. */
static u32 pair_place(struct users *users, struct pair_set *set, struct pair *pair, u32 tag,
		      u32 now_s)
{
	u32 place = PAIR_WAYS, same = 0;

	for (u32 way = 0; way < PAIR_WAYS; way++) {
		if (set->tag[way] && !is_kept(users, &pair[way], now_s))
			pair_remove(users, set, pair, way);
		same += set->tag[way] == tag;
	}
	if (same >= USERS_SOURCES_MAX)
		return PAIR_WAYS;
	for (u32 way = 0; way < PAIR_WAYS; way++) {
		if (!set->tag[way])
			return way;
		if (!has_returned(&pair[way]) &&
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
	pair[way] =
		(struct pair){ .source = source - users->source, .first_s = now_s, .ok_s = now_s };
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
	struct source *source = users_source_find(users, &note->group);
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
