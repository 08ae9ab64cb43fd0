// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The packet tier matches its model: the BPF program by a fake clock, dp_sim and the exact model
 * run the same random schedule, and give the same verdict on every packet.
 */
#include "lib/test.h"
#include "lib/schedule.h"

#define STEPS 1000000

TEST(test_bpf_and_sim_match_the_model)
{
	struct rig bpf, sim, *rigs[] = { &bpf, &sim };

	rig_open_bpf(&bpf, 100000, true, 0);
	rig_open_sim(&sim, 100000, bpf.cpus, 64);
	schedule_run("bpf_is_sim_is_the_model", rigs, 2, STEPS);
	rig_close(&sim);
	rig_close(&bpf);
}

TEST_MAIN
