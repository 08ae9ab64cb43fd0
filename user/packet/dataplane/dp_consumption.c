// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * dp_consumption.c - see dp_consumption.h: the sources, and how they are found and read.
 *
 * Known sources are read each time, at the last place of their counter in the table. New ones are
 * found by scanning the table in rounds, a part each time: a scan reads 16 bytes a way, in order. A
 * source becomes known when it has counted an eighth of a node's share within a minute, or of the
 * burst if that is less: what is left out by all nodes together is below an eighth of the limit.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "packet/dataplane/dp_consumption_private.h"

/* A source that only other nodes report is removed this long after their last report. */
#define FORGET_NS (2 * SL_NS_PER_SEC)
/* After an eviction, the past of a new source is unknown for this long. */
#define CROWDED_NS (60 * SL_NS_PER_SEC)
#define PROBES 8
#define SHARE_ONE 65536 /* a whole capacity */

/* ------------------------------------------------------------------ memory */

int dp_consumption_new(struct dp *dp, u32 room, struct dp_consumption **ret)
{
	struct dp_consumption *u = calloc(1, sizeof(*u));

	if (!u)
		return -ENOMEM;
	u->dp = dp;
	u->nodes = 1;
	u->sync_ns = SL_NS_PER_SEC / 10;
	u->room = room;
	u->sources = consumption_power_of_two(2ULL * room);
	u->source = calloc(u->sources, sizeof(*u->source));
	u->stats.room = room;
	if (!u->source) {
		free(u);
		return -ENOMEM;
	}
	memset(u->group_of_limit_id, 0xff, sizeof(u->group_of_limit_id));
	*ret = u;
	return 0;
}

void dp_consumption_free(struct dp_consumption *u)
{
	if (!u)
		return;
	free(u->own);
	free(u->source);
	free(u);
}

/* ------------------------------------------------------------------ counters */

static const struct sl_params counter_like = {
	.algo = SL_ALGO_FIXED_WINDOW,
	.capacity = SL_WINDOW_COUNT_MASK,
	.window_ns = 60 * SL_NS_PER_SEC,
};

/* The key and bucket state of a way; false: empty, or being replaced. */
static bool read_way(const struct sl_way *way, u64 *ret_key, u64 *ret_word)
{
	u64 key = __atomic_load_n(&way->key, __ATOMIC_ACQUIRE);

	*ret_key = key & ~SL_KEY_REFUSED;
	*ret_word = __atomic_load_n(&way->bucket_state, __ATOMIC_ACQUIRE);
	return key && *ret_word && *ret_word != SL_STATE_BUSY &&
	       __atomic_load_n(&way->key, __ATOMIC_ACQUIRE) == key;
}

/* Units counted between `before` and `bucket state`, two bucket states of one key. */
static u64 counted(u64 before, u64 bucket_state)
{
	u64 was = before & SL_WINDOW_COUNT_MASK, is = bucket_state & SL_WINDOW_COUNT_MASK;

	if (before >> SL_WINDOW_COUNT_BITS != bucket_state >> SL_WINDOW_COUNT_BITS || is < was)
		return is;
	return is - was;
}

u32 consumption_share(const struct group *g, u64 units)
{
	u64 whole = units / g->worth;

	return whole >= 16 ? 16 * SHARE_ONE : (u32)(units * SHARE_ONE / g->worth);
}

/* Its place, or the place for it; `removed` places do not exist: see source_drop(). */
struct source *consumption_find_source(struct dp_consumption *u, u64 key)
{
	for (u64 i = consumption_hash(key);; i++) {
		struct source *s = &u->source[i & (u->sources - 1)];

		if (!s->key || s->key == key)
			return s;
	}
}

/* Later entries move up, so that a chain has no hole. */
static void source_drop(struct dp_consumption *u, struct source *s)
{
	u64 mask = u->sources - 1, hole = s - u->source;

	for (u64 i = (hole + 1) & mask; u->source[i].key; i = (i + 1) & mask) {
		u64 home = (consumption_hash(u->source[i].key)) & mask;

		if (((i - home) & mask) < ((i - hole) & mask))
			continue;
		u->source[hole] = u->source[i];
		hole = i;
	}
	u->source[hole].key = 0;
	u->stats.known--;
}

/* Makes room for a source with this share by evicting one with less. False: there is none. */
static bool displace(struct dp_consumption *u, u32 share, u64 now_ns)
{
	struct source *lightest = NULL;

	u->dice = u->dice * 1664525 + 1013904223;
	for (u64 i = 0, seen = 0; seen < PROBES && i < u->sources; i++) {
		struct source *s = &u->source[(u->dice + i) & (u->sources - 1)];

		if (!s->key)
			continue;
		seen++;
		if (!lightest || s->share < lightest->share)
			lightest = s;
	}
	if (!lightest || lightest->share >= share / 2)
		return false;
	source_drop(u, lightest);
	u->crowded_ns = now_ns;
	return true;
}

