// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The packet tier and the HTTP tier give the same verdicts: one schedule of sources and times as
 * frames through dp_sim and as requests through decide(), under the same two rates.
 */
#include "lib/decide_rig.h"
#include "lib/rng.h"
#include "lib/rig.h"
#include "limiter/algorithm.h"

#define STEPS 60000
#define SOURCES 200

static struct rig packets;

#define MS (SEC / 1000)

/* least_period: in ms. */
static struct rate random_rate(u64 most, u64 least_period)
{
	static const u64 periods[] = { 10, 100, 1000, 2000, 10000, 60000, 3600000 };
	u64 period = periods[rng_below(7)];

	return (struct rate){ 1 + rng_below(most),
			      (period < least_period ? least_period : period) * MS, RATE_PACKETS };
}

static void open_both(enum sl_algo algo, const char *name, bool count_all)
{
	struct rate rate[2] = { random_rate(5, 10000),
				random_rate(200, algo == SL_ALGO_WINDOW_COUNTERS ? 1000 : 10) };
	u64 burst[2] = { 1 + rng_below(20), 1 + rng_below(100) };
	struct limit_def def =
		rig_limit_def("web", rate[0], algorithms[algo]->default_burst ? burst[0] : 0, algo);
	char text[512];
	int at;

	def.terms.buckets = 3;
	if (algo == SL_ALGO_FIRST_REQUEST) {
		def.terms.algorithm = SL_ALGO_FIXED_WINDOW;
		def.terms.first_request = true;
	}
	def.terms.count = count_all ? COUNT_ALL : COUNT_ADMITTED;
	def.terms.rates.count = 2;
	def.terms.rates.rate[1] = rate[1];
	def.terms.rates.burst[1] = algorithms[algo]->default_burst ? burst[1] : 0;
	rig_open_sim(&packets, 100000, 1, 64);
	rig_apply(&packets, &def, 1);

	at = snprintf(text, sizeof(text),
		      "domain: api\ndescriptors:\n- key: ip\n  algorithm: %s\n"
		      "%s%s  limits:\n",
		      name, algorithms[algo]->has_buckets ? "  buckets: 3\n" : "",
		      count_all ? "  count: all\n" : "");
	for (u32 i = 0; i < 2; i++) {
		at += snprintf(text + at, sizeof(text) - at,
			       "  - {name: l%u, rate: %llu requests/%llums", i, rate[i].count,
			       rate[i].period_ns / MS);
		if (algorithms[algo]->default_burst)
			at += snprintf(text + at, sizeof(text) - at, ", burst: %llu", burst[i]);
		at += snprintf(text + at, sizeof(text) - at, "}\n");
	}
	rig_open(text, 10000);
}

/*
 * Where windows are aligned to UTC, it is set back within 10 ms only, as the shortest window is: a
 * request that is looked at removes counts that are over for good, a packet does not
 * (docs/guarantees.md).
 */
static void step_time(enum sl_algo algo)
{
	if (rng_below(3))
		rig_pass(rng_magnitude(30));
	if (!rng_below(500))
		rig_pass(rng_magnitude(36));
	if (!rng_below(1000) && algo != SL_ALGO_WINDOW_COUNTERS)
		rig_now.utc_ns -= sl_algo_is_window(algo)
					  ? rng_below(rig_now.utc_ns % (10 * MS) + 1)
					  : rng_magnitude(34);
	rig_set_time(&packets, rig_now.mono_ns, rig_now.utc_ns - rig_now.mono_ns);
}

static void run(enum sl_algo algo, const char *name, bool count_all)
{
	struct rig_packet packet = { .proto = 17, .dport = 53, .length = 100 };
	struct rig_frame frame;
	u32 passed = 0;

	open_both(algo, name, count_all);
	rig_frame_make(&frame, &packet);
	for (u32 i = 0; i < STEPS; i++) {
		u32 source = 0xc0000200 + (rng_below(2) ? rng_below(5) : rng_below(SOURCES));
		char text[32];
		bool packet_passes;

		step_time(algo);
		rig_frame_src(&frame, source);
		packet_passes = rig_passes(&packets, 0, &frame);
		snprintf(text, sizeof(text), "ip=%u.%u.%u.%u", source >> 24, source >> 16 & 255,
			 source >> 8 & 255, source & 255);
		assert_int_equal(allowed(text), packet_passes);
		passed += packet_passes;
	}
	assert_true(passed > 100 && passed < STEPS - 100);
	rig_close(&packets);
	rig_end();
}

TEST(test_count_all)
{
	run(SL_ALGO_TOKEN_BUCKET, "token-bucket", true);
	run(SL_ALGO_LEAKY_BUCKET, "leaky-bucket", true);
	run(SL_ALGO_SLIDING_WINDOW, "sliding-window", true);
	run(SL_ALGO_WINDOW_COUNTERS, "window-counters", true);
}

TEST(test_each_algorithm)
{
	static const struct {
		enum sl_algo algo;
		const char *name;
	} kinds[] = {
		{ SL_ALGO_FIRST_REQUEST, "fixed-window\n  window: first-request" },
		{ SL_ALGO_TOKEN_BUCKET, "token-bucket" },
		{ SL_ALGO_LEAKY_BUCKET, "leaky-bucket" },
		{ SL_ALGO_FIXED_WINDOW, "fixed-window" },
		{ SL_ALGO_INTERVAL_BUCKET, "interval-bucket" },
		{ SL_ALGO_WINDOW_COUNTERS, "window-counters" },
		{ SL_ALGO_SLIDING_WINDOW, "sliding-window" },
	};

	for (size_t i = 0; i < COUNT(kinds); i++) {
		print_message("# %s\n", kinds[i].name);
		run(kinds[i].algo, kinds[i].name, false);
	}
}

int main(void)
{
	rng_start("test_tiers");
	return test_run(NULL, NULL);
}
