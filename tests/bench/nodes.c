// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * nodes.c - how many buckets go to the cluster store for each decision, by the number of nodes, in
 * virtual time (tests/prop/cluster_sim.h: the daemon's quota and the store's model).
 *
 *     nodes strict|lease|write_back NODES KEYS RATE SECONDS INTERVAL_MS
 *
 * RATE decisions a second in all, over keys by Zipf's law, on nodes at random; limits are never
 * reached. The first half of SECONDS is not counted: demand has to be known first. One line, for
 * tests/bench/scaling.py:
 *
 *     consistency nodes keys rate interval_ms buckets/decision
 */
#include "prop/cluster_sim.h"
#include "lib/spec_def.h"

static const char *const names[] = { "strict", "lease", "write_back" };

static u64 sum(const u64 *counts, u32 keys)
{
	u64 all = 0;

	for (u32 i = 0; i < keys; i++)
		all += counts[i];
	return all;
}

static void print_run(enum consistency c, u32 nodes, u32 keys, double rate, double seconds,
		      u64 interval_ms)
{
	struct sim sim = {
		.name = "nodes",
		.nodes = nodes,
		.keys = keys,
		.rate = rate,
		.skew = 1,
		.length_us = seconds * SEC,
		.def = SPEC_DEF(FIXED_WINDOW, 100000000, 3600 * SEC * 1000),
		.consistency = c,
		.every_us = interval_ms * MS,
		.contract = STORE_FAILS_CLOSED,
		.even = true,
		.unlogged = true,
	};

	rng_start("nodes");
	sim_run(&sim);
	printf("%s %u %u %.0f %llu %.4f\n", names[c], nodes, keys, rate, interval_ms,
	       (double)(sum(sim.asked, keys) - sim.warm_asked) /
		       (sum(sim.decided, keys) - sim.warm_decided));
	sim_close(&sim);
}

int main(int argc, char **argv)
{
	u32 c = CONSISTENCY_STRICT;

	while (argc == 7 && c <= CONSISTENCY_WRITE_BACK && strcmp(argv[1], names[c]))
		c++;
	if (argc != 7 || c > CONSISTENCY_WRITE_BACK) {
		fprintf(stderr,
			"usage: nodes strict|lease|write_back NODES KEYS RATE SECONDS INTERVAL_MS\n");
		return 2;
	}
	print_run(c, atoi(argv[2]), atoi(argv[3]), atof(argv[4]), atof(argv[5]),
		  strtoull(argv[6], NULL, 10));
	return 0;
}
