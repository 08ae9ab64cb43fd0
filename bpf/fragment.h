/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * fragment.h - later fragments share the fate of their first.
 *
 * Only the first fragment of a datagram has ports, TCP flags or an ICMP type. They are remembered
 * under the key by which receivers reassemble (RFC 791: addresses, protocol and id; RFC 8200:
 * addresses and id), and later fragments are treated as having them: they meet exactly the limits
 * of their first, and are dropped where their first was dropped. They are charged like any
 * packet; otherwise one small first would admit 64 KB.
 *
 * A later fragment whose first was not seen, or is unsure, matches every limit that it could
 * meet (classify.h). The danger is a decoy: a first to a port without a limit that is
 * trusted here and discarded by the receiver: the rest is judged by the decoy and delivered with
 * another first.
 * Hence three rules.
 *   1 Trust. A first decides for the rest only if Linux surely accepts it: no IPv4 options, a right
 *     checksum, a length in units of 8 bytes; in IPv6 the fragment header right behind the IPv6
 *     header and the transport right behind it. And only for fragments that arrived the same
 *     way: interface, VLAN tags, destination MAC, hop limit. All other firsts are unsure.
 *   2 Memory. A live entry is never evicted, and it lives as long as a receiver may keep what
 *     passed under it. A first that finds no room closes its set: until receivers
 *     have discarded that one, new firsts of this set are unsure.
 *   3 Contradiction. A first that meets a limit which the remembered one does not makes that one
 *     unsure. Where later fragments were already judged by that one, it is dropped: whichever of
 * the two the receiver has, no datagram can be completed by what escaped one of its limits. A
 * sender uses the ids of IPv4 again; a first that meets no other limit does not contradict.
 *
 * That all of a datagram has passed does not end its entry: Linux begins a queue anew when 64
 * other fragments of the source came between (ipfrag_max_dist), and then has the rest without the
 * first.
 */
#ifndef SLUICE_BPF_FRAGMENT_H
#define SLUICE_BPF_FRAGMENT_H

#include "bpf/classify.h"
#include "bpf/fragment_memory.h"

#define FRAGMENT_TAGS_MAX 4
/* An IPv6 header and a fragment header; an IPv4 header is shorter. */
#define FRAGMENT_HEADS 48
#define FRAGMENT_V4_HEADER 20
#define FRAGMENT_ETH_HEADER 14

/* Whether anything could depend on a fragment's first; the others are not remembered. */
static __always_inline int fragments_matter(const struct sl_rules *rules)
{
	const struct sl_push_now *push = map_push_now();

	if (push && (push->flags & SL_PUSH_ON))
		return 1;
	if (rules->dims & (SL_DIMS_LOCAL | SL_DIMS_SESSIONS))
		return 1;
	return (rules->dims & SL_DIMS_L4) && rules->fragments == SL_FRAG_LIMIT;
}

static __always_inline u32 fragment_be16(const u8 *at)
{
	return at[0] << 8 | at[1];
}

/* ------------------------------------------------------------------ what is trusted */

/*
 * How a fragment arrived: the interface and the hop limit; with an Ethernet header the destination
 * MAC, too, and the VLAN tags, outermost first. No more than four were read, and an IP header was
 * read behind them.
 */
static __always_inline void fragment_link(env_ctx *ctx, struct packet *pkt)
{
	u8 l2[FRAGMENT_ETH_HEADER + 4 * FRAGMENT_TAGS_MAX];
	u64 mac = 0, vlans = 0;
	u32 i, at = FRAGMENT_ETH_HEADER;

	pkt->frag_link = (env_iface_slot() & 0xff) << 8 | pkt->hop_limit;
	pkt->frag_vlans = 0;
	if (env_link() != SL_LINK_ETHERNET || env_load_bytes(ctx, 0, l2, sizeof(l2)))
		return;
	for (i = 0; i < 6; i++)
		mac = mac << 8 | l2[i];
	for (i = 0; i < FRAGMENT_TAGS_MAX && at < pkt->l3_offset; i++, at += 4) {
		u32 type = fragment_be16(&l2[12 + 4 * i]), tci = fragment_be16(&l2[14 + 4 * i]);

		vlans = vlans << 16 | (type == ETH_P_8021Q ? 0x1000 : 0x2000) | (tci & 0xfff);
	}
	pkt->frag_link |= mac << 16;
	pkt->frag_vlans = vlans;
}