/* A place for a source with this consumption; NULL: all others have more. */
struct source *consumption_add_source(struct dp_consumption *u, u64 key, u32 share, u64 now_ns)
{
	struct source *s = consumption_find_source(u, key);

	if (u->stats.known >= u->room) {
		if (!displace(u, share, now_ns))
			return NULL;
		s = consumption_find_source(u, key);
	}
	*s = (struct source){ .key = key,
			      .share = share,
			      .group = u->group_of_limit_id[sl_key_limit_id(key)] };
	for (u32 i = 0; i < RATES_MAX; i++)
		s->debt[i].idle = u->sync_ns * SL_TICKS_PER_NS;
	u->stats.known++;
	return s;
}

/* ------------------------------------------------------------------ buckets beside them */

u64 consumption_ticks(const struct sl_params *p, u64 units)
{
	unsigned __int128 cost = (unsigned __int128)units * p->mult >> (p->shift & 63);

	return cost < SL_BIT(60) ? (u64)cost : SL_BIT(60);
}

/* The debt of a bucket state, including any beyond tau. */
static u64 debt_of(u64 bucket_state, const struct sl_params *p, struct sl_now now)
{
	u64 ticks = now.mono_ns * SL_TICKS_PER_NS, full = bucket_state >> SL_GCRA_GEN_BITS;

	if ((bucket_state & SL_GCRA_GEN_MASK) != p->gen)
		return sl_gcra_debt(bucket_state, p, ticks);
	return full > ticks ? full - ticks : 0;
}

/* A debt of so many ticks in units, rounded up. */
static u64 units_of(const struct sl_params *p, u64 ticks)
{
	unsigned __int128 units = ((unsigned __int128)ticks << (p->shift & 63)) + p->mult - 1;

	units = p->mult ? units / p->mult : 0;
	return units < SL_BIT(60) ? (u64)units : SL_BIT(60);
}

/*
 * The part of a new source's consumption to publish: at most what its buckets still owe. It may
 * have begun up to a round of the table ago, and what has leaked since would have leaked
 * everywhere. Other nodes would be charged with it for good, because a source that continues never
 * lets its bucket run full. Of a window all counts.
 */
static u64 still_owed(const struct dp_consumption *u, u64 key, u64 units, struct sl_now now)
{
	const struct group *g = &u->group[u->group_of_limit_id[sl_key_limit_id(key)]];
	u64 most = 0, owed;

	for (u32 i = 0; i < g->meters; i++) {
		struct dp_bucket bucket;

		consumption_bucket(u, g, i, key & SL_KEY_HASH_MASK, now, &bucket);
		if (!sl_is_bucket(&bucket.params))
			return units;
		owed = units_of(&bucket.params,
				debt_of(dp_bucket_state(u->dp, bucket.key), &bucket.params, now));
		most = owed > most ? owed : most;
	}
	return units < most ? units : most;
}

/* The state of a counter; 0: of none in the last minute. */
static u64 counter_state(const struct dp_consumption *u, u64 key, struct sl_now now)
{
	u64 bucket_state = dp_bucket_state(u->dp, key);

	return bucket_state == SL_STATE_BUSY || sl_expired(bucket_state, &counter_like, now)
		       ? 0
		       : bucket_state;
}

/*
 * When the last packet was refused by a bucket that counts those: it was empty then, and what has
 * been admitted since makes this time later. Not after now.
 */
static u64 emptied_ns(u64 bucket_state, const struct sl_params *p, struct sl_now now)
{
	u64 debt = debt_of(bucket_state, p, now), ago;

	ago = debt < p->tau ? (p->tau - debt + SL_TICKS_PER_NS - 1) / SL_TICKS_PER_NS : 0;
	return ago < now.mono_ns ? now.mono_ns - ago : 0;
}

/*
 * Reads what the meters refused of a source, where that counts: before what was admitted, so that
 * no bucket shows more of that than is published. Returns the units; *ret_any: some within a
 * minute.
 */
