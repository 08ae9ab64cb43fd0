// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Leases on 64 CPUs: over any interval a source gets at most rate x time + burst x 1.01, whatever
 * it does to collect leases: flows that move, CPUs that come online later, rules that change,
 * overrides, bytes, pauses as long as leases last; and what stays on CPUs after 4.2 ms is counted
 * to the unit. On dp_sim, with what packets pass by remembered and without, and with caches of
 * leases that are lost.
 */
#pragma GCC diagnostic ignored "-Wunused-function"

#include "lib/test.h"
#include "lib/model.h"
#include "lib/rig.h"
#include "lib/rng.h"
#include "config/policy.h"
#include "packet/dataplane/sim_env.h"

#define SEC SL_NS_PER_SEC
#define CPUS 64
#define MORE_CPUS 80
#define SOURCE 0x0a000001
#define FRAME 1000
#define TRIES 10 /* packets at once on a CPU that has no leases */
#define MS 1000000ULL

/* sim_env.h calls it; the other stages are not compiled into this test. */
__attribute__((unused)) static int sim_stage(env_ctx *ctx, enum sl_stage stage)
{
	return ctx && stage ? ENV_DROP : ENV_PASS;
}

static struct rig_frame frame;

static void apply_text(struct rig *rig, const char *text)
{
	struct policy *policy;
	struct sl_err err;

	if (policy_parse("test", text, strlen(text), &policy, &err))
		fail_msg("%s", err.message);
	image_free(rig_install(rig, policy));
	policy_free(policy);
}

/* `cpus` of MORE_CPUS are online as the rules are compiled. */
static void open_rig(struct rig *rig, bool remembers, u32 cpus, const char *text)
{
	rig_open_sim(rig, 1000, MORE_CPUS, 65536);
	if (!remembers)
		rig_no_refusal_cache(rig);
	rig->cpus = cpus;
	/* Not at an edge of a window. */
	rig_set_time(rig, 1000 * SEC, 1700000001 * SEC - 1000 * SEC);
	apply_text(rig, text);
	rig_frame_make(&frame, &(struct rig_packet){
				       .src = SOURCE, .proto = 17, .dport = 53, .length = FRAME });
}

/*
 * Packets on these CPUs, on each until it has taken `wanted` leases, the last of which is whole.
 * Returns the leases of all.
 */
static u32 collect_more(struct rig *rig, u32 first, u32 end, u32 wanted)
{
	u64 before = rig_global_stats(rig).leases, had = before;

	for (u32 cpu = first; cpu < end; cpu++, had = rig_global_stats(rig).leases)
		for (u32 i = 0; i < TRIES || (i < 1000000 && rig_global_stats(rig).leases > had);
		     i++) {
			if (rig_global_stats(rig).leases >= had + wanted)
				break;
			assert_true(rig_passes(rig, cpu, &frame));
		}
	return had - before;
}

static u32 collect(struct rig *rig, u32 first, u32 end)
{
	return collect_more(rig, first, end, 1);
}

/* All that can be had now, CPU by CPU: units. */
static u64 drain(struct rig *rig)
{
	u64 passed = 0;

	for (u32 cpu = 0; cpu < MORE_CPUS; cpu++)
		while (rig_passes(rig, cpu, &frame))
			passed++;
	return passed;
}

static void lose_cache(struct rig *rig, u32 cpu)
{
	memset(&((struct dp_sim *)rig->dp)->cpu[cpu].hints, 0, sizeof(struct sl_lease_hints));
}

/* Entries of the hash `lease`. */
static u32 leased_keys(struct rig *rig)
{
	const struct dp_sim *s = (struct dp_sim *)rig->dp;
	u32 count = 0;

	for (u32 i = 0; i < s->lease_entries; i++)
		count += s->lease_key[i] != 0;
	return count;
}

static void wait_s(struct rig *rig, u64 seconds)
{
	rig_set_time(rig, rig->now.mono_ns + seconds * SEC, rig->utc_offset_ns);
}

#define BURST 100000ULL
#define PACKETS "limits: [{name: leased, rate: 100000 packets/s}]\n"
#define FAST "limits: [{name: leased, rate: 200000 packets/s, burst: 100000}]\n"
#define BYTES "limits: [{name: leased, rate: 100000000 bytes/s, burst: 100000000}]\n"
#define OTHERS(rate)                                                                               \
	"limits: [{name: leased, rate: 10 packets/s, overrides: ["                                 \
	"{src: 10.0.0.0/24, rate: " rate "}]}]\n"

