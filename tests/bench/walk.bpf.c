// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * walk.bpf.c - a stand-in for XDP firewalls that walk their rules: written for bench-beside.sh, no
 * copy of any.
 *
 * An array of rules (protocol, destination port), looked at one after the other for each packet;
 * the first that matches counts the source in an LRU hash, in fixed windows of a second, and drops
 * what is over. It is kinder than real ones: IPv4 and UDP only, no tags, fragments, options or
 * statistics.
 */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/udp.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "sluice/types.h"

#define RULES_MAX 1024

struct rule {
	u16 dport; /* host order; 0: any */
	u16 pad;
	u32 packets; /* for each source, in a second */
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, RULES_MAX);
	__type(key, u32);
	__type(value, struct rule);
} rules SEC(".maps");

struct source {
	u64 until_ns;
	u64 packets;
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 100000);
	__type(key, u32);
	__type(value, struct source);
} sources SEC(".maps");

volatile u32 rule_count;

struct walk {
	u16 dport;
	u32 packets; /* of the rule that matched; 0: none */
};

static long look(u32 i, void *arg)
{
	struct walk *walk = arg;
	struct rule *rule = bpf_map_lookup_elem(&rules, &i);

	if (!rule)
		return 1;
	if (rule->dport && rule->dport != walk->dport)
		return 0;
	walk->packets = rule->packets;
	return 1;
}

static int over(u32 src, u32 packets)
{
	u64 now = bpf_ktime_get_ns();
	struct source *source = bpf_map_lookup_elem(&sources, &src);
	struct source fresh = { now + 1000000000, 1 };

	if (!source) {
		bpf_map_update_elem(&sources, &src, &fresh, BPF_ANY);
		return 0;
	}
	if (now >= source->until_ns) {
		*source = fresh;
		return 0;
	}
	return __sync_fetch_and_add(&source->packets, 1) >= packets;
}

SEC("xdp")
int walk_rules(struct xdp_md *ctx)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	struct ethhdr *eth = data;
	struct iphdr *ip = data + sizeof(*eth);
	struct udphdr *udp = (void *)ip + sizeof(*ip);
	struct walk walk = { 0 };

	if ((void *)(udp + 1) > end || eth->h_proto != bpf_htons(ETH_P_IP) || ip->ihl != 5 ||
	    ip->protocol != IPPROTO_UDP)
		return XDP_PASS;
	walk.dport = bpf_ntohs(udp->dest);
	bpf_loop(rule_count, look, &walk, 0);
	return walk.packets && over(ip->saddr, walk.packets) ? XDP_DROP : XDP_PASS;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