/* Options, checksum, length: what may make Linux discard or cut an IPv4 fragment. */
static __always_inline int fragment_trusted_v4(const u8 *ip)
{
	u32 sum = 0, total = fragment_be16(ip + 2), i;

	for (i = 0; i < FRAGMENT_V4_HEADER; i += 2)
		sum += fragment_be16(ip + i);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return ip[0] == 0x45 && sum == 0xffff && total > FRAGMENT_V4_HEADER &&
	       (total - FRAGMENT_V4_HEADER) % 8 == 0;
}

/* The same of IPv6; a payload length of 0 is a jumbogram (RFC 2675). */
static __always_inline int fragment_trusted_v6(const u8 *ip, u8 proto)
{
	u32 payload = fragment_be16(ip + 4);

	return ip[6] == IPPROTO_FRAGMENT && ip[40] == proto && payload > 8 && payload % 8 == 0;
}

/* Whether Linux surely accepts this first fragment. */
static __always_inline int fragment_is_trusted(env_ctx *ctx, const struct packet *pkt)
{
	u8 head[FRAGMENT_HEADS];

	if (pkt->flags & PKT_UNREAD)
		return 0;
	if (pkt->family == SL_V4)
		return !env_load_bytes(ctx, pkt->l3_offset, head, FRAGMENT_V4_HEADER) &&
		       fragment_trusted_v4(head);
	return !env_load_bytes(ctx, pkt->l3_offset, head, FRAGMENT_HEADS) &&
	       fragment_trusted_v6(head, pkt->proto);
}

/* ------------------------------------------------------------------ later fragments */

/*
 * A later fragment is judged by its first: from now on that is remembered, for as long as a
 * receiver may have this one. 0: it became unsure meanwhile.
 */
static __always_inline int fragment_use(struct sl_frag_set *set, struct sl_frag_first *first,
					const struct packet *pkt, int *ret_renewed)
{
	u64 until = pkt->now.mono_ns + fragment_life_ns(pkt);
	int sure;

	if ((first->flags & SL_FRAG_USED) && until < first->until_ns + SL_FRAG_STEP_NS)
		return 1;
	map_fragment_lock(set);
	sure = !(first->flags & SL_FRAG_UNSURE);
	first->flags |= SL_FRAG_USED;
	if (first->until_ns < until)
		first->until_ns = until;
	map_fragment_unlock(set);
	*ret_renewed = 1;
	return sure;
}

/* What is remembered of a later fragment's first becomes the packet's. 1: its time was renewed. */
static __always_inline int fragment_lookup(struct sl_frag_set *set, struct sl_frag_first *first,
					   struct packet *pkt)
{
	int renewed = 0;

	if ((first->flags & SL_FRAG_UNSURE) || first->link != pkt->frag_link ||
	    first->vlans != pkt->frag_vlans)
		return 0;
	if (first->flags & SL_FRAG_DROPPED)
		pkt->flags |= PKT_FIRST_DROPPED;
	else if (!fragment_use(set, first, pkt, &renewed))
		return 0;
	pkt->sport = first->sport;
	pkt->dport = first->dport;
	pkt->tcp_flags = first->tcp_flags;
	pkt->icmp_type = first->icmp_type;
	pkt->icmp_code = first->icmp_code;
	pkt->proto = first->proto;
	pkt->flags |= PKT_PROTO | PKT_FIRST_KNOWN;
	if (first->l4)
		pkt->flags |= PKT_L4;
	return renewed;
}

/* Its first became unsure meanwhile: the fragment has no known first. */
static __always_inline void fragment_forget(struct packet *pkt)
{
	pkt->flags &= ~(PKT_PROTO | PKT_FIRST_KNOWN | PKT_L4);
	pkt->proto = 0;
}

/* The next step of fragment_meet() for a fragment. */
enum fragment_todo {
	FRAGMENT_DONE,
	FRAGMENT_USE_PAIR, /* an IPv6 pair is to be marked as used */
	/* a first that differs from the one of its id, whose fields are frag_like */
	FRAGMENT_DIFFERS,
	FRAGMENT_DIFFERS_USED, /* and fragments passed under that one */
};

