// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * cluster_store_charge.c - charges to a bucket of the model, and refunds.
 */
#include <string.h>

#include "lib/cluster_store_seen.h"
#include "limiter/algorithm.h"

static void log_add(struct seen *s, u64 count, u64 at_us)
{
	struct cluster_time new = { at_us, count, count, s->node };
	struct cluster_store_entry *e = s->e;
	u32 at, kept = 0;

	/* Window counters: this node's count of the bucket; the newest of those of one bucket. */
	if (s->rate.mult) {
		new.us -= new.us % s->rate.mult;
		for (u32 i = 0; i < e->time_count; i++) {
			if (e->time[i].us != new.us || e->time[i].node != s->node) {
				e->time[kept++] = e->time[i];
				continue;
			}
			new.count += e->time[i].count;
			new.own += e->time[i].own;
		}
		e->time_count = kept;
	}
	/* Oldest first, whatever the clock does. */
	at = e->time_count++;
	e->time = array_grown(e->time, at, sizeof(*e->time));
	for (; at && e->time[at - 1].us > new.us; at--)
		e->time[at] = e->time[at - 1];
	e->time[at] = new;
	s->count += count;
	own_add(s, s->node, count);
}

/* What the limit lets through, and unconditional charges of the current window. */
void seen_charge(struct seen *s, u64 cost)
{
	s->dirty = true;
	if (is_bucket(s)) {
		s->debt += cost * s->rate.mult;
	} else if (is_log(s)) {
		if (cost)
			log_add(s, cost, s->now_us);
	} else {
		if (!s->window)
			s->window = s->now_us;
		s->count += cost;
		own_add(s, s->node, cost);
	}
}

static bool is_over(const struct seen *s, u64 window)
{
	if (algorithm_is_anchored(s->rate.algo))
		return window && window + s->rate.period_us <= s->now_us;
	return window && window < s->window && !is_refilled(s);
}

static void force_window(struct seen *s, u64 cost, u64 window)
{
	s->late = is_over(s, window);
	if (!s->late) {
		if (!s->window && window)
			s->window = min_u64(window, s->now_us);
		seen_charge(s, cost);
		if (is_refilled(s) && window && s->count == cost)
			s->count = less(cost, s->rate.mult * less(s->window, window));
	} else if (seen_is_previous(s, window)) {
		s->before += cost;
		s->late_excess = less(s->before, s->rate.capacity);
	}
}

void seen_force(struct seen *s, u64 cost, u64 window)
{
	u64 most = cluster_store_most_debt(&s->rate, s->b->debt), room, idle_us = 0;

	s->dirty = true;
	if (is_window(s)) {
		force_window(s, cost, window);
		return;
	}
	room = less(2 * s->rate.capacity, seen_used(s));
	if (is_bucket(s)) {
		room = less(most, s->debt) / s->rate.mult;
		if (window && !s->debt)
			idle_us = less(s->now_us, max_u64(s->empty_us, window));
	}
	if (cost > room) {
		s->dropped = cost - room;
		cost = room;
	}
	seen_charge(s, cost);
	if (is_bucket(s) && s->dropped) {
		s->debt = max_u64(s->debt, most);
	} else if (idle_us > s->debt / TICKS_PER_US) {
		s->at_us -= idle_us - (s->debt + TICKS_PER_US - 1) / TICKS_PER_US;
		s->debt = 0;
	} else {
		s->debt -= idle_us * TICKS_PER_US;
	}
}

/* ------------------------------------------------------------------ refused ones that count */

static void log_fill(struct seen *s, u64 cost, u64 since_us)
{
	u64 capacity = s->rate.capacity, begin_us = since_us, need;
	struct cluster_store_entry *e = s->e;
	u32 gone = 0;

	if (s->rate.mult)
		begin_us -= since_us % s->rate.mult;
	cost = min_u64(cost, less(capacity, s->held));
	need = less(s->count + s->held + cost, capacity);
	for (; need && gone < e->time_count && e->time[gone].us < begin_us; gone++) {
		struct cluster_time *time = &e->time[gone];
		u64 some = min_u64(time->count, need);
		u64 own = time->count > some ? min_u64(some, time->own) : time->own;

		s->count -= some;
		need -= some;
		own_charge(s, time->node, own);
		time->count -= some;
		time->own -= own;
		if (time->count)
			break;
	}
	e->time_count -= gone;
	memmove(e->time, e->time + gone, e->time_count * sizeof(*e->time));
	if (cost > need)
		log_add(s, cost - need, since_us);
}

