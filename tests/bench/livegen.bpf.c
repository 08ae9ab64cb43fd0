// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * livegen.bpf.c - the flood: writes a source address into each live frame of
 * BPF_PROG_TEST_RUN and redirects it into a veth. Frames are recycled with what was written to
 * them, so the header checksum is computed whole each time, from the sum of the fixed part.
 */
#include <linux/bpf.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "sluice/types.h"

/* Changed while it runs by livegen.c, through the mapped .bss. */
u32 ifindex;
u32 header_sum; /* of the IPv4 header without source and checksum */
u32 base;	/* host order */
u32 sources;	/* 0: random within ~mask */
u32 host_mask;
u32 share; /* of 65536 packets, so many come from the second group in turn */
u32 quota_base;
u32 quota_sources;
u64 turn;
u64 quota_turn;

static __always_inline u32 next_source(void)
{
	u32 random = 0;

	if (share || !sources)
		random = bpf_get_prandom_u32();
	if (share && (random >> 16) < share)
		return quota_base + (u32)(quota_turn++ % quota_sources);
	if (sources == 1)
		return base;
	if (sources)
		return base + (u32)(turn++ % sources);
	return base | (bpf_get_prandom_u32() & host_mask);
}

SEC("xdp")
int generate(struct xdp_md *ctx)
{
	void *data = (void *)(long)ctx->data;
	void *end = (void *)(long)ctx->data_end;
	u16 *header = data + 14;
	u32 src, sum;

	if (data + 34 > end)
		return XDP_ABORTED;
	src = next_source();
	sum = header_sum + (src >> 16) + (src & 0xffff);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	header[5] = bpf_htons(~sum);
	header[6] = bpf_htons(src >> 16);
	header[7] = bpf_htons(src);
	return bpf_redirect(ifindex, 0);
}

/* The baseline. */
SEC("xdp")
int bare_drop(struct xdp_md *ctx)
{
	return XDP_DROP;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
