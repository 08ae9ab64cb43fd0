// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * judge.bpf.c - the data path under measurement: the same stages over the same pinned maps,
 * with what a bench needs around them. Passed packets are dropped at the end, or the stack behind
 * XDP would be measured.
 */
#include <stddef.h>
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "bpf/env.h"
#include "bpf/datapath.h"

/* As in bpf/stub.bpf.c: what is attached jumps to what decides. */
struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(u32));
	__uint(value_size, sizeof(u32));
} jump SEC(".maps");

SEC("xdp.frags")
int judge_stub(struct xdp_md *ctx)
{
	bpf_tail_call(ctx, &jump, 0);
	return XDP_ABORTED;
}

SEC("xdp.frags")
int judge_live(struct xdp_md *ctx)
{
	return datapath(ctx) == XDP_TX ? XDP_ABORTED : XDP_DROP;
}

SEC("xdp.frags")
int judge_account(struct xdp_md *ctx)
{
	return datapath_account(ctx) == XDP_TX ? XDP_ABORTED : XDP_DROP;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
