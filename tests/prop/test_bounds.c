// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The units that a source gets, whatever the number of CPUs it comes in by: never more than
 *
 *     rate x time + burst x 1.01        over any interval (a log looks at every one of them)
 *     rate x time + limit + 1           the same, where windows slide
 *     the limit                         in a window, of both kinds
 *
 * and, flooding, at least 0.99 of it over the whole time; while a neighbour that stays below
 * the same limit loses nothing at all. On dp_sim, for all algorithms and both accountings.
 */
#include "lib/test.h"
#include "lib/model.h"
#include "lib/rig.h"
#include "lib/rng.h"

#define SEC SL_NS_PER_SEC
#define MINUTE (60 * SEC)
#define FLOODER 0x0a000001
#define NEIGHBOUR 0x0a010001

/* A flood of one source, and its neighbour at 0.9 of the same limit. */
struct flood {
	enum sl_algo algo;
	struct rate rate;
	u64 burst;
	u32 cpus;
	bool spread;		       /* over all of the CPUs, else by the first one */
	u32 length_least, length_most; /* of its frames */
	u32 load_percent;	       /* of the limit; 0: what makes about PACKETS */
	u64 seconds;
};

struct got {
	struct model_log log;
	u64 neighbour_lost, neighbour_sent;
	u64 offered;
	u64 leases;
};

#define PACKETS 500000ULL

static const struct rate packets_10 = { 10, SEC, RATE_PACKETS };
static const struct rate packets_1k = { 1000, SEC, RATE_PACKETS };
static const struct rate packets_100k = { 100000, SEC, RATE_PACKETS };
static const struct rate packets_1m = { 1000000, SEC, RATE_PACKETS };
static const struct rate packets_100k_m = { 100000, MINUTE, RATE_PACKETS };
static const struct rate bytes_1m = { 1000000, SEC, RATE_BYTES };
static const struct rate bytes_30m = { 30000000, SEC, RATE_BYTES };
static const struct rate bytes_100m = { 100000000, SEC, RATE_BYTES };
static const struct rate bits_8m = { 8000000, SEC, RATE_BITS };

static u32 frame_length(const struct flood *f)
{
	return f->length_least + rng_below(f->length_most - f->length_least + 1);
}

static const char *algorithm_word(enum sl_algo algo)
{
	static const char *const words[] = { "bucket", "leaky", "window", "sliding" };

	return words[algo];
}

static void describe(const struct flood *f, enum accounting accounting)
{
	print_message(
		"# %s %s %llu per %llu ms of unit %u, burst %llu, frames %u..%u, %s of %u CPUs, load %u%%\n",
		accounting == ACCOUNTING_EXACT ? "exact " : "percpu", algorithm_word(f->algo),
		f->rate.count, f->rate.period_ns / (SEC / 1000), f->rate.unit, f->burst,
		f->length_least, f->length_most, f->spread ? "all" : "one", f->cpus,
		f->load_percent);
}

/* Mean time between a source's packets at `percent` of its limit. */
static u64 gap_ns(const struct flood *f, const struct model_rule *rule, u32 percent)
{
	u64 cost = rule->bytes ? (f->length_least + f->length_most) / 2 : 1;

	return (unsigned __int128)cost * rule->period_ns * 100 / rule->count / percent;
}

/* Around the mean, from nothing to twice of it. */
static u64 jitter(u64 gap)
{
	return rng_below(2 * gap + 1);
}

/* The flooder's packets and the neighbour's, in the order of time. */
static void run_flood(struct rig *rig, const struct flood *f, const struct model_rule *rule,
		      u32 percent, struct got *ret)
{
	u64 begin = rig->now.mono_ns, end = begin + f->seconds * SEC;
	u64 gap = gap_ns(f, rule, percent), neighbour_gap = gap_ns(f, rule, 90);
	u64 at = begin, neighbour_at = begin + neighbour_gap;
	struct rig_frame frame;

	memset(ret, 0, sizeof(*ret));
	while (at < end || neighbour_at < end) {
		bool flooder = at <= neighbour_at;
		u32 cpu = f->spread ? rng_below(f->cpus) : 0;
		struct rig_packet packet = {
			.src = flooder ? FLOODER : NEIGHBOUR,
			.proto = 17,
			.dport = 53,
			.length = frame_length(f),
		};

		if (!flooder && rule->bytes)
			packet.length = (f->length_least + f->length_most) / 2;
		rig_set_time(rig, flooder ? at : neighbour_at, rig->utc_offset_ns);
		rig_frame_make(&frame, &packet);
		if (!flooder) {
			ret->neighbour_lost += !rig_passes(rig, cpu, &frame);
			ret->neighbour_sent++;
			neighbour_at += neighbour_gap;
			continue;
		}
		ret->offered++;
		if (rig_passes(rig, cpu, &frame))
			model_log_admit(rule, &ret->log, rig->now, rule->bytes ? frame.length : 1);
		at += jitter(gap);
	}
	ret->leases = rig_global_stats(rig).leases;
}