static u64 look_at_refusals(struct dp_consumption *u, struct source *s, struct sl_now now,
			    bool *ret_any)
{
	const struct group *g = &u->group[s->group];
	u64 sum = 0;

	*ret_any = false;
	for (u32 i = 0; i < g->meters; i++) {
		u64 hash = s->key & SL_KEY_HASH_MASK, counter = 0, new, bucket_state;
		struct debt *d = &s->debt[i];
		struct dp_bucket bucket;

		if (g->refusals[i])
			counter = counter_state(u, sl_key(g->refusals[i], hash), now);
		if (!counter)
			continue;
		*ret_any = true;
		new = counted(d->refusals, counter);
		d->refusals = counter;
		consumption_bucket(u, g, i, hash, now, &bucket);
		bucket_state = dp_bucket_state(u->dp, bucket.key);
		if (!new || !bucket_state)
			continue;
		if (sl_is_bucket(&bucket.params))
			d->refused_ns = emptied_ns(bucket_state, &bucket.params, now);
		else if (!d->refused)
			d->refused_ns = u->looked_ns;
		d->refused += new;
		d->filled = true;
		sum += new;
	}
	return sum;
}

/* Found in the table. Its past is published, unless it may have been published before. */
static void source_found(struct dp_consumption *u, u64 way, u64 key, u64 bucket_state,
			 struct sl_now now, u64 since_ns)
{
	u32 group = u->group_of_limit_id[sl_key_limit_id(key)];
	u32 share = consumption_share(&u->group[group], bucket_state & SL_WINDOW_COUNT_MASK);
	bool crowded = u->crowded_ns && now.mono_ns - u->crowded_ns < CROWDED_NS, any;
	struct source *s;

	/* It may be the counter of what was refused. */
	key = sl_key(u->group[group].slot, key & SL_KEY_HASH_MASK);
	if (consumption_find_source(u, key)->key)
		return;
	s = consumption_add_source(u, key, share, now.mono_ns);
	if (!s)
		return;
	look_at_refusals(u, s, now, &any);
	s->bucket_state = counter_state(u, key, now);
	s->way = way; /* of another counter: found out by the key */
	s->since_ns = since_ns;
	if (since_ns && !crowded) {
		s->unpublished = still_owed(u, key, s->bucket_state & SL_WINDOW_COUNT_MASK, now);
		return;
	}
	for (u32 i = 0; i < RATES_MAX; i++)
		s->debt[i].refused = 0;
}

/* ------------------------------------------------------------------ how long they were full */

/*
 * How long each bucket was full since the last look: its debt minus the earlier debt, charges and
 * leaks. Late charges of other nodes would have passed in that time, so that much of them costs
 * nothing: else a source below its limit on several nodes would be refused whenever a burst is
 * shorter than the period of a message.
 */
static void look_at_debts(struct dp_consumption *u, struct source *s, u64 units, struct sl_now now)
{
	const struct group *g = &u->group[s->group];
	u64 passed = (now.mono_ns - u->looked_ns) * SL_TICKS_PER_NS;

	for (u32 i = 0; i < g->meters; i++) {
		struct debt *d = &s->debt[i];
		struct dp_bucket bucket;
		u64 is, work, gap;

		consumption_bucket(u, g, i, s->key & SL_KEY_HASH_MASK, now, &bucket);
		if (!sl_is_bucket(&bucket.params))
			continue;
		is = debt_of(dp_bucket_state(u->dp, bucket.key), &bucket.params, now);
		work = d->was + d->charged + consumption_ticks(&bucket.params, units);
		gap = is + passed > work ? is + passed - work : 0;
		gap = gap < passed ? gap : passed;
		/* What was refused filled it without being admitted. */
		if (d->filled)
			gap = d->idle = 0;
		d->filled = false;
		d->idle = d->idle + gap < 2 * passed ? d->idle + gap : 2 * passed;
		d->was = is;
		d->charged = 0;
	}
}

/* ------------------------------------------------------------------ looking */

/* False: the source is no longer tracked. */
static bool look_again(struct dp_consumption *u, struct source *s, const struct sl_set *table,
		       u64 ways, struct sl_now now)
{
	bool reported = s->received_ns && now.mono_ns - s->received_ns < FORGET_NS;
	u64 key, bucket_state, new = 0, owed = 0, refused;
	bool refuses;

	s->group = u->group_of_limit_id[sl_key_limit_id(s->key)];
	if (s->group == NO_GROUP)
		return false;
	refused = look_at_refusals(u, s, now, &refuses);
	if (s->way >= ways ||
	    !read_way(&table[s->way / SL_WAYS].way[s->way % SL_WAYS], &key, &bucket_state) ||
	    key != s->key)
		bucket_state = dp_bucket_state(u->dp, s->key);
	if (bucket_state == SL_STATE_BUSY ||
	    (bucket_state && sl_expired(bucket_state, &counter_like, now)))
		bucket_state = 0;
	if (!bucket_state && !s->unpublished && !reported && !refuses)
		return false;
	if (bucket_state) {
		new = counted(s->bucket_state, bucket_state);
		owed = s->bucket_state ? new : still_owed(u, s->key, new, now);
		s->bucket_state = bucket_state;
	}
	s->share = s->share / 2 + consumption_share(&u->group[s->group], new + refused);
	if (new && !s->unpublished)
		s->since_ns = u->looked_ns;
	s->unpublished += owed;
	look_at_debts(u, s, new, now);
	return true;
}

