/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * override.h - sources with rates of their own: the longest override that covers the packet's
 * source, in the index that abi.h describes (struct sl_override).
 *
 * Where all overrides of a limit and family have one length (addresses, mostly) that is one
 * probe, inline. The processor goes on to the bucket while the probe's cache line is on its
 * way: the bucket's key needs nothing from that line that the processor cannot predict (an
 * override was found; it is not longer than what the limit groups by). So the two misses are
 * one after all.
 */
#ifndef SLUICE_BPF_OVERRIDE_H
#define SLUICE_BPF_OVERRIDE_H

#include "bpf/observe.h"

/* A bisection over at most 129 lengths. */
#define OVERRIDE_PROBES_MAX 8

/*
 * The first of the two buckets where the override of `meter` is for the packet's source, cut to
 * `len`; it is not read yet. NULL is an error. The tag and the second bucket are in ev->meter,
 * which saves stack.
 */
static __always_inline const struct sl_override_bucket *
override_seek(const struct sl_rules *rules, struct evaluation *ev, u32 meter, u32 len)
{
	struct sl_pfx_hash h =
		sl_override_hash(sl_addr_mask(packet_src(&ev->pkt), len), len, ev->pkt.family,
				 meter, rules->seed, rules->override_buckets);
	void *index = map_overrides(rules->pfx_slot);

	ev->meter.probe_tag = h.tag;
	ev->meter.probe_second = h.bucket[1];
	return index ? map_override_bucket(index, h.bucket[0]) : NULL;
}

/* 1 where x is 0. No branch: which of the two it is cannot be predicted. */
static __always_inline u64 is_zero(u64 x)
{
	return (~x & (x - 1)) >> 63;
}

/* The entry there, or NULL. */
static __always_inline const struct sl_override *override_entry(const struct sl_rules *rules,
								const struct evaluation *ev,
								const struct sl_override_bucket *b)
{
	void *index;
	u32 which;
	u64 second;

	for (which = 0; b && which < 2; which++) {
		second = is_zero(b->e[1].tag ^ ev->meter.probe_tag);
		if (second | is_zero(b->e[0].tag ^ ev->meter.probe_tag)) {
			OPAQUE(second);
			return &b->e[second & 1];
		}
		if (!(b->e[0].rest & SL_OVERRIDE_SPILLED))
			return NULL;
		index = map_overrides(rules->pfx_slot);
		b = index ? map_override_bucket(index, ev->meter.probe_second) : NULL;
	}
	if (which < 2)
		count_map_error(SL_ME_OVERRIDE_LOOKUP);
	return NULL;
}

/*
 * One probe of a bisection; 1: it hit, and ev->meter.override holds so far. Global for the
 * same reason as prefix_probe().
 */
SL_GLOBAL int override_probe(const struct sl_rules *rules, struct evaluation *ev, u32 meter,
			     u32 len)
{
	const struct sl_override *entry;

	if (!rules || !ev)
		return 0;
	entry = override_entry(rules, ev, override_seek(rules, ev, meter, len));
	if (!entry)
		return 0;
	ev->meter.override = *entry;
	return 1;
}

/* The longest override of several lengths, in ev->meter.override. */
SL_GLOBAL int override_bisect(const struct sl_rules *rules, struct evaluation *ev, u32 meter,
			      u32 head)
{
	const struct sl_lengths *lengths;
	u32 lo = 0, hi, mid, i;

	if (!rules || !ev || head >= SL_LIMITS_MAX)
		return 0;
	ev->meter.override.rest = 0;
	OPAQUE(head);
	lengths = &rules->override_lengths[head & (SL_LIMITS_MAX - 1)][ev->pkt.family & 1];
	hi = lengths->count;
	for (i = 0; i < OVERRIDE_PROBES_MAX && lo < hi; i++) {
		mid = (lo + hi) / 2;
		if (mid >= SL_LENGTHS_MAX)
			break;
		if (override_probe(rules, ev, meter, lengths->len[mid]))
			lo = mid + 1;
		else
			hi = mid;
	}
	return 0;
}

/*
 * The first half of finding a packet's override of a meter that has some: where to look first. Of
 * one or two lengths that is the longer one, where a bisection would begin as well.
 */
static __always_inline const struct sl_override_bucket *override_begin(const struct sl_rules *rules,
								       const struct sl_limit *meter,
								       struct evaluation *ev,
								       u32 index)
{
	u32 head = meter->head, count, len;

	ev->meter.own_rates = 0;
	ev->meter.own_params = 0;
	OPAQUE(head);
	count = rules->override_lengths[head & (SL_LIMITS_MAX - 1)][ev->pkt.family & 1].count;
	len = rules->override_lengths[head & (SL_LIMITS_MAX - 1)][ev->pkt.family & 1]
		      .len[count == 2];
	return count == 1 || count == 2 ? override_seek(rules, ev, index, len) : NULL;
}

/*
 * The second half: own_rates, and where that is 1, params and own_len. Returns
 * enum sl_override_flags: 0 where no override holds.
 */
static __always_inline u32 override_end(const struct sl_rules *rules, const struct sl_limit *meter,
					struct evaluation *ev, u32 index,
					const struct sl_override_bucket *first)
{
	const struct sl_limit *to = limit_at(rules, meter->overridden);
	const struct sl_override *entry = first ? override_entry(rules, ev, first) : NULL;
	u32 head = meter->head;
	u64 rest;

	if (!to)
		return 0;
	if (!entry) {
		OPAQUE(head);
		if (rules->override_lengths[head & (SL_LIMITS_MAX - 1)][ev->pkt.family & 1].count <
		    2)
			return 0;
		override_bisect(rules, ev, index, head);
		entry = &ev->meter.override;
	}
	rest = entry->rest;
	if (!(rest & SL_OVERRIDE_USED) || (rest & SL_OVERRIDE_NONE))
		return 0;
	ev->meter.params = to->params;
	ev->meter.params.mult = entry->mult;
	ev->meter.params.tau = entry->tau;
	ev->meter.params.capacity = sl_override_capacity(rest);
	ev->meter.params.shift = sl_override_shift(rest);
	ev->meter.own_len = sl_override_own(rest);
	ev->meter.own_rates = 1;
	ev->meter.own_params = 1;
	return rest & (SL_OVERRIDE_USED | SL_OVERRIDE_SKIP);
}

/* Both halves, for a meter by its number; 0 also where it has no overrides. */
SL_GLOBAL u32 override_look(const struct sl_rules *rules, struct evaluation *ev, u32 index)
{
	const struct sl_limit *meter;

	if (!rules || !ev)
		return 0;
	ev->meter.own_rates = 0;
	ev->meter.own_params = 0;
	meter = limit_at(rules, index);
	if (!meter || meter->overridden == SL_NO_METER)
		return 0;
	return override_end(rules, meter, ev, index, override_begin(rules, meter, ev, index));
}

#endif
