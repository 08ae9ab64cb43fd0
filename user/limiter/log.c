// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * log.c - the rows of the sliding log, of window counters and of concurrency: their parameters.
 * request_log.h has their steps, which need memory; the packet tier's window counters are in a
 * bucket state (include/sluice/algo_counters.h).
 */
#include "limiter/algorithm_private.h"
#include "limiter/request_log.h"

static int log_layout(struct spec *spec, u64 most, const char **ret_reason)
{
	if (most / 2 > SPEC_LOG_MAX / 2)
		return params_refuse(
			"a sliding log remembers each request: its rate is at most 67108863 a period (with elastic the ceiling)",
			ret_reason);
	while (spec->params.window_ns >> spec->tick_shift >= SL_BIT(47))
		spec->tick_shift++;
	return 0;
}

/* A bucket's number is stored modulo 2^16: the sweep is faster than so many buckets. */
#define COUNTER_MIN_NS (SL_NS_PER_SEC / 10)

static int counters_layout(struct spec *spec, u64 most, const char **ret_reason)
{
	if (most / 2 > SPEC_LOG_MAX / 2)
		return params_refuse(
			"window-counters allow at most 67108863 requests a period (with elastic the ceiling)",
			ret_reason);
	if (spec->buckets < 2)
		return params_refuse("window-counters need 2 buckets or more", ret_reason);
	spec->bucket_ns = spec->params.window_ns / spec->buckets;
	spec->params.window_ns = spec->bucket_ns * spec->buckets;
	if (spec->bucket_ns < COUNTER_MIN_NS)
		return params_refuse("a bucket of window-counters lasts less than 100ms",
				     ret_reason);
	return 0;
}

static int concurrency_layout(struct spec *spec, u64 most, const char **ret_reason)
{
	if (most / 2 > SPEC_LOG_MAX / 2)
		return params_refuse("a concurrency is at most 67108863", ret_reason);
	spec->bucket_ns = (spec->params.window_ns + CONCURRENCY_BUCKETS - 1) / CONCURRENCY_BUCKETS;
	spec->buckets = CONCURRENCY_BUCKETS + 1;
	spec->params.window_ns = spec->bucket_ns * spec->buckets;
	return 0;
}

static u64 log_convert(const struct spec *from, const struct spec *to, u64 bucket_state,
		       struct sl_now now)
{
	return bucket_state;
}

static u64 log_store_wait_ns(const struct cluster_store_rate *rate,
			     const struct cluster_store_raw *raw, u64 room, u64 cost, u64 now_us)
{
	return us_to_ns(less(raw->fits_us, now_us));
}

/* Redis returns only the count of a list of times. */
static u64 log_from_store(const struct spec *spec, const struct cluster_store_state *state,
			  u64 more, struct sl_now now)
{
	return 0;
}

/* clang-format off */
#define LOG_STEPS							\
	.convert = log_convert, .store_wait_ns = log_store_wait_ns,	\
	.from_store = log_from_store
/* clang-format on */

const struct algorithm algorithm_sliding_log = {
	.strict_note = "has the time of each request: the store must have it, too",
	.windows_kept = 1,
	.percpu_note = "a sliding log is not divided among CPUs",
	.compile = window_compile_requests,
	.layout = log_layout,
	LOG_STEPS,
};

const struct algorithm algorithm_window_counters = {
	.has_buckets = true,
	.strict_note = "has the counts of its buckets: the store must have them, too",
	.windows_kept = 1,
	.percpu_note = "counters of a window's buckets are not divided among CPUs: accounting "
		       "percpu counts as exact",
	.compile = window_compile,
	.layout = counters_layout,
	LOG_STEPS,
};

const struct algorithm algorithm_concurrency = {
	.count_note = "a request that it refuses is never in flight",
	.strict_note = "counts the requests in flight of this node",
	.windows_kept = 1,
	.percpu_note = "requests in flight are not divided among CPUs",
	.compile = window_compile_requests,
	.layout = concurrency_layout,
	LOG_STEPS,
};
