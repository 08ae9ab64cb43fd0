/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Limits of scope cluster: three nodes' data planes in virtual time, messages between them late by up
 * to a sync interval on top of one; sources that flood, that stay below, that come later.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "dataplane/dp_usage.h"
#include "lib/rig.h"
#include "policy/cluster_def.h"

#define NODES 3
#define SYNC_NS (100 * 1000000ULL)
#define ROUND_NS (500 * 1000000ULL)
#define STEP_NS 1000000ULL
#define QUEUE 4096
#define SOURCES 4
#define BEGIN_NS (1000 * SL_NS_PER_SEC)
#define UTC_OFFSET (1700000000ULL * SL_NS_PER_SEC)

struct letter {
	struct dp_usage_told told;
	u64 arrives_ns;
	u32 from;
};

struct node {
	struct rig rig;
	struct dp_usage *usage;
	u64 looks_ns;			/* the next time */
	u64 passed[SOURCES], sent[SOURCES];
	struct rig_frame frame[SOURCES];
	double owed[SOURCES];
	bool away;			/* hears nothing, is not heard */
};

struct lab {
	struct node node[NODES];
	struct letter *letter;
	u32 letters;
	u64 now_ns;
	u64 seed;
	u64 unit_length;		/* of a frame, where bytes count */
};

static struct cluster_def cluster;

static u32 dice(struct lab *lab, u32 below)
{
	lab->seed = lab->seed * 6364136223846793005ULL + 1442695040888963407ULL;
	return (u32)(lab->seed >> 33) % below;
}

static struct sl_now now_of(const struct lab *lab)
{
	return (struct sl_now){ lab->now_ns, lab->now_ns + UTC_OFFSET };
}

static void apply(struct lab *lab, struct node *node, struct limit_def *limit)
{
	struct policy policy = {
		.limit = limit,
		.limit_count = 1,
		.failsafe_rate = { 100, SL_NS_PER_SEC, RATE_CONNECTIONS },
		.essential_rate = { 1000, SL_NS_PER_SEC, RATE_PACKETS },
		.cluster = &cluster,
	};
	struct rig *rig = &node->rig;
	struct compile_env env = {
		.mono_ns = lab->now_ns,
		.utc_offset_ns = UTC_OFFSET,
		.cpus = rig->cpus,
		.seed = rig->dp->ops->state(rig->dp)->seed,
		.generation = ++rig->generation,
		.slots = rig->dp->ops->slots(rig->dp),
	};
	struct sl_err err = { .message = "" };
	struct sl_image *image = NULL;

	if (image_compile(&policy, &env, &image, &err) ||
	    rig->dp->ops->apply(rig->dp, image, &err))
		fail_msg("%s", err.message);
	assert_int_equal(dp_usage_rules(node->usage, image, &policy, now_of(lab)), 0);
	assert_true(dp_usage_any(node->usage));
	image_free(image);
}

static void lab_open(struct lab *lab, struct limit_def *limit)
{
	const char *seed = getenv("SLUICE_SEED");

	memset(lab, 0, sizeof(*lab));
	lab->seed = seed ? strtoull(seed, NULL, 0) : 12345;
	lab->now_ns = BEGIN_NS;
	lab->letter = calloc(QUEUE, sizeof(*lab->letter));
	limit->cluster = true;
	for (u32 i = 0; i < NODES; i++) {
		struct node *node = &lab->node[i];

		rig_open_sim(&node->rig, 1024, 4, 64);
		rig_set_time(&node->rig, lab->now_ns, UTC_OFFSET);
		assert_int_equal(dp_usage_new(node->rig.dp, 64, &node->usage), 0);
		dp_usage_nodes(node->usage, NODES, SYNC_NS);
		apply(lab, node, limit);
		node->looks_ns = lab->now_ns + dice(lab, SYNC_NS / 1000) * 1000;
		for (u32 s = 0; s < SOURCES; s++) {
			struct rig_packet packet = { .src = 0xc0000201 + s, .proto = 17,
						     .dport = 53, .length = 100 };

			rig_frame_make(&node->frame[s], &packet);
		}
	}
}

static void lab_close(struct lab *lab)
{
	for (u32 i = 0; i < NODES; i++) {
		dp_usage_free(lab->node[i].usage);
		rig_close(&lab->node[i].rig);
	}
	free(lab->letter);
}

static void tell(struct lab *lab, u32 from)
{
	struct node *node = &lab->node[from];
	struct dp_usage_told told[64];
	u32 count;

	dp_usage_look(node->usage, now_of(lab), ROUND_NS);
	count = dp_usage_take(node->usage, told, 64, now_of(lab));
	for (u32 i = 0; i < count && !node->away; i++) {
		assert_true(lab->letters < QUEUE);
		lab->letter[lab->letters++] = (struct letter){
			told[i], lab->now_ns + dice(lab, SYNC_NS / 1000) * 1000, from };
	}
	node->looks_ns += SYNC_NS;
}

