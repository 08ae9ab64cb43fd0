// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * quota_clock.c - an estimate of Redis' clock from its replies, and the windows by that clock.
 *
 * A reply contains the time T at which Redis processed the command: after the command was sent (t0)
 * and before the reply arrived (t1), by this node's monotonic clock. So Redis' time less monotonic
 * time lies between T - t1 and T - t0. The range of earlier replies applies too, widened by the
 * drift of the two clocks since (at most 500 ppm: a kernel slews no faster). The intersection is
 * kept: its middle is the offset, half its width the error. A reply that contradicts the range (the
 * clock was set, or another server replies) starts a new one.
 *
 * This node's own UTC may step, so it is used only until the first reply.
 */
#include "cluster/quota/quota_private.h"
#include "limiter/algorithm.h"

#define DRIFT_DIVISOR 2000

static u64 drift(const struct quota_clock *clock, u64 mono_ns)
{
	return less(mono_ns, __atomic_load_n(&clock->at_ns, __ATOMIC_RELAXED)) / DRIFT_DIVISOR;
}

u64 quota_store_ns(const struct quotas *quotas, struct sl_now now)
{
	const struct quota_clock *clock = &quotas->clock;

	if (!__atomic_load_n(&clock->known, __ATOMIC_ACQUIRE))
		return now.utc_ns;
	return now.mono_ns + __atomic_load_n(&clock->offset_ns, __ATOMIC_RELAXED);
}

u64 quota_store_latest_ns(const struct quotas *quotas, struct sl_now now)
{
	const struct quota_clock *clock = &quotas->clock;

	if (!__atomic_load_n(&clock->known, __ATOMIC_ACQUIRE))
		return now.utc_ns;
	return quota_store_ns(quotas, now) + drift(clock, now.mono_ns) +
	       __atomic_load_n(&clock->error_ns, __ATOMIC_RELAXED);
}

/* Readers may see the new offset with the old error; each was valid a moment ago. */
static void learn(struct quota_clock *clock, s64 low, s64 high, u64 at_ns)
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

void quota_clock_update(struct quotas *quotas, u64 sent_ns, struct sl_now answered, u64 store_us)
{
	struct quota_clock *clock = &quotas->clock;
	s64 low = (s64)(store_us * 1000 - answered.mono_ns);
	s64 high = (s64)(store_us * 1000 + 999 - sent_ns);

	if (answered.mono_ns < sent_ns || __atomic_exchange_n(&clock->lock, 1, __ATOMIC_ACQUIRE))
		return;
	/* An older reply of another thread does not change the estimate. */
	if (!clock->known || answered.mono_ns >= clock->at_ns)
		learn(clock, low, high, answered.mono_ns);
	quota_unlock(&clock->lock);
	quota_clock_check(quotas, answered);
}

void quota_clock_check(struct quotas *quotas, struct sl_now now)
{
	u64 store_ns = quota_store_ns(quotas, now);

	__atomic_store_n(&quotas->store_ns, store_ns, __ATOMIC_RELAXED);
	if (quotas->utc_ns)
		__atomic_store_n(quotas->utc_ns, (s64)(store_ns - now.utc_ns), __ATOMIC_RELAXED);
}

struct sl_now quotas_now(const struct quotas *quotas, struct sl_now now)
{
	now.utc_ns = quota_store_ns(quotas, now);
	return now;
}

void quotas_publish_clock(struct quotas *quotas, s64 *utc_ns)
{
	quotas->utc_ns = utc_ns;
}

/* ------------------------------------------------------------------ windows */

u64 quota_window(const struct quota_entry *e, u64 store_ns)
{
	const struct calendar *calendar = quota_calendar(&e->def);
	u64 begin_ns, end_ns, number;

	if (calendar) {
		number = calendar_window(calendar, store_ns, &begin_ns, &end_ns);
		/* Begun by a node whose zone is ahead. */
		return number + (e->own_window == number + 1);
	}
	if (quota_is_aligned(&e->def))
		return store_ns / e->def.period_ns;
	if (algorithm_is_anchored(e->def.algo) &&
	    store_ns / 1000 < e->own_window + e->def.period_ns / 1000)
		return e->own_window;
	return 0;
}

void quota_roll(struct quotas *quotas, struct quota_set *set, struct quota_entry *e,
		struct sl_now now)
{
	u64 window;

	if (!quota_is_window(&e->def))
		return;
	window = quota_window(e, quota_store_ns(quotas, now));
	if (window == e->window)
		return;
	/*
	 * The clock was corrected slightly, or the begin of a first-request window has become
	 * known.
	 */
	if (quota_is_aligned(&e->def) ? window + 1 == e->window : !e->window) {
		e->window = window > e->window ? window : e->window;
		return;
	}
	if (e->unflushed) {
		e->late = e->unflushed;
		e->late_window = e->window;
		e->unflushed = 0;
		quota_schedule(quotas, set, e, now.mono_ns);
	}
	e->window = window;
}
