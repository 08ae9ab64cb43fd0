/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * measure.h - statuses and latencies that applications report, over the last seconds.
 *
 *     measures_publish() -> measure_note() on the threads that read reports
 *                        -> measure_errors(), measure_quantile() on the main thread
 *
 * A series counts in nine slots of an eighth of its window, so that a result is of the last window
 * and up to an eighth more. Latencies are counted in buckets of an eighth of an octave, from 1 ms
 * to 65 s, and a quantile is interpolated within its bucket: within 9 % of the exact one. The time
 * of a sample is that of the report's arrival.
 */
#ifndef SLUICE_ENGINE_MEASURE_H
#define SLUICE_ENGINE_MEASURE_H

#include <stdbool.h>

#include "lib/bytes.h"
#include "sluice/types.h"

struct measures;

struct measure_def {
	const char *domain; /* NULL: all */
	u64 window_ns;
};

#define MEASURE_NO_LATENCY (~0ULL)

/*
 * Replaces the series, from the main thread. One that was there with the same definition keeps its
 * samples. 0 or -ENOMEM; then the old ones stay.
 */
int measures_publish(struct measures **at, const struct measure_def *def, size_t count);
/* NULL is fine. No thread uses them any more. */
void measures_free(struct measures *measures);

/* A response of the application; status 0: unknown. Any thread that is registered for RCU. */
void measure_note(struct measures **at, struct bytes domain, u32 status, u64 latency_ns,
		  u64 now_ns);

/* Of series `index`, from the main thread. False: no sample within the window. */
bool measure_errors(struct measures *measures, size_t index, u64 now_ns, double *ret_share);
bool measure_quantile(struct measures *measures, size_t index, u32 permille, u64 now_ns,
		      double *ret_ns);

#endif
