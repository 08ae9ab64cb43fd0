// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* edges.c - see edges.h. */
#include "packet/host/edges.h"

#include <stdlib.h>

#include "lib/edge_burst.h"

#define WATCHED 256		    /* buckets */
#define PASS_NS (4 * SL_NS_PER_SEC) /* one look at the whole table */
#define SETS_LEAST 2048		    /* of it at once */
#define TICK_LEAST_NS (50 * 1000000ULL)
#define IDLE_NS (SL_NS_PER_SEC / 2) /* while no bucket is watched */
/* The last reading before an edge; what passes behind it may be missing. */
#define BEFORE_NS 2000000ULL

struct watched {
	u64 key; /* 0: none */
	u64 bucket_state, until_ns;
	u64 free_ns; /* since when the place has been free */
};

struct edges {
	struct edge_bursts *bursts;
	struct watched watched[WATCHED];
	u32 next_set;
	u64 at_ns, round_ns,
		round_before_ns; /* the last look, and the beginnings of rounds over the table */
	/* By limit_id; of the limit as it was then. */
	struct {
		u64 window_ns, capacity, permille;
	} peak[SL_LIMIT_IDS];
};

/* A soft or elastic limit has another capacity from time to time. */
static bool is_measured(const struct sl_limit *limit)
{
	return sl_algo_starts_empty(limit->params.algo) && limit->mode == SL_MODE_ENFORCE &&
	       limit->soft == SL_NO_METER && !limit->elastic && !limit->of_overrides &&
	       !limit->counter && !limit->by_match;
}

static const struct sl_limit *limit_of(const struct sl_rules *rules, u64 key)
{
	u32 slot = sl_key_limit_id(key),
	    index = slot < SL_LIMIT_IDS ? rules->limit_of_id[slot] : SL_NO_METER;

	return index < SL_METERS_MAX && is_measured(&rules->limits[index]) ? &rules->limits[index]
									   : NULL;
}

/* 0: no limit has one. */
static u64 shortest_window(const struct sl_rules *rules)
{
	u64 least = 0;

	for (u32 slot = 1; rules && slot < SL_LIMIT_IDS; slot++) {
		u32 index = rules->limit_of_id[slot];
		const struct sl_limit *limit = index < SL_METERS_MAX ? &rules->limits[index] : NULL;

		if (limit && is_measured(limit) && (!least || limit->params.window_ns < least))
			least = limit->params.window_ns;
	}
	return least;
}

/* The count of the window that is active, or of the one before; false: neither. */
static bool read_count(u64 bucket_state, const struct sl_params *p, struct sl_now now,
		       struct edge_reading *ret)
{
	u64 number, left, behind, elapsed = now.utc_ns % p->window_ns;

	*ret = (struct edge_reading){ .window_ns = p->window_ns };
	if (sl_algo_is_anchored(p->algo)) {
		ret->count = sl_first_count(bucket_state, p, now.mono_ns, &number, &left);
		ret->elapsed_ns = left < p->window_ns ? p->window_ns - left : 0;
		return ret->count;
	}
	number = bucket_state >> SL_WINDOW_COUNT_BITS;
	ret->count = bucket_state & SL_WINDOW_COUNT_MASK;
	behind = (now.utc_ns / p->window_ns - number) & SL_WINDOW_NUMBER_MASK;
	ret->elapsed_ns = behind == SL_WINDOW_NUMBER_MASK ? 0 : elapsed + behind * p->window_ns;
	return ret->count && (behind <= 1 || behind == SL_WINDOW_NUMBER_MASK);
}

static void note(struct edges *edges, const struct sl_limit *limit, u64 passed)
{
	u64 permille = passed * 1000 / limit->params.capacity;

	if (edges->peak[limit->slot].window_ns != limit->params.window_ns ||
	    edges->peak[limit->slot].capacity != limit->params.capacity) {
		edges->peak[limit->slot].window_ns = limit->params.window_ns;
		edges->peak[limit->slot].capacity = limit->params.capacity;
		edges->peak[limit->slot].permille = 0;
	}
	if (permille > edges->peak[limit->slot].permille)
		edges->peak[limit->slot].permille = permille;
}

/*
 * False: nothing of it has passed for a window, or its limit is gone. `unseen_ns`: until then there
 * was no such count in the bucket; 0: not known.
 */
static bool read_watched(struct edges *edges, struct dp *dp, const struct sl_rules *rules,
			 struct watched *of, u64 unseen_ns, struct sl_now now)
{
	const struct sl_limit *limit = limit_of(rules, of->key);
	u64 bucket_state = limit ? dp_bucket_state(dp, of->key) : 0;
	struct edge_reading reading;

