// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * decide() against an exact model (decide_model.h), for each algorithm: calls of one to three
 * descriptors, one to four limits on a key, ten thousand values, hits from 0 to above the limit,
 * refunds, reports of the past, rates that change in the middle, a clock that stands still and,
 * UTC, steps back. Verdicts, statuses, what remains and how long to wait are the same.
 *
 * 100000 calls each; SLUICE_LONG=1: a million.
 */
#include "lib/decide_rig.h"
#include "lib/rng.h"
#include "decide_model.h"

#define KEYS 3
#define VALUES 10000
#define LIMITS RULE_LIMITS_MAX
#define DESCRIPTORS 3

static struct m_limit limits[KEYS][LIMITS];
static u32 limit_count[KEYS];
static struct m_bucket (*bucket)[VALUES][LIMITS];
static u64 admitted, refusals;

static const char *algorithm;
static enum sl_algo algo;

/* ------------------------------------------------------------------ rules */

/* ms */
static const u64 periods[] = { 500, 1000, 2000, 60000, 60000, 600000, 3600000 };

static void random_limit(struct m_limit *l, bool first)
{
	l->algo = algo;
	l->buckets = algo == SL_ALGO_WINDOW_COUNTERS ? 5 : 0;
	l->count = rng_magnitude(6);
	l->up = algo == SL_ALGO_SLIDING_WINDOW && rng_below(2);
	/* Mostly the same length: where it changes, a window begins anew. */
	if (first || !rng_below(3))
		l->period = periods[rng_below(COUNT(periods))] * (SEC / 1000);
	l->capacity = l->count;
	if (algorithms[algo]->default_burst)
		l->capacity = rng_magnitude(6);
	if (algo == SL_ALGO_LEAKY_BUCKET)
		l->capacity = 1;
}

static void load_rules(bool first)
{
	char text[4096];
	int at = snprintf(text, sizeof(text), "domain: api\ndescriptors:\n");

	for (u32 key = 0; key < KEYS; key++) {
		if (first)
			limit_count[key] = 1 + rng_below(LIMITS);
		at += snprintf(text + at, sizeof(text) - at,
			       "- key: k%u\n  algorithm: %s\n%s  limits:\n", key, algorithm,
			       algo == SL_ALGO_FIRST_REQUEST	 ? "  window: first-request\n"
			       : algo == SL_ALGO_WINDOW_COUNTERS ? "  buckets: 5\n"
								 : "");
		for (u32 i = 0; i < limit_count[key]; i++) {
			struct m_limit *l = &limits[key][i];

			random_limit(l, first);
			at += snprintf(text + at, sizeof(text) - at,
				       "  - {name: l%u, rate: %llu requests/%llums", i, l->count,
				       l->period / (SEC / 1000));
			if (algorithms[algo]->default_burst)
				at += snprintf(text + at, sizeof(text) - at, ", burst: %llu",
					       l->capacity);
			if (l->up)
				at += snprintf(text + at, sizeof(text) - at, ", rounding: up");
			at += snprintf(text + at, sizeof(text) - at, "}\n");
		}
	}
	rig_load(text);
}

static void sweep(void)
{
	counters_sweep_all(rig_store, rig_now);
	for (u32 key = 0; key < KEYS; key++)
		for (u32 value = 0; value < VALUES; value++)
			for (u32 i = 0; i < limit_count[key]; i++)
				m_sweep(&bucket[key][value][i], rig_now);
}

/* ------------------------------------------------------------------ one call */

/* One bucket of the call, with all that is asked of it. */
struct asked {
	u32 key, value, limit;
	u64 cost, refund;
};

struct asking {
	struct request_descriptor descriptor[DESCRIPTORS];
	u32 key[DESCRIPTORS], value[DESCRIPTORS];
	char text[DESCRIPTORS][16];
	struct request request;
	struct asked asked[DESCRIPTORS * LIMITS];
	u32 count;
};

static void ask_for(struct asking *a, u32 key, u32 value, u32 limit,
		    const struct request_descriptor *d)
{
	struct asked *one = a->asked;

	for (; one < a->asked + a->count; one++)
		if (one->key == key && one->value == value && one->limit == limit)
			break;
	if (one == a->asked + a->count) {
		*one = (struct asked){ key, value, limit, 0, 0 };
		a->count++;
	}
	*(d->refund ? &one->refund : &one->cost) += d->hits;
}

