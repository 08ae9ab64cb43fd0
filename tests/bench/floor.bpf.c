// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * floor.bpf.c - the least that a limiter can do with a packet it refuses: the measure of cost.c.
 *
 * The same duties as the data path's, with one source that is known to be over its limit: through
 * a stub and a tail call; for frames of several buffers (frags); IPv4 and IPv6, TCP and UDP, with
 * the checks that the ports can be read; one look-up in a per-CPU table by source; the clock;
 * packets and bytes of the limit; packets by reason, and bytes, of the interface; drop.
 *
 * What it does not do: VLAN tags, fragments, options (they are dropped at once), rules, lists.
 * It stays as it is: figures of different versions of the data path are multiples of it.
 */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/tcp.h>
#include <linux/udp.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "sluice/abi.h"

#define ENTRIES_BITS 12

struct refused {
	struct sl_addr src;
	u64 until_ns;
	u32 limit;
	u32 pad;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1 << ENTRIES_BITS);
	__type(key, u32);
	__type(value, struct refused);
} refused SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, SL_LIMIT_IDS);
	__type(key, u32);
	__type(value, struct sl_limit_stats);
} limit_stats SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, SL_IFACES_MAX);
	__type(key, u32);
	__type(value, struct sl_iface_stats);
} iface_stats SEC(".maps");

/* What the stub jumps to: the floor, or an instance of the data path. */
struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(u32));
	__uint(value_size, sizeof(u32));
} progs SEC(".maps");

const volatile u32 slot;
u32 random_ports; /* 1: each frame gets another source port; set between runs */
u32 turn;

/* Part of every program that is measured, so of `bare`, too. */
static __always_inline void set_port(struct xdp_md *ctx)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;

	if (random_ports && data + 36 <= end)
		*(u16 *)(data + 34) = turn++ * 40503U;
}

SEC("xdp.frags")
int bare(struct xdp_md *ctx)
{
	set_port(ctx);
	return XDP_DROP;
}

SEC("xdp.frags")
int stub(struct xdp_md *ctx)
{
	set_port(ctx);
	bpf_tail_call(ctx, &progs, slot);
	return XDP_ABORTED;
}

/* The transport's offset, 0 where the packet is none that this program knows. */
static __always_inline u32 parse_ip(void *data, void *end, struct sl_addr *ret_src, u8 *ret_proto)
{
	struct ethhdr *eth = data;
	struct iphdr *ip = data + sizeof(*eth);
	struct ipv6hdr *ip6 = data + sizeof(*eth);

	if (data + sizeof(*eth) + sizeof(*ip) > end)
		return 0;
	if (eth->h_proto == bpf_htons(ETH_P_IP)) {
		if (ip->version != 4 || ip->ihl != 5 || (ip->frag_off & bpf_htons(0x3fff)) ||
		    bpf_ntohs(ip->tot_len) < sizeof(*ip) ||
		    data + sizeof(*eth) + bpf_ntohs(ip->tot_len) > end)
			return 0;
		ret_src->hi = (u64)bpf_ntohl(ip->saddr) << 32;
		ret_src->lo = 0;
		*ret_proto = ip->protocol;
		return sizeof(*eth) + sizeof(*ip);
	}
	if (eth->h_proto != bpf_htons(ETH_P_IPV6) || data + sizeof(*eth) + sizeof(*ip6) > end ||
	    ip6->version != 6 ||
	    data + sizeof(*eth) + sizeof(*ip6) + bpf_ntohs(ip6->payload_len) > end)
		return 0;
	ret_src->hi = (u64)bpf_ntohl(ip6->saddr.in6_u.u6_addr32[0]) << 32 |
		      bpf_ntohl(ip6->saddr.in6_u.u6_addr32[1]);
	ret_src->lo = (u64)bpf_ntohl(ip6->saddr.in6_u.u6_addr32[2]) << 32 |
		      bpf_ntohl(ip6->saddr.in6_u.u6_addr32[3]);
	*ret_proto = ip6->nexthdr;
	return sizeof(*eth) + sizeof(*ip6);
}

static __always_inline int parse_transport(void *data, void *end, u32 offset, u8 proto)
{
	struct tcphdr *tcp = data + offset;
	struct udphdr *udp = data + offset;

	if (proto == IPPROTO_TCP)
		return (void *)(tcp + 1) <= end && tcp->doff >= 5;
	if (proto == IPPROTO_UDP)
		return (void *)(udp + 1) <= end && bpf_ntohs(udp->len) >= sizeof(*udp);
	return 0;
}

SEC("xdp.frags")
int floor_drop(struct xdp_md *ctx)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	struct sl_limit_stats *limit;
	struct sl_iface_stats *iface;
	u32 index, length = end - data;
	struct refused *entry;
	struct sl_addr src;
	u64 now_ns;
	u8 proto;

	index = parse_ip(data, end, &src, &proto);
	if (!index || !parse_transport(data, end, index, proto))
		return XDP_ABORTED;
	index = ((src.hi ^ src.lo) * 0x9e3779b97f4a7c15ULL) >> (64 - ENTRIES_BITS);
	entry = bpf_map_lookup_elem(&refused, &index);
	if (!entry)
		return XDP_ABORTED;
	now_ns = bpf_ktime_get_ns();
	if (entry->src.hi != src.hi || entry->src.lo != src.lo || now_ns >= entry->until_ns) {
		entry->src = src;
		entry->until_ns = now_ns + 100000000;
		entry->limit = 1;
	}
	index = entry->limit;
	limit = bpf_map_lookup_elem(&limit_stats, &index);
	index = slot;
	iface = bpf_map_lookup_elem(&iface_stats, &index);
	if (!limit || !iface)
		return XDP_ABORTED;
	limit->packets[SL_LV_DROP]++;
	limit->bytes[SL_LV_DROP] += length;
	iface->packets[SL_R_OVER][SL_ACT_DROP]++;
	iface->bytes[SL_ACT_DROP] += length;
	return XDP_DROP;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
