/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* neighbour.bpf.c - another tool's XDP program: counts frames and passes them on. */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

__u64 frames;

SEC("xdp.frags")
int neighbour(struct xdp_md *ctx)
{
	__sync_fetch_and_add(&frames, 1);
	return XDP_PASS;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
