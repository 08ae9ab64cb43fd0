/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * decide_model.h - the algorithms once more, written differently: lists of events,
 * 128-bit products, no bucket state. Slow, exact, and small enough to be believed.
 */
#ifndef SLUICE_TESTS_DECIDE_MODEL_H
#define SLUICE_TESTS_DECIDE_MODEL_H

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "limiter/spec.h"

typedef __int128 i128;

struct m_limit {
	enum sl_algo algo;
	u64 count, period, capacity;
	u64 buckets; /* window-counters */
	bool up;     /* sliding-window: rounded up */
};

/* `at` is a time, or the number of a window. */
struct m_event {
	s64 at;
	u64 n;
};

struct m_bucket {
	struct m_limit made; /* as it was when it was last looked at */
	i128 tat;	     /* buckets: 1/16 ns */
	s64 number;	     /* aligned windows: of the last charge */
	u64 owed;	     /* interval-bucket: tokens that were missing then */
	s64 begin;	     /* first-request */
	struct m_event *event;
	u32 events, room;
};

static i128 m_interval(const struct m_limit *l)
{
	return ((i128)l->period * 16 + l->count - 1) / l->count;
}

static i128 m_tau(const struct m_limit *l)
{
	return m_interval(l) * l->capacity;
}

static bool m_is_bucket(const struct m_limit *l)
{
	return l->algo == SL_ALGO_TOKEN_BUCKET || l->algo == SL_ALGO_LEAKY_BUCKET;
}

static bool m_is_aligned(const struct m_limit *l)
{
	return l->algo == SL_ALGO_FIXED_WINDOW || l->algo == SL_ALGO_SLIDING_WINDOW;
}

static bool m_is_interval(const struct m_limit *l)
{
	return l->algo == SL_ALGO_INTERVAL_BUCKET;
}

static i128 m_debt(const struct m_bucket *b, struct sl_now now)
{
	i128 debt = b->tat - (i128)now.mono_ns * 16;

	return debt > 0 ? debt : 0;
}

static void m_add(struct m_bucket *b, s64 at, u64 n)
{
	if (b->events == b->room) {
		b->room = b->room ? 2 * b->room : 4;
		b->event = realloc(b->event, b->room * sizeof(*b->event));
	}
	b->event[b->events++] = (struct m_event){ at, n };
}

/* Removes events outside. */
static void m_prune(struct m_bucket *b, s64 from, s64 to)
{
	u32 kept = 0;

	for (u32 i = 0; i < b->events; i++)
		if (b->event[i].at >= from && b->event[i].at <= to && b->event[i].n)
			b->event[kept++] = b->event[i];
	b->events = kept;
}

static u64 m_sum(const struct m_bucket *b, s64 from, s64 to)
{
	u64 sum = 0;

	for (u32 i = 0; i < b->events; i++)
		if (b->event[i].at >= from && b->event[i].at <= to)
			sum += b->event[i].n;
	return sum;
}

#define M_FOREVER (~0ULL >> 1)

static u64 m_total(const struct m_bucket *b)
{
	return m_sum(b, 0, M_FOREVER);
}

/* The aligned window a charge at utc_ns counts in: one that has begun goes on to its end. */
static s64 m_window(const struct m_bucket *b, const struct m_limit *l, u64 utc_ns)
{
	s64 number = utc_ns / l->period;

	return m_total(b) && b->number == number + 1 ? b->number : number;
}

/* Of a clock set back by more than a window nothing is left that had counted. */
static bool m_lost(const struct m_bucket *b, const struct m_limit *l, u64 utc_ns)
{
	return b->number > (s64)(utc_ns / l->period) + 1;
}

/* The part of the previous window that still counts at `now`: P x left / W, rounded. */
static u64 m_share(const struct m_bucket *b, const struct m_limit *l, struct sl_now now)
{
	s64 window = m_window(b, l, now.utc_ns);
	u64 left = (u64)window == now.utc_ns / l->period ? l->period - now.utc_ns % l->period
							 : l->period;

	return ((i128)m_sum(b, window - 1, window - 1) * left + (l->up ? l->period - 1 : 0)) /
	       l->period;
}

/* Tokens that are missing: each edge since the last charge brought `count`. */
static u64 m_owed(const struct m_bucket *b, const struct m_limit *l, u64 utc_ns)
{
	s64 number = utc_ns / l->period;
	u64 owed = b->owed;

	if (b->number > number + 1)
		return 0;
	for (s64 edge = b->number; owed && edge < number; edge++)
		owed -= owed < l->count ? owed : l->count;
	return owed;
}

