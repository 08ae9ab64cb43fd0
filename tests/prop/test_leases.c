// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Leases on 64 CPUs: over any interval a source gets at most rate x time + burst and what all its
 * CPUs may hold, to the unit (that is within burst x 1.01), whatever it does to collect leases: flows
 * that move, CPUs that come online later, rules that change, overrides, bytes. On dp_sim, with
 * what packets pass by remembered and without.
 */
#include "lib/test.h"
#include "lib/model.h"
#include "lib/rig.h"
#include "lib/rng.h"
#include "config/policy.h"

#define SEC SL_NS_PER_SEC
#define CPUS 64
#define MORE_CPUS 80
#define SOURCE 0x0a000001
#define FRAME 1000
#define TRIES 10	/* packets at once on a CPU that has no leases */

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
	rig_frame_make(&frame, &(struct rig_packet){ .src = SOURCE, .proto = 17, .dport = 53,
						     .length = FRAME });
}

/* Packets on these CPUs, on each until it has taken a lease; returns how many have. */
static u32 collect(struct rig *rig, u32 first, u32 end)
{
	u64 before = rig_global_stats(rig).leases, had = before;

	for (u32 cpu = first; cpu < end; cpu++, had = rig_global_stats(rig).leases)
		for (u32 i = 0; i < TRIES && rig_global_stats(rig).leases == had; i++)
			assert_true(rig_passes(rig, cpu, &frame));
	return had - before;
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

static void wait_s(struct rig *rig, u64 seconds)
{
	rig_set_time(rig, rig->now.mono_ns + seconds * SEC, rig->utc_offset_ns);
}

#define BURST 100000ULL
#define PACKETS "limits: [{name: leased, rate: 100000 packets/s}]\n"
#define BYTES "limits: [{name: leased, rate: 100000000 bytes/s, burst: 100000000}]\n"
#define OTHERS(rate) "limits: [{name: leased, rate: 10 packets/s, overrides: [" \
	"{src: 10.0.0.0/24, rate: " rate "}]}]\n"

/*
 * The worst that a source can do: a lease on each CPU, then silence until its bucket is full, then
 * all at once.
 */
static void collected(const char *text, u32 cpus, u32 cost)
{
	for (u32 remembers = 0; remembers < 2; remembers++) {
		u64 batch = BURST * cost / 100 / cpus;
		struct rig rig;

		open_rig(&rig, remembers, cpus, text);
		assert_int_equal(collect(&rig, 0, MORE_CPUS), cpus);
		wait_s(&rig, 100);
		/* A frame is not divided: of each lease a rest may stay. */
		assert_int_equal(drain(&rig), BURST + cpus * (batch / cost));
		rig_close(&rig);
	}
}

TEST(test_collected)
{
	collected(PACKETS, CPUS, 1);
	collected(PACKETS, 2, 1);
	collected(OTHERS("100000 packets/s"), CPUS, 1);
	collected(BYTES, CPUS, FRAME);
}

/*
 * 64 CPUs hold leases of 15, then rules for 80 CPUs come, with leases of 12: what the 64 have above 12
 * is void, or with those of the other 16 it is more than 1 %. Then rules for 2 CPUs: the others' are
 * void. Then those of the 80 again.
 */
TEST(test_cpus_come_and_go)
{
	for (u32 remembers = 0; remembers < 2; remembers++) {
		struct rig rig;

		open_rig(&rig, remembers, CPUS, PACKETS);
		assert_int_equal(collect(&rig, 0, CPUS), CPUS);
		rig.cpus = MORE_CPUS;
		apply_text(&rig, PACKETS);
		wait_s(&rig, 10);
		assert_int_equal(collect(&rig, CPUS, MORE_CPUS), MORE_CPUS - CPUS);
		wait_s(&rig, 10);
		assert_int_equal(drain(&rig), BURST + MORE_CPUS * (BURST / 100 / MORE_CPUS));

		wait_s(&rig, 10);
		assert_int_equal(collect(&rig, 0, MORE_CPUS), MORE_CPUS);
		rig.cpus = 2;
		apply_text(&rig, PACKETS);
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
		/* Of an override there is no generation: leases are cut to the new batch. */
		assert_int_equal(drain(&rig), 20000 + CPUS * (20000 / 100 / CPUS));
		wait_s(&rig, 100);
		assert_int_equal(collect(&rig, 0, CPUS), CPUS);
		apply_text(&rig, "limits: [{name: leased, rate: 1000 packets/s, burst: 10000}]\n");
		wait_s(&rig, 100);
		assert_int_equal(drain(&rig), 10000);
		rig_close(&rig);
	}
}

/* ------------------------------------------------------------------ flows that move */

/*
 * Flows, each a while on one CPU; together about 3 times the limit, with pauses. A second source
 * at a third of the limit, that moves as well, loses nothing.
 */
static void moved(enum sl_algo algo, struct rate rate, bool remembers)
{
	struct limit_def def = rig_limit_def("leased", rate, 0, algo);
	struct model_rule rule = model_rule(algo, rate, 0);
	u64 most = rule.capacity + (algo == SL_ALGO_TOKEN_BUCKET ?
				    CPUS * (rule.capacity / 100 / CPUS) : 0);
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
	print_message("# algorithm %u: admitted %llu, refused %llu, worst %llu of %llu, %llu leases\n", algo,
		      log.admitted, refused, model_log_worst(&rule, &log), most,
		      rig_global_stats(&rig).leases);
	assert_true(refused > 100000);
	assert_true(rig_global_stats(&rig).leases > 1000);
	if (algo == SL_ALGO_TOKEN_BUCKET)
		assert_in_range(model_log_worst(&rule, &log), rule.capacity, most + 1);
	else
		assert_in_range(log.worst_window, rule.capacity - 1, rule.capacity);
	rig_close(&rig);
}

TEST(test_flows_that_move)
{
	const struct rate rate = { 100000, SEC, RATE_PACKETS };

	rng_start("flows_that_move");
	for (u32 remembers = 0; remembers < 2; remembers++) {
		moved(SL_ALGO_TOKEN_BUCKET, rate, remembers);
		moved(SL_ALGO_FIXED_WINDOW, rate, remembers);
		moved(SL_ALGO_SLIDING_WINDOW, rate, remembers);
	}
}

TEST_MAIN
