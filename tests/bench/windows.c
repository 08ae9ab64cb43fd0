// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * windows [--markdown] - what the ways to count an hour cost, and how wrong they are: 500 an hour,
 *by the request tier's own steps, each beside a log of every time that sees the same arrivals.
 *
 *     bytes	of a user who uses the whole limit, spread over the hour; beside its place in the
 *		table, of 23 bytes (tests/bench/decide.c)
 *     wrong	verdicts that differ from the log's, in % of the arrivals of 10,000 users, ten of
 *		whom are near or above the limit
 *     total	how much more than the log it admitted in all, in %
 *     worst	the most that one user got within an hour, in % of the limit
 *
 * Then what any count by slots can know: a log whose times are rounded to the middle of their slot,
 *and the bytes that 500 counts in so many slots take at least. "given": verdicts that differ
 *although the rounded log has the other one's past.
 *
 * The seed is printed; SLUICE_SEED repeats a run.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "arrivals.h"
#include "lib/rng.h"

#define SEC SL_NS_PER_SEC
#define W (3600 * SEC)
#define LIMIT 500
#define USERS 10000
#define HEAVY 10
#define ARRIVALS 4000000
#define CHUNKS (1 << 22)

static const struct way {
	const char *name;
	enum sl_algo algo;
	u8 buckets;
} ways[] = {
	{ "fixed-window", SL_ALGO_FIXED_WINDOW, 0 },
	{ "sliding-window", SL_ALGO_SLIDING_WINDOW, 0 },
	{ "window-counters, 6 buckets", SL_ALGO_WINDOW_COUNTERS, 6 },
	{ "window-counters, 60 buckets", SL_ALGO_WINDOW_COUNTERS, 60 },
	{ "window-counters, 240 buckets", SL_ALGO_WINDOW_COUNTERS, 240 },
	{ "sliding-log", SL_ALGO_SLIDING_LOG, 0 },
};
#define WAYS (sizeof(ways) / sizeof(*ways))

/* The times that were admitted within the last hour: at most twice the limit of them. */
struct times {
	u64 at[2 * LIMIT + 2];
	u32 head, tail;
};

struct user {
	u64 state;
	struct times itself;
};

static struct user user[USERS];
static struct times exact[USERS];
static double upto[USERS];
static struct request_chunk *chunk;
static u32 used;
static struct request_logs logs;

static u32 times_count(struct times *t, u64 now)
{
	while (t->tail < t->head && t->at[t->tail % (2 * LIMIT + 2)] + W <= now)
		t->tail++;
	return t->head - t->tail;
}

static void times_add(struct times *t, u64 now)
{
	t->at[t->head++ % (2 * LIMIT + 2)] = now;
}

static struct spec spec_of(const struct way *way)
{
	struct spec_def def = { .count = LIMIT,
				.period_ns = W,
				.scale = 1,
				.ceiling_percent = 100,
				.algo = way->algo,
				.buckets = way->buckets };
	struct spec spec;
	struct sl_err err;

	if (spec_make_def(&def, &spec, &err)) {
		fprintf(stderr, "windows: %s\n", err.message);
		exit(1);
	}
	return spec;
}

static void begin(void)
{
	used = 1;
	logs = (struct request_logs){ .chunk = chunk, .chunks = CHUNKS, .used = &used };
	memset(user, 0, sizeof(user));
	memset(exact, 0, sizeof(exact));
}

/* ------------------------------------------------------------------ bytes */

static u64 bytes_of(const struct spec *spec)
{
	u64 state = 0, at = 1000 * W;

	begin();
	for (u32 i = 0; i < 2 * LIMIT; i++, at += W / LIMIT)
		passes(&logs, spec, &state, at);
	return 16 * request_logs_used(&logs);
}

/* ------------------------------------------------------------------ errors */

static double unit(void)
{
	return (rng() >> 11) * 0x1p-53;
}

