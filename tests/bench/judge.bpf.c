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

#define PROBES 65536

/* Where the packets of test runs come from and go to, in turn. */
struct probe {
	u32 src;   /* network order */
	u16 dport; /* network order */
	u16 pad;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, PROBES);
	__type(key, u32);
	__type(value, struct probe);
} probes SEC(".maps");

/* As in bpf/stub.bpf.c: what is attached jumps to what decides. */
struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(u32));
	__uint(value_size, sizeof(u32));
} jump SEC(".maps");

u32 turn;

static __always_inline int next_probe(struct xdp_md *ctx)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	u32 index = turn++ & (PROBES - 1);
	struct probe *probe = bpf_map_lookup_elem(&probes, &index);

	if (!probe || data + 38 > end)
		return -1;
	*(u32 *)(data + 26) = probe->src;
	*(u16 *)(data + 36) = probe->dport;
	return 0;
}

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
int judge_probe(struct xdp_md *ctx)
{
	if (next_probe(ctx))
		return XDP_ABORTED;
	return datapath(ctx);
}

/* A source out of 16M for each packet: nearly none was seen before. */
static __always_inline int next_stranger(struct xdp_md *ctx)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;

	if (data + 38 > end)
		return -1;
	*(u32 *)(data + 26) = bpf_htonl(0x0a000000 | (bpf_get_prandom_u32() & 0xffffff));
	return 0;
}

SEC("xdp.frags")
int judge_cold(struct xdp_md *ctx)
{
	if (next_stranger(ctx))
		return XDP_ABORTED;
	return datapath(ctx);
}

SEC("xdp.frags")
int judge_cold_nothing(struct xdp_md *ctx)
{
	return next_stranger(ctx) ? XDP_ABORTED : XDP_DROP;
}

SEC("xdp.frags")
int judge_account(struct xdp_md *ctx)
{
	return datapath_account(ctx) == XDP_TX ? XDP_ABORTED : XDP_DROP;
}

/* The cost of the harness and the rewriting. */
SEC("xdp.frags")
int judge_nothing(struct xdp_md *ctx)
{
	if (next_probe(ctx))
		return XDP_ABORTED;
	return XDP_PASS;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
