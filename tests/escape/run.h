/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* run.h - a run: both stacks, both data planes, the failures. */
#ifndef TESTS_ESCAPE_RUN_H
#define TESTS_ESCAPE_RUN_H

#include <time.h>

#include "escape/cases.h"
#include "escape/limits.h"
#include "lib/target.h"

#define BATCH 64 /* cases */
#define ARENA (64 << 20)
#define BUCKETS (1 << 18) /* room for a bucket for every source of a run */

struct run {
	const char *client, *free, *held;
	u64 seed;
	u32 times; /* how often the random cases of a short run */
	const char *only_class;
	s64 only_case;
	bool sim_only, verbose, all_classes;
	u64 sim_step_ns; /* simulated: time between two frames */

	struct stack stack[2]; /* free, held */
	struct target *bpf, *sim;
	struct maker maker;
	u32 next_id, marker, repeated;
	u64 frames, cases;
	u64 delivered; /* cases of which Linux delivered something, without the limiter */
	u64 failures, class_failures[CLASS_COUNT];
	u64 excepted;
	struct test_case again[4096]; /* not delivered: once more, from another source */
	u32 again_count;
	struct sl_iface_stats before;
};

static u64 mono_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * SL_NS_PER_SEC + ts.tv_nsec;
}

/* Frames on their way to a stack. */
struct queue {
	u8 *bytes[64];
	u32 len[64], count;
};

static void flush(struct run *r, u32 which, struct queue *q, struct tally *t)
{
	if (!q->count)
		return;
	stack_send(&r->stack[which], q->bytes, q->len, q->count);
	stack_settle(&r->stack[which], t, &r->maker, ++r->marker);
	q->count = 0;
}

#endif