/* Window counters: the bucket of a time. */
static s64 m_number(const struct m_limit *l, struct sl_now now)
{
	return now.utc_ns / (l->period / l->buckets);
}

/* Requests of the last buckets; after a clock set back by more than all of them it begins again. */
static u64 m_counted(const struct m_bucket *b, const struct m_limit *l, struct sl_now now)
{
	s64 number = m_number(l, now);

	if (b->events && b->event[b->events - 1].at > number + (s64)l->buckets)
		return 0;
	return m_sum(b, number - (s64)l->buckets + 1, M_FOREVER);
}

/* Requests that count now; for buckets see m_debt(). */
static u64 m_used(const struct m_bucket *b, const struct m_limit *l, struct sl_now now)
{
	s64 window;

	if (m_is_aligned(l) && m_lost(b, l, now.utc_ns))
		return 0;
	switch (l->algo) {
	case SL_ALGO_FIXED_WINDOW:
		window = m_window(b, l, now.utc_ns);
		return m_sum(b, window, window);
	case SL_ALGO_SLIDING_WINDOW:
		window = m_window(b, l, now.utc_ns);
		return m_sum(b, window, window) + m_share(b, l, now);
	case SL_ALGO_INTERVAL_BUCKET:
		return m_owed(b, l, now.utc_ns);
	case SL_ALGO_WINDOW_COUNTERS:
		return m_counted(b, l, now);
	case SL_ALGO_SLIDING_LOG:
		return m_sum(b, (s64)(now.mono_ns - l->period) + 1, M_FOREVER);
	case SL_ALGO_FIRST_REQUEST:
		return now.mono_ns < b->begin + l->period ? m_total(b) : 0;
	default:
		return 0;
	}
}

static bool m_fits(const struct m_bucket *b, const struct m_limit *l, struct sl_now now, u64 cost)
{
	if (cost > l->capacity)
		return false;
	if (m_is_bucket(l))
		return m_debt(b, now) + cost * m_interval(l) <= m_tau(l);
	return m_used(b, l, now) + cost <= l->capacity;
}

static u64 m_remaining(const struct m_bucket *b, const struct m_limit *l, struct sl_now now)
{
	u64 n = 0;

	/* By trying, not by dividing. */
	while (n < l->capacity && m_fits(b, l, now, n + 1))
		n++;
	return n;
}

/* A look at a bucket under the limit as it is now: converts it to that limit. */
static void m_touch(struct m_bucket *b, const struct m_limit *l, struct sl_now now)
{
	if (m_is_bucket(l)) {
		i128 was = b->made.count ? m_tau(&b->made) : 0, is = m_tau(l);

		if (b->made.count && was != is && !m_debt(b, now)) {
			b->tat = 0;
		} else if (b->made.count && was != is) {
			i128 debt = (m_debt(b, now) * is + was - 1) / was;

			b->tat = (i128)now.mono_ns * 16 + (debt < 2 * is ? debt : 2 * is);
		}
	} else if (l->algo != SL_ALGO_SLIDING_LOG && b->made.period != l->period) {
		b->events = 0;
		b->owed = 0;
	}
	b->made = *l;
	if (l->algo == SL_ALGO_SLIDING_LOG)
		m_prune(b, (s64)(now.mono_ns - l->period) + 1, M_FOREVER);
	if (l->algo == SL_ALGO_WINDOW_COUNTERS && !m_counted(b, l, now))
		b->events = 0;
	if (l->algo == SL_ALGO_WINDOW_COUNTERS)
		m_prune(b, m_number(l, now) - (s64)l->buckets + 1, M_FOREVER);
	if (l->algo == SL_ALGO_FIRST_REQUEST && now.mono_ns >= b->begin + l->period)
		b->events = 0;
}

/* Before an aligned window is written: removes events that count nowhere any more. */
static void m_turn(struct m_bucket *b, const struct m_limit *l, struct sl_now now)
{
	if (m_lost(b, l, now.utc_ns))
		b->events = 0;
	b->number = m_window(b, l, now.utc_ns);
	m_prune(b, b->number - (l->algo == SL_ALGO_SLIDING_WINDOW), b->number);
}

