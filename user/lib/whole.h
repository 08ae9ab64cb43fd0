/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* whole.h - saturating integer arithmetic. */
#ifndef SLUICE_WHOLE_H
#define SLUICE_WHOLE_H

#include "sluice/types.h"

static inline u64 min_u64(u64 a, u64 b)
{
	return a < b ? a : b;
}

static inline u64 max_u64(u64 a, u64 b)
{
	return a > b ? a : b;
}

/* a - b, or 0. */
static inline u64 less(u64 a, u64 b)
{
	return a > b ? a - b : 0;
}

/* a x b, or the largest u64. */
static inline u64 mul_saturated(u64 a, u64 b)
{
	u64 product;

	return __builtin_mul_overflow(a, b, &product) ? ~0ULL : product;
}

static inline u64 greatest_divisor(u64 a, u64 b)
{
	while (b) {
		u64 rest = a % b;

		a = b;
		b = rest;
	}
	return a;
}

#endif
