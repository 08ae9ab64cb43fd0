/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * like.h - when a packet is no different from an earlier one: the key of what this CPU remembers of
 * verdicts, refused.h and passed.h.
 *
 * A packet is like another one if it equals that in every field that was read on its way
 * (like_reads()), came in by the same interface, could be read whole, and is no fragment; while the
 * epoch is the same: nothing that verdicts are read from was written (sluice/epoch.h).
 */
#ifndef SLUICE_BPF_LIKE_H
#define SLUICE_BPF_LIKE_H

#include "bpf/evaluation.h"
#include "bpf/session.h"

/*
 * The dimensions that are part of the key: by like_reads(), or as protocol, interface and source.
 * No verdict by another one is remembered.
 */
#define LIKE_DIMS                                                                                  \
	(SL_DIMS_16(SL_DIM_DPORT) | SL_DIMS_16(SL_DIM_SPORT) | SL_DIMS_16(SL_DIM_LENGTH) |         \
	 SL_DIMS_16(SL_DIM_VLAN) | SL_DIMS_8(SL_DIM_PROTO) | SL_DIMS_8(SL_DIM_TCP_FLAGS) |         \
	 SL_DIMS_8(SL_DIM_ICMP) | SL_DIMS_8(SL_DIM_ICMPV6) | SL_DIMS_8(SL_DIM_IFACE) |             \
	 SL_DIMS_P(SL_PDIM_SRC) | SL_DIMS_P(SL_PDIM_DST))

/* Fields of struct sl_like.fields that are part of the key, by four bits of `reads`. */
#define LIKE_PROTO 0xffULL
#define LIKE_FLAGS (0xffULL << 8)
#define LIKE_VLAN (0xffffULL << 16)
#define LIKE_DPORT (0xffffULL << 32)
#define LIKE_SPORT (0xffffULL << 48)
#define LIKE_MASK(reads)                                                                           \
	(LIKE_PROTO | ((reads)&SL_READ_FLAGS ? LIKE_FLAGS : 0) |                                   \
	 ((reads)&SL_READ_VLAN ? LIKE_VLAN : 0) | ((reads)&SL_READ_DPORT ? LIKE_DPORT : 0) |       \
	 ((reads)&SL_READ_SPORT ? LIKE_SPORT : 0))
#define LIKE_MASKS(n) LIKE_MASK(n), LIKE_MASK((n) + 1), LIKE_MASK((n) + 2), LIKE_MASK((n) + 3)

static const u64 like_masks[16] = {
	LIKE_MASKS(0),
	LIKE_MASKS(4),
	LIKE_MASKS(8),
	LIKE_MASKS(12),
};

/* ICMP's type and code are where others have flags and source port, which are 0 for ICMP. */
static __always_inline u64 like_fields(const struct packet *pkt)
{
	return (u64)(pkt->sport | pkt->icmp_code) << 48 | (u64)pkt->dport << 32 |
	       (u64)(pkt->vlan | (pkt->flags & PKT_VLAN) << 10) << 16 |
	       (u64)(pkt->tcp_flags | pkt->icmp_type) << 8 | pkt->proto;
}

static __always_inline u8 like_link(const struct packet *pkt)
{
	return (pkt->family & 1) << 7 | (env_iface_slot() & (SL_IFACES_MAX - 1));
}

/* Read whole, with all its headers in this packet. */
static __always_inline int like_applies(const struct packet *pkt)
{
	return (pkt->flags & ~(PKT_L4 | PKT_VLAN)) == (PKT_ADDR | PKT_PROTO) && !pkt->ext;
}

/* Whether the entry was made for a packet that is no different. */
static __always_inline int like_is(const struct sl_like *r, const struct packet *pkt, u32 epoch)
{
	u64 differs;

	if (r->src.hi != pkt->src.hi)
		return 0;
	differs = ((r->fields ^ like_fields(pkt)) & like_masks[r->reads & 15]) |
		  (r->epoch ^ epoch) | (r->link ^ like_link(pkt));
	if (differs)
		return 0;
	if ((r->reads & SL_READ_SRC_LOW) && r->src.lo != pkt->src.lo)
		return 0;
	if ((r->reads & SL_READ_LENGTH) && r->l3_length != pkt->l3_length)
		return 0;
	return !(r->reads & SL_READ_DST) ||
	       !((r->dst.hi ^ pkt->dst.hi) | (r->dst.lo ^ pkt->dst.lo));
}

/*
 * ICMP errors and neighbor discovery are judged by more of their header (path MTU, hop limit); of
 * QUIC the HTTP tier has a byte of the payload read.
 */
static __always_inline int like_is_special(const struct packet *pkt, u32 push_flags)
{
	if (pkt->proto == PROTO_ICMP)
		return pkt->icmp_type == 3;
	if (pkt->proto == PROTO_ICMPV6)
		return pkt->icmp_type < 128 || (pkt->icmp_type >= 133 && pkt->icmp_type <= 137);
	return (push_flags & SL_PUSH_WATCH) && pkt->proto == PROTO_UDP && pkt->dport == 443;
}

/* Whether something longer than 64 bits is listed near an IPv6 source. */
static __always_inline int like_listed_low(const struct packet *pkt)
{
	const struct sl_list_filter *filter = map_list_filter();
	u32 at = sl_list_set(packet_src(pkt));

	OPAQUE(at);
	at &= SL_LIST_V6_SETS - 1;
	return filter && (filter->v6[at][0] >> (65 - SL_LIST_V6_FIRST) || filter->v6[at][1]);
}

