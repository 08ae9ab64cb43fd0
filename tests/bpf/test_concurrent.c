// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The BPF program on two CPUs at once, by the kernel's clock: the same keys, a table of 64
 * sets so that words are evicted all the time, rule sets applied meanwhile, and the leases in
 * an LRU of 64 entries. No key gets more than its limit, beyond the units counted as evicted.
 *
 * All limits are per hour, so that refilling does not blur the counts. Each
 * round has a limit of its own: bucket states of earlier rounds belong to no limit, and are free.
 */
#include <unistd.h>

#include "lib/test.h"
#include "bpf/race.h"
#include "lib/rng.h"

#define HOUR (3600 * SL_NS_PER_SEC)
#define KEYS 600
#define SOURCE 0x0a000001

struct worker {
	u64 seed;	      /* the same for all: they use the same keys */
	u32 keys, batch, run; /* a key comes `run` times at most in a row */
	u64 packets;
	u64 passed[KEYS]; /* with batch 1 */
};

static void work(struct rig *rig, void *arg)
{
	struct worker *w = arg;
	struct rig_frame frame;
	u64 x = w->seed;

	rig_frame_make(&frame, &(struct rig_packet){ .proto = 17, .dport = 53, .length = 100 });
	for (u64 i = 0, left = 0; i < w->packets; i += w->batch, left--) {
		static __thread u32 key;

		if (!left) {
			x = x * 6364136223846793005ULL + 1442695040888963407ULL;
			key = (x >> 33) % w->keys;
			left = 1 + (x >> 20) % w->run;
			rig_frame_src(&frame, SOURCE + key);
		}
		if (w->batch > 1)
			rig_repeat(rig, &frame, w->batch);
		else
			w->passed[key] += rig_passes(rig, 0, &frame);
	}
}

/* A limit that no packet meets, changed by each reload, stands after the one that counts. */
static void apply(struct rig *rig, const struct limit_def *limit, u64 version)
{
	static struct u16_range port = { 1, 1 };
	struct limit_def both[2] = {
		*limit,
		rig_limit_def("other", (struct rate){ 100 + version % 7, HOUR, RATE_PACKETS }, 1000,
			      SL_ALGO_TOKEN_BUCKET),
	};

	both[1].match.dport = &port;
	both[1].match.dport_count = 1;
	rig_read_time(rig);
	rig_apply(rig, both, 2);
}

/* Runs the workers, and reloads until they are done. Returns how long that took. */
static u64 run_workers(struct rig *rig, const struct limit_def *limit, struct worker *w,
		       u64 *reloads)
{
	struct race race = { .rig = rig, .send = work };
	u64 begin;

	apply(rig, limit, 0);
	begin = rig->now.mono_ns;
	for (u32 i = 0; i < RACERS; i++)
		race.racer[i].arg = &w[i];
	race_begin(&race);
	while (!race_over(&race)) {
		apply(rig, limit, ++*reloads);
		usleep(2000);
	}
	race_end(&race);
	rig_read_time(rig);
	return rig->now.mono_ns - begin;
}

static enum sl_algo round_algo(u32 round)
{
	return round & 1 ? SL_ALGO_FIXED_WINDOW : SL_ALGO_TOKEN_BUCKET;
}

static struct limit_def round_limit(u32 round, enum sl_algo algo, enum accounting accounting,
				    u64 count)
{
	struct limit_def limit;

	limit = rig_limit_def("", (struct rate){ count, HOUR, RATE_PACKETS },
			      algo == SL_ALGO_TOKEN_BUCKET ? count : 0, algo);
	snprintf(limit.name, sizeof(limit.name), "round-%u", round);
	limit.accounting = accounting;
	limit.on_full = SL_FULL_CLOSED;
	return limit;
}

/* The most for one key in a round of that length: leases of a bucket may add 1%. */
static u64 most_of(const struct limit_def *limit, u64 took_ns)
{
	u64 most = limit->terms.rates.rate[0].count;

	if (limit->terms.algorithm == SL_ALGO_TOKEN_BUCKET)
		most += most * took_ns / HOUR + 1;
	if (limit->terms.algorithm == SL_ALGO_TOKEN_BUCKET &&
	    limit->accounting == ACCOUNTING_PERCPU)
		most += most / 100;
	return most;
}

/* ------------------------------------------------------------------ one key */

