// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * share_learn.c - what an answer says of what the store knows of this node, and of what it lost.
 *
 * A store that failed over, or began empty, may have forgotten charges that it had answered for.
 * Each node finds out about its own, and has them charged again (SHARED_FORCE):
 *
 *     windows   the store counts what each node charged (state.own); by a newer answer it is never
 *               less than by an older one of the same window and what was charged with it
 *     logs      the same, of what surely still counts: what was charged within this half of the
 *               window's length and the one before
 *     buckets   the store counts nothing of whose they are: the time at which one will be empty
 *               only ever grows, but by what is given back. One that is nearer by more than an
 *               eighth of the capacity has been lost, and this node puts back its share of that
 *
 * What could look alike: answers that overtook each other (only a newer one, by the store's time,
 * is compared); what was given back (share_expect_back() lowers what is expected before it is
 * sent); leases (state.own has none of a lease but what was said to be spent; of a bucket all of
 * them are at most a tenth); a reset (share_forget(); for which what is to be put back waits 200 to
 * 400 ms, that the message of one may arrive). What another node gives back of a bucket, more than
 * an eighth at once, may be put back: an error towards fewer.
 *
 * The same numbers say which share of the demand is this node's, for the time when the store is
 * away.
 */
#include "cluster/share_private.h"

#define PUT_BACK_NS 200000000ULL
#define BUCKET_NOTICED 8
#define CLOCK_BACK_US 1000000ULL
#define SHARE_PRIOR 8			/* requests: how much the share before weighs */

static void note_lost(struct shares *shares, struct share_set *set, struct share_entry *e,
		      u64 hits, struct sl_now now)
{
	share_add(&e->lost, hits);
	__atomic_fetch_add(&shares->lost, hits, __ATOMIC_RELAXED);
	share_schedule(shares, set, e,
		       share_phase(set->key[e - set->entry], PUT_BACK_NS, now.mono_ns + PUT_BACK_NS));
}

static void note_share(const struct shares *shares, struct share_entry *e, double own, double all)
{
	double before = e->share_permille;

	if (!before)
		before = 1000.0 / __atomic_load_n(&shares->nodes, __ATOMIC_RELAXED);
	if (own > all)
		own = all;
	e->share_permille = (own * 1000 + before * SHARE_PRIOR) / (all + SHARE_PRIOR) + 0.5;
	if (!e->share_permille)
		e->share_permille = 1;
}

/* ------------------------------------------------------------------ windows */

static void learn_window(struct shares *shares, struct share_set *set, struct share_entry *e,
			 const struct shared_state *state, u64 charged, struct sl_now now)
{
	if (state->window < e->own_window)
		return;
	if (state->window == e->own_window) {
		if (state->own < e->own + charged)
			note_lost(shares, set, e, e->own + charged - state->own, now);
	} else if (e->own && e->def.algo == HTTP_FIRST_REQUEST &&
		   state->window < e->own_window + e->def.period_ns / 1000) {
		/* Another one has begun before this one's end. */
		note_lost(shares, set, e, e->own, now);
	}
	e->own_window = state->window;
	e->own = state->own;
	note_share(shares, e, state->own, state->used);
}

/* own: this half's, own_window: the half's before, own_mark: its number. */
static void roll_log(struct share_entry *e, u64 store_us)
{
	u64 half = store_us / (e->def.period_ns / 2000);

	if (half <= e->own_mark)
		return;
	e->own_window = half == e->own_mark + 1 ? e->own : 0;
	e->own = 0;
	e->own_mark = half;
}

static void learn_log(struct shares *shares, struct share_set *set, struct share_entry *e,
		      const struct shared_state *state, u64 charged, u64 store_us, bool newer,
		      struct sl_now now)
{
	roll_log(e, store_us);
	e->own += charged;
	if (!newer)
		return;
	if (state->own < e->own + e->own_window) {
		note_lost(shares, set, e, e->own + e->own_window - state->own, now);
		e->own = charged;
		e->own_window = 0;
	}
	note_share(shares, e, state->own, state->used);
}

/* ------------------------------------------------------------------ buckets */

/* own: when the bucket will be empty, us, as it was last heard. */
static void learn_bucket(struct shares *shares, struct share_set *set, struct share_entry *e,
			 const struct shared_bucket *bucket, u64 charged, u64 store_us,
			 struct sl_now now)
{
	double interval = share_interval_us(&e->def), capacity = share_capacity(&e->def), lost;
	u64 used_us = bucket->state.used / 1000, here_us = charged * interval;
	u64 was_us = share_less(e->own, store_us), before_us = share_less(used_us, here_us);
	/* A debt that was cut says nothing of what was there before. */
	bool cut = bucket->kind == SHARED_FORCE && used_us + interval > 2 * capacity * interval;

	note_share(shares, e, charged + bucket->spent, share_less(used_us, was_us) / interval);
	lost = share_less(was_us, before_us) / interval;
	if (!cut && lost > capacity / BUCKET_NOTICED) {
		e->own_mark = e->own;
		note_lost(shares, set, e, lost * e->share_permille / 1000, now);
	}
	e->own = store_us + used_us;
}

/* ------------------------------------------------------------------ both ways */

void share_expect_back(struct share_entry *e, u64 hits)
{
	if (share_is_bucket(&e->def))
		hits = hits * share_interval_us(&e->def) + 1;
	if (e->def.algo == HTTP_SLIDING_LOG && hits > e->own)
		e->own_window = share_less(e->own_window, hits - e->own);
	e->own = share_less(e->own, hits);
}

static u64 charged_by(const struct share_entry *e, const struct shared_bucket *bucket,
		      const struct shared_ask *ask)
{
	u64 charged = 0;

	if ((bucket->kind == SHARED_TAKE && ask->passed) ||
	    (bucket->kind == SHARED_FORCE && !bucket->late))
		charged = bucket->cost;
	/* What a lease of an earlier window spent is not of this one. */
	if (share_is_window(&e->def) && (!bucket->window || bucket->window == bucket->state.window))
		charged += bucket->spent;
	return charged;
}

void share_learn(struct shares *shares, struct share_set *set, struct share_entry *e,
		 const struct shared_bucket *bucket, const struct shared_ask *ask,
		 struct sl_now now)
{
	u64 charged = charged_by(e, bucket, ask);
	bool newer = ask->now_us > e->heard_us;

	/* Another server with another clock: what was known is of no use. */
	if (ask->now_us + CLOCK_BACK_US < e->heard_us) {
		e->own = e->own_window = e->own_mark = 0;
		newer = true;
	}
	if (newer)
		e->heard_us = ask->now_us;
	/*
	 * What was given back was expected when it went out; what the store had before may have been
	 * heard since, also of the same microsecond.
	 */
	if (bucket->kind == SHARED_BACK && newer)
		share_expect_back(e, bucket->cost);
	else if (bucket->kind == SHARED_BACK && ask->now_us == e->heard_us &&
		 share_is_window(&e->def) && bucket->state.window == e->own_window)
		e->own = share_min(e->own, bucket->state.own);
	if (e->def.algo == HTTP_SLIDING_LOG)
		learn_log(shares, set, e, &bucket->state, charged, ask->now_us, newer, now);
	else if (newer && share_is_bucket(&e->def))
		learn_bucket(shares, set, e, bucket, charged, ask->now_us, now);
	else if (newer)
		learn_window(shares, set, e, &bucket->state, charged, now);
}
