// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Rule sets swapped 250 times under traffic (SLUICE_LONG=1: a thousand): each packet is judged by
 * one of them, whole, and limits that are in both admit no more than one limit over all of them.
 *
 * Both rule sets drop the victim's packets, each by a part that the other has not: the first
 * blocks its source (a fact of the prefix maps), the second has a limit on its port (a fact
 * of the rules) that is used up. The first one's rules with the second one's prefixes would
 * pass it. So one packet that passes is a packet judged by half of each.
 */
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include "lib/test.h"
#include "lib/rig.h"

#define SEC SL_NS_PER_SEC
#define HOUR (3600 * SEC)
#define VICTIM 0x0a000001
#define VICTIM_PORT 53
#define OTHER_PORT 54

/* Of limits that both rule sets have. */
#define BUCKET_RATE 1000
#define BUCKET_BURST 200
#define WINDOW_LIMIT 5000

enum { TO_BUCKET, TO_WINDOW, TO_VICTIM, TO_NOBODY, TRAFFIC_COUNT };

struct traffic {
	struct rig *rig;
	pthread_t thread;
	u32 cpu;
	u32 first, last; /* of the kinds above: one packet of each in turn */
	u64 sent, passed[TRAFFIC_COUNT];
	bool stop;
};

static struct sl_prefix source[TRAFFIC_COUNT];

static void *send(void *arg)
{
	struct traffic *t = arg;
	struct rig_frame frame[TRAFFIC_COUNT];
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(t->cpu % sysconf(_SC_NPROCESSORS_ONLN), &set);
	sched_setaffinity(0, sizeof(set), &set);
	for (u32 i = 0; i < TRAFFIC_COUNT; i++)
		rig_frame_make(
			&frame[i],
			&(struct rig_packet){ .src = VICTIM + i,
					      .proto = 17,
					      .length = 100,
					      .dport = i == TO_VICTIM ? VICTIM_PORT : OTHER_PORT });
	while (!__atomic_load_n(&t->stop, __ATOMIC_ACQUIRE)) {
		for (u32 i = t->first; i <= t->last; i++)
			t->passed[i] += rig_passes(t->rig, 0, &frame[i]);
		t->sent++;
	}
	return NULL;
}

static void apply(struct rig *rig, bool second)
{
	static struct u16_range port;
	static struct list_entry blocked = { .pos.line = 1 };
	struct limit_def limit[] = {
		rig_limit_def("used-up", (struct rate){ 1, HOUR, RATE_PACKETS }, 0,
			      SL_ALGO_FIXED_WINDOW),
		rig_limit_def("bucket", (struct rate){ BUCKET_RATE, SEC, RATE_PACKETS },
			      BUCKET_BURST, SL_ALGO_TOKEN_BUCKET),
		rig_limit_def("window", (struct rate){ WINDOW_LIMIT, HOUR, RATE_PACKETS }, 0,
			      SL_ALGO_FIXED_WINDOW),
	};

	port.first = port.last = second ? VICTIM_PORT : 1;
	limit[0].match.dport = &port;
	limit[0].match.dport_count = 1;
	for (u32 i = 0; i < 2; i++) {
		limit[1 + i].match.src = &source[TO_BUCKET + i];
		limit[1 + i].match.src_count = 1;
	}
	blocked.prefix = source[TO_VICTIM];
	rig->block = (struct list_def){ .entry = &blocked, .count = second ? 0 : 1 };
	rig_read_time(rig);
	rig_apply(rig, limit, 3);
}

static void use_up(struct rig *rig)
{
	struct rig_frame frame;

	rig_frame_make(&frame, &(struct rig_packet){ .src = VICTIM + TO_VICTIM,
						     .proto = 17,
						     .length = 100,
						     .dport = VICTIM_PORT });
	assert_true(rig_passes(rig, 0, &frame));
	assert_false(rig_passes(rig, 0, &frame));
}

static void check(const struct traffic *victim, const struct traffic *flood, u32 swaps, u64 took_ns)
{
	u64 refill = took_ns / (SEC / BUCKET_RATE);

	print_message(
		"# %u swaps in %.1f s: of %llu the victim's passed %llu; of %llu each the bucket's %llu (%llu due), the window's %llu\n",
		swaps, took_ns / 1e9, victim->sent, victim->passed[TO_VICTIM], flood->sent,
		flood->passed[TO_BUCKET], refill, flood->passed[TO_WINDOW]);
	assert_true(victim->sent > 10 * swaps && flood->sent > 10 * swaps);
	assert_int_equal(victim->passed[TO_VICTIM], 0);
	assert_int_equal(victim->passed[TO_NOBODY], victim->sent);
	assert_int_equal(flood->passed[TO_WINDOW], WINDOW_LIMIT);
	/* At least nine tenths: the flood itself may have to wait for the CPU. */
	assert_in_range(flood->passed[TO_BUCKET], refill * 9 / 10, refill + BUCKET_BURST + 1);
}

TEST(test_swaps_are_whole)
{
	struct rig rig;
	struct traffic victim = { .rig = &rig, .cpu = 0, .first = TO_VICTIM, .last = TO_NOBODY };
	struct traffic flood = { .rig = &rig, .cpu = 1, .first = TO_BUCKET, .last = TO_WINDOW };
	u32 swaps = getenv("SLUICE_LONG") ? 1000 : 250;
	u64 begin;

	for (u32 i = 0; i < TRAFFIC_COUNT; i++)
		source[i] = (struct sl_prefix){ .addr.hi = (u64)(VICTIM + i) << 32,
						.family = SL_V4,
						.len = 32 };
	rig_open_bpf(&rig, 10000, false, 0);
	/* An hour begins now: none ends, and with it the two windows, before this does. */
	rig_read_time(&rig);
	rig_set_time(&rig, rig.now.mono_ns, rig.utc_offset_ns + HOUR - rig.now.utc_ns % HOUR);
	apply(&rig, true);
	begin = rig.now.mono_ns;
	use_up(&rig);
	assert_int_equal(pthread_create(&victim.thread, NULL, send, &victim), 0);
	assert_int_equal(pthread_create(&flood.thread, NULL, send, &flood), 0);
	for (u32 i = 0; i < swaps; i++)
		apply(&rig, i & 1);
	__atomic_store_n(&victim.stop, true, __ATOMIC_RELEASE);
	__atomic_store_n(&flood.stop, true, __ATOMIC_RELEASE);
	pthread_join(victim.thread, NULL);
	pthread_join(flood.thread, NULL);
	rig_read_time(&rig);
	check(&victim, &flood, swaps, rig.now.mono_ns - begin);
	rig_close(&rig);
}

TEST_MAIN
