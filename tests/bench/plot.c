// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * plot.c - what each algorithm lets through of the same requests, for docs/pictures/algorithms.svg:
 * the real step functions, 10 requests each 10 s, in lines "NAME TIME_MS PASSES".
 * scripts/algorithms_picture.py draws.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "limiter/request_log.h"

#define SEC SL_NS_PER_SEC
#define MS 1000000ULL
#define LIMIT 10
#define START_NS (1000 * SEC) /* a multiple of the period, of both clocks */
#define CHUNKS 64

static const struct {
	enum sl_algo algo;
	const char *name;
} algorithms[] = {
	{ SL_ALGO_TOKEN_BUCKET, "token-bucket" },
	{ SL_ALGO_LEAKY_BUCKET, "leaky-bucket" },
	{ SL_ALGO_INTERVAL_BUCKET, "interval-bucket" },
	{ SL_ALGO_FIXED_WINDOW, "fixed-window" },
	{ SL_ALGO_FIRST_REQUEST, "fixed-window, window: first-request" },
	{ SL_ALGO_SLIDING_WINDOW, "sliding-window" },
	{ SL_ALGO_WINDOW_COUNTERS, "window-counters, 5 buckets" },
	{ SL_ALGO_SLIDING_LOG, "sliding-log" },
};

static struct request_chunk chunks[CHUNKS];
static u32 chunks_used = 1;
static struct request_logs logs = { .chunk = chunks, .chunks = CHUNKS, .used = &chunks_used };

static bool log_passes(struct request_logs *logs, const struct spec *spec, u64 *state,
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
static bool passes(struct request_logs *logs, const struct spec *spec, u64 *state, u64 at)
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

static void plot(const char *name, const struct spec *spec)
{
	u64 state = 0;

	for (u64 ms = 0; ms < 40000; ms += 50) {
		/* A burst of 16 before the end of a window, a pause, and three a second from 15 s
		 * to 38 s. */
		bool sends = (ms >= 7500 && ms < 9100 && ms % 100 == 0) ||
			     (ms >= 15000 && ms < 38000 && ms % 350 == 0);

		if (sends)
			printf("%s\t%llu\t%d\n", name, ms,
			       passes(&logs, spec, &state, START_NS + ms * MS));
	}
}

int main(void)
{
	for (size_t i = 0; i < sizeof(algorithms) / sizeof(algorithms[0]); i++) {
		struct spec_def def = { .count = LIMIT,
					.period_ns = 10 * SEC,
					.scale = 1,
					.ceiling_percent = 100,
					.algo = algorithms[i].algo,
					.buckets = algorithms[i].algo == SL_ALGO_WINDOW_COUNTERS
							   ? 5
							   : 0 };
		struct spec spec;
		struct sl_err err;

		if (def.algo == SL_ALGO_TOKEN_BUCKET)
			def.burst = LIMIT;
		if (spec_make_def(&def, &spec, &err) < 0) {
			fprintf(stderr, "plot: %s: %s\n", algorithms[i].name, err.message);
			return 1;
		}
		plot(algorithms[i].name, &spec);
	}
	return 0;
}
