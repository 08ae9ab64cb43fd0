/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * classify.h - the second stage: which limits match, and which lists the source is in.
 *
 * Every dimension yields a bitmap of limits: one look-up each, whatever the number of limits or
 * prefixes; the AND of the bitmaps is the set that matches. A limit without a condition on a
 * dimension is in all of its bitmaps. Dimensions that no limit uses are
 * skipped (sl_rules.dims).
 */
#ifndef SLUICE_BPF_CLASSIFY_H
#define SLUICE_BPF_CLASSIFY_H

#include "bpf/evaluation.h"
#include "bpf/observe.h"

/* A bisection over at most 129 lengths. */
#define CLASSIFY_PROBES_MAX 8

static __always_inline void bitmap_and(struct sl_bitmap *a, const struct sl_bitmap *b)
{
	u32 i;

	for (i = 0; i < SL_BITMAP_WORDS; i++)
		a->w[i] &= b->w[i];
}

/*
 * Number of trailing zeros of x != 0. BPF has no such instruction, and a bisection's branches
 * are 64 paths to the verifier; so the lowest bit times a de Bruijn sequence (Leiserson,
 * Prokop and Randall, 1998), whose top six bits are different for each of the 64.
 */
static const u8 lowest_bit_of[64] = {
	0,  1,	2,  53, 3,  7,	54, 27, 4,  38, 41, 8,	34, 55, 48, 28, 62, 5,	39, 46, 44, 42,
	22, 9,	24, 35, 59, 56, 49, 18, 29, 11, 63, 52, 6,  26, 37, 40, 33, 47, 61, 45, 43, 21,
	23, 58, 17, 10, 51, 25, 36, 32, 60, 20, 57, 16, 50, 31, 19, 15, 30, 14, 13, 12,
};

static __always_inline u32 lowest_bit(u64 x)
{
	u64 spread = (x & -x) * 0x022fdd63cc95386dULL;

	/* clang 17 and 18 see what it is, and crash over an instruction that BPF lacks. */
	OPAQUE(spread);
	return lowest_bit_of[spread >> 58];
}

/* The packet's source or destination. */
static __always_inline struct sl_addr classify_addr(const struct packet *pkt, u32 dim)
{
	return dim == SL_PDIM_SRC ? packet_src(pkt) : packet_dst(pkt);
}

/*
 * IPv4: the entry of its /16, then its list of ranges where that is no class yet. In a dense
 * /16 the list is found by the entry of the /24.
 */
static __always_inline u32 classify_v4(const struct sl_rules *rules, u32 addr, u32 dim)
{
	const struct sl_v4_top *top = map_v4_top(rules->pfx_slot);
	u32 at = dim << 16 | addr >> 16, entry;
	const struct sl_v4_line *line;

	if (!top)
		goto missing;
	OPAQUE(at);
	entry = top->entry[at & ((SL_PDIM_COUNT << 16) - 1)];
	if ((entry & SL_V4_KIND) == SL_V4_BLOCK) {
		line = map_v4_line(rules->pfx_slot, SL_V4_LINE(entry) + (addr >> 12 & 15));
		if (!line)
			goto missing;
		at = addr >> 8;
		OPAQUE(at);
		entry = line->entry[at & 15];
	}
	if (entry < SL_V4_NODE)
		return entry;
	at = (entry & SL_V4_KIND) == SL_V4_BYTES ? addr >> 5 & 7 : 0;
	line = map_v4_line(rules->pfx_slot, SL_V4_LINE(entry) + at);
	if (!line)
		goto missing;
	OPAQUE(addr);
	if ((entry & SL_V4_KIND) == SL_V4_BYTES)
		return line->class[addr & 31];
	return sl_v4_list_class(line, SL_V4_FIRST(entry), addr & 0xffff);
missing:
	count_map_error(SL_ME_PREFIX_LOOKUP);
	return 0;
}

/*
 * One probe of the IPv6 prefix hash: the class of the packet's address cut to `len`, or -1
 * where that is not in it. Global: its paths times the loop's would be 885719 instructions to
 * the verifier, of a million.
 */
SL_GLOBAL int prefix_probe(const struct sl_rules *rules, const struct packet *pkt, u32 dim, u32 len)
{
	struct sl_pfx_hash h;
	u32 which, i;
	void *pfx;

	if (!rules || !pkt)
		return -1;
	dim &= 1;
	h = sl_pfx_hash(sl_addr_mask(classify_addr(pkt, dim), len), len, dim, rules->seed,
			rules->pfx_buckets);
	pfx = map_pfx(rules->pfx_slot);
	for (which = 0; pfx && which < 2; which++) {
		const struct sl_pfx_bucket *b = map_pfx_bucket(pfx, h.bucket[which]);

		if (!b)
			break;
		for (i = 0; i < SL_PFX_WAYS; i++)
			if (b->e[i].tag == h.tag && b->e[i].tag2 == h.tag2)
				return b->e[i].class & SL_PFX_CLASS_MASK;
		if (!(b->e[0].class & SL_PFX_SPILLED))
			return -1;
	}
	if (which < 2)
		count_map_error(SL_ME_PREFIX_LOOKUP);
	return -1;
}

