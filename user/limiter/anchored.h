/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* anchored.h - the layout of states of include/sluice/algo_first.h for counts of requests. */
#ifndef SLUICE_HTTP_ANCHORED_H
#define SLUICE_HTTP_ANCHORED_H

#include "sluice/algo.h"

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

#endif
