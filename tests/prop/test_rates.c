// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Two rates on one key, `rate: [10 packets/s, 500 packets/h]`, over a simulated day: each verdict
 * is that of two exact buckets that are charged together or not at all. The same for two limits
 * of one rate each that match the same packets. On dp_sim.
 *
 * Were a refused packet charged to the rate that had room, the other would run dry: a flood at the
 * hour's limit would use up each second's.
 */
#include "lib/test.h"
#include "lib/model.h"
#include "lib/rig.h"
#include "lib/rng.h"

#define SEC SL_NS_PER_SEC
#define HOUR (3600 * SEC)
#define DAY (24 * HOUR)
#define SOURCE 0x0a000001
#define NEIGHBOUR 0x0a010001
#define NEIGHBOUR_GAP (8 * SEC) /* 450 an hour */
#define RATES 2

static const struct rate rate[RATES] = { { 10, SEC, RATE_PACKETS }, { 500, HOUR, RATE_PACKETS } };

struct kind {
	const char *name;
	enum sl_algo algo;
	u64 burst[RATES];
};

static const struct kind kinds[] = {
	{ "token-bucket", SL_ALGO_TOKEN_BUCKET, { 0, 0 } },
	{ "token-bucket, burst [10, 500]", SL_ALGO_TOKEN_BUCKET, { 10, 500 } },
	{ "leaky-bucket", SL_ALGO_LEAKY_BUCKET, { 0, 0 } },
	{ "fixed-window", SL_ALGO_FIXED_WINDOW, { 0, 0 } },
	{ "interval-bucket", SL_ALGO_INTERVAL_BUCKET, { 30, 700 } },
	{ "window-counters", SL_ALGO_WINDOW_COUNTERS, { 0, 0 } },
	{ "sliding-window", SL_ALGO_SLIDING_WINDOW, { 0, 0 } },
};

/* The source: its buckets, and its verdicts. */
struct day {
	struct rig rig;
	struct model_rule rule[RATES];
	struct model_bucket bucket[RATES];
	struct model_log log[RATES];
	u64 sent, passed, refused_by[RATES];
	u64 neighbour_lost;
	u32 cpus;
};

/* `limits`: as so many limits, 1 or RATES. */
static void open_day(struct day *d, const struct kind *kind, enum accounting accounting, u32 limits)
{
	struct limit_def def[RATES] = {
		rig_limit_def("first", rate[0], kind->burst[0], kind->algo),
		rig_limit_def("second", rate[1], kind->burst[1], kind->algo),
	};

	memset(d, 0, sizeof(*d));
	d->cpus = accounting == ACCOUNTING_PERCPU ? 2 : 1;
	for (u32 i = 0; i < RATES; i++) {
		def[i].accounting = accounting;
		def[0].terms.rates.rate[i] = rate[i];
		def[0].terms.rates.burst[i] = kind->burst[i];
		d->rule[i] = model_rule(kind->algo, rate[i], kind->burst[i]);
		assert_true(d->rule[i].exact);
	}
	def[0].terms.rates.count = limits == 1 ? RATES : 1;
	rig_open_sim(&d->rig, 1000, d->cpus, 64);
	rig_set_time(&d->rig, 1000 * SEC, 1700006400ULL * SEC - 1000 * SEC);
	rig_apply(&d->rig, def, limits);
}

static bool send(struct day *d, u32 src)
{
	struct rig_packet packet = { .src = src, .proto = 17, .dport = 53, .length = 100 };
	struct rig_frame frame;

	rig_frame_make(&frame, &packet);
	/* Not rng(): the same packets come to each kind of accounting. */
	return rig_passes(&d->rig, (d->rig.now.mono_ns >> 4) % d->cpus, &frame);
}

/* The first rate that has no room; RATES: all have. */
static u32 ask(struct day *d)
{
	for (u32 i = 0; i < RATES; i++) {
		enum model_says says = model_ask(&d->rule[i], &d->bucket[i], d->rig.now, 1);

		assert_int_not_equal(says, MODEL_EITHER);
		if (says == MODEL_DROP)
			return i;
	}
	return RATES;
}

static void one_packet(struct day *d, bool exact)
{
	u32 refused_by = ask(d);
	bool passes = send(d, SOURCE);

	d->sent++;
	if (exact && passes != (refused_by == RATES))
		fail_msg("packet %llu at %llu ns: %s, the model says otherwise (%u)", d->sent,
			 d->rig.now.mono_ns, passes ? "passed" : "refused", refused_by);
	if (refused_by < RATES)
		d->refused_by[refused_by]++;
	d->passed += passes;
	for (u32 i = 0; i < RATES && passes; i++) {
		model_charged(&d->rule[i], &d->bucket[i], d->rig.now, 1);
		model_log_admit(&d->rule[i], &d->log[i], d->rig.now, 1);
	}
}