/*
 * The class of the longest prefix that holds the packet's source or destination; 0 where
 * there is none.
 *
 * IPv6: bisection over the lengths in use. A hit (a prefix, or a marker on the way to longer
 * ones, which carries its own best match) continues with longer ones, a miss with shorter ones.
 */
SL_GLOBAL u32 classify_prefix(const struct sl_rules *rules, const struct packet *pkt, u32 dim)
{
	const struct sl_lengths *lengths;
	u32 lo = 0, hi, best = 0, i, mid;
	int class;

	if (!rules || !pkt)
		return 0;
	dim &= 1;
	if (pkt->family == SL_V4)
		return classify_v4(rules, classify_addr(pkt, dim).hi >> 32, dim);
	lengths = &rules->lengths[dim];
	hi = lengths->count;
	for (i = 0; i < CLASSIFY_PROBES_MAX && lo < hi; i++) {
		mid = (lo + hi) / 2;
		if (mid >= SL_LENGTHS_MAX)
			break;
		class = prefix_probe(rules, pkt, dim, lengths->len[mid]);
		if (class >= 0) {
			best = class;
			lo = mid + 1;
		} else {
			hi = mid;
		}
	}
	return best;
}

static __always_inline const struct sl_pclass *classify_class(const struct sl_rules *rules,
							      u32 class)
{
	const struct sl_pclass *pclass = map_pclass(rules->pfx_slot, class);

	if (!pclass)
		count_map_error(SL_ME_CLASS_LOOKUP);
	return pclass;
}

/*
 * A source ::ffff:a.b.c.d meets the limits on it and those on a.b.c.d, but no pass for a.b.c.d.
 * Global, for it is rare.
 */
SL_GLOBAL int classify_mapped(const struct sl_rules *rules, struct evaluation *ev,
			      const struct sl_pclass *src)
{
	const struct sl_pclass *v4;
	u32 i;

	if (!rules || !ev || !src)
		return 0;
	v4 = classify_class(rules, classify_v4(rules, ev->pkt.src.lo, SL_PDIM_SRC));
	for (i = 0; v4 && i < SL_BITMAP_WORDS; i++)
		ev->match.w[i] &= src->limits.w[i] | (v4->limits.w[i] & ~rules->passing.w[i]);
	return 1;
}

/* A dimension of 16-bit values; absent: the packet has no such field. */
static __always_inline void classify_16(const struct sl_rules *rules, struct evaluation *ev,
					u32 dim, u32 value, int present)
{
	u32 class;

	if (!(rules->dims & SL_DIMS_16(dim)))
		return;
	if (!present) {
		bitmap_and(&ev->match, &rules->none16[dim]);
		return;
	}
	class = rules->dim16[dim][value & 0xffff];
	if (class < SL_CLASS16_MAX)
		bitmap_and(&ev->match, &rules->class16[class]);
}

static __always_inline void classify_8(const struct sl_rules *rules, struct evaluation *ev, u32 dim,
				       u32 value, int present)
{
	if (!(rules->dims & SL_DIMS_8(dim)))
		return;
	if (present)
		bitmap_and(&ev->match, &rules->dim8[dim][value & 0xff]);
	else
		bitmap_and(&ev->match, &rules->none8[dim]);
}

/*
 * The protocol of a packet with IPv6 extension headers: it meets the limits on each of their
 * numbers, too, as raw sockets do, but no pass: anyone can add a header. Global: it is rare, and
 * other packets do not pay for it.
 */
SL_GLOBAL int classify_ext(const struct sl_rules *rules, struct evaluation *ev)
{
	const struct sl_bitmap *dim;
	u64 ext, limits, more;
	u32 i;

	if (!rules || !ev)
		return 0;
	dim = rules->dim8[SL_DIM_PROTO];
	ext = ev->pkt.ext;
	for (i = 0; i < SL_BITMAP_WORDS; i++) {
		limits = dim[ev->pkt.proto].w[i];
		more = dim[IPPROTO_HOPOPTS].w[i] & -(ext & 1);
		more |= dim[IPPROTO_ROUTING].w[i] & -(ext >> 1 & 1);
		more |= dim[IPPROTO_FRAGMENT].w[i] & -(ext >> 2 & 1);
		more |= dim[IPPROTO_DSTOPTS].w[i] & -(ext >> 3 & 1);
		ev->match.w[i] &= limits | (more & ~rules->passing.w[i]);
	}
	return 1;
}

