/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * algo_first.h - a fixed window that begins with its first packet or request, not with UTC's.
 *
 * The first one opens a window of length W, in which all until its end count; the first one after
 * its end opens the next window. Each admits at most `capacity`. In an interval of length W up to
 * twice the capacity can pass, as with any fixed window, but at a time that depends only on the
 * source's own first packet.
 *
 * The bucket state: the end of the window in the upper bits, in ticks, modulo their number; below
 * it the count. A tick is 2^shift ns, the least power of two with which W is below a quarter of the
 * end's range. The end is rounded up to a tick: a window is never shorter than W, and longer by
 * less than one. An end more than half the range ahead has passed; an end ahead by more than W (a
 * clock set back) is kept.
 *
 * The clock is the monotonic one. In sl_params `quantum` has the bits of the count.
 */
#ifndef SLUICE_ALGO_FIRST_H
#define SLUICE_ALGO_FIRST_H

#include "types.h"

struct sl_params;

/* The count and end of the window active at mono_ns; without one 0 and the end of a new window. */
static __always_inline u64 sl_first_read(u64 bucket_state, u32 count_bits, u32 shift, u64 window_ns,
					 u64 mono_ns, u64 *ret_end_tick, u64 *ret_left_ns)
{
	u64 mask = SL_BIT((64 - count_bits) & 63) - 1;
	u64 now = mono_ns >> (shift & 63);
	u64 end = bucket_state >> (count_bits & 63);
	u64 ahead = (end - now) & mask;

	if (!bucket_state || !ahead || ahead > mask / 2) {
		*ret_end_tick =
			((mono_ns + window_ns + SL_BIT(shift & 63) - 1) >> (shift & 63)) & mask;
		*ret_left_ns = 0;
		return 0;
	}
	*ret_end_tick = end;
	*ret_left_ns = ((now + ahead) << (shift & 63)) - mono_ns;
	return bucket_state & (SL_BIT(count_bits & 63) - 1);
}

static __always_inline u64 sl_first_state(u64 end_tick, u32 count_bits, u64 count)
{
	return count ? end_tick << (count_bits & 63) | count : 0;
}

static __always_inline u64 sl_first_count(u64 bucket_state, const struct sl_params *p, u64 mono_ns,
					  u64 *ret_end_tick, u64 *ret_left_ns)
{
	return sl_first_read(bucket_state, p->quantum, p->shift, p->window_ns, mono_ns,
			     ret_end_tick, ret_left_ns);
}

static __always_inline struct sl_result sl_first_step(u64 bucket_state, const struct sl_params *p,
						      u64 mono_ns, u64 cost)
{
	struct sl_result res = { .bucket_state = bucket_state };
	u64 end, left, count = sl_first_count(bucket_state, p, mono_ns, &end, &left);

	if (count + cost > p->capacity) {
		res.verdict = SL_OVER;
		res.wait_ns = cost > p->capacity ? ~0ULL : left;
		return res;
	}
	res.bucket_state = sl_first_state(end, p->quantum, count + cost);
	return res;
}

static __always_inline u64 sl_first_used(u64 bucket_state, const struct sl_params *p, u64 mono_ns)
{
	u64 end, left;

	return sl_first_count(bucket_state, p, mono_ns, &end, &left);
}

static __always_inline u64 sl_first_left(u64 bucket_state, const struct sl_params *p, u64 mono_ns)
{
	u64 end, left;

	sl_first_count(bucket_state, p, mono_ns, &end, &left);
	return left;
}

static __always_inline u32 sl_first_utilization(u64 bucket_state, const struct sl_params *p,
						u64 mono_ns)
{
	u64 count = sl_first_used(bucket_state, p, mono_ns);

	if (!count)
		return 0;
	return count >= p->capacity ? 255 : 1 + count * 254 / p->capacity;
}

/* Of the window that is open. A count of 0 ends it. */
static __always_inline u64 sl_first_refund(u64 bucket_state, const struct sl_params *p, u64 mono_ns,
					   u64 cost)
{
	u64 end, left, count = sl_first_count(bucket_state, p, mono_ns, &end, &left);

	if (!count)
		return bucket_state;
	return sl_first_state(end, p->quantum, count > cost ? count - cost : 0);
}

static __always_inline u64 sl_first_spent(const struct sl_params *p, u64 mono_ns, u64 left_ns)
{
	u64 mask = SL_BIT((64 - p->quantum) & 63) - 1;
	u64 left = left_ns < p->window_ns ? left_ns : p->window_ns;
	u64 end = (mono_ns + left + SL_BIT(p->shift & 63) - 1) >> (p->shift & 63);

	return left ? sl_first_state(end & mask, p->quantum, p->capacity) : 0;
}

#endif
