// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * sliding [--markdown] - how often the sliding window counter is wrong: a million random arrivals
 * at each of five loads of three limits, periodic, Poisson and on-off, beside a limiter that has
 * a log of every time and sees the same arrivals.
 *
 *     wrong	verdicts that differ, in % of the arrivals. Once two do, the histories differ,
 *		too: a source above its limit gets as much from both, at other moments.
 *     total	how much more (or less) than the log the counter let through in all, in %
 *     worst	the most it let through within any one window's length, in % of the limit
 *
 * The seed is printed; SLUICE_SEED repeats a run.
 */
#include <string.h>

#include "arrivals.h"
#include "packet/compile/compile.h"
#include "lib/rng.h"

#define W (10 * SL_NS_PER_SEC)
#define LIMIT_MAX 1000
#define ARRIVALS 1000000ULL
#define COUNT(a) (sizeof(a) / sizeof(*(a)))

static const u64 limits[] = { 10, 100, LIMIT_MAX };
static const double loads[] = { 0.5, 0.9, 1.0, 1.1, 2 };

enum arrivals {
	PERIODIC,
	POISSON,
	ON_OFF, /* on for a quarter of the time, at four times the rate */
	ARRIVALS_COUNT,
};

static const char *const arrivals_name[] = { "periodic", "Poisson", "on-off" };

/* The last times of admission: a window's length holds at most twice the limit of them. */
struct log {
	u64 at[2 * LIMIT_MAX + 2];
	u64 head, tail;
};

static void log_expire(struct log *log, u64 now)
{
	while (log->tail < log->head && log->at[log->tail % COUNT(log->at)] + W <= now)
		log->tail++;
}

static void log_add(struct log *log, u64 now)
{
	log->at[log->head++ % COUNT(log->at)] = now;
}

struct wrong {
	u64 arrivals, differ;
	u64 counter, log; /* units that each let through */
	u64 worst;
};

/* One source: its bucket state, the units that passed, and the limiter beside it. */
struct source {
	u64 bucket_state;
	struct log itself, beside;
};

static void arrive(struct source *s, const struct sl_params *p, u64 now, struct wrong *w)
{
	struct sl_result res = sl_step(s->bucket_state, p, (struct sl_now){ now, now }, 1);
	bool passes = res.verdict == SL_PASS, beside;

	log_expire(&s->itself, now);
	log_expire(&s->beside, now);
	beside = s->beside.head - s->beside.tail < p->capacity;
	if (passes)
		log_add(&s->itself, now);
	if (beside)
		log_add(&s->beside, now);
	s->bucket_state = res.bucket_state;
	w->arrivals++;
	w->differ += passes != beside;
	w->counter += passes;
	w->log += beside;
	if (s->itself.head - s->itself.tail > w->worst)
		w->worst = s->itself.head - s->itself.tail;
}

/* ------------------------------------------------------------------ arrivals */

static double percent(u64 part, u64 of)
{
	return 100.0 * part / of;
}

static double exponential(double mean)
{
	return -mean * log(1 - (rng() >> 11) * 0x1p-53);
}

struct train {
	enum arrivals kind;
	double gap;	   /* mean, ns */
	double at, off_at; /* on-off: when this burst ends */
};

static u64 next_arrival(struct train *t)
{
	switch (t->kind) {
	case PERIODIC:
		t->at += t->gap;
		break;
	case POISSON:
		t->at += exponential(t->gap);
		break;
	default:
		t->at += exponential(t->gap / 4);
		while (t->at > t->off_at) {
			t->at += exponential(0.75 * W);
			t->off_at = t->at + exponential(0.25 * W);
		}
	}
	return (u64)t->at;
}

static struct sl_params sliding(u64 limit)
{
	struct rate rate = { limit, W, RATE_PACKETS };
	struct sl_params p = { 0 };
	const char *reason;

	if (params_compile(SL_ALGO_SLIDING_WINDOW, &rate, 0, 0, &p, &reason)) {
		fprintf(stderr, "sliding: %s\n", reason);
		exit(1);
	}
	return p;
}

