/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * algo_window.h - fixed window: at most `capacity` units in each window of window_ns. Interval
 * bucket: a token bucket that gets `mult` tokens at once at each window's edge.
 *
 * Both count units. At an edge a fixed window's count starts again at 0; an interval bucket's,
 * which is capacity - tokens, falls by mult. An interval of length L has at most
 * L / window_ns + 1 edges in it, so an interval bucket admits at most
 * capacity + mult x (L / window_ns + 1).
 *
 * Windows are aligned to UTC: window number = utc_ns / window_ns, so a minute ends on the
 * round minute. Around an edge up to twice the capacity can pass within one window's length;
 * that is what a fixed window is.
 *
 * The bucket state: bits 63..46 the window number modulo 2^18, bits 45..0 the count. A capacity is
 * below 2^46 units, so count + cost never overflows into the number (count <= capacity,
 * and a cost above the capacity never passes).
 *
 * Window numbers are compared as a difference modulo 2^18. The one before the state's own is
 * the state's too: that is a clock stepped back over an edge, and the window that had begun
 * continues until its own end, at most one window longer. Any other number is a new window. (A
 * clock stepped back by more than a window starts one fresh window for each key, once.)
 * A state unchanged for 2^18 windows (3 days of seconds) would be taken for a live one, for one
 * window: the daemon's sweep clears expired buckets long before.
 */
#ifndef SLUICE_ALGO_WINDOW_H
#define SLUICE_ALGO_WINDOW_H

#include "types.h"

#define SL_WINDOW_COUNT_BITS 46
#define SL_WINDOW_COUNT_MASK (SL_BIT(SL_WINDOW_COUNT_BITS) - 1)
#define SL_WINDOW_NUMBER_MASK (SL_BIT(64 - SL_WINDOW_COUNT_BITS) - 1)

struct sl_params;

/* The count `edges` (below 2^18) later. */
static __always_inline u64 sl_window_fallen(const struct sl_params *p, u64 count, u64 edges)
{
	u64 refilled = edges * p->mult;

	return p->mult && count > refilled ? count - refilled : 0;
}

/*
 * The window a step at utc_ns counts in, modulo 2^18, and the count it starts from. A state
 * of 0 is "never seen", and counts 0 in any window.
 */
static __always_inline u64 sl_window_count(u64 bucket_state, const struct sl_params *p, u64 utc_ns,
					   u64 *ret_number)
{
	u64 number = (utc_ns / p->window_ns) & SL_WINDOW_NUMBER_MASK;
	u64 ahead = ((bucket_state >> SL_WINDOW_COUNT_BITS) - number) & SL_WINDOW_NUMBER_MASK;
	u64 count = bucket_state & SL_WINDOW_COUNT_MASK;

	/* A state of 0 is of no window, not of one that is a multiple of 2^18. */
	if (ahead > 1 || !bucket_state) {
		*ret_number = number;
		return sl_window_fallen(p, count, -ahead & SL_WINDOW_NUMBER_MASK);
	}
	*ret_number = (number + ahead) & SL_WINDOW_NUMBER_MASK;
	return count;
}

static __always_inline u64 sl_window_state(u64 number, u64 count)
{
	return number << SL_WINDOW_COUNT_BITS | count;
}

/* How long until the count has fallen by `units`, at least one. */
static __always_inline u64 sl_window_wait(const struct sl_params *p, u64 utc_ns, u64 number,
					  u64 units)
{
	u64 edges = p->mult ? (units - 1) / p->mult : 0;

	/* The state's window is the next one: the clock was stepped back. */
	if (number != ((utc_ns / p->window_ns) & SL_WINDOW_NUMBER_MASK))
		edges++;
	return edges * p->window_ns + p->window_ns - utc_ns % p->window_ns;
}

static __always_inline struct sl_result sl_window_step(u64 bucket_state, const struct sl_params *p,
						       u64 utc_ns, u64 cost)
{
	struct sl_result res = { .bucket_state = bucket_state };
	u64 number;
	u64 count = sl_window_count(bucket_state, p, utc_ns, &number);

	if (count + cost > p->capacity) {
		res.verdict = SL_OVER;
		res.wait_ns = cost > p->capacity ? ~0ULL
						 : sl_window_wait(p, utc_ns, number,
								  count + cost - p->capacity);
		return res;
	}
	res.verdict = SL_PASS;
	res.bucket_state = sl_window_state(number, count + cost);
	return res;
}

static __always_inline u32 sl_window_utilization(u64 bucket_state, const struct sl_params *p,
						 u64 utc_ns)
{
	u64 number;
	u64 count = sl_window_count(bucket_state, p, utc_ns, &number);

	if (!count)
		return 0;
	if (count >= p->capacity)
		return 255;
	return 1 + count * 254 / p->capacity;
}

/* Until the count is 0. */
static __always_inline u64 sl_window_left(u64 bucket_state, const struct sl_params *p, u64 utc_ns)
{
	u64 number, count = sl_window_count(bucket_state, p, utc_ns, &number);

	return count ? sl_window_wait(p, utc_ns, number, count) : 0;
}

/* The time after which any count has fallen to 0. */
static __always_inline u64 sl_window_full_ns(const struct sl_params *p)
{
	return p->mult ? ((p->capacity - 1) / p->mult + 1) * p->window_ns : p->window_ns;
}

/* Where left_ns ends before this window does, it was of a count that is 0 now. */
static __always_inline u64 sl_window_spent(const struct sl_params *p, u64 utc_ns, u64 left_ns)
{
	u64 left = p->window_ns - utc_ns % p->window_ns, count = p->capacity, edges;

	if (left_ns < left)
		return 0;
	edges = 1 + (left_ns - left) / p->window_ns;
	if (p->mult && edges <= count / p->mult)
		count = edges * p->mult;
	return sl_window_state((utc_ns / p->window_ns) & SL_WINDOW_NUMBER_MASK, count);
}

/* Only from the window that utc_ns is in: a newer one never saw the charge. */
static __always_inline u64 sl_window_refund(u64 bucket_state, const struct sl_params *p, u64 utc_ns,
					    u64 cost)
{
	u64 number = (utc_ns / p->window_ns) & SL_WINDOW_NUMBER_MASK;
	u64 count = bucket_state & SL_WINDOW_COUNT_MASK;

	if (bucket_state >> SL_WINDOW_COUNT_BITS != number)
		return bucket_state;
	return sl_window_state(number, count > cost ? count - cost : 0);
}

#endif