/* Two CPUs in batches on one key: every compare-and-swap has a rival. */
TEST(test_one_key)
{
	const u64 count = 100000, packets = 200000;
	u64 reloads = 0;
	struct rig rig;

	rng_start("one_key");
	rig_open_bpf(&rig, 170, false, 0);
	for (u32 round = 0; round < 8; round++) {
		struct limit_def limit =
			round_limit(round, round_algo(round), round >> 1 & 1, count);
		static struct worker w[RACERS];
		struct sl_limit_stats stats;
		u64 took_ns;

		memset(w, 0, sizeof(w));
		for (u32 i = 0; i < RACERS; i++)
			w[i] = (struct worker){
				.keys = 1, .batch = 40000, .run = 1, .packets = packets
			};
		took_ns = run_workers(&rig, &limit, w, &reloads);
		stats = rig_limit_stats(&rig, 0);
		print_message("# one key, %s %s: %llu of %llu passed, %llu contended so far\n",
			      limit.accounting == ACCOUNTING_EXACT ? "exact" : "percpu",
			      limit.terms.algorithm == SL_ALGO_TOKEN_BUCKET ? "bucket" : "window",
			      stats.packets[SL_LV_PASS], count, rig_global_stats(&rig).contended);
		assert_int_equal(stats.packets[SL_LV_PASS] + stats.packets[SL_LV_DROP],
				 RACERS * packets);
		assert_in_range(stats.packets[SL_LV_PASS], count * 99 / 100,
				most_of(&limit, took_ns));
	}
	rig_close(&rig);
}

/* ------------------------------------------------------------------ many keys */

struct total {
	u64 excess, evicted_units, evicted, recorded, full, reloads, kept_to;
};

/*
 * 600 keys for 256 ways. A bucket that was never refused may be evicted and its key begin
 * again; one that was is recorded, and comes back used up. So each unit above a key's limit must be
 * among those counted as evicted.
 */
static void crowded_round(struct rig *rig, const struct limit_def *limit, struct total *total)
{
	static struct worker w[RACERS];
	struct sl_limit_stats stats;
	u64 seed = rng(), count = limit->terms.rates.rate[0].count, excess = 0, most, slack;

	memset(w, 0, sizeof(w));
	for (u32 i = 0; i < RACERS; i++)
		w[i] = (struct worker){
			.seed = seed, .keys = KEYS, .batch = 1, .run = 64, .packets = KEYS * count
		};
	most = most_of(limit, run_workers(rig, limit, w, &total->reloads));
	stats = rig_limit_stats(rig, 0);
	for (u32 k = 0; k < KEYS; k++) {
		u64 passed = w[0].passed[k] + w[1].passed[k];

		excess += passed > most ? passed - most : 0;
		total->kept_to += passed >= count / 2 && passed <= most;
	}
	/*
	 * Evicted units are computed from the utilization, in steps of 1/254 of the limit, rounded
	 * down: of a window of 254, to the unit.
	 */
	assert_int_equal(count % 254, 0);
	slack = stats.evicted * (count / 254 - (limit->terms.algorithm == SL_ALGO_FIXED_WINDOW));
	if (excess > stats.evicted_units + slack)
		fail_msg("%s: %llu units beyond the limit; %llu words evicted, %llu units forgiven",
			 limit->name, excess, stats.evicted, stats.evicted_units);
	total->excess += excess;
	total->evicted_units += stats.evicted_units;
	total->evicted += stats.evicted;
	total->recorded += stats.recorded;
	total->full += stats.full;
}

/* Enough buckets were evicted, recorded and reloaded for a test of `rounds` rounds. */
static bool is_pressed(const struct total *total, u32 rounds)
{
	return total->evicted > 100 * rounds && total->recorded > 100 * rounds &&
	       total->reloads >= rounds;
}

/* `rounds`, and more where the two CPUs met too rarely for the pressure: at most ten times as
 * many. */
static void crowded(const char *test, u32 lease_entries, u64 count, u32 rounds)
{
	struct total total = { 0 };
	struct sl_global_stats stats;
	struct rig rig;

	rng_start(test);
	rig_open_bpf(&rig, 170, false, lease_entries);
	for (u32 round = 0; round < rounds || (!is_pressed(&total, rounds) && round < 10 * rounds);
	     round++) {
		struct limit_def limit =
			round_limit(round, round_algo(round),
				    lease_entries ? ACCOUNTING_PERCPU : ACCOUNTING_EXACT, count);

		crowded_round(&rig, &limit, &total);
	}
	stats = rig_global_stats(&rig);
	print_message(
		"# %u rounds or more, %llu reloads: %llu units beyond limits, %llu forgiven of %llu evicted words; %llu offenders recorded, %llu full, %llu contended, %llu leases\n",
		rounds, total.reloads, total.excess, total.evicted_units, total.evicted,
		total.recorded, total.full, stats.contended, stats.leases);
	/* The pressure was there, and keys whose buckets stayed got their whole limit. */
	assert_true(is_pressed(&total, rounds));
	assert_true(total.kept_to > 100 * rounds);
	if (lease_entries)
		assert_true(stats.leases > 100 * rounds);
	rig_close(&rig);
}

TEST(test_many_keys)
{
	crowded("many_keys", 0, 254, 6);
}

TEST(test_many_keys_and_leases)
{
	crowded("many_keys_and_leases", 64, 508, 4);
}

TEST_MAIN
