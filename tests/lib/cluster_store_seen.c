// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * cluster_store_seen.c - the state of a bucket of the model now, and what is kept of it.
 *
 * Windows may have ended, a debt may have drained, requests may have left the log; a peek stores
 * nothing of that, a charge does.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/cluster_store_seen.h"
#include "limiter/algorithm.h"

/* previous x left / W, see cluster_store_model.h. */
static u64 quota_of_previous(u64 previous, u64 left_us, u64 period_us, bool up)
{
	while ((unsigned __int128)previous * left_us >= SL_BIT(53)) {
		left_us = (left_us + 1) / 2;
		period_us /= 2;
	}
	return (previous * left_us + (up ? period_us - 1 : 0)) / period_us;
}

void *array_grown(void *array, u32 count, size_t size)
{
	void *more;

	/* Doubled at each power of two. */
	if (count & (count - 1) && count)
		return array;
	more = realloc(array, (count ? 2 * (size_t)count : 1) * size);
	if (!more)
		abort();
	return more;
}

void cluster_store_entry_clear(struct cluster_store_entry *e)
{
	free(e->lease);
	free(e->own);
	free(e->time);
	*e = (struct cluster_store_entry){
		.key = e->key, .tag = e->tag, .algo = e->algo, .next = e->next
	};
}

/* ------------------------------------------------------------------ whose */

static struct cluster_store_own *own_find(struct cluster_store_entry *e, u32 node)
{
	for (u32 i = 0; i < e->own_count; i++)
		if (e->own[i].node == node)
			return &e->own[i];
	return NULL;
}

u64 own_of(const struct seen *s)
{
	const struct cluster_store_own *own = own_find(s->e, s->node);

	return own && !s->rolled ? own->count : 0;
}

/* What a rolled window has of owns is forgotten with the first that is written. */
void own_add(struct seen *s, u32 node, u64 count)
{
	struct cluster_store_entry *e = s->e;
	struct cluster_store_own *own;

	if (s->rolled)
		e->own_count = 0;
	s->rolled = false;
	own = own_find(e, node);
	if (!own) {
		e->own = array_grown(e->own, e->own_count, sizeof(*e->own));
		own = &e->own[e->own_count++];
		*own = (struct cluster_store_own){ .node = node };
	}
	own->count += count;
}

void own_charge(struct seen *s, u32 node, u64 count)
{
	struct cluster_store_own *own = s->rolled ? NULL : own_find(s->e, node);

	if (own)
		own->count -= min_u64(own->count, count);
}

/* ------------------------------------------------------------------ open */

static void open_bucket(struct seen *s)
{
	u64 gone = less(s->now_us, s->e->at_us);

	s->at_us = max_u64(s->now_us, s->e->at_us);
	if (s->at_us > s->now_us && (s->at_us - s->now_us) > s->rate.tau / TICKS_PER_US)
		s->at_us = s->now_us;
	s->debt = s->e->debt;
	s->empty_us = s->e->at_us + s->debt / TICKS_PER_US;
	s->debt = gone > s->debt / TICKS_PER_US ? 0 : s->debt - gone * TICKS_PER_US;
	if (s->e->tau && s->e->tau != s->rate.tau)
		s->debt = ceil((double)s->debt * ((double)s->rate.tau / (double)s->e->tau));
	s->debt = min_u64(s->debt, s->rate.most);
	if (s->e->given_end_us > s->now_us) {
		s->given_us = s->e->given_us;
		s->given_end_us = s->e->given_end_us;
	}
	s->debt = max_u64(s->debt, s->held * s->rate.mult);
}

static void open_aligned(struct seen *s)
{
	const struct cluster_store_entry *e = s->e;
	struct sl_now now = { .utc_ns = s->now_us * 1000 };
	u64 window = calendar_now(s->rate.calendar, now).utc_ns / 1000 / s->rate.period_us;

	s->left_us = s->rate.period_us - s->now_us % s->rate.period_us;
	if (e->window == window + 1)
		s->left_us = s->rate.period_us;
	if (e->window == window || e->window == window + 1)
		return;
	s->before = e->window + 1 == window ? e->count : 0;
	s->before_window = window - 1;
	s->window = window;
	s->count = 0;
	if (is_refilled(s) && e->window < window)
		s->count = less(e->count, s->rate.mult * (window - e->window));
	s->held = 0;
	s->rolled = true;
}