/* Of all admitted units: never more than the algorithm's bound, in any interval or window. */
static bool within_bound(enum sl_algo algo, enum accounting accounting,
			 const struct model_rule *rule, const struct model_log *log)
{
	u64 most = rule->capacity;

	if (sl_algo_is_window(algo) && !rule->refill && log->worst_window > most)
		return false;
	/* An interval has one edge more than it has whole windows. */
	if (rule->refill)
		return model_log_worst(rule, log) <= most + rule->refill;
	if (algo == SL_ALGO_FIXED_WINDOW || algo == SL_ALGO_WINDOW_COUNTERS)
		return true;
	if (algo == SL_ALGO_SLIDING_WINDOW)
		most++;
	if (algo == SL_ALGO_TOKEN_BUCKET && accounting == ACCOUNTING_PERCPU)
		most += rule->capacity / 100 + 1;
	return model_log_worst(rule, log) <= most;
}

static bool check_flood(const struct flood *f, enum accounting accounting,
			const struct model_rule *rule, const struct got *got)
{
	u64 due = model_refill(rule, f->seconds * SEC) +
		  (sl_algo_is_window(f->algo) ? 0 : rule->capacity);
	bool good = within_bound(f->algo, accounting, rule, &got->log) &&
		    got->log.admitted * 100 >= due * 99 && !got->neighbour_lost;

	if (!good) {
		describe(f, accounting);
		print_message(
			"#   admitted %llu of %llu due (%.4f); worst %llu, of a window %llu, of %llu; neighbour lost %llu of %llu; %llu leases\n",
			got->log.admitted, due, (double)got->log.admitted / due,
			model_log_worst(rule, &got->log), got->log.worst_window, rule->capacity,
			got->neighbour_lost, got->neighbour_sent, got->leases);
	}
	return good;
}

static bool flood_holds(const struct flood *f, enum accounting accounting)
{
	struct limit_def def = rig_limit_def("flooded", f->rate, f->burst, f->algo);
	struct model_rule rule = model_rule(f->algo, f->rate, f->burst);
	u32 percent = f->load_percent;
	struct rig rig;
	struct got got;

	if (!percent) {
		percent = 100 * PACKETS * gap_ns(f, &rule, 100) / (f->seconds * SEC);
		percent = percent < 200 ? 200 : percent > 1000 ? 1000 : percent;
	}
	def.accounting = accounting;
	rig_open_sim(&rig, 1000, f->cpus, 65536);
	/* A whole number of windows, from an edge. */
	rig_set_time(&rig, 1020 * SEC, 1700000040 * SEC - 1020 * SEC);
	rig_apply(&rig, &def, 1);
	run_flood(&rig, f, &rule, percent, &got);
	rig_close(&rig);
	return check_flood(f, accounting, &rule, &got);
}

static void all_hold(const char *test, const struct flood *flood, size_t count)
{
	u32 bad = 0;

	rng_start(test);
	for (size_t i = 0; i < count; i++)
		for (u32 spread = 0; spread < 2; spread++) {
			struct flood f = flood[i];

			f.spread = spread;
			bad += !flood_holds(&f, ACCOUNTING_EXACT);
			bad += !flood_holds(&f, ACCOUNTING_PERCPU);
		}
	assert_int_equal(bad, 0);
}

/* Values of .short_percpu. */
#define BUCKET SL_ALGO_TOKEN_BUCKET
#define LEAKY SL_ALGO_LEAKY_BUCKET
#define WINDOW SL_ALGO_FIXED_WINDOW
#define SLIDING SL_ALGO_SLIDING_WINDOW
#define INTERVAL SL_ALGO_INTERVAL_BUCKET
#define COUNTERS SL_ALGO_WINDOW_COUNTERS

TEST(test_packets)
{
	const struct flood flood[] = {
		{ BUCKET, packets_10, 0, 64, false, 74, 74, 0, 20 },
		{ BUCKET, packets_1k, 10, 64, false, 74, 74, 0, 20 },
		{ BUCKET, packets_100k, 0, 2, false, 74, 74, 0, 10 },
		{ BUCKET, packets_1m, 0, 64, false, 74, 74, 0, 2 },
		{ WINDOW, packets_10, 0, 64, false, 74, 74, 0, 20 },
		{ WINDOW, packets_100k, 0, 2, false, 74, 74, 0, 10 },
		{ WINDOW, packets_1m, 0, 64, false, 74, 74, 0, 2 },
		{ INTERVAL, packets_10, 0, 64, false, 74, 74, 0, 20 },
		{ INTERVAL, packets_1k, 5000, 64, false, 74, 74, 0, 20 },
		{ INTERVAL, packets_100k, 250000, 2, false, 74, 74, 0, 10 },
		{ COUNTERS, packets_10, 0, 64, false, 74, 74, 0, 20 },
		{ COUNTERS, packets_1k, 0, 2, false, 74, 74, 0, 20 },
		{ SLIDING, packets_10, 0, 64, false, 74, 74, 0, 20 },
		{ SLIDING, packets_100k, 0, 2, false, 74, 74, 0, 10 },
		{ SLIDING, packets_1m, 0, 64, false, 74, 74, 0, 2 },
		/* A flood that is there when a packet is due; half of its mean gap is lost. */
		{ LEAKY, packets_10, 0, 64, false, 74, 74, 10000, 100 },
		{ LEAKY, packets_1k, 0, 2, false, 74, 74, 10000, 10 },
	};

	all_hold("packets", flood, COUNT(flood));
}