/*
 * A lease on each CPU, larger than what stays of it, then silence until its bucket is full, then
 * all at once: `part` of the burst is on all CPUs together, and of a frame of each lease a rest.
 */
static void collected(const char *text, u32 cpus, u32 cost, u32 part, u32 leases)
{
	for (u32 remembers = 0; remembers < 2; remembers++) {
		u64 kept = BURST * cost / 4 / cpus / (part / 4);
		struct rig rig;

		open_rig(&rig, remembers, cpus, text);
		assert_int_equal(collect_more(&rig, 0, MORE_CPUS, leases), cpus * leases);
		wait_s(&rig, 100);
		assert_int_equal(drain(&rig), BURST + cpus * (kept / cost));
		rig_close(&rig);
	}
}

TEST(test_collected)
{
	collected(PACKETS, CPUS, 1, 200, 5);
	collected(PACKETS, 2, 1, 200, 4 * 6 + 1);
	collected(OTHERS("100000 packets/s"), CPUS, 1, 200, 5);
	collected(BYTES, CPUS, FRAME, 200, 5);
	collected(FAST, CPUS, 1, 100, 4 * 2 + 1);
}

/*
 * At almost its rate on 64 CPUs a source renews leases on all of them, so that the bucket is full
 * and so are they. Then all at once, on one CPU after another.
 */
static void renewed(u64 rate, u64 burst, u32 cpus, u32 gap_ms, u32 of_each)
{
	const struct rate per_s = { rate, SEC, RATE_PACKETS };
	struct limit_def def = rig_limit_def("leased", per_s, burst, SL_ALGO_TOKEN_BUCKET);
	struct model_rule rule = model_rule(SL_ALGO_TOKEN_BUCKET, per_s, burst);

	for (u32 remembers = 0; remembers < 2; remembers++) {
		struct model_log log = { 0 };
		struct rig rig;
		u64 passed = 0;

		open_rig(&rig, remembers, cpus, PACKETS);
		def.accounting = ACCOUNTING_PERCPU;
		rig_apply(&rig, &def, 1);
		for (u32 round = 0; round < 1000; round++) {
			rig_set_time(&rig, rig.now.mono_ns + gap_ms * MS, rig.utc_offset_ns);
			for (u32 i = 0; i < cpus * of_each; i++) {
				assert_true(rig_passes(&rig, i / of_each, &frame));
				model_log_admit(&rule, &log, rig.now, 1);
			}
		}
		rig_set_time(&rig, rig.now.mono_ns + 3 * MS, rig.utc_offset_ns);
		for (u32 cpu = 0; cpu < cpus; cpu++)
			while (rig_passes(&rig, cpu, &frame)) {
				model_log_admit(&rule, &log, rig.now, 1);
				passed++;
			}
		print_message(
			"# %llu/s on %u CPUs: %llu at once, worst %llu of %llu, %llu leases\n",
			rate, cpus, passed, model_log_worst(&rule, &log), burst,
			rig_global_stats(&rig).leases);
		assert_true(rig_global_stats(&rig).leases >= cpus);
		assert_in_range(model_log_worst(&rule, &log), burst * 99 / 100,
				burst + burst / 100);
		rig_close(&rig);
	}
}

TEST(test_renewed)
{
	renewed(100000, BURST, CPUS, 4, 6);
	renewed(100000, BURST, CPUS, 7, 10);
	renewed(1000000, 1000000, CPUS, 3, 45);
	renewed(100000, 50000, 16, 4, 20);
}

/*
 * 64 CPUs hold leases of 15, then rules for 80 CPUs come, with leases of 12: what the 64 have above
 * 12 is void, or with those of the other 16 it is more than 1 %. Then rules for 2 CPUs: the others'
 * are void. Then those of the 80 again.
 */