/* From some moment of a window, after ten that are not counted. */
static struct wrong measure(enum arrivals kind, double load, u64 limit)
{
	static struct source source;
	struct sl_params p = sliding(limit);
	struct train train = { .kind = kind, .gap = W / (load * limit) };
	struct wrong w = { 0 };
	double begin = 170000000.0 * W + rng_below(W);

	memset(&source, 0, sizeof(source));
	train.at = train.off_at = begin;
	while (w.arrivals < ARRIVALS) {
		u64 now = next_arrival(&train);

		arrive(&source, &p, now, &w);
		if (now < begin + 10.0 * W)
			w = (struct wrong){ 0 };
	}
	return w;
}

/* ------------------------------------------------------------------ mixes */

/*
 * Ten thousand sources, Poisson, of a limit of 100, their rates log-normal: the median at 1 % of
 * the limit, a standard deviation a factor e. So the fastest is at half of its limit. `heavy` of
 * them instead are from 0.8 to 10 times their limit. One arrival at a time, of a source drawn
 * by its rate.
 */
#define MIX_SOURCES 10000
#define MIX_LIMIT 100

static void mix(u32 heavy)
{
	static struct source source[MIX_SOURCES];
	static double upto[MIX_SOURCES];
	struct sl_params p = sliding(MIX_LIMIT);
	struct wrong w = { 0 };
	double now = 170000000.0 * W, total, share;

	mix_rates(upto, MIX_SOURCES, heavy);
	total = upto[MIX_SOURCES - 1];
	share = heavy ? upto[heavy - 1] / total : 0;
	memset(source, 0, sizeof(source));
	while (w.arrivals < 4 * ARRIVALS) {
		u32 which = mix_pick(upto, MIX_SOURCES, (double)(rng() >> 11) * 0x1p-53 * total);

		now += exponential(W / (total * MIX_LIMIT));
		arrive(&source[which], &p, (u64)now, &w);
	}
	printf("A mix of %u sources, %.1f %% of the arrivals from %u near or above their limit: %.4f %% wrong, aim 0.003 %% %s\n",
	       MIX_SOURCES, 100 * share, heavy, percent(w.differ, w.arrivals),
	       percent(w.differ, w.arrivals) <= 0.003 ? "met" : "missed");
}

/* ------------------------------------------------------------------ the tables */

static void table(enum arrivals kind, bool markdown)
{
	const char *bar = markdown ? " | " : "  ";

	if (markdown)
		printf("| %s: load", arrivals_name[kind]);
	else
		printf("%-12s", arrivals_name[kind]);
	for (size_t l = 0; l < COUNT(limits); l++)
		printf(markdown ? " | %llu: wrong | total | worst"
				: "  %6llu: wrong   total   worst",
		       limits[l]);
	printf(markdown ? " |\n|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n" : "\n");
	for (size_t i = 0; i < COUNT(loads); i++) {
		printf(markdown ? "| %.1f" : "%12.1f", loads[i]);
		for (size_t l = 0; l < COUNT(limits); l++) {
			struct wrong w = measure(kind, loads[i], limits[l]);

			printf("%s%s%6.3f%s%+6.2f%s%6.1f", bar, markdown ? "" : "    ",
			       percent(w.differ, w.arrivals), bar, percent(w.counter, w.log) - 100,
			       bar, percent(w.worst, limits[l]));
		}
		printf(markdown ? " |\n" : "\n");
	}
	printf("\n");
}

int main(int argc, char **argv)
{
	bool markdown = argc > 1 && !strcmp(argv[1], "--markdown");

	rng_start("sliding");
	printf("%llu arrivals each; load 1.0 is the limit; all in %%. SLUICE_SEED=%llu\n\n",
	       ARRIVALS, rng_state);
	for (enum arrivals kind = 0; kind < ARRIVALS_COUNT; kind++)
		table(kind, markdown);
	mix(0);
	if (markdown)
		printf("\n");
	mix(10);
	return 0;
}