static void deliver(struct lab *lab)
{
	for (u32 i = 0; i < lab->letters; i++) {
		struct letter *letter = &lab->letter[i];

		if (letter->arrives_ns > lab->now_ns)
			continue;
		for (u32 n = 0; n < NODES; n++)
			if (n != letter->from && !lab->node[n].away)
				dp_usage_charge(lab->node[n].usage, &letter->told, now_of(lab));
		*letter = lab->letter[--lab->letters];
		i--;
	}
}

/* `rate[n][s]`: packets a second that source s sends to node n. */
static void run(struct lab *lab, u64 for_ns, const double rate[NODES][SOURCES])
{
	u64 end = lab->now_ns + for_ns;

	for (; lab->now_ns < end; lab->now_ns += STEP_NS) {
		for (u32 n = 0; n < NODES; n++) {
			struct node *node = &lab->node[n];

			rig_set_time(&node->rig, lab->now_ns, UTC_OFFSET);
			for (u32 s = 0; s < SOURCES; s++) {
				node->owed[s] += rate[n][s] * STEP_NS / SL_NS_PER_SEC;
				for (; node->owed[s] >= 1; node->owed[s]--) {
					node->sent[s]++;
					node->passed[s] += rig_passes(&node->rig, dice(lab, 4),
								      &node->frame[s]);
				}
			}
			if (lab->now_ns >= node->looks_ns)
				tell(lab, n);
		}
		deliver(lab);
	}
}

static u64 passed(const struct lab *lab, u32 source)
{
	u64 sum = 0;

	for (u32 n = 0; n < NODES; n++)
		sum += lab->node[n].passed[source];
	return sum;
}

static u64 lost(const struct lab *lab, u32 source)
{
	u64 sum = 0;

	for (u32 n = 0; n < NODES; n++)
		sum += lab->node[n].sent[source] - lab->node[n].passed[source];
	return sum;
}

#define RATE 1000
/* Source 0 floods all nodes; 1 stays at nine tenths of its limit in sum; 2 and 3 do not send. */
static const double flood[NODES][SOURCES] = { { 3000, 300 }, { 3000, 300 }, { 3000, 300 } };

static const struct kind {
	const char *name;
	enum sl_algo algo;
	u64 burst, period_s;
	enum accounting accounting;
} kinds[] = {
	{ "token-bucket", SL_ALGO_TOKEN_BUCKET, 1000, 1, ACCOUNTING_EXACT },
	{ "percpu", SL_ALGO_TOKEN_BUCKET, 1000, 1, ACCOUNTING_PERCPU },
	{ "small burst", SL_ALGO_TOKEN_BUCKET, 100, 1, ACCOUNTING_EXACT },
	{ "tiny burst", SL_ALGO_TOKEN_BUCKET, 20, 1, ACCOUNTING_EXACT },
	{ "leaky-bucket", SL_ALGO_LEAKY_BUCKET, 0, 1, ACCOUNTING_EXACT },
	{ "fixed-window", SL_ALGO_FIXED_WINDOW, 0, 1, ACCOUNTING_EXACT },
	{ "fixed-window 10s", SL_ALGO_FIXED_WINDOW, 0, 10, ACCOUNTING_EXACT },
	{ "sliding-window", SL_ALGO_SLIDING_WINDOW, 0, 1, ACCOUNTING_EXACT },
	{ "sliding-window 10s", SL_ALGO_SLIDING_WINDOW, 0, 10, ACCOUNTING_EXACT },
};

static void test_try(void **state)
{
	for (u32 k = 0; k < sizeof(kinds) / sizeof(*kinds); k++) {
		struct rate rate = { RATE * kinds[k].period_s, kinds[k].period_s * SL_NS_PER_SEC,
				     RATE_PACKETS };
		struct limit_def limit = rig_limit_def("web", rate, kinds[k].burst, kinds[k].algo);
		struct lab lab;

		limit.accounting = kinds[k].accounting;
		lab_open(&lab, &limit);
		printf("%-20s", kinds[k].name);
		for (u32 i = 0; i < 20; i++) {
			u64 before = passed(&lab, 0);

			run(&lab, SL_NS_PER_SEC, flood);
			printf(" %llu", passed(&lab, 0) - before);
		}
		printf(" | sum %llu; neighbour lost %llu\n", passed(&lab, 0), lost(&lab, 1));
		lab_close(&lab);
	}
	for (u32 k = 0; k < sizeof(kinds) / sizeof(*kinds); k++) {
		static const double spread[NODES][SOURCES] = { { 600, 300, 950 }, { 600, 300 }, { 600, 300 } };
		struct rate rate = { RATE * kinds[k].period_s, kinds[k].period_s * SL_NS_PER_SEC,
				     RATE_PACKETS };
		struct limit_def limit = rig_limit_def("web", rate, kinds[k].burst, kinds[k].algo);
		struct lab lab;

		limit.accounting = kinds[k].accounting;
		lab_open(&lab, &limit);
		printf("%-20s", kinds[k].name);
		for (u32 i = 0; i < 20; i++) {
			u64 before = passed(&lab, 0);

			run(&lab, SL_NS_PER_SEC, spread);
			printf(" %llu", passed(&lab, 0) - before);
		}
		printf(" | sum %llu; neighbours lost %llu %llu\n", passed(&lab, 0), lost(&lab, 1), lost(&lab, 2));
		lab_close(&lab);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_try),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
