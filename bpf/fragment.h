/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * fragment.h - later fragments share the fate of their first.
 *
 * Only the first fragment of a datagram has ports, TCP flags or an ICMP type. So what it said
 * is remembered under what ties fragments together (RFC 791: addresses, protocol and id; RFC
 * 8200: addresses and id), and a later one is taken for a packet with the same: it meets
 * exactly the limits that its first met, and is dropped where its first was dropped. It is
 * charged like any packet all the same, else one small first would buy 64 KB.
 *
 * Where the first was not seen, a later fragment matches every limit that it could meet
 * (classify.h): it never passes where a first of its kind would be dropped. That is also what
 * becomes of the rest
 *   - of a first that could not be read;
 *   - of an id under which two firsts said different things within SL_FRAG_NS: a receiver
 *     keeps one of the two, and a cheap decoy must not speak for a dear datagram;
 *   - of firsts that others pushed out of the LRU map.
 */
#ifndef SLUICE_BPF_FRAGMENT_H
#define SLUICE_BPF_FRAGMENT_H

#include "bpf/clock.h"

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

static __always_inline void fragment_key(const struct packet *pkt, struct sl_frag_key *key)
{
	key->src = pkt->src;
	key->dst = pkt->dst;
	key->id = pkt->frag_id;
	key->proto = pkt->family == SL_V4 ? pkt->proto : 0;
	key->family = pkt->family;
	key->pad = 0;
}

/* What is remembered of a later fragment's first becomes the packet's. */
SL_GLOBAL int fragment_recall(struct packet *pkt)
{
	const struct sl_frag_state *first;
	struct sl_frag_key key;

	if (!pkt)
		return 0;
	fragment_key(pkt, &key);
	first = map_fragment(&key);
	if (!first || first->unsure)
		return 0;
	clock_read(pkt);
	if (pkt->now.mono_ns >= first->until_ns)
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
	if (first->dropped)
		pkt->flags |= PKT_FIRST_DROPPED;
	return 1;
}

/*
 * After parsing. `bad`: the packet could not be read to its end; a first one then has said
 * nothing that others could be told by.
 */
static __always_inline void fragment_meet(const struct sl_rules *rules, struct packet *pkt,
					  int bad)
{
	if (!(pkt->flags & PKT_FRAGMENT) || !fragments_matter(rules))
		return;
	if (!(pkt->flags & PKT_LATER))
		pkt->flags |= bad ? PKT_NOTE_FIRST | PKT_NOTE_UNSURE : PKT_NOTE_FIRST;
	else if (!bad)
		fragment_recall(pkt);
}

static __always_inline int fragments_agree(const struct sl_frag_state *a,
					   const struct sl_frag_state *b)
{
	return a->sport == b->sport && a->dport == b->dport && a->tcp_flags == b->tcp_flags &&
	       a->icmp_type == b->icmp_type && a->icmp_code == b->icmp_code &&
	       a->proto == b->proto && a->l4 == b->l4;
}

/*
 * Whether a first's verdict is to be remembered: those that its address or `fragments` decided
 * are not, so that a flood of what is blocked does not cost an LRU entry each.
 */
static __always_inline int fragment_is_noted(const struct packet *pkt)
{
	return (pkt->flags & PKT_NOTE_FIRST) && pkt->reason != SL_R_BLOCK &&
	       pkt->reason != SL_R_BAN && pkt->reason != SL_R_PUSH_DROP &&
	       pkt->reason != SL_R_FRAGMENT;
}

/* Remembers a first fragment and its verdict. */
SL_GLOBAL int fragment_note(struct packet *pkt, u32 dropped)
{
	const struct sl_frag_state *before;
	struct sl_frag_state now = {};
	struct sl_frag_key key;

	if (!pkt)
		return 0;
	clock_read(pkt);
	now.until_ns = pkt->now.mono_ns + SL_FRAG_NS;
	now.sport = pkt->sport;
	now.dport = pkt->dport;
	now.tcp_flags = pkt->tcp_flags;
	now.icmp_type = pkt->icmp_type;
	now.icmp_code = pkt->icmp_code;
	now.proto = pkt->proto;
	now.l4 = (pkt->flags & PKT_L4) != 0;
	now.dropped = dropped;
	now.unsure = (pkt->flags & PKT_NOTE_UNSURE) != 0;
	fragment_key(pkt, &key);
	before = map_fragment(&key);
	if (before && pkt->now.mono_ns < before->until_ns) {
		if (before->unsure || !fragments_agree(before, &now))
			now.unsure = 1;
		/* The same again: an update by helper costs more than all the rest. */
		if (before->unsure == now.unsure && before->dropped == now.dropped &&
		    before->until_ns + SL_FRAG_NS / 2 > now.until_ns)
			return 0;
	}
	if (map_fragment_update(&key, &now))
		count_map_error(SL_ME_FRAGMENT_UPDATE);
	return 0;
}

#endif