static u64 random_hits(void)
{
	switch (rng_below(8)) {
	case 0:
		return 0;
	case 1:
		return rng_below(8);
	case 2:
		return rng_magnitude(7);
	default:
		return 1;
	}
}

static void random_call(struct asking *a)
{
	static const char *const names[KEYS] = { "k0", "k1", "k2" };

	memset(a, 0, sizeof(*a));
	a->request.domain = (struct bytes){ "api", 3 };
	a->request.descriptor = a->descriptor;
	a->request.count = 1 + rng_below(DESCRIPTORS);
	a->request.report = !rng_below(10);
	a->request.peek = !a->request.report && !rng_below(20);
	if (a->request.report && rng_below(2))
		a->request.at_utc_ns = rig_now.utc_ns - rng_magnitude(43);
	for (u32 i = 0; i < a->request.count; i++) {
		struct request_descriptor *d = &a->descriptor[i];

		a->key[i] = rng_below(KEYS);
		a->value[i] = rng_below(3) ? rng_below(30) : rng_below(VALUES);
		/* Now and then the same bucket twice. */
		if (i && !rng_below(6)) {
			a->key[i] = a->key[0];
			a->value[i] = a->value[0];
		}
		snprintf(a->text[i], sizeof(a->text[i]), "v%u", a->value[i]);
		d->count = 1;
		d->entry[0].key = (struct bytes){ names[a->key[i]], 2 };
		d->entry[0].value = (struct bytes){ a->text[i], strlen(a->text[i]) };
		d->hits = random_hits();
		d->refund = a->request.report && !rng_below(3);
		d->limit_unit = REQUEST_UNIT_UNKNOWN;
		for (u32 k = 0; k < limit_count[a->key[i]]; k++)
			ask_for(a, a->key[i], a->value[i], k, d);
	}
}

static struct m_bucket *bucket_of(const struct asked *one)
{
	return &bucket[one->key][one->value][one->limit];
}

static const struct m_limit *limit_of(const struct asked *one)
{
	return &limits[one->key][one->limit];
}

/* A cost of 0 fits unless reports have charged more than the capacity. */
static bool model_fits(const struct asked *one, struct sl_now now)
{
	return m_fits(bucket_of(one), limit_of(one), now, one->cost);
}

static bool model_all_fit(struct asking *a)
{
	bool fit = true;

	for (u32 i = 0; i < a->count; i++) {
		m_touch(bucket_of(&a->asked[i]), limit_of(&a->asked[i]), rig_now);
		fit &= model_fits(&a->asked[i], rig_now);
	}
	return fit;
}

static void model_charge(struct asking *a)
{
	u64 ago = a->request.at_utc_ns ? rig_now.utc_ns - a->request.at_utc_ns : 0;
	struct sl_now then = { rig_now.mono_ns - ago, rig_now.utc_ns - ago };

	for (u32 i = 0; i < a->count; i++) {
		const struct asked *one = &a->asked[i];

		m_charge(bucket_of(one), limit_of(one), rig_now, then, one->cost);
		if (one->refund)
			m_refund(bucket_of(one), limit_of(one), rig_now, one->refund);
		admitted += one->cost;
	}
}

/* ------------------------------------------------------------------ the expected response */

static const struct asked *asked_of(const struct asking *a, u32 descriptor, u32 limit)
{
	for (u32 i = 0; i < a->count; i++)
		if (a->asked[i].key == a->key[descriptor] &&
		    a->asked[i].value == a->value[descriptor] && a->asked[i].limit == limit)
			return &a->asked[i];
	fail();
	return NULL;
}

/* At the end of the wait it fits, and not a nanosecond before. */
static void check_wait(const struct asked *one, u64 wait_ns)
{
	struct sl_now then = rig_now;

	if (one->cost > limit_of(one)->capacity) {
		assert_true(wait_ns == ~0ULL);
		return;
	}
	assert_true(wait_ns > 0 && wait_ns < ~0ULL);
	then.mono_ns += wait_ns;
	then.utc_ns += wait_ns;
	assert_true(model_fits(one, then));
	then.mono_ns--;
	then.utc_ns--;
	assert_false(model_fits(one, then));
}

/* `over` and waits are as of before the request, remaining units as of after it. */
static void check_over(const struct asking *a, u32 i)
{
	const struct response_status *status = &rig_answer.status[i];
	u32 bound = status->limit - status->rule->limit;
	bool over = false;

	for (u32 k = 0; k < limit_count[a->key[i]]; k++)
		over |= !model_fits(asked_of(a, i, k), rig_now);
	assert_int_equal(status->over, over);
	if (over)
		check_wait(asked_of(a, i, bound), status->retry_after_ns);
}

