// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * cluster_store_model.c - see cluster_store_model.h.
 *
 *     open() each bucket -> lapse, report -> all fit? -> charge -> close()
 *
 * open() computes a bucket's state now, without changing it: windows may have ended, a
 * debt may have drained. close() writes that down where something was charged. A peek changes
 * nothing.
 */
#include <stdlib.h>

#include "lib/cluster_store_seen.h"
#include "limiter/algorithm.h"

/* Members of a log that are read to compute when a refused cost fits. */
#define LOG_LOOK 512

static bool fits(const struct seen *s)
{
	u64 cost = s->b->cost, room = s->rate.capacity;

	if (cost)
		room = less(room, s->b->hold);
	if (cost > room)
		return false;
	if (is_bucket(s))
		return s->debt <= (room - cost) * s->rate.mult;
	if (algorithm_is_anchored(s->rate.algo) && s->rate.mult && s->window &&
	    s->now_us >= s->window + s->rate.mult)
		return false;
	return seen_used(s) <= room - cost;
}

/* When the oldest entries in the way have expired; with leases, when those end. */
static u64 log_fits_us(const struct seen *s)
{
	const struct cluster_store_entry *e = s->e;
	u64 room = s->b->cost ? less(s->rate.capacity, s->b->hold) : s->rate.capacity;
	u64 counts = s->b->refused || s->b->refusal_counts ? s->b->cost : 0;
	u64 need = less(seen_used(s) + s->b->cost + counts, room), until = 0;

	for (u32 i = 0; i < e->time_count && i < LOG_LOOK; i++) {
		need -= min_u64(need, e->time[i].count);
		until = e->time[i].us + s->rate.period_us;
		if (!need)
			return until;
	}
	if (e->time_count > LOG_LOOK)
		return until;
	if (counts)
		until = max_u64(until, s->now_us - (s->rate.mult ? s->now_us % s->rate.mult : 0) +
					       s->rate.period_us);
	return max_u64(until, e->last_end_us);
}

static u64 excess(const struct seen *s)
{
	u64 most = s->rate.capacity;

	if (s->late && (s->late_excess || s->b->kind != CLUSTER_STORE_CHARGE))
		return s->late_excess;
	if (is_bucket(s))
		return (less(s->debt, (most + s->held) * s->rate.mult) + s->rate.mult - 1) /
			       s->rate.mult +
		       s->dropped;
	if (is_log(s))
		return less(s->count + s->dropped, most);
	return less(seen_used(s), most + s->held);
}

bool cluster_store_model_request(struct cluster_store_entry **entry,
				 struct cluster_store_bucket *bucket, u32 count, u32 node,
				 u64 now_us)
{
	struct seen *seen = calloc(count, sizeof(*seen));
	bool passed = true;

	if (!seen)
		abort();
	for (u32 i = 0; i < count; i++) {
		struct seen *s = &seen[i];

		*s = (struct seen){
			.e = entry[i], .b = &bucket[i], .now_us = now_us, .node = node
		};
		if (cluster_store_rate_make(&bucket[i].def, &s->rate))
			abort();
		seen_open(s);
		seen_lapse(s);
		seen_report(s);
		if (bucket[i].refused)
			seen_fill(s, bucket[i].refused, bucket[i].refused_us);
		s->took = bucket[i].kind != CLUSTER_STORE_CHARGE || fits(s);
		passed &= s->took;
	}
	for (u32 i = 0; i < count; i++) {
		struct cluster_store_bucket *b = &bucket[i];
		struct cluster_store_raw raw = { .over = !seen[i].took };
		struct seen *s = &seen[i];

		if (b->kind == CLUSTER_STORE_FORCE && b->cost)
			seen_force(s, b->cost, b->window);
		else if (b->kind == CLUSTER_STORE_REFUND && b->cost)
			seen_refund(s, b->cost, b->window);
		else if (b->kind == CLUSTER_STORE_CHARGE && b->cost && passed)
			seen_charge(s, b->cost);
		if (b->kind == CLUSTER_STORE_CHARGE && b->want && (passed || (!b->cost && s->took)))
			raw.granted = seen_grant(s);
		if (raw.over && is_log(s))
			raw.fits_us = log_fits_us(s);
		raw.used = is_bucket(s) || is_log(s) ? seen_used(s) : s->count;
		raw.before = algorithm_is_anchored(s->rate.algo) ? s->before_window : s->before;
		raw.window = s->window;
		raw.own = is_bucket(s) ? s->given_us : own_of(s);
		raw.held = seen_leased(s);
		raw.late = b->kind != CLUSTER_STORE_CHARGE && s->late;
		raw.excess = excess(s);
		if (s->dirty)
			seen_close(s);
		cluster_store_settle(b, &s->rate, &raw, now_us);
	}
	free(seen);
	return passed;
}