/* ICMP and ICMPv6 types are one condition, `icmp_type`, over two tables. */
static __always_inline void classify_icmp(const struct sl_rules *rules, struct evaluation *ev,
					  int l4)
{
	if (!(rules->dims & (SL_DIMS_8(SL_DIM_ICMP) | SL_DIMS_8(SL_DIM_ICMPV6))))
		return;
	if (l4 && ev->pkt.proto == PROTO_ICMP)
		bitmap_and(&ev->match, &rules->dim8[SL_DIM_ICMP][ev->pkt.icmp_type]);
	else if (l4 && ev->pkt.proto == PROTO_ICMPV6)
		bitmap_and(&ev->match, &rules->dim8[SL_DIM_ICMPV6][ev->pkt.icmp_type]);
	else
		bitmap_and(&ev->match, &rules->none8[SL_DIM_ICMP]);
}

static __always_inline int has_ports(u8 proto)
{
	return proto == PROTO_TCP || proto == PROTO_UDP || proto == PROTO_SCTP ||
	       proto == PROTO_UDPLITE;
}

/* Whether a port is one of `failsafe`. */
static __always_inline int is_failsafe_port(const struct sl_rules *rules, u32 proto, u32 port)
{
	u32 byte = port >> 3;
	u8 ports;

	if (proto == PROTO_TCP)
		ports = rules->failsafe_tcp[byte & 8191];
	else if (proto == PROTO_UDP)
		ports = rules->failsafe_udp[byte & 8191];
	else
		return 0;
	return ports >> (port & 7) & 1;
}

/*
 * Protocol, ports, flags and type. A packet that hides its ports, flags and type (is_l4_hidden())
 * matches every limit whose condition on them it could meet, so those dimensions are left out where
 * its protocol has such a field, and all of them and the protocol's where that is unknown, too.
 */
static __always_inline void classify_transport(const struct sl_rules *rules, struct evaluation *ev)
{
	int l4 = ev->pkt.flags & PKT_L4, hidden = is_l4_hidden(ev->pkt.flags);
	int any = hidden && !(ev->pkt.flags & PKT_PROTO);

	if (!any && !ev->pkt.ext)
		classify_8(rules, ev, SL_DIM_PROTO, ev->pkt.proto, 1);
	else if (!any && (rules->dims & SL_DIMS_8(SL_DIM_PROTO)))
		classify_ext(rules, ev);
	if (!(hidden && (any || has_ports(ev->pkt.proto)))) {
		int ports = l4 && has_ports(ev->pkt.proto);

		classify_16(rules, ev, SL_DIM_DPORT, ev->pkt.dport, ports);
		classify_16(rules, ev, SL_DIM_SPORT, ev->pkt.sport, ports);
	}
	if (!(hidden && (any || ev->pkt.proto == PROTO_TCP)))
		classify_8(rules, ev, SL_DIM_TCP_FLAGS, ev->pkt.tcp_flags,
			   l4 && ev->pkt.proto == PROTO_TCP);
	if (!(hidden && (any || ev->pkt.proto == PROTO_ICMP || ev->pkt.proto == PROTO_ICMPV6)))
		classify_icmp(rules, ev, l4);
}

/* Both addresses; `src` is the source's class, NULL where no rule uses it. */
static __always_inline void classify_addresses(const struct sl_rules *rules, struct evaluation *ev,
					       const struct sl_pclass *src)
{
	const struct sl_pclass *pclass;

	if (src && !(ev->pkt.flags & PKT_V4_MAPPED))
		bitmap_and(&ev->match, &src->limits);
	else if (src)
		classify_mapped(rules, ev, src);
	if (rules->dims & SL_DIMS_P(SL_PDIM_DST)) {
		pclass = classify_class(rules, classify_prefix(rules, &ev->pkt, SL_PDIM_DST));
		if (pclass)
			bitmap_and(&ev->match, &pclass->limits);
	}
}

/* ev->match = the limits that match; `src` as above. */
static __always_inline void classify(const struct sl_rules *rules, struct evaluation *ev,
				     const struct sl_pclass *src)
{
	ev->match = rules->all;
	if (!(rules->dims & SL_DIMS_MATCH))
		return;
	classify_addresses(rules, ev, src);
	if (ev->pkt.l3_length)
		classify_16(rules, ev, SL_DIM_LENGTH,
			    ev->pkt.l3_length < 0xffff ? ev->pkt.l3_length : 0xffff, 1);
	classify_16(rules, ev, SL_DIM_VLAN, ev->pkt.vlan, ev->pkt.flags & PKT_VLAN);
	classify_8(rules, ev, SL_DIM_IFACE, env_iface_slot(), 1);
	classify_transport(rules, ev);
}

#endif
