// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * walk.c - attaches walk.bpf.c to an interface, with RULES rules for ports from 10000 on, of which
 * only the last matches every packet, and waits for SIGTERM.
 *
 *     walk DEV RULES PACKETS_A_SECOND
 */
#include <linux/if_link.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "netns/tool.h"
#include "sluice/types.h"
#include "tests/bench/walk.skel.h"

struct rule {
	u16 dport, pad;
	u32 packets;
};

int main(int argc, char **argv)
{
	u32 count = argc == 4 ? (u32)atoi(argv[2]) : 0;
	int ifindex = argc == 4 ? (int)if_nametoindex(argv[1]) : 0;
	struct walk_bpf *skel;

	if (!count || !ifindex) {
		fprintf(stderr, "usage: walk DEV RULES PACKETS_A_SECOND\n");
		return 2;
	}
	tool_stop_on_signals();
	skel = walk_bpf__open_and_load();
	if (!skel)
		return 1;
	for (u32 i = 0; i < count; i++) {
		struct rule rule = { .dport = i + 1 < count ? 10000 + i : 0,
				     .packets = (u32)atoi(argv[3]) };

		if (bpf_map_update_elem(bpf_map__fd(skel->maps.rules), &i, &rule, BPF_ANY))
			return 1;
	}
	skel->bss->rule_count = count;
	if (bpf_xdp_attach(ifindex, bpf_program__fd(skel->progs.walk_rules), XDP_FLAGS_DRV_MODE,
			   NULL))
		return 1;
	fprintf(stderr, "ready\n");
	while (!tool_stopped)
		pause();
	return bpf_xdp_detach(ifindex, XDP_FLAGS_DRV_MODE, NULL);
}
