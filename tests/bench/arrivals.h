/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* arrivals.h - requests of one unit against the request tier's steps, and a mix of sources. */
#ifndef SLUICE_TESTS_ARRIVALS_H
#define SLUICE_TESTS_ARRIVALS_H

#include <math.h>
#include <stdbool.h>

#include "limiter/request_log.h"

static inline bool log_passes(struct request_logs *logs, const struct spec *spec, u64 *state,
			      struct sl_now now)
{
	u32 chunk = 0;

	*state = request_log_expire(logs, spec, *state, now);
	if (request_log_count(*state) >= spec->capacity)
		return false;
	if (request_log_needs(logs, spec, *state, now, 1))
		chunk = request_chunk_get(logs);
	*state = request_log_add(logs, spec, *state, now, 1, chunk);
	return true;
}

/* One unit at `at`, of both clocks; whether it passed. */
static inline bool passes(struct request_logs *logs, const struct spec *spec, u64 *state, u64 at)
{
	struct sl_now now = { at, at };
	struct spec_view view;
	struct sl_result result;

	if (spec->algo == SL_ALGO_SLIDING_LOG || spec->buckets)
		return log_passes(logs, spec, state, now);
	spec_view_init(&view, spec, 0, 0);
	result = spec_charge(&view, *state, now, 1);
	*state = result.bucket_state;
	return result.verdict == SL_PASS;
}

/* The quantile of the standard normal distribution, by bisection. */
static inline double normal_quantile(double share)
{
	double low = -10, high = 10;

	for (int i = 0; i < 60; i++) {
		double mid = (low + high) / 2;

		if (erfc(-mid / sqrt(2)) / 2 < share)
			low = mid;
		else
			high = mid;
	}
	return low;
}

/*
 * Fills the sums of rates, in units of the limit: log-normal, the median at 1 % of it, a standard
 * deviation a factor e; `heavy` of them from 0.8 to 10 times the limit.
 */
static inline void mix_rates(double *upto, u32 count, u32 heavy)
{
	double total = 0;

	for (u32 i = 0; i < count; i++) {
		total += i < heavy ? 0.8 * pow(12.5, i / (heavy - 1.0))
				   : 0.01 * exp(normal_quantile((i + 0.5) / count));
		upto[i] = total;
	}
}

/* The first whose sum is above `at`. */
static inline u32 mix_pick(const double *upto, u32 count, double at)
{
	u32 low = 0, high = count - 1;

	while (low < high) {
		u32 mid = (low + high) / 2;

		if (upto[mid] > at)
			high = mid;
		else
			low = mid + 1;
	}
	return low;
}

#endif
