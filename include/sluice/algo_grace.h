/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * algo_grace.h - for how long at a stretch: the `for` of a soft throttle.
 *
 * The first step begins a stretch, which passes for window_ns and is over for as long again;
 * a step after that begins the next one. So a limit that is soft for 30s is soft for 30s
 * from the first packet above it, then hard for 30s, and then soft again if it must. What
 * comes within a stretch, and how much, does not matter: there is no cost.
 *
 * The bucket state: when the stretch began, CLOCK_MONOTONIC ns; 0 none (a stretch begun at 0 begins
 * at 1). Another CPU may have begun it a little after the time that this one read.
 */
#ifndef SLUICE_ALGO_GRACE_H
#define SLUICE_ALGO_GRACE_H

#include "types.h"

struct sl_params;

/* No stretch is open: none began, or it and the time after it are over. */
static __always_inline int sl_grace_expired(u64 bucket_state, const struct sl_params *p,
					    u64 mono_ns)
{
	return !bucket_state || mono_ns >= bucket_state + 2 * p->window_ns;
}

static __always_inline struct sl_result sl_grace_step(u64 bucket_state, const struct sl_params *p,
						      u64 mono_ns)
{
	struct sl_result res = { .bucket_state = bucket_state };

	if (sl_grace_expired(bucket_state, p, mono_ns)) {
		res.bucket_state = mono_ns ? mono_ns : 1;
		return res;
	}
	if (mono_ns >= bucket_state + p->window_ns) {
		res.verdict = SL_OVER;
		res.wait_ns = bucket_state + 2 * p->window_ns - mono_ns;
	}
	return res;
}

/*
 * 127 while it passes, 255 while it is over: to forget the second half would give a source
 * another first half at once.
 */
static __always_inline u32 sl_grace_utilization(u64 bucket_state, const struct sl_params *p,
						u64 mono_ns)
{
	if (sl_grace_expired(bucket_state, p, mono_ns))
		return 0;
	return mono_ns < bucket_state + p->window_ns ? 127 : 255;
}

/* Until the next stretch can begin. */
static __always_inline u64 sl_grace_left(u64 bucket_state, const struct sl_params *p, u64 mono_ns)
{
	return sl_grace_expired(bucket_state, p, mono_ns)
		       ? 0
		       : bucket_state + 2 * p->window_ns - mono_ns;
}

static __always_inline u64 sl_grace_spent(const struct sl_params *p, u64 mono_ns, u64 left_ns)
{
	u64 ends = mono_ns + (left_ns < p->window_ns ? left_ns : p->window_ns);

	return ends > 2 * p->window_ns ? ends - 2 * p->window_ns : 1;
}

/* The packet that began a stretch was refused elsewhere: it has not begun. */
static __always_inline u64 sl_grace_refund(u64 bucket_state, u64 mono_ns)
{
	return bucket_state == (mono_ns ? mono_ns : 1) ? 0 : bucket_state;
}

#endif