	if (!limit)
		return false;
	if (bucket_state && read_count(bucket_state, &limit->params, now, &reading)) {
		if (bucket_state != of->bucket_state)
			of->until_ns = now.mono_ns + limit->params.window_ns;
		of->bucket_state = bucket_state;
		reading.since_ns = unseen_ns;
		note(edges, limit, edge_burst_read(edges->bursts, of->key, &reading, now.mono_ns));
	}
	return now.mono_ns < of->until_ns;
}

static void leave(struct watched *of, struct sl_now now)
{
	*of = (struct watched){ .free_ns = now.mono_ns };
}

/*
 * The round before came by the bucket's set. If the place was free, it would have taken what it had
 * found there: the count is younger.
 */
static void take(struct edges *edges, struct dp *dp, const struct sl_rules *rules,
		 struct watched *place, u64 key, struct sl_now now)
{
	u64 unseen_ns = edges->round_before_ns, free_ns = place->free_ns;

	place->key = key;
	if (read_watched(edges, dp, rules, place, free_ns <= unseen_ns ? unseen_ns : 0, now))
		return;
	leave(place, now);
	place->free_ns = free_ns;
}

/* Buckets of such limits that are in use take places that are free. */
static void look_for_more(struct edges *edges, struct dp *dp, const struct sl_rules *rules,
			  struct sl_now now)
{
	u32 sets;
	const struct sl_set *table = dp->ops->table(dp, &sets);
	u64 passed_ns = now.mono_ns - edges->at_ns, count = SETS_LEAST;

	if (count < sets / 1000 * (passed_ns / (PASS_NS / 1000)))
		count = sets / 1000 * (passed_ns / (PASS_NS / 1000));
	for (count = count < sets ? count : sets; count--; edges->next_set++) {
		const struct sl_set *set = &table[edges->next_set % sets];

		for (u32 i = 0; i < SL_WAYS; i++) {
			u64 key = __atomic_load_n(&set->way[i].key, __ATOMIC_RELAXED);
			struct watched *place = &edges->watched[(key >> 1) % WATCHED];

			if (!key || sl_key_is_record(key) || place->key || !limit_of(rules, key))
				continue;
			take(edges, dp, rules, place, key & ~SL_KEY_REFUSED, now);
		}
		if ((edges->next_set + 1) % sets == 0) {
			edges->round_before_ns = edges->round_ns;
			edges->round_ns = now.mono_ns;
		}
	}
	edges->next_set %= sets;
}

/* Just before the next sixteenth of a window ends. */
static u64 next_tick(u64 window_ns, bool any, struct sl_now now)
{
	u64 step = window_ns / EDGE_PARTS, left;

	if (step < TICK_LEAST_NS)
		step = TICK_LEAST_NS;
	if (!any && step < IDLE_NS)
		return IDLE_NS;
	left = step - (now.utc_ns + BEFORE_NS) % step;
	return left < BEFORE_NS ? left + step : left;
}

u64 edges_tick(struct packet_host *host, struct sl_now now)
{
	const struct sl_rules *rules = dp_rules_at(host->dp, now.mono_ns);
	u64 window_ns = host->absent ? 0 : shortest_window(rules);
	bool any = false;

	if (!window_ns) {
		edges_free(host);
		return 0;
	}
	if (!host->edges) {
		host->edges = calloc(1, sizeof(*host->edges));
		if (host->edges)
			host->edges->bursts = edge_bursts_new();
		if (!host->edges || !host->edges->bursts) {
			edges_free(host);
			return SL_NS_PER_SEC;
		}
		host->edges->at_ns = host->edges->round_ns = now.mono_ns;
	}
	for (u32 i = 0; i < WATCHED; i++) {
		struct watched *of = &host->edges->watched[i];

		if (of->key && !read_watched(host->edges, host->dp, rules, of, 0, now))
			leave(of, now);
		any |= of->key;
	}
	look_for_more(host->edges, host->dp, rules, now);
	host->edges->at_ns = now.mono_ns;
	return next_tick(window_ns, any, now);
}

u64 edges_peak(const struct packet_host *host, const struct sl_limit *limit)
{
	const struct edges *edges = host->edges;

	if (!edges || edges->peak[limit->slot].window_ns != limit->params.window_ns ||
	    edges->peak[limit->slot].capacity != limit->params.capacity)
		return 0;
	return edges->peak[limit->slot].permille;
}

void edges_free(struct packet_host *host)
{
	if (host->edges)
		edge_bursts_free(host->edges->bursts);
	free(host->edges);
	host->edges = NULL;
}