/* How long until the next packet: floods, what is just right, and silence, for minutes each. */
static u64 gap(u32 mood)
{
	switch (mood) {
	case 0:
		return rng_below(SEC / 10);
	case 1:
		return rng_below(2 * SEC / 10);
	case 2:
		return rng_below(2 * HOUR / 500);
	case 3:
		return rng_below(3) ? 0 : rng_below(2 * SEC);
	default:
		return rng_below(10 * 60 * SEC);
	}
}

/* To the nanosecond at which a refused packet fits, or one before it; 0 where it is not known. */
static u64 to_the_edge(struct day *d)
{
	u32 by = ask(d);
	u64 wait;

	if (by == RATES || rng_below(16))
		return 0;
	if (sl_algo_is_window(d->rule[by].algo))
		wait = d->rule[by].period_ns - d->rig.now.utc_ns % d->rule[by].period_ns;
	else
		wait = model_wait(&d->rule[by], &d->bucket[by], 1);
	/* A leap to the end of the hour leaves an hour out. */
	if (!wait || (wait > 10 * SEC && rng_below(500)))
		return 0;
	return wait - rng_below(2);
}

static void run_day(struct day *d, bool exact)
{
	u64 begin = d->rig.now.mono_ns, end = begin + DAY, mood_ends = 0, next;
	u64 neighbour_at = begin + NEIGHBOUR_GAP;
	u32 mood = 0;

	while (d->rig.now.mono_ns < end) {
		u64 now = d->rig.now.mono_ns;

		if (now >= mood_ends) {
			mood = (mood + 1) % 5;
			mood_ends = now + rng_below(20 * 60 * SEC);
		}
		next = exact ? to_the_edge(d) : 0;
		next = now + (next ? next : gap(mood));
		while (neighbour_at <= next) {
			rig_set_time(&d->rig, neighbour_at, d->rig.utc_offset_ns);
			d->neighbour_lost += !send(d, NEIGHBOUR);
			neighbour_at += NEIGHBOUR_GAP;
		}
		rig_set_time(&d->rig, next, d->rig.utc_offset_ns);
		one_packet(d, exact);
	}
}

static void report(const struct day *d, const struct kind *kind)
{
	print_message("# %s: %llu of %llu passed, %llu over 10/s, %llu over 500/h\n", kind->name,
		      d->passed, d->sent, d->refused_by[0], d->refused_by[1]);
}

static void verdicts_of_a_day(u32 limits)
{
	for (size_t i = 0; i < COUNT(kinds); i++) {
		static struct day d;

		open_day(&d, &kinds[i], ACCOUNTING_EXACT, limits);
		run_day(&d, true);
		report(&d, &kinds[i]);
		assert_int_equal(d.neighbour_lost, 0);
		/* Both rates refused packets, but where 500/h keeps 7 s between any two packets. */
		assert_in_range(d.passed, 3000, 25 * 500 + 10);
		assert_true(d.refused_by[0] >= (d.rule[1].capacity > 1 ? 100 : 0));
		assert_true(d.refused_by[1] >= 1000);
		rig_close(&d.rig);
	}
}

TEST(test_two_rates)
{
	rng_start("two_rates");
	verdicts_of_a_day(1);
}

TEST(test_two_limits)
{
	rng_start("two_limits");
	verdicts_of_a_day(RATES);
}

/* With leases on two CPUs: each rate's bound, and 0.95 of the packets that exact accounting
 * passes. */
TEST(test_percpu)
{
	rng_start("percpu");
	for (size_t i = 0; i < COUNT(kinds); i++) {
		static struct day exact, d;
		u64 seed = rng();

		rng_state = seed;
		open_day(&exact, &kinds[i], ACCOUNTING_EXACT, 1);
		run_day(&exact, false);
		rng_state = seed;
		open_day(&d, &kinds[i], ACCOUNTING_PERCPU, 1);
		run_day(&d, false);
		report(&d, &kinds[i]);
		assert_int_equal(d.neighbour_lost, 0);
		assert_true(d.passed * 100 >= exact.passed * 95);
		for (u32 r = 0; r < RATES; r++) {
			u64 most = d.rule[r].capacity + d.rule[r].capacity / 100 + 1 +
				   d.rule[r].refill;

			/* An hour is longer than a lease's end is known by: see lease_units(). */
			if (sl_algo_is_window(kinds[i].algo) && !d.rule[r].refill)
				assert_in_range(d.log[r].worst_window, 1,
						d.rule[r].capacity + d.rule[r].capacity / 100);
			if (kinds[i].algo != SL_ALGO_FIXED_WINDOW &&
			    kinds[i].algo != SL_ALGO_WINDOW_COUNTERS)
				assert_in_range(model_log_worst(&d.rule[r], &d.log[r]), 1, most);
		}
		rig_close(&d.rig);
		rig_close(&exact.rig);
	}
}

TEST_MAIN