static void look_at_known(struct dp_consumption *u, const struct sl_set *table, u64 ways,
			  struct sl_now now)
{
	for (u64 i = 0; i < u->sources && u->stats.known; i++) {
		struct source *s = &u->source[i];

		/* Another key may have replaced it. */
		while (s->key && !look_again(u, s, table, ways, now))
			source_drop(u, s);
	}
}

/* Ways from the cursor on. */
static void look_for_new(struct dp_consumption *u, const struct sl_set *table, u64 ways, u64 count,
			 struct sl_now now, u64 since_ns)
{
	for (u64 i = 0; i < count; i++) {
		const struct sl_way *way;
		u64 key, bucket_state;
		u32 group;

		if (u->cursor >= ways)
			u->cursor = 0;
		way = &table[u->cursor / SL_WAYS].way[u->cursor % SL_WAYS];
		u->cursor++;
		key = __atomic_load_n(&way->key, __ATOMIC_RELAXED);
		group = sl_key_limit_id(key) < SL_LIMIT_IDS
				? u->group_of_limit_id[sl_key_limit_id(key)]
				: NO_GROUP;
		if (group == NO_GROUP || !read_way(way, &key, &bucket_state) ||
		    u->group_of_limit_id[sl_key_limit_id(key) % SL_LIMIT_IDS] != group ||
		    (bucket_state & SL_WINDOW_COUNT_MASK) < u->group[group].least ||
		    sl_expired(bucket_state, &counter_like, now))
			continue;
		source_found(u, u->cursor - 1, key, bucket_state, now, since_ns);
	}
}

void consumption_begin(struct dp_consumption *u, struct sl_now now)
{
	u32 sets = u->dp->table_sets;
	const struct sl_set *table = u->dp->table;

	u->begun = true;
	u->looked_ns = now.mono_ns;
	look_for_new(u, table, (u64)sets * SL_WAYS, (u64)sets * SL_WAYS, now, 0);
}

void dp_consumption_look(struct dp_consumption *u, struct sl_now now, u64 round_ns)
{
	u32 sets = u->dp->table_sets;
	const struct sl_set *table = u->dp->table;
	u64 ways = (u64)sets * SL_WAYS, passed = now.mono_ns - u->looked_ns, count = ways;

	if (!u->groups || !passed)
		return;
	if (passed < round_ns)
		count = (u64)((unsigned __int128)ways * passed / round_ns) + 1;
	if (count > DP_CONSUMPTION_WAYS_MAX)
		count = DP_CONSUMPTION_WAYS_MAX;
	look_at_known(u, table, ways, now);
	look_for_new(u, table, ways, count < ways ? count : ways, now,
		     now.mono_ns > round_ns ? now.mono_ns - round_ns : 1);
	u->looked_ns = now.mono_ns;
}

/* ------------------------------------------------------------------ what there is */

bool dp_consumption_any(const struct dp_consumption *u)
{
	return u->groups;
}

static u32 slot_of(const struct dp_consumption *u, u32 group)
{
	const struct group *g = &u->group[group % GROUPS_MAX];

	return group < GROUPS_MAX ? g->slot : g->refusals[group / GROUPS_MAX - 1];
}

const char *dp_consumption_name(const struct dp_consumption *u, u32 group, u64 *ret_kind)
{
	const struct sl_limit_id_info *slot = &u->dp->slots[slot_of(u, group)];

	*ret_kind = slot->kind;
	return slot->name;
}

int dp_consumption_find(const struct dp_consumption *u, const char *name, u64 kind)
{
	const struct sl_limit_id_info *slots = u->dp->slots;

	for (u32 i = 0; i < u->groups; i++) {
		u32 group = i;

		for (u32 n = 0; n <= u->group[i].meters; group = consumption_refusals(i, n++)) {
			const struct sl_limit_id_info *slot = &slots[slot_of(u, group)];

			if (slot != slots && slot->kind == kind &&
			    !strncmp(slot->name, name, SL_NAME_MAX))
				return (int)group;
		}
	}
	return -ENOENT;
}

void dp_consumption_nodes(struct dp_consumption *u, u32 nodes, u64 sync_ns)
{
	u->sync_ns = sync_ns;
	if (u->nodes == nodes || !nodes)
		return;
	u->nodes = nodes;
	for (u32 i = 0; i < u->groups; i++)
		consumption_find_least(u, &u->group[i]);
}

void dp_consumption_stats(const struct dp_consumption *u, struct dp_consumption_stats *ret)
{
	*ret = u->stats;
}