/* The sweep ran. */
static void m_sweep(struct m_bucket *b, struct sl_now now)
{
	if (!b->made.count)
		return;
	if (m_is_bucket(&b->made) && !m_debt(b, now))
		b->tat = 0;
	else if (!m_is_bucket(&b->made) && !m_used(b, &b->made, now))
		b->events = b->owed = 0;
}

/* Stores how much is missing now; a window that has begun goes on to its end. */
static void m_owe(struct m_bucket *b, const struct m_limit *l, u64 utc_ns, u64 owed)
{
	s64 number = utc_ns / l->period;

	if (!b->owed || b->number != number + 1)
		b->number = number;
	b->owed = owed;
}

static u64 m_least(u64 a, u64 b)
{
	return a < b ? a : b;
}

/* Charges reported requests of `then`, at most up to twice the capacity. */
static void m_charge(struct m_bucket *b, const struct m_limit *l, struct sl_now now,
		     struct sl_now then, u64 n)
{
	u64 most = 2 * l->capacity, used;
	s64 window, back;

	if (!n)
		return;
	if (m_is_bucket(l)) {
		i128 debt = m_debt(b, then) + (i128)n * m_interval(l);
		i128 tau = m_tau(l);

		b->tat = (i128)then.mono_ns * 16 + (debt < 2 * tau ? debt : 2 * tau);
	} else if (m_is_interval(l)) {
		used = m_owed(b, l, now.utc_ns);
		back = now.utc_ns / l->period - then.utc_ns / l->period;
		n = m_least(n, most);
		/* A bucket that was empty has been refilled since. */
		for (; !used && n && back > 0; back--)
			n -= m_least(n, l->count);
		if (n)
			m_owe(b, l, now.utc_ns, used < most ? m_least(used + n, most) : used);
	} else if (m_is_aligned(l)) {
		window = m_window(b, l, now.utc_ns);
		back = now.utc_ns / l->period - then.utc_ns / l->period;
		if (back > (l->algo == SL_ALGO_SLIDING_WINDOW) ||
		    (back && window != (s64)(now.utc_ns / l->period)))
			return;
		m_turn(b, l, now);
		used = m_sum(b, window - back, window - back);
		m_add(b, window - back, m_least(n, used < most ? most - used : 0));
	} else if (l->algo == SL_ALGO_SLIDING_LOG || l->algo == SL_ALGO_WINDOW_COUNTERS) {
		s64 at = l->buckets ? m_number(l, then) : (s64)then.mono_ns;

		if (l->buckets ? at + (s64)l->buckets <= m_number(l, now)
			       : then.mono_ns + l->period <= now.mono_ns)
			return;
		if (b->events && b->event[b->events - 1].at > at)
			at = b->event[b->events - 1].at;
		used = m_total(b);
		if (used < most)
			m_add(b, at, m_least(n, most - used));
	} else if (b->events && (s64)then.mono_ns >= b->begin) {
		m_add(b, then.mono_ns, m_least(n, most - m_least(most, m_total(b))));
	} else if (!b->events && then.mono_ns + l->period > now.mono_ns) {
		b->begin = then.mono_ns;
		m_add(b, then.mono_ns, m_least(n, most));
	}
}

/* The newest go first; of aligned windows only those that still count. */
static void m_refund(struct m_bucket *b, const struct m_limit *l, struct sl_now now, u64 n)
{
	s64 window = 0, oldest = 1;
	u64 owed;

	if (m_is_interval(l)) {
		owed = m_owed(b, l, now.utc_ns);
		m_owe(b, l, now.utc_ns, owed - m_least(owed, n));
		return;
	}
	if (m_is_aligned(l)) {
		m_turn(b, l, now);
		window = b->number;
		oldest = l->algo == SL_ALGO_SLIDING_WINDOW ? window - 1 : window;
	}
	if (m_is_bucket(l)) {
		i128 debt = m_debt(b, now) - (i128)n * m_interval(l);

		b->tat = debt > 0 ? (i128)now.mono_ns * 16 + debt : 0;
		return;
	}
	for (; oldest <= window; window--) {
		for (u32 i = b->events; n && i--;) {
			u64 some = b->event[i].at == window ? m_least(n, b->event[i].n) : 0;

			b->event[i].n -= some;
			n -= some;
		}
	}
	for (u32 i = b->events; n && !m_is_aligned(l) && i--;) {
		u64 some = m_least(n, b->event[i].n);

		b->event[i].n -= some;
		n -= some;
	}
	m_prune(b, 0, M_FOREVER);
}

#endif
