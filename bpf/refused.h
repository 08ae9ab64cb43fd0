/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * refused.h - the refusal cache: a packet like one that was just refused is refused at once, before
 * rules, lists and limits are looked at.
 *
 * A source that floods is refused for thousands of its packets in a row, each time by the same
 * steps with the same result. So each CPU remembers refusals, by source, in a direct-mapped table.
 * An entry's only result is that one refusal. It holds for a packet
 *
 *   - that equals the refused one in every field that was read on its way (refused_reads()), came
 *     in by the same interface, and is as long or longer;
 *   - that could be read whole, without fragments and extension headers;
 *   - while the epoch is the same: nothing that verdicts are read from was written (sluice/epoch.h);
 *   - until the earliest time at which the way could be another: room in the limit, as its step
 *     computed; the end of an elastic scale, of an unconfirmed apply; 100 ms.
 *
 * Within these bounds a refusal cannot turn into something else: what other packets are charged
 * only makes it last longer. The exception are refunds (a packet that a later limit refused): they
 * are seen by the end of the entry. Of several limits only the first that refuses is counted; so a
 * refusal is remembered only where no limit before it can take that place (meters.h).
 *
 * What a refused packet counts is counted as without the cache: under its limit here, the rest by
 * verdict(). What would need more than that is never remembered: refusals that count for a ban, of
 * limits with `count: all`, and of sources that a push-down applies to.
 *
 * tests/prop/test_refused.c compares all verdicts, reasons and counters with those of a program
 * without it.
 */
#ifndef SLUICE_BPF_REFUSED_H
#define SLUICE_BPF_REFUSED_H

#include "bpf/clock.h"
#include "bpf/evaluation.h"
#include "bpf/lease.h"
#include "bpf/observe.h"
#include "bpf/session.h"

#define REFUSED_MAX_NS 100000000ULL
/* A refusal that ends sooner costs more to remember than it saves. */
#define REFUSED_MIN_NS 2000ULL

/* Fields of struct sl_refused.fields that are part of the key, by four bits of `reads`. */
#define REFUSED_PROTO 0xffULL
#define REFUSED_FLAGS (0xffULL << 8)
#define REFUSED_VLAN (0xffffULL << 16)
#define REFUSED_DPORT (0xffffULL << 32)
#define REFUSED_SPORT (0xffffULL << 48)
#define REFUSED_MASK(reads)                                                 \
	(REFUSED_PROTO | ((reads) & SL_READ_FLAGS ? REFUSED_FLAGS : 0) |    \
	 ((reads) & SL_READ_VLAN ? REFUSED_VLAN : 0) |                      \
	 ((reads) & SL_READ_DPORT ? REFUSED_DPORT : 0) |                    \
	 ((reads) & SL_READ_SPORT ? REFUSED_SPORT : 0))
#define REFUSED_MASKS(n) \
	REFUSED_MASK(n), REFUSED_MASK((n) + 1), REFUSED_MASK((n) + 2), REFUSED_MASK((n) + 3)

static const u64 refused_masks[16] = {
	REFUSED_MASKS(0), REFUSED_MASKS(4), REFUSED_MASKS(8), REFUSED_MASKS(12),
};

/* ICMP's type and code are where others have flags and source port, which are 0 for ICMP. */
static __always_inline u64 refused_fields(const struct packet *pkt)
{
	return (u64)(pkt->sport | pkt->icmp_code) << 48 | (u64)pkt->dport << 32 |
	       (u64)pkt->vlan << 16 | (u64)(pkt->tcp_flags | pkt->icmp_type) << 8 | pkt->proto;
}

static __always_inline u8 refused_link(const struct packet *pkt)
{
	return (pkt->family & 1) << 7 | (env_iface_slot() & (SL_IFACES_MAX - 1));
}

static __always_inline struct sl_refused *refused_at(u64 src_hi)
{
	return map_refused((src_hi * 0x9e3779b97f4a7c15ULL) >> (64 - SL_REFUSED_BITS));
}

/* Read whole, with all its headers in this packet. */
static __always_inline int refused_applies(const struct packet *pkt)
{
	return (pkt->flags & ~(PKT_L4 | PKT_VLAN)) == (PKT_ADDR | PKT_PROTO) && !pkt->ext;
}

/* ------------------------------------------------------------------ using it */

/* Whether the entry was made for a packet that is no different. */
static __always_inline int refused_is(const struct sl_refused *r, const struct packet *pkt,
				      u32 epoch)
{
	u64 differs = (r->src.hi ^ pkt->src.hi) |
		      ((r->fields ^ refused_fields(pkt)) & refused_masks[r->reads & 15]) |
		      (r->epoch ^ epoch) | (r->link ^ refused_link(pkt));

	if (differs || pkt->length < r->least)
		return 0;
	if ((r->reads & SL_READ_SRC_LOW) && r->src.lo != pkt->src.lo)
		return 0;
	if ((r->reads & SL_READ_LENGTH) && r->l3_length != pkt->l3_length)
		return 0;
	return !(r->reads & SL_READ_DST) ||
	       !((r->dst.hi ^ pkt->dst.hi) | (r->dst.lo ^ pkt->dst.lo));
}