static void measure(const struct way *way, u64 seed, bool markdown)
{
	struct spec spec = spec_of(way);
	u64 bytes = bytes_of(&spec), differ = 0, admitted = 0, by_log = 0;
	double now = 1000.0 * W;
	u32 worst = 0;

	begin();
	rng_state = seed;
	for (u32 i = 0; i < ARRIVALS; i++) {
		u32 which = mix_pick(upto, USERS, unit() * upto[USERS - 1]);
		bool pass, beside;

		now -= W / (upto[USERS - 1] * LIMIT) * log(1 - unit());
		pass = passes(&logs, &spec, &user[which].state, (u64)now);
		beside = times_count(&exact[which], (u64)now) < LIMIT;
		times_count(&user[which].itself, (u64)now);
		if (pass)
			times_add(&user[which].itself, (u64)now);
		if (beside)
			times_add(&exact[which], (u64)now);
		if (times_count(&user[which].itself, (u64)now) > worst)
			worst = times_count(&user[which].itself, (u64)now);
		differ += pass != beside;
		admitted += pass;
		by_log += beside;
	}
	printf(markdown ? "| %s | %llu | %.2f | %+.3f | %.0f |\n"
			: "%-30s %8llu %8.2f %+8.3f %8.0f\n",
	       way->name, bytes, 100.0 * differ / ARRIVALS, 100.0 * admitted / by_log - 100,
	       100.0 * worst / LIMIT);
}

/* ------------------------------------------------------------------ what slots can know */

struct rounded {
	struct times itself, given;
};

static struct rounded rounded[HEAVY];

/* log2 of the number of ways to spread LIMIT units over the slots. */
static double slots_bits(u32 slots)
{
	return (lgamma(slots + LIMIT + 1.0) - lgamma(slots + 1.0) - lgamma(LIMIT + 1.0)) / log(2);
}

static void measure_slots(u32 slots, u64 seed, bool markdown)
{
	u64 slot = W / slots, differ = 0, given = 0;
	double now = 1000.0 * W;

	begin();
	memset(rounded, 0, sizeof(rounded));
	rng_state = seed;
	for (u32 i = 0; i < ARRIVALS; i++) {
		u32 which = mix_pick(upto, USERS, unit() * upto[USERS - 1]);
		struct rounded *of = &rounded[which % HEAVY];
		bool pass, beside;
		u64 at, middle;

		now -= W / (upto[USERS - 1] * LIMIT) * log(1 - unit());
		/* Of the others the log refuses nothing. */
		if (which >= HEAVY)
			continue;
		at = (u64)now;
		middle = at / slot * slot + slot / 2;
		beside = times_count(&exact[which], at) < LIMIT;
		pass = times_count(&of->itself, at) < LIMIT;
		differ += pass != beside;
		given += (times_count(&of->given, at) < LIMIT) != beside;
		if (pass)
			times_add(&of->itself, middle);
		if (beside) {
			times_add(&exact[which], at);
			times_add(&of->given, middle);
		}
	}
	printf(markdown ? "| %u slots | %.0f | %.2f | %.2f |\n" : "%-30u %8.0f %8.2f %8.2f\n",
	       slots, slots_bits(slots) / 8, 100.0 * differ / ARRIVALS, 100.0 * given / ARRIVALS);
}

int main(int argc, char **argv)
{
	bool markdown = argc > 1 && !strcmp(argv[1], "--markdown");
	static const u32 slots[] = { 60, 240, 470, 1000, 2000, 4000 };
	u64 seed;

	rng_start("windows");
	seed = rng_state;
	chunk = calloc(CHUNKS, sizeof(*chunk));
	if (!chunk)
		return 1;
	mix_rates(upto, USERS, HEAVY);
	printf(markdown
		       ? "| 500 an hour | bytes | wrong, %% | total, %% | worst, %% |\n|---|---:|---:|---:|---:|\n"
		       : "%-30s %8s %8s %8s %8s\n",
	       "500 an hour", "bytes", "wrong", "total", "worst");
	for (u32 i = 0; i < WAYS; i++)
		measure(&ways[i], seed, markdown);
	printf(markdown ? "\n| rounded to | bytes | wrong, %% | given, %% |\n|---|---:|---:|---:|\n"
			: "\n%-30s %8s %8s %8s\n",
	       "slots", "bytes", "wrong", "given");
	for (u32 i = 0; i < sizeof(slots) / sizeof(*slots); i++)
		measure_slots(slots[i], seed, markdown);
	free(chunk);
	return 0;
}