/* Windows that are over in less than a second, one in a hundredth: as long as a lease. */
TEST(test_short_periods)
{
	static const struct rate tenth = { 100, SEC / 10, RATE_PACKETS },
				 least = { 1000, SEC / 100, RATE_PACKETS };
	const struct flood flood[] = {
		{ BUCKET, tenth, 200, 2, true, 74, 74, 0, 20 },
		{ WINDOW, least, 0, 2, false, 74, 74, 0, 10 },
		{ SLIDING, least, 0, 2, false, 74, 74, 0, 10 },
		{ INTERVAL, tenth, 300, 2, false, 74, 74, 0, 20 },
		{ LEAKY, tenth, 0, 2, false, 74, 74, 10000, 10 },
	};

	all_hold("short_periods", flood, COUNT(flood));
}

TEST(test_bytes)
{
	const struct flood flood[] = {
		{ BUCKET, bytes_1m, 0, 64, false, 74, 1514, 0, 20 },
		{ BUCKET, bits_8m, 0, 2, false, 74, 1514, 0, 20 },
		{ BUCKET, bytes_100m, 0, 64, false, 74, 1514, 0, 10 },
		{ WINDOW, bytes_100m, 0, 64, false, 74, 1514, 0, 10 },
		{ INTERVAL, bytes_1m, 3000000, 2, false, 74, 1514, 0, 20 },
		{ SLIDING, bytes_30m, 0, 64, false, 74, 1514, 0, 20 },
		{ LEAKY, bits_8m, 0, 64, false, 74, 1514, 2000, 20 },
	};

	all_hold("bytes", flood, COUNT(flood));
}

/*
 * Leases that are far larger than a CPU's part of the source's packets within their 10 ms: the
 * rest of them when they end must not be lost to the source.
 */
TEST(test_slow_for_their_capacity)
{
	const struct flood flood[] = {
		{ BUCKET, packets_1k, 100000, 64, false, 74, 74, 1000, 20 },
		{ BUCKET, bytes_1m, 20000000, 2, false, 1000, 1000, 1000, 20 },
		{ WINDOW, packets_100k_m, 0, 64, false, 74, 74, 200, 120 },
		{ SLIDING, packets_100k_m, 0, 2, false, 74, 74, 200, 180 },
	};

	all_hold("slow_for_their_capacity", flood, COUNT(flood));
}

/* ------------------------------------------------------------------ evicted leases */

#define CROWD 512

/*
 * A lease cache of 64 entries for 512 sources that all flood by all CPUs: a lease that is
 * thrown out is lost to its source, but never doubled.
 */
static void crowd_is_held(enum sl_algo algo, struct rate rate, u64 burst)
{
	static struct model_log log[CROWD];
	struct limit_def def = rig_limit_def("crowd", rate, burst, algo);
	struct model_rule rule = model_rule(algo, rate, burst);
	struct rig_packet packet = { .proto = 17, .length = 500 };
	struct rig_frame frame;
	struct rig rig;
	u64 leases;

	memset(log, 0, sizeof(log));
	def.accounting = ACCOUNTING_PERCPU;
	rig_open_sim(&rig, 10000, 2, 64);
	rig_apply(&rig, &def, 1);
	rig_frame_make(&frame, &packet);
	for (u64 i = 0; i < 2 * PACKETS; i++) {
		/* Runs of one source, so that it comes to spend some of its leases. */
		u32 who = (i / 16 * 0x9e3779b97f4a7c15ULL) >> 32 & (CROWD - 1);

		rig_set_time(&rig, rig.now.mono_ns + rng_below(2000), rig.utc_offset_ns);
		rig_frame_src(&frame, FLOODER + who);
		if (rig_passes(&rig, rng_below(2), &frame))
			model_log_admit(&rule, &log[who], rig.now, rule.bytes ? 500 : 1);
	}
	leases = rig_global_stats(&rig).leases;
	for (u32 i = 0; i < CROWD; i++) {
		assert_true(log[i].admitted > rule.capacity / 2);
		assert_true(within_bound(algo, ACCOUNTING_PERCPU, &rule, &log[i]));
	}
	assert_true(leases > 1000);
	print_message("# %llu leases through 64 entries\n", leases);
	rig_close(&rig);
}

TEST(test_lease_cache_under_eviction)
{
	rng_start("lease_cache_under_eviction");
	/* Buckets that fill fast: their leases are small ones at any fill. */
	crowd_is_held(BUCKET, (struct rate){ 1500, SEC, RATE_PACKETS }, 1000);
	crowd_is_held(SLIDING, (struct rate){ 1000, SEC, RATE_PACKETS }, 0);
	crowd_is_held(WINDOW, (struct rate){ 1000, SEC, RATE_PACKETS }, 0);
	crowd_is_held(BUCKET, (struct rate){ 750000, SEC, RATE_BYTES }, 600000);
}

TEST_MAIN