/* A packet that was parsed: 1, it is refused by an earlier refusal, and counted under its limit. */
static __always_inline int refused_before(struct evaluation *ev)
{
	struct packet *pkt = &ev->pkt;
	const struct sl_refused *r;
	u64 late;

	if (!env_refusal_cache() || !refused_applies(pkt))
		return 0;
	r = refused_at(pkt->src.hi);
	if (!r || !refused_is(r, pkt, ev->epoch))
		return 0;
	late = clock_bound_ns(pkt);
	/* Of the clock only this number is needed: clock_read() would cost as much again. */
	if (late ? late >= r->until_ns && env_mono_ns() >= r->until_ns
		 : pkt->now.mono_ns >= r->until_ns)
		return 0;
	pkt->reason = SL_R_OVER;
	ev->limit_id = r->limit_id;
	count_limit(r->limit_id, SL_LV_DROP, pkt->length);
	return 1;
}

/* ------------------------------------------------------------------ making an entry */

/*
 * ICMP errors and neighbor discovery are judged by more of their header (path MTU, hop limit); of
 * QUIC the HTTP tier has a byte of the payload read.
 */
static __always_inline int refused_is_special(const struct packet *pkt, u32 push_flags)
{
	if (pkt->proto == PROTO_ICMP)
		return pkt->icmp_type == 3;
	if (pkt->proto == PROTO_ICMPV6)
		return pkt->icmp_type < 128 || (pkt->icmp_type >= 133 && pkt->icmp_type <= 137);
	return (push_flags & SL_PUSH_WATCH) && pkt->proto == PROTO_UDP && pkt->dport == 443;
}

/* Whether something longer than 64 bits is listed near an IPv6 source. */
static __always_inline int refused_listed_low(const struct packet *pkt)
{
	const struct sl_list_filter *filter = map_list_filter();
	u32 at = sl_list_set(packet_src(pkt));

	OPAQUE(at);
	at &= SL_LIST_V6_SETS - 1;
	return filter && (filter->v6[at][0] >> (65 - SL_LIST_V6_FIRST) || filter->v6[at][1]);
}

/* Whether some step looks at this IPv6 source by more than 64 bits. */
static __always_inline int refused_reads_low(const struct sl_rules *rules, const struct packet *pkt,
					     u32 meter_len, const struct sl_push_now *push)
{
	u64 found = meter_len > 64 || refused_listed_low(pkt);
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
 * to being refused by meter `index`. Global, as the next one: it is seldom called, and its paths
 * times those before it would be too many.
 */
SL_GLOBAL u32 refused_reads(const struct sl_rules *rules, const struct packet *pkt, u32 index)
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
	if (pkt->family == SL_V6 && refused_reads_low(rules, pkt, meter->prefix[SL_V6], push))
		reads |= SL_READ_SRC_LOW;
	return reads;
}

static __always_inline u64 refused_earlier(u64 a, u64 b)
{
	return a < b ? a : b;
}

/* Until when a source need not be noted again as established (push_note()). */
static __always_inline u64 refused_noted_until(const struct packet *pkt)
{
	return ((pkt->now.mono_ns >> SL_ESTABLISHED_SHIFT) + 1) << SL_ESTABLISHED_SHIFT;
}

/* Remembers that meter `index` refused this packet, until `until_ns` at most. */
SL_GLOBAL int refused_store(const struct sl_rules *rules, struct evaluation *ev, u32 index,
			    u64 until_ns)
{
	const struct sl_limit *meter, *head;
	const struct sl_push_now *push = map_push_now();
	struct sl_refused *r;
	u64 until;

	if (!rules || !ev || !push || !env_refusal_cache())
		return 0;
	if (!refused_applies(&ev->pkt) || ev->pkt.not_cached || ev->failsafe_spent ||
	    refused_is_special(&ev->pkt, push->flags) || ev->pkt.length > 0xffff)
		return 0;
	meter = limit_at(rules, index);
	head = meter ? limit_at(rules, meter->head) : NULL;
	if (!head || head->ban != SL_NO_METER || meter->count_all)
		return 0;
	clock_read(&ev->pkt);
	until = refused_earlier(ev->pkt.now.mono_ns + REFUSED_MAX_NS, until_ns);
	if (rules->revert_at_ns)
		until = refused_earlier(until, rules->revert_at_ns);
	if (push->flags & SL_PUSH_WATCH)
		until = refused_earlier(until, refused_noted_until(&ev->pkt));
	if (until < ev->pkt.now.mono_ns + REFUSED_MIN_NS)
		return 0;
	r = refused_at(ev->pkt.src.hi);
	if (!r)
		return 0;
	r->until_ns = 0;
	r->src = packet_src(&ev->pkt);
	r->dst = packet_dst(&ev->pkt);
	r->fields = refused_fields(&ev->pkt);
	r->epoch = ev->epoch;
	r->l3_length = ev->pkt.l3_length;
	r->least = meter->unit == SL_UNIT_BYTES ? ev->pkt.length : 0;
	r->link = refused_link(&ev->pkt);
	r->reads = refused_reads(rules, &ev->pkt, index);
	r->limit_id = head->slot;
	r->until_ns = until;
	return 1;
}

#endif