TEST(test_cpus_come_and_go)
{
	for (u32 remembers = 0; remembers < 2; remembers++) {
		struct rig rig;

		open_rig(&rig, remembers, CPUS, FAST);
		assert_int_equal(collect_more(&rig, 0, CPUS, 9), CPUS * 9);
		rig.cpus = MORE_CPUS;
		apply_text(&rig, FAST);
		wait_s(&rig, 10);
		assert_int_equal(collect_more(&rig, CPUS, MORE_CPUS, 9), (MORE_CPUS - CPUS) * 9);
		wait_s(&rig, 10);
		assert_int_equal(drain(&rig), BURST + MORE_CPUS * (BURST / 100 / MORE_CPUS));

		wait_s(&rig, 10);
		assert_int_equal(collect_more(&rig, 0, MORE_CPUS, 9), MORE_CPUS * 9);
		rig.cpus = 2;
		apply_text(&rig, FAST);
		wait_s(&rig, 10);
		assert_int_equal(drain(&rig), BURST + 2 * (BURST / 100 / MORE_CPUS));
		rig_close(&rig);
	}
}

/* After a change of the rate what leases hold is void: it was a part of another burst. */
TEST(test_rate_changes)
{
	for (u32 remembers = 0; remembers < 2; remembers++) {
		struct rig rig;

		open_rig(&rig, remembers, CPUS, OTHERS("100000 packets/s"));
		assert_int_equal(collect(&rig, 0, CPUS), CPUS);
		apply_text(&rig, OTHERS("1000 packets/s, burst: 20000"));
		wait_s(&rig, 100);
		/* An override has no generation, so each lease is cut to what a CPU keeps of the
		 * new batch. */
		assert_int_equal(drain(&rig), 20000 + CPUS * (20000 / 4 / CPUS / 50));
		wait_s(&rig, 100);
		/* As many as fit into 1/32 of the burst. */
		assert_int_equal(collect(&rig, 0, CPUS / 2), CPUS / 2);
		apply_text(&rig, "limits: [{name: leased, rate: 1000 packets/s, burst: 10000}]\n");
		wait_s(&rig, 100);
		assert_int_equal(drain(&rig), 10000);
		rig_close(&rig);
	}
}

/* ------------------------------------------------------------------ flows that move */

/*
 * Flows, each a while on one CPU; together about 3 times the limit, with pauses. A second source
 * at a third of the limit, that moves as well, loses nothing. `loses`: now and then a CPU's cache
 * of leases is cleared.
 */
static void moved(enum sl_algo algo, struct rate rate, bool remembers, bool loses)
{
	struct limit_def def = rig_limit_def("leased", rate, 0, algo);
	struct model_rule rule = model_rule(algo, rate, 0);
	u32 flow[16] = { 0 }, turns[16] = { 0 };
	u64 gap = rate.period_ns / rate.count, refused = 0;
	struct model_log log = { 0 };
	struct rig_frame other;
	struct rig rig;

	open_rig(&rig, remembers, CPUS, PACKETS);
	def.accounting = ACCOUNTING_PERCPU;
	rig_apply(&rig, &def, 1);
	other = frame;
	rig_frame_src(&other, SOURCE + 77);
	for (u32 i = 0; i < 1000000; i++) {
		u32 k = rng_below(16);
		u64 step = rng_below(gap * 2 / 3);

		if (!rng_below(50000))
			step += rng_below(SEC / 5);
		if (!rng_below(5000))
			step += rng_below(8 * MS);
		if (loses && !rng_below(1000))
			lose_cache(&rig, rng_below(MORE_CPUS));
		rig_set_time(&rig, rig.now.mono_ns + step, rig.utc_offset_ns);
		if (!turns[k]) {
			flow[k] = rng_below(MORE_CPUS);
			turns[k] = 1 + rng_below(100);
		}
		turns[k]--;
		if (i % 10 == 0)
			assert_true(rig_passes(&rig, flow[(k + 1) % 16], &other));
		if (rig_passes(&rig, flow[k], &frame))
			model_log_admit(&rule, &log, rig.now, 1);
		else
			refused++;
	}
	print_message(
		"# algorithm %u: admitted %llu, refused %llu, worst %llu of %llu, %llu leases\n",
		algo, log.admitted, refused, model_log_worst(&rule, &log), rule.capacity,
		rig_global_stats(&rig).leases);
	assert_true(refused > 100000);
	assert_true(rig_global_stats(&rig).leases > 1000);
	if (algo == SL_ALGO_TOKEN_BUCKET)
		/* A flow that moves may lose what leases took below SL_LEASE_USED, and the 1/200
		 * that CPUs keep. */
		assert_in_range(model_log_worst(&rule, &log),
				rule.capacity - rule.capacity * (SL_LEASE_USED + 1) / 255 -
					rule.capacity / 200,
				rule.capacity * 101 / 100);
	else
		/* Some units may lie on a CPU that no flow comes back to before the window ends. */
		assert_in_range(log.worst_window, rule.capacity * 99 / 100, rule.capacity);
	rig_close(&rig);
}