/* Whether some step looks at this IPv6 source by more than 64 bits. */
static __always_inline int like_reads_low(const struct sl_rules *rules, const struct packet *pkt,
					  u32 meter_len, const struct sl_push_now *push)
{
	u64 found = meter_len > 64 || sl_is_link_local(pkt->family, packet_src(pkt)) ||
		    like_listed_low(pkt);
	u32 i;

	if (rules->dims & (SL_DIMS_P(SL_PDIM_SRC) | SL_DIMS_OVERRIDES))
		return 1;
	for (i = 0; i < SL_BAN_LENGTHS; i++) {
		FORGET(pkt, found);
		found |= rules->ban_len[SL_V6][i] > 64;
	}
	for (i = 0; i < SL_PUSH_LENGTHS; i++) {
		FORGET(pkt, found);
		found |= push->len[SL_V6][i] > 64;
	}
	FORGET(pkt, found);
	return found || push->flags & SL_PUSH_WATCH;
}

/*
 * enum sl_reads of the fields that the steps read of such a packet, under these rules, on the way
 * to being charged to meter `index`. Global, as the next one: it is seldom called, and its paths
 * times those before it would be too many.
 */
SL_GLOBAL u32 like_reads(const struct sl_rules *rules, const struct packet *pkt, u32 index)
{
	const struct sl_push_now *push = map_push_now();
	const struct sl_limit *meter;
	u32 reads = 0, dims, per, tcp, byte, ports;

	if (!rules || !pkt || !push)
		return 0;
	meter = limit_at(rules, index);
	if (!meter)
		return 0;
	dims = rules->dims;
	per = meter->per;
	tcp = pkt->proto == PROTO_TCP;
	byte = pkt->dport >> 3;
	if (pkt->proto == PROTO_ICMP || pkt->proto == PROTO_ICMPV6)
		reads |= SL_READ_FLAGS | SL_READ_SPORT;
	if (tcp && (dims & (SL_DIMS_8(SL_DIM_TCP_FLAGS) | SL_DIMS_CONNECTIONS)))
		reads |= SL_READ_FLAGS;
	if (push->flags & SL_PUSH_WATCH)
		reads |= SL_READ_FLAGS | SL_READ_DPORT;
	if ((dims & SL_DIMS_16(SL_DIM_VLAN)) || (per & SL_PER_VLAN))
		reads |= SL_READ_VLAN;
	if ((dims & (SL_DIMS_16(SL_DIM_DPORT) | SL_DIMS_LOCAL)) || (per & SL_PER_DPORT))
		reads |= SL_READ_DPORT;
	if (dims & SL_DIMS_16(SL_DIM_SPORT))
		reads |= SL_READ_SPORT;
	if (dims & SL_DIMS_16(SL_DIM_LENGTH))
		reads |= SL_READ_LENGTH;
	if ((dims & SL_DIMS_P(SL_PDIM_DST)) || (per & SL_PER_DST))
		reads |= SL_READ_DST;
	ports = rules->failsafe_tcp[byte & 8191] | rules->failsafe_udp[byte & 8191];
	if ((dims & SL_DIMS_LOCAL) && (ports & (1 << (pkt->dport & 7))))
		reads |= SL_READ_DST;
	if (tcp && (dims & SL_DIMS_SESSIONS) && session_may_be(rules, pkt))
		reads |= SL_READ_SPORT | SL_READ_DPORT | SL_READ_DST;
	if (pkt->family == SL_V6 && like_reads_low(rules, pkt, meter->prefix[SL_V6], push))
		reads |= SL_READ_SRC_LOW;
	return reads;
}

static __always_inline u64 earlier_ns(u64 a, u64 b)
{
	return a < b ? a : b;
}

/* Whether the verdict on this packet may be remembered at all. */
static __always_inline int like_may_be_kept(const struct sl_rules *rules,
					    const struct evaluation *ev,
					    const struct sl_push_now *push)
{
	return env_refusal_cache() && like_applies(&ev->pkt) && !ev->pkt.not_cached &&
	       !(rules->dims & SL_DIMS_MATCH & ~LIKE_DIMS) && !ev->failsafe_spent &&
	       !like_is_special(&ev->pkt, push->flags);
}

/*
 * Until when: `until_ns` (a deadline that is not over), the end of an unconfirmed apply, and the
 * time from which a source is noted again as established (push_note()).
 */
static __always_inline u64 like_until(const struct sl_rules *rules, const struct sl_push_now *push,
				      const struct packet *pkt, u64 until_ns)
{
	u64 turn = pkt->now.mono_ns >> SL_ESTABLISHED_SHIFT;

	if (rules->revert_at_ns)
		until_ns = earlier_ns(until_ns, rules->revert_at_ns);
	if (push->flags & SL_PUSH_WATCH)
		until_ns = earlier_ns(until_ns, (turn + 1) << SL_ESTABLISHED_SHIFT);
	return until_ns;
}

/* Packets like this one, from when until_ns is set. While a change is under way the epoch is odd,
 * and nothing matches. */
static __always_inline void like_store(struct sl_like *like, const struct evaluation *ev, u8 reads)
{
	like->until_ns = 0;
	like->src = packet_src(&ev->pkt);
	like->dst = packet_dst(&ev->pkt);
	like->fields = like_fields(&ev->pkt);
	like->epoch = ev->epoch & ~SL_EPOCH_CHANGING;
	like->l3_length = ev->pkt.l3_length;
	like->link = like_link(&ev->pkt);
	like->reads = reads;
}

#endif