/* Returns enum fragment_todo. */
SL_GLOBAL int fragment_look(env_ctx *ctx, struct packet *pkt)
{
	struct sl_frag_first *first;
	struct sl_frag_set *set;
	struct sl_frag_key key;
	int another, trusted;

	if (!pkt)
		return FRAGMENT_DONE;
	clock_read(pkt);
	fragment_link(ctx, pkt);
	pkt->frag_like = fragment_own_fields(pkt);
	another = fragment_pair(pkt) & SL_FRAG_UNSURE;
	fragment_key(pkt, &key);
	set = fragment_set(&key);
	if (!set)
		return FRAGMENT_DONE;
	first = fragment_way(set, fragment_find(set, &key, pkt->now.mono_ns, 0));
	if (pkt->flags & PKT_LATER) {
		if (first && !another && fragment_lookup(set, first, pkt) && pkt->family == SL_V6)
			return FRAGMENT_USE_PAIR;
		return FRAGMENT_DONE;
	}
	trusted = fragment_is_trusted(ctx, pkt);
	pkt->flags |= PKT_NOTE_FIRST;
	if (another || !trusted)
		pkt->flags |= PKT_NOTE_UNSURE;
	if (!first || (trusted && fragment_agrees(first, pkt)))
		return FRAGMENT_DONE;
	if (trusted) {
		pkt->frag_like = fragment_fields(first);
		return first->flags & SL_FRAG_USED ? FRAGMENT_DIFFERS_USED : FRAGMENT_DIFFERS;
	}
	if (first->flags & SL_FRAG_USED)
		pkt->flags |= PKT_FIRST_DROPPED;
	return FRAGMENT_DONE;
}

/* Exchanges the fields of a first and those that are remembered. */
static __always_inline void fragment_exchange(struct packet *pkt, u64 fields)
{
	pkt->sport = fields >> 48;
	pkt->dport = fields >> 32;
	pkt->tcp_flags = fields >> 24;
	pkt->icmp_type = fields >> 16;
	pkt->icmp_code = fields >> 8;
}

/* ev->match = the limits that match by what all fragments of the datagram share. */
SL_GLOBAL int fragment_limits(const struct sl_rules *rules, struct evaluation *ev)
{
	const struct sl_pclass *src = NULL;

	if (!rules || !ev)
		return 0;
	ev->match = rules->all;
	if (rules->dims & SL_DIMS_P(SL_PDIM_SRC))
		src = classify_class(rules, classify_prefix(rules, &ev->pkt, SL_PDIM_SRC));
	classify_addresses(rules, ev, src);
	classify_transport(rules, ev);
	return 1;
}

/*
 * Whether what was judged by the fields frag_like met every limit that this first meets, in the
 * same bucket, and passed none of them by.
 */
SL_GLOBAL int fragment_covers(const struct sl_rules *rules, struct evaluation *ev)
{
	u64 own, like, missed = 0;
	struct sl_bitmap mine;
	u32 i;

	if (!rules || !ev)
		return 0;
	own = fragment_own_fields(&ev->pkt);
	like = ev->pkt.frag_like;
	if ((u8)own != (u8)like ||
	    ((rules->dims & SL_DIMS_PER_DPORT) && (u16)(own >> 32) != (u16)(like >> 32)) ||
	    ((rules->dims & SL_DIMS_SESSIONS) && ev->pkt.proto == PROTO_TCP) ||
	    is_failsafe_port(rules, (u8)like, (u16)(like >> 32)))
		return 0;
	fragment_limits(rules, ev);
	mine = ev->match;
	fragment_exchange(&ev->pkt, like);
	fragment_limits(rules, ev);
	fragment_exchange(&ev->pkt, own);
	for (i = 0; i < SL_BITMAP_WORDS; i++) {
		missed |= mine.w[i] & ~ev->match.w[i];
		missed |= (mine.w[i] ^ ev->match.w[i]) & rules->passing.w[i];
	}
	return !missed;
}

SL_GLOBAL int fragment_hide(struct packet *pkt)
{
	if (!pkt)
		return 0;
	clock_read(pkt);
	pkt->flags |= PKT_NOTE_FIRST | PKT_NOTE_UNSURE;
	if (fragment_pair(pkt) & SL_FRAG_USED)
		pkt->flags |= PKT_FIRST_DROPPED;
	return 0;
}

