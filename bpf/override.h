/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * override.h - sources with rates of their own: the longest override that covers the packet's
 * source, in the index that abi.h describes (struct sl_override).
 *
 * Where all overrides of a limit and family have one length (addresses, mostly) that is one
 * probe, inline. The processor goes on to the bucket while the probe's cache line is on its
 * way: of what that line says the bucket's key needs nothing that it could not predict (an
 * override was found; it is not longer than what the limit groups by). So the two misses are
 * one after all.
 */
#ifndef SLUICE_BPF_OVERRIDE_H
#define SLUICE_BPF_OVERRIDE_H

#include "bpf/observe.h"

/* A bisection over at most 129 lengths. */
#define OVERRIDE_PROBES_MAX 8

/* The entry of `row` for the packet's source cut to `len`; NULL where it is not in the index. */
static __always_inline const struct sl_override *override_entry(const struct sl_rules *rules,
								const struct packet *pkt, u32 row,
								u32 len)
{
	struct sl_pfx_hash h = sl_override_hash(sl_addr_mask(pkt->src, len), len, pkt->family, row,
						rules->seed, rules->override_buckets);
	void *index = map_overrides(rules->pfx_slot);
	const struct sl_override_bucket *b;
	u32 which, i;

	for (which = 0; index && which < 2; which++) {
		b = map_override_bucket(index, h.bucket[which]);
		if (!b)
			break;
		for (i = 0; i < SL_OVERRIDE_WAYS; i++)
			if (b->e[i].tag == h.tag)
				return &b->e[i];
		if (!(b->e[0].rest & SL_OVERRIDE_SPILLED))
			return NULL;
	}
	if (which < 2)
		count_map_error(SL_ME_OVERRIDE_LOOKUP);
	return NULL;
}

/*
 * One probe of a bisection; 1: it hit, and pkt->override is what holds so far. Global for the
 * same reason as prefix_probe().
 */
SL_GLOBAL int override_probe(const struct sl_rules *rules, struct packet *pkt, u32 row, u32 len)
{
	const struct sl_override *entry;

	if (!rules || !pkt)
		return 0;
	entry = override_entry(rules, pkt, row, len);
	if (!entry)
		return 0;
	pkt->override = *entry;
	return 1;
}

/* The longest override of several lengths, in pkt->override; its `rest` is 0 where none holds. */
SL_GLOBAL int override_bisect(const struct sl_rules *rules, struct packet *pkt, u32 row, u32 head)
{
	const struct sl_lengths *lengths;
	u32 lo = 0, hi, mid, i;

	if (!rules || !pkt || head >= SL_LIMITS_MAX)
		return 0;
	pkt->override.rest = 0;
	OPAQUE(head);
	lengths = &rules->override_lengths[head & (SL_LIMITS_MAX - 1)][pkt->family & 1];
	hi = lengths->count;
	for (i = 0; i < OVERRIDE_PROBES_MAX && lo < hi; i++) {
		mid = (lo + hi) / 2;
		if (mid >= SL_LENGTHS_MAX)
			break;
		if (override_probe(rules, pkt, row, lengths->len[mid]))
			lo = mid + 1;
		else
			hi = mid;
	}
	return 0;
}

/*
 * What row `index` is charged by for this packet: pkt->own_rates, and where that is 1,
 * pkt->params and pkt->own_len. Returns enum sl_override_flags: 0 where no override holds.
 */
static __always_inline u32 override_look(const struct sl_rules *rules, const struct sl_limit *row,
					 struct packet *pkt, u32 index)
{
	u32 head = row->head & (SL_LIMITS_MAX - 1), len, count;
	const struct sl_override *entry = &pkt->override;
	const struct sl_limit *to;
	u64 rest;

	pkt->own_rates = 0;
	pkt->own_params = 0;
	if (row->overridden == SL_NO_ROW)
		return 0;
	OPAQUE(head);
	count = rules->override_lengths[head & (SL_LIMITS_MAX - 1)][pkt->family & 1].count;
	len = rules->override_lengths[head & (SL_LIMITS_MAX - 1)][pkt->family & 1].len[0];
	if (!count)
		return 0;
	if (count == 1)
		entry = override_entry(rules, pkt, index, len);
	else
		override_bisect(rules, pkt, index, head);
	to = limit_at(rules, row->overridden);
	if (!entry || !to)
		return 0;
	rest = entry->rest;
	if (!(rest & SL_OVERRIDE_USED) || (rest & SL_OVERRIDE_NONE))
		return 0;
	pkt->params = to->params;
	pkt->params.mult = entry->mult;
	pkt->params.tau = entry->tau;
	pkt->params.capacity = sl_override_capacity(rest);
	pkt->params.shift = sl_override_shift(rest);
	pkt->own_len = sl_override_own(rest);
	pkt->own_rates = 1;
	pkt->own_params = 1;
	return rest & (SL_OVERRIDE_USED | SL_OVERRIDE_SKIP);
}

/* The same for a row by its number, verified by itself: inline it is stack of the caller's. */
SL_GLOBAL u32 override_look_at(const struct sl_rules *rules, struct packet *pkt, u32 index)
{
	const struct sl_limit *row;

	if (!rules || !pkt)
		return 0;
	row = limit_at(rules, index);
	return row ? override_look(rules, row, pkt, index) : 0;
}

#endif
