// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * cluster_store_charge.c - charges to a bucket of the model, and refunds.
 */
#include "lib/cluster_store_seen.h"
#include "limiter/algorithm.h"

static void log_add(struct seen *s, u64 count)
{
	struct cluster_time new = { s->now_us, count, count, s->node };
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
			log_add(s, cost);
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
	if (is_bucket(s) && s->dropped)
		s->debt = max_u64(s->debt, most);
	else if (idle_us)
		s->debt = idle_us > s->debt / TICKS_PER_US ? 0 : s->debt - idle_us * TICKS_PER_US;
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

