/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * list.h - steps 3 and 5: blocks and exemptions that change one by one, outside the rule set.
 *
 * The filter gives the lengths at which something is listed near the source: for most sources none
 * or one. At each of them the hash is looked up by exact address. All that cover a source count,
 * shorter and longer alike. Each ends by its own deadline.
 *
 * Where nothing is listed, a packet pays for one load and one branch.
 */
#ifndef SLUICE_BPF_LIST_H
#define SLUICE_BPF_LIST_H

#include "bpf/classify.h"
#include "bpf/clock.h"

enum listed {
	LISTED_EXEMPT = 1 << 0,
	LISTED_BLOCK = 1 << 1,
	LISTED_WIDE_BLOCK = 1 << 2, /* failsafe ports escape it */
};

/* A deadline that has not passed. 0 never was, ~0 never passes. */
static __always_inline int is_on(struct packet *pkt, u64 until)
{
	if (!until || until == ~0ULL)
		return until != 0;
	clock_read(pkt);
	return pkt->now.mono_ns < until;
}

static __always_inline int list_is_on(struct packet *pkt, const struct sl_list_term *term)
{
	if (!is_on(pkt, term->until_ns))
		return 0;
	if (!term->from_ns)
		return 1;
	clock_read(pkt);
	return pkt->now.mono_ns >= term->from_ns;
}

/* What the source is at one length: enum listed, or-ed. */
SL_GLOBAL u32 list_probe(struct packet *pkt, u32 len)
{
	const struct sl_listed *listed;
	struct sl_list_key key;
	u32 found = 0, narrow;

	if (!pkt)
		return 0;
	key.addr = sl_addr_mask(packet_src(pkt), len);
	key.family = pkt->family;
	key.len = len;
	listed = map_listed(&key);
	if (!listed)
		return 0;
	pkt->not_cached = 1; /* it has terms: they may begin, and end */
	if (list_is_on(pkt, &listed->exempt))
		found = LISTED_EXEMPT;
	narrow = pkt->family == SL_V4 ? SL_LIST_NARROW_V4 : SL_LIST_NARROW_V6;
	if (list_is_on(pkt, &listed->block))
		found |= len < narrow ? LISTED_WIDE_BLOCK : LISTED_BLOCK;
	return found;
}

/* The same over a word of lengths, the lowest of which is `first`. */
SL_GLOBAL u32 list_probe_all(struct packet *pkt, u64 lengths, u32 first)
{
	u32 found = 0, i;

	for (i = 0; i < 64; i++) {
		if (!lengths)
			break;
		found |= list_probe(pkt, first + lowest_bit(lengths));
		lengths &= lengths - 1;
	}
	return found;
}

/* What the packet's source is, by the lengths near it. */
SL_GLOBAL u32 list_look(struct packet *pkt)
{
	const struct sl_list_filter *filter = map_list_filter();
	u64 lengths, more, wide;
	u32 at, found;

	if (!filter || !pkt)
		return 0;
	if (pkt->family == SL_V4) {
		at = pkt->src.hi >> 48;
		OPAQUE(at);
		return list_probe_all(pkt, filter->v4[at & (SL_LIST_V4_WORDS - 1)], 0);
	}
	at = sl_list_set(packet_src(pkt));
	OPAQUE(at);
	lengths = filter->v6[at & (SL_LIST_V6_SETS - 1)][0];
	more = filter->v6[at & (SL_LIST_V6_SETS - 1)][1];
	wide = filter->wide_v6;
	found = wide ? list_probe_all(pkt, wide, 0) : 0;
	if (lengths)
		found |= list_probe_all(pkt, lengths, SL_LIST_V6_FIRST);
	if (more)
		found |= list_probe_all(pkt, more, SL_LIST_V6_FIRST + 64);
	return found;
}

/* The same: enum listed, or-ed. */
static __always_inline u32 list_find(struct packet *pkt)
{
	const struct sl_list_filter *filter = map_list_filter();

	return filter && filter->count ? list_look(pkt) : 0;
}

#endif
