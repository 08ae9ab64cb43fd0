// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* A random schedule through dp_sim and the exact model; tests/bpf/test_model.c adds BPF. */
#include "lib/test.h"
#include "lib/schedule.h"

#define STEPS 1000000

TEST(test_sim_matches_the_model)
{
	struct rig sim, *rigs[] = { &sim };

	rig_open_sim(&sim, 1000000, 1, 64);
	schedule_run("sim_is_the_model", rigs, 1, STEPS);
	rig_close(&sim);
}

TEST_MAIN
