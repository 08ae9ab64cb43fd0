// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * cluster_store_lease.c - leases of the model: granted, spent, returned, expired; cluster_store.h
 * states how much is granted.
 */
#include "lib/cluster_store_seen.h"
#include "limiter/algorithm.h"

static struct cluster_store_lease *lease_find(struct cluster_store_entry *e, u32 node)
{
	for (u32 i = 0; i < e->lease_count; i++)
		if (e->lease[i].node == node)
			return &e->lease[i];
	return NULL;
}

static bool is_current(const struct seen *s, const struct cluster_store_lease *lease)
{
	return !is_window(s) || lease->window == s->window;
}

static void lease_refund(struct seen *s, struct cluster_store_lease *lease, u64 count)
{
	lease->granted -= count;
	s->dirty = true;
	if (!is_current(s, lease)) {
		if (seen_is_previous(s, lease->window))
			s->before -= min_u64(s->before, count);
		return;
	}
	s->held = less(s->held, count);
	if (is_bucket(s))
		seen_drain(s, count);
	else if (is_window(s))
		s->count = less(s->count, count);
}

void seen_lapse(struct seen *s)
{
	struct cluster_store_entry *e = s->e;
	u32 kept = 0;

	if (!e->lease_count || s->now_us < e->first_end_us)
		return;
	e->first_end_us = ~0ULL;
	e->last_end_us = 0;
	for (u32 i = 0; i < e->lease_count; i++) {
		struct cluster_store_lease lease = e->lease[i];

		if (lease.until_us <= s->now_us) {
			lease_refund(s, &lease, lease.granted);
			continue;
		}
		e->first_end_us = min_u64(e->first_end_us, lease.until_us);
		e->last_end_us = max_u64(e->last_end_us, lease.until_us);
		e->lease[kept++] = lease;
	}
	e->lease_count = kept;
}

static void lease_until(struct seen *s, struct cluster_store_lease *lease, u64 until_us)
{
	struct cluster_store_entry *e = s->e;

	if (e->lease_count == 1 && !e->last_end_us)
		e->first_end_us = until_us;
	e->first_end_us = min_u64(e->first_end_us, until_us);
	e->last_end_us = max_u64(e->last_end_us, until_us);
	lease->until_us = until_us;
	s->dirty = true;
}

static void extend(struct seen *s)
{
	struct cluster_store_lease *lease = lease_find(s->e, s->node);

	if (lease && s->b->lease_us)
		lease_until(s, lease, s->now_us + s->b->lease_us);
}

/* A node knows of such a bucket that it is not empty before that. */
static void keep_full(struct seen *s, u64 until_us)
{
	u64 left_us = less(until_us, s->now_us), debt = 2 * s->rate.tau;

	if (left_us < debt / TICKS_PER_US)
		debt = left_us * TICKS_PER_US;
	s->dirty |= debt > s->debt;
	s->debt = max_u64(s->debt, debt);
}

void seen_report(struct seen *s)
{
	struct cluster_store_lease *lease = lease_find(s->e, s->node), none = { 0 };
	u64 spent, returned;

	if (is_bucket(s) && s->b->kind == CLUSTER_STORE_CHARGE)
		keep_full(s, s->b->window);
	if (!lease)
		lease = &none;
	spent = min_u64(s->b->spent, lease->granted);
	if (spent) {
		lease->granted -= spent;
		s->dirty = true;
		if (is_current(s, lease))
			s->held = less(s->held, spent);
		if (is_log(s))
			seen_charge(s, spent);
		else if (is_window(s) && is_current(s, lease))
			own_add(s, s->node, spent);
	}
	if (s->b->spent > spent)
		seen_force(s, s->b->spent - spent, s->b->window);
	returned = min_u64(s->b->returned, lease->granted);
	if (returned)
		lease_refund(s, lease, returned);
	extend(s);
}

/* How many more fit; a bucket's debt in requests is rounded up. */
static u64 left(const struct seen *s)
{
	u64 room = less(s->rate.capacity, s->b->hold);

	if (is_bucket(s))
		return less(room * s->rate.mult, s->debt) / s->rate.mult;
	return less(room, seen_used(s));
}

u64 seen_leased(const struct seen *s)
{
	const struct cluster_store_lease *lease = lease_find(s->e, s->node);

	return lease && is_current(s, lease) ? lease->granted : 0;
}

u64 seen_grant(struct seen *s)
{
	struct cluster_store_entry *e = s->e;
	struct cluster_store_lease *lease = lease_find(e, s->node);
	u64 capacity = s->rate.capacity, tenth, least, count;

	/* A window that begins with its first request begins with a lease, too. */
	if (algorithm_is_anchored(s->rate.algo) && !s->window)
		s->window = s->now_us;
	if (!lease) {
		e->lease = array_grown(e->lease, e->lease_count, sizeof(*e->lease));
		lease = &e->lease[e->lease_count++];
		*lease = (struct cluster_store_lease){ .node = s->node, .window = s->window };
	}
	/* A lease of another window ends with the next. */
	if (!is_current(s, lease)) {
		lease_refund(s, lease, lease->granted);
		lease->window = s->window;
	}
	lease_until(s, lease, s->now_us + s->b->lease_us);
	count = min_u64(s->b->want, left(s) / (2 * e->lease_count));
	tenth = min_u64(less(capacity / (10 * e->lease_count), lease->granted),
			less(capacity / 10, s->held) / 2);
	least = min_u64(less(s->b->least, lease->granted), less(capacity / 4, s->held));
	count = min_u64(count, max_u64(tenth, least));
	lease->granted += count;
	s->held += count;
	if (is_bucket(s))
		s->debt += count * s->rate.mult;
	else if (is_window(s))
		s->count += count;
	return count;
}