static void open_first(struct seen *s)
{
	const struct cluster_store_entry *e = s->e;

	if (!e->window || (s->now_us < e->window + s->rate.period_us &&
			   e->window <= s->now_us + s->rate.period_us))
		return;
	s->before = e->count;
	s->before_window = e->window;
	s->window = 0;
	s->count = 0;
	s->held = 0;
	s->rolled = true;
}

static void open_log(struct seen *s)
{
	struct cluster_store_entry *e = s->e;
	u32 gone = 0;

	while (gone < e->time_count && e->time[gone].us + s->rate.period_us <= s->now_us) {
		s->count -= e->time[gone].count;
		own_charge(s, e->time[gone].node, e->time[gone].own);
		gone++;
	}
	if (!gone)
		return;
	e->time_count -= gone;
	memmove(e->time, e->time + gone, e->time_count * sizeof(*e->time));
	e->count = s->count;
	s->dirty = true;
}

void seen_open(struct seen *s)
{
	struct cluster_store_entry *e = s->e;

	if (e->expires_ms && s->now_us / 1000 > e->expires_ms)
		cluster_store_entry_clear(e);
	s->window = e->window;
	s->count = e->count;
	s->before = e->before;
	s->before_window = e->before_window;
	s->held = e->held;
	if (is_bucket(s))
		open_bucket(s);
	else if (is_log(s))
		open_log(s);
	else if (algorithm_is_anchored(s->rate.algo))
		open_first(s);
	else
		open_aligned(s);
}

u64 seen_used(const struct seen *s)
{
	u64 before = min_u64(s->before, 2 * s->rate.capacity);

	if (is_bucket(s))
		return s->debt;
	if (is_log(s))
		return s->count + s->held;
	if (algorithm_is_sliding(s->rate.algo))
		return s->count +
		       quota_of_previous(before, s->left_us, s->rate.period_us, s->rate.round_up);
	return s->count;
}

bool seen_is_previous(const struct seen *s, u64 window)
{
	if (algorithm_is_anchored(s->rate.algo))
		return window && window == s->before_window;
	return window + 1 == s->window;
}

static u64 expires_us(const struct seen *s)
{
	const struct cluster_store_entry *e = s->e;
	u64 at = s->now_us, period = s->rate.period_us;

	if (algorithm_is_anchored(s->rate.algo))
		return (s->window ? s->window : s->before_window) + period + CLUSTER_STORE_GRACE_US;
	if (s->rate.calendar) {
		u64 begin, end;
		u64 number = calendar_window(s->rate.calendar, at * 1000, &begin, &end);

		at = s->window < number ? begin / 1000 : end / 1000;
		return at + (s->window > number ? period : 0) + 97200000000;
	}
	if (algorithm_kind(s->rate.algo) == STATE_WINDOW)
		return (s->window +
			(is_refilled(s) && s->count ? (s->count - 1) / s->rate.mult + 1 : 1)) *
			       period +
		       CLUSTER_STORE_GRACE_US;
	/* Of one request in the window before none is left from its first microsecond on. */
	if (algorithm_is_sliding(s->rate.algo))
		return s->count > 1 ? (s->window + 2) * period
				    : (s->window + 1) * period + CLUSTER_STORE_GRACE_US;
	if (is_bucket(s))
		at = max_u64(s->at_us + s->debt / TICKS_PER_US + s->b->keep_us, s->given_end_us);
	else if (e->time_count)
		at = e->time[e->time_count - 1].us + period;
	return max_u64(at, e->last_end_us);
}

void seen_close(struct seen *s)
{
	struct cluster_store_entry *e = s->e;

	if (s->rolled)
		e->own_count = 0;
	e->debt = s->debt;
	e->tau = s->rate.tau;
	e->at_us = s->at_us;
	e->given_us = s->given_us;
	e->given_end_us = s->given_end_us;
	e->window = s->window;
	e->count = s->count;
	e->before = s->before;
	e->before_window = s->before_window;
	e->held = s->held;
	e->expires_ms = expires_us(s) / 1000 + 1;
	if (e->expires_ms <= s->now_us / 1000)
		cluster_store_entry_clear(e);
}