static void check_remaining(const struct asking *a, u32 i)
{
	const struct response_status *status = &rig_answer.status[i];
	u32 bound = status->limit - status->rule->limit;
	const struct m_limit *own = &limits[a->key[i]][bound];

	assert_true(bound < limit_count[a->key[i]]);
	assert_int_equal(status->requests, own->count);
	assert_int_equal(status->remaining,
			 m_remaining(bucket_of(asked_of(a, i, bound)), own, rig_now));
	for (u32 k = 0; !status->over && k < limit_count[a->key[i]]; k++) {
		const struct m_limit *l = &limits[a->key[i]][k];
		u64 left = m_remaining(bucket_of(asked_of(a, i, k)), l, rig_now);

		assert_true(status->remaining * l->capacity <= left * own->capacity);
	}
}

static void one_call(void)
{
	struct asking a;
	bool fit;

	random_call(&a);
	fit = model_all_fit(&a);
	decide(&(struct ledger){ .counters = rig_store }, rig_rules, &a.request, rig_now,
	       &rig_answer, NULL);
	assert_int_equal(rig_answer.code, fit ? RESPONSE_OK : RESPONSE_OVER_LIMIT);
	assert_int_equal(rig_answer.count, a.request.count);
	for (u32 i = 0; i < a.request.count; i++)
		check_over(&a, i);
	refusals += !fit;
	if (!a.request.peek && (fit || a.request.report))
		model_charge(&a);
	for (u32 i = 0; i < a.request.count; i++)
		check_remaining(&a, i);
}

static void step_time(void)
{
	if (rng_below(2))
		rig_pass(rng_magnitude(31));
	if (!rng_below(3000))
		rig_pass(rng_magnitude(42));
	if (!rng_below(2000))
		rig_now.utc_ns -= rng_magnitude(36);
}

static void run(enum sl_algo which, const char *name)
{
	u64 calls = getenv("SLUICE_LONG") ? 1000000 : 100000;
	struct counters_stats stats;
	u64 swept = 0;

	algo = which;
	algorithm = name;
	admitted = refusals = 0;
	bucket = calloc(KEYS, sizeof(*bucket));
	assert_int_equal(
		counters_open(NULL, 4 * KEYS * VALUES * LIMITS, 64 << 20, &rig_store, NULL), 0);
	rig_now = (struct sl_now){ .mono_ns = 100000 * SEC, .utc_ns = RIG_UTC + rng_magnitude(40) };
	load_rules(true);
	for (u64 i = 0; i < calls; i++) {
		step_time();
		if (rng_below(calls) < 10) {
			sweep();
			load_rules(false);
		} else if (rig_now.mono_ns > swept + 3000 * SEC) {
			sweep();
			swept = rig_now.mono_ns;
		}
		one_call();
	}
	counters_stats(rig_store, &stats);
	assert_int_equal(stats.evicted, 0);
	/* The test met every kind of case. */
	assert_true(refusals > calls / 50 && refusals < calls / 50 * 49);
	for (u32 key = 0; key < KEYS; key++)
		for (u32 value = 0; value < VALUES; value++)
			for (u32 i = 0; i < LIMITS; i++)
				free(bucket[key][value][i].event);
	free(bucket);
	rig_end();
}

TEST(test_each_algorithm)
{
	static const struct {
		enum sl_algo algo;
		const char *name;
	} kinds[] = {
		{ SL_ALGO_TOKEN_BUCKET, "token-bucket" },
		{ SL_ALGO_LEAKY_BUCKET, "leaky-bucket" },
		{ SL_ALGO_FIXED_WINDOW, "fixed-window" },
		{ SL_ALGO_INTERVAL_BUCKET, "interval-bucket" },
		{ SL_ALGO_FIRST_REQUEST, "fixed-window" },
		{ SL_ALGO_SLIDING_WINDOW, "sliding-window" },
		{ SL_ALGO_WINDOW_COUNTERS, "window-counters" },
		{ SL_ALGO_SLIDING_LOG, "sliding-log" },
	};

	for (size_t i = 0; i < COUNT(kinds); i++) {
		print_message("# %s%s\n", kinds[i].name,
			      kinds[i].algo == SL_ALGO_FIRST_REQUEST ? ", first-request" : "");
		run(kinds[i].algo, kinds[i].name);
	}
}

int main(void)
{
	rng_start("test_decide");
	return test_run(NULL, NULL);
}