TEST(test_flows_that_move)
{
	const struct rate rate = { 100000, SEC, RATE_PACKETS };

	rng_start("flows_that_move");
	for (u32 how = 0; how < 3; how++) {
		moved(SL_ALGO_TOKEN_BUCKET, rate, how, how > 1);
		moved(SL_ALGO_FIXED_WINDOW, rate, how, how > 1);
		moved(SL_ALGO_SLIDING_WINDOW, rate, how, how > 1);
	}
}

/* ------------------------------------------------------------------ an ordinary limit */

#define MANY 16

/*
 * 1000/s on 16 CPUs: a source at 0.9 of it, in trains of packets now on this CPU and now on that,
 * is counted by CPU, and none of its packets is refused. A flood on all CPUs gets the limit, and no
 * more.
 */
static void ordinary(enum sl_algo algo, u64 burst, bool loses)
{
	const struct rate rate = { 1000, SEC, RATE_PACKETS };
	struct limit_def def = rig_limit_def("leased", rate, burst, algo);
	struct model_rule rule = model_rule(algo, rate, burst);
	struct model_log log = { 0 };
	u64 leases, flood_ns;
	struct rig rig;

	open_rig(&rig, true, MANY, PACKETS);
	def.accounting = ACCOUNTING_PERCPU;
	rig_apply(&rig, &def, 1);
	for (u32 train = 0; train < 500; train++) {
		u32 cpu = rng_below(MANY);

		rig_set_time(&rig, rig.now.mono_ns + 20 * MS, rig.utc_offset_ns);
		for (u32 i = 0; i < 18; i++) {
			assert_true(rig_passes(&rig, cpu, &frame));
			model_log_admit(&rule, &log, rig.now, 1);
			if (loses && !rng_below(180))
				lose_cache(&rig, cpu);
		}
	}
	leases = rig_global_stats(&rig).leases;
	assert_true(leases >= 500);
	assert_true(leased_keys(&rig) == 1);

	/* From an edge of a window on. */
	rig_set_time(&rig, rig.now.mono_ns + 10 * SEC - rig.now.utc_ns % SEC, rig.utc_offset_ns);
	memset(&log, 0, sizeof(log));
	flood_ns = rig.now.mono_ns + 3 * SEC;
	while (rig.now.mono_ns < flood_ns) {
		for (u32 i = 0; i < 5 * MANY; i++)
			if (rig_passes(&rig, i / 5, &frame))
				model_log_admit(&rule, &log, rig.now, 1);
		rig_set_time(&rig, rig.now.mono_ns + MS, rig.utc_offset_ns);
	}
	print_message(
		"# algorithm %u: %llu leases, then flooded: %llu in 3 s, worst %llu of %llu\n",
		algo, leases, log.admitted, model_log_worst(&rule, &log), rule.capacity);
	assert_in_range(log.admitted, (3000 + burst) * 99 / 100, 3000 + burst + burst / 100);
	if (burst)
		assert_in_range(model_log_worst(&rule, &log), burst * 99 / 100,
				burst + burst / 100);
	else
		assert_true(log.worst_window <= 1000);

	/* After 5 ms no CPU holds any. */
	rig_set_time(&rig, rig.now.mono_ns + 10 * SEC, rig.utc_offset_ns);
	for (u32 cpu = 0; cpu < MANY; cpu++)
		for (u32 i = 0; i < 6; i++)
			assert_true(rig_passes(&rig, cpu, &frame));
	rig_set_time(&rig, rig.now.mono_ns + 10 * SEC, rig.utc_offset_ns);
	assert_int_equal(drain(&rig), rule.capacity);
	rig_close(&rig);
}

TEST(test_ordinary_limit)
{
	rng_start("ordinary_limit");
	for (u32 loses = 0; loses < 2; loses++) {
		ordinary(SL_ALGO_TOKEN_BUCKET, 2000, loses);
		ordinary(SL_ALGO_FIXED_WINDOW, 0, loses);
	}
}

TEST_MAIN