static void bucket_fill(struct seen *s, u64 cost, u64 since_us)
{
	u64 ago_us = s->now_us - since_us, tau = s->rate.tau, past, level;

	if ((double)ago_us >= (double)tau / TICKS_PER_US || s->debt >= tau)
		return;
	past = ago_us * TICKS_PER_US;
	level = s->debt ? s->debt + past
			: min_u64(less(s->empty_us, since_us) * TICKS_PER_US, past);
	cost = min_u64(min_u64(cost, s->rate.capacity) * s->rate.mult, less(tau, level));
	s->debt = s->debt ? s->debt + cost : less(cost + level, past);
	s->dirty = true;
}

static void sliding_fill(struct seen *s, u64 cost, u64 since_us)
{
	u64 capacity = s->rate.capacity, window = since_us / s->rate.period_us;

	if (window == s->window) {
		cost = min_u64(cost, less(capacity, s->count));
		s->count += cost;
		own_add(s, s->node, cost);
	} else if (window + 1 == s->window) {
		s->before += min_u64(cost, less(capacity, s->before));
	} else {
		return;
	}
	s->dirty = true;
}

void seen_fill(struct seen *s, u64 cost, u64 since_us)
{
	since_us = min_u64(since_us, s->now_us);
	if (is_bucket(s)) {
		bucket_fill(s, cost, since_us);
	} else if (algorithm_is_sliding(s->rate.algo)) {
		sliding_fill(s, cost, since_us);
	} else if (is_log(s) && since_us + s->rate.period_us > s->now_us + s->rate.mult) {
		s->dirty = true;
		log_fill(s, cost, since_us);
	}
}

/* ------------------------------------------------------------------ refunds */

static void log_refund(struct seen *s, u64 cost)
{
	struct cluster_store_entry *e = s->e;
	u32 kept = 0;

	for (u32 i = e->time_count; i > 0 && cost; i--) {
		struct cluster_time *time = &e->time[i - 1];
		u64 some = min_u64(time->count, cost);

		time->count -= some;
		s->count -= some;
		cost -= some;
		if (time->node != s->node)
			continue;
		own_charge(s, time->node, min_u64(some, time->own));
		time->own -= min_u64(some, time->own);
	}
	for (u32 i = 0; i < e->time_count; i++)
		if (e->time[i].count || e->time[i].own)
			e->time[kept++] = e->time[i];
	e->time_count = kept;
}

static void window_refund(struct seen *s, u64 cost, u64 window)
{
	u64 some;

	s->late = is_over(s, window);
	if (s->late) {
		if (seen_is_previous(s, window)) {
			s->before -= min_u64(s->before, cost);
			s->late_excess = less(s->before, s->rate.capacity);
		}
		return;
	}
	some = min_u64(less(s->count, s->held), cost);
	s->count -= some;
	own_charge(s, s->node, some);
	if (!window && algorithm_is_sliding(s->rate.algo))
		s->before -= min_u64(s->before, cost - some);
	/* With its first request refunded the window has not begun. */
	if (algorithm_is_anchored(s->rate.algo) && !s->count) {
		s->before_window = s->window;
		s->before = 0;
		s->window = 0;
		s->rolled = true;
	}
}

void seen_drain(struct seen *s, u64 cost)
{
	cost = min_u64(cost, 2 * s->rate.capacity);
	s->debt = max_u64(less(s->debt, cost * s->rate.mult), s->held * s->rate.mult);
}

void seen_refund(struct seen *s, u64 cost, u64 window)
{
	s->dirty = true;
	if (is_window(s)) {
		window_refund(s, cost, window);
	} else if (is_log(s)) {
		log_refund(s, cost);
	} else {
		s->given_us = s->now_us;
		s->given_end_us = max_u64(s->given_end_us, s->at_us + s->debt / TICKS_PER_US);
		seen_drain(s, cost);
	}
}
