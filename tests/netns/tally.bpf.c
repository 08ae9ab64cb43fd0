// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * tally.bpf.c - counts, at tc ingress, what XDP passed under a flood, and drops it there.
 *
 * The sources of one IPv4 prefix are counted one by one; the rest together. Dropping keeps the
 * stack's cost (routing, ICMP replies) out of the test.
 */
#include <linux/bpf.h>
#include <linux/pkt_cls.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "sluice/types.h"

#define TALLY_SOURCES 4096

const volatile u32 watch_base; /* host order */
const volatile u32 watch_mask;

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, TALLY_SOURCES + 1); /* the last: every other source */
	__type(key, u32);
	__type(value, u64);
} tally SEC(".maps");

SEC("tc")
int count(struct __sk_buff *skb)
{
	u32 index = TALLY_SOURCES;
	u16 type = 0;
	u32 src = 0;
	u64 *n;

	bpf_skb_load_bytes(skb, 12, &type, 2);
	if (type != bpf_htons(0x0800) || bpf_skb_load_bytes(skb, 26, &src, 4))
		return TC_ACT_UNSPEC;
	src = bpf_ntohl(src);
	if ((src & watch_mask) == watch_base && (src & ~watch_mask) < TALLY_SOURCES)
		index = src & ~watch_mask;
	n = bpf_map_lookup_elem(&tally, &index);
	if (n)
		(*n)++;
	return TC_ACT_SHOT;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
