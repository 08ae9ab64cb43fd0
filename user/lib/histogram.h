/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* histogram.h - the bounds of all histograms of durations: 1 us, then doubled; 0.5 s is the
 * last. */
#ifndef SLUICE_HISTOGRAM_H
#define SLUICE_HISTOGRAM_H

#include "sluice/types.h"

#define HISTOGRAM_BUCKETS 20 /* the last one has no bound */

/* The upper bound of a bucket, which belongs to it; bucket < HISTOGRAM_BUCKETS - 1. */
static inline u64 histogram_bound_ns(u32 bucket)
{
	return 1000ULL << bucket;
}

#endif
