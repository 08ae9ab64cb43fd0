/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * anchored.h - a fixed window that begins with its first request, not with UTC's.
 *
 * The first request opens a window of length W, in which all requests until its end count; the
 * first request after its end opens the next window. Each admits at most `capacity`. In an interval
 * of length W up to twice the capacity can pass, as with any fixed window, but at a time that
 * depends only on the client's own first request.
 *
 * The bucket state: the end of the window in the upper bits, in ticks, modulo their number; below
 * it the count. The count gets 20 bits, or more where the limit needs them, the end the rest: of n
 * bits, a tick is one nanosecond where W is below 2^(n - 2) of them (73 minutes with 44 bits), else
 * the least power of two with which it is (an hour 1, a day 32, a year 16384). The end is rounded
 * up to a tick: a window is never shorter than W, and longer by less than W / 2^(n - 3). An end
 * more than half the range ahead has passed; an end ahead by more than W (a clock set back) is
 * kept.
 *
 * The clock is the monotonic one. A bucket state of 0 was never seen.
 */
#ifndef SLUICE_HTTP_ANCHORED_H
#define SLUICE_HTTP_ANCHORED_H

#include "sluice/types.h"

/* After a limit was lowered, counts may be above it; this many bits hold most of them. */
#define ANCHORED_COUNT_BITS 20

/* The bits that hold counts up to `most`, and the shift of a tick for windows of window_ns. */
static inline void anchored_layout(u64 most, u64 window_ns, u8 *ret_count_bits, u8 *ret_shift)
{
	u8 bits = 64 - __builtin_clzll(most | SL_BIT(ANCHORED_COUNT_BITS - 1)), shift = 0;

	while (window_ns >> shift >= SL_BIT(64 - bits - 2))
		shift++;
	*ret_count_bits = bits;
	*ret_shift = shift;
}

/* The count and end of the window active at mono_ns; without one 0 and the end of a new window. */
static inline u64 anchored_read(u64 bucket_state, u8 count_bits, u8 shift, u64 window_ns,
				u64 mono_ns, u64 *ret_end_tick, u64 *ret_left_ns)
{
	u64 mask = SL_BIT(64 - count_bits) - 1;
	u64 now = mono_ns >> shift;
	u64 ahead = ((bucket_state >> count_bits) - now) & mask;

	if (!bucket_state || !ahead || ahead > mask / 2) {
		*ret_end_tick = ((mono_ns + window_ns + SL_BIT(shift) - 1) >> shift) & mask;
		*ret_left_ns = 0;
		return 0;
	}
	*ret_end_tick = bucket_state >> count_bits;
	*ret_left_ns = ((now + ahead) << shift) - mono_ns;
	return bucket_state & (SL_BIT(count_bits) - 1);
}

static inline u64 anchored_state(u64 end_tick, u8 count_bits, u64 count)
{
	return count ? end_tick << count_bits | count : 0;
}

#endif
