/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* bitmap.h - struct sl_bitmap, a bit per limit. */
#ifndef SLUICE_POLICY_BITMAP_H
#define SLUICE_POLICY_BITMAP_H

#include <stdbool.h>
#include <string.h>

#include "sluice/abi.h"

static inline void bitmap_set(struct sl_bitmap *bitmap, u32 limit)
{
	bitmap->w[limit / 64] |= SL_BIT(limit % 64);
}

static inline void bitmap_put(struct sl_bitmap *bitmap, u32 limit, bool value)
{
	bitmap->w[limit / 64] &= ~SL_BIT(limit % 64);
	bitmap->w[limit / 64] |= value ? SL_BIT(limit % 64) : 0;
}

static inline bool bitmap_has(const struct sl_bitmap *bitmap, u32 limit)
{
	return bitmap->w[limit / 64] >> (limit % 64) & 1;
}

static inline bool bitmap_equal(const struct sl_bitmap *a, const struct sl_bitmap *b)
{
	return !memcmp(a, b, sizeof(*a));
}

#endif