/* After parsing. */
static __always_inline void fragment_meet(env_ctx *ctx, const struct sl_rules *rules,
					  struct evaluation *ev)
{
	struct packet *pkt = &ev->pkt;
	int todo;

	if (!(pkt->flags & (PKT_FRAGMENT | PKT_UNREAD)) || !fragments_matter(rules))
		return;
	if (fragment_is_hidden(pkt))
		fragment_hide(pkt);
	if (fragment_is_hidden(pkt) || !(pkt->flags & PKT_FRAGMENT))
		return;
	todo = fragment_look(ctx, pkt);
	if (todo == FRAGMENT_USE_PAIR && !fragment_pair_use(pkt))
		fragment_forget(pkt);
	if (todo < FRAGMENT_DIFFERS || fragment_covers(rules, ev))
		return;
	pkt->frag_like = fragment_own_fields(pkt);
	if (todo == FRAGMENT_DIFFERS_USED)
		pkt->flags |= PKT_FIRST_DROPPED;
}

/* ------------------------------------------------------------------ first fragments */

/*
 * Whether a first's verdict is to be remembered: those that its address or `fragments` decided
 * are not, so that a flood from blocked sources does not fill the memory.
 */
static __always_inline int fragment_is_noted(const struct packet *pkt)
{
	return (pkt->flags & PKT_NOTE_FIRST) && pkt->reason != SL_R_BLOCK &&
	       pkt->reason != SL_R_BAN && pkt->reason != SL_R_PUSH_DROP &&
	       pkt->reason != SL_R_FRAGMENT;
}

/*
 * Another first of an id that lives. One that was dropped never reached the receiver: it changes
 * nothing, but where it is the same again its rest is useless.
 */
static __always_inline void fragment_note_again(struct sl_frag_first *first,
						const struct packet *pkt, u32 dropped)
{
	u64 until = pkt->now.mono_ns + fragment_life_ns(pkt);

	if (dropped) {
		if (fragment_agrees(first, pkt) && !(first->flags & SL_FRAG_DROPPED))
			first->flags |= SL_FRAG_DROPPED;
		return;
	}
	if (fragment_fields(first) != pkt->frag_like || (pkt->flags & PKT_NOTE_UNSURE))
		first->flags |= SL_FRAG_UNSURE;
	first->flags &= ~(SL_FRAG_DROPPED | SL_FRAG_UNDELIVERED);
	if (first->until_ns < until)
		first->until_ns = until;
}

/* Remembers a first fragment and its verdict. */
SL_GLOBAL int fragment_note(struct packet *pkt, u32 dropped)
{
	struct sl_frag_first *first;
	struct sl_frag_set *set;
	struct sl_frag_key key;
	u32 flags, i, full = 0;
	u64 now;

	if (!pkt || (dropped && fragment_is_hidden(pkt)))
		return 0;
	clock_read(pkt);
	now = pkt->now.mono_ns;
	fragment_key(pkt, &key);
	set = fragment_set(&key);
	if (!set)
		return 0;
	flags = dropped ? SL_FRAG_DROPPED | SL_FRAG_UNDELIVERED : 0;
	if (pkt->flags & PKT_NOTE_UNSURE)
		flags |= SL_FRAG_UNSURE;
	map_fragment_lock(set);
	/* While another CPU may read it, an entry is not replaced by another of its key. */
	i = fragment_find(set, &key, now, SL_FRAG_STEP_NS);
	if (i < SL_FRAG_WAYS) {
		first = fragment_way(set, i);
		if (first)
			fragment_note_again(first, pkt, dropped);
	} else {
		first = fragment_way(set, fragment_free(set, now, dropped));
		if (now < set->closed_until_ns)
			flags |= SL_FRAG_UNSURE;
		if (first)
			fragment_note_new(first, &key, pkt, flags);
		else if (!dropped) {
			set->closed_until_ns = now + fragment_life_ns(pkt);
			full = 1;
		}
	}
	map_fragment_unlock(set);
	if (full)
		count_map_error(SL_ME_FRAGMENT_UPDATE);
	return 0;
}

#endif
