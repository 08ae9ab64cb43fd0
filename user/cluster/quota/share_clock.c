// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * share_clock.c - the store's clock, as this node knows it, and the windows by it.
 *
 * An answer carries the time at which the store worked on it, T, which was after the ask was sent
 * (t0) and before its answer came (t1), by this node's monotonic clock. So store time less
 * monotonic time lies between T - t1 and T - t0. What earlier answers said holds, too, but for
 * what the two clocks have drifted apart since (at most 500 ppm: a kernel slews no faster); what
 * both allow is kept, its middle is the offset and half its width the error. An answer that
 * contradicts what was known (the store's clock was set, another server answers) begins anew.
 *
 * This node's own UTC is not asked: it may step as it likes. Only until the store has answered
 * for the first time it has to do.
 */
#include "cluster/quota/share_private.h"

#define DRIFT_DIVISOR 2000

static u64 drift(const struct share_clock *clock, u64 mono_ns)
{
	return share_less(mono_ns, __atomic_load_n(&clock->at_ns, __ATOMIC_RELAXED)) / DRIFT_DIVISOR;
}

u64 share_store_ns(const struct shares *shares, struct sl_now now)
{
	const struct share_clock *clock = &shares->clock;

	if (!__atomic_load_n(&clock->known, __ATOMIC_ACQUIRE))
		return now.utc_ns;
	return now.mono_ns + __atomic_load_n(&clock->offset_ns, __ATOMIC_RELAXED);
}

u64 share_store_latest_ns(const struct shares *shares, struct sl_now now)
{
	const struct share_clock *clock = &shares->clock;

	if (!__atomic_load_n(&clock->known, __ATOMIC_ACQUIRE))
		return now.utc_ns;
	return share_store_ns(shares, now) + drift(clock, now.mono_ns) +
	       __atomic_load_n(&clock->error_ns, __ATOMIC_RELAXED);
}

/* Readers may see the new offset with the old error: both were right a moment ago. */
static void learn(struct share_clock *clock, s64 low, s64 high, u64 at_ns)
{
	s64 error = clock->error_ns + drift(clock, at_ns);
	s64 known_low = clock->offset_ns - error, known_high = clock->offset_ns + error;

	if (clock->known && low <= known_high && high >= known_low) {
		low = low > known_low ? low : known_low;
		high = high < known_high ? high : known_high;
	}
	__atomic_store_n(&clock->offset_ns, low + (high - low) / 2, __ATOMIC_RELAXED);
	__atomic_store_n(&clock->error_ns, (high - low + 1) / 2, __ATOMIC_RELAXED);
	__atomic_store_n(&clock->at_ns, at_ns, __ATOMIC_RELAXED);
	__atomic_store_n(&clock->known, true, __ATOMIC_RELEASE);
}

void share_clock_heard(struct shares *shares, u64 asked_ns, struct sl_now answered, u64 store_us)
{
	struct share_clock *clock = &shares->clock;
	s64 low = (s64)(store_us * 1000 - answered.mono_ns);
	s64 high = (s64)(store_us * 1000 + 999 - asked_ns);

	if (answered.mono_ns < asked_ns || __atomic_exchange_n(&clock->lock, 1, __ATOMIC_ACQUIRE))
		return;
	/* Of several threads one that was late brings nothing that is not known. */
	if (!clock->known || answered.mono_ns >= clock->at_ns)
		learn(clock, low, high, answered.mono_ns);
	share_unlock(&clock->lock);
	share_clock_look(shares, answered);
}

void share_clock_look(struct shares *shares, struct sl_now now)
{
	u64 store_ns = share_store_ns(shares, now);

	__atomic_store_n(&shares->store_ns, store_ns, __ATOMIC_RELAXED);
	__atomic_store_n(&shares->utc_offset_ns, (s64)(store_ns - now.utc_ns), __ATOMIC_RELAXED);
}

struct sl_now shares_now(const struct shares *shares, struct sl_now now)
{
	now.utc_ns = share_store_ns(shares, now);
	return now;
}

s64 shares_clock_offset_ns(const struct shares *shares)
{
	return __atomic_load_n(&shares->utc_offset_ns, __ATOMIC_RELAXED);
}

/* ------------------------------------------------------------------ windows */

u64 share_window(const struct share_entry *e, u64 store_ns)
{
	if (share_is_aligned(&e->def))
		return store_ns / e->def.period_ns;
	if (e->def.algo == HTTP_FIRST_REQUEST &&
	    store_ns / 1000 < e->own_window + e->def.period_ns / 1000)
		return e->own_window;
	return 0;
}

void share_roll(struct shares *shares, struct share_set *set, struct share_entry *e,
		struct sl_now now)
{
	u64 window;

	if (!share_is_window(&e->def))
		return;
	window = share_window(e, share_store_ns(shares, now));
	if (window == e->window)
		return;
	/* A clock that is corrected by a little; and a first-request window that has a name now. */
	if (share_is_aligned(&e->def) ? window + 1 == e->window : !e->window) {
		e->window = window > e->window ? window : e->window;
		return;
	}
	if (e->unsent) {
		e->late = e->unsent;
		e->late_window = e->window;
		e->unsent = 0;
		share_schedule(shares, set, e, now.mono_ns);
	}
	e->window = window;
}
