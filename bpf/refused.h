/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * refused.h - sources that were refused, and until when: a small per-CPU memory before the table.
 *
 * A flooding source is over its limit for thousands of its packets in a row, and every one of
 * them would have its address hashed (SipHash: a quarter of a drop), its bucket looked up and
 * stepped, with the same result. So the last refusal is remembered by exact address, in a
 * direct-mapped cache. Its only result is "still over":
 *
 *   - until the time that the step computed: before that no more of the limit can become free,
 *     because a refusal changes nothing and other charges only use more;
 *   - for the same cost or more, the same limit, rule set and (windows) UTC offset;
 *   - for at most 100 ms: what else could free units early (a refund, a step of the UTC
 *     clock) is seen by then.
 *
 * Sources that collide replace one another; that costs time, never correctness.
 */
#ifndef SLUICE_BPF_REFUSED_H
#define SLUICE_BPF_REFUSED_H

#include "bpf/clock.h"
#include "bpf/observe.h"

#define REFUSED_MAX_NS 100000000ULL

/*
 * Which limit of which rule set, for which family, read with which clock. 16 bits of the
 * generation do: nothing here is older than 100 ms.
 */
static __always_inline u32 refused_tag(const struct sl_rules *rules, const struct sl_limit *limit,
				       const struct packet *pkt)
{
	u32 tag = rules->generation << 16 | pkt->family << 15 | limit->slot;
	const struct sl_state *st;

	if (!sl_is_window(&limit->params))
		return tag;
	st = map_state();
	return st ? tag ^ (u32)((st->utc_offset_ns * 0x9e3779b97f4a7c15ULL) >> 32) : tag;
}

/* The source's entry; NULL where the limit does not count per source alone. */
static __always_inline struct sl_refused *refused_slot(const struct sl_limit *limit,
						       struct sl_addr src)
{
	u64 mixed = (src.hi ^ src.lo ^ limit->slot) * 0x9e3779b97f4a7c15ULL;

	if (limit->per != SL_PER_SOURCE)
		return NULL;
	return map_refused(mixed >> (64 - SL_REFUSED_BITS));
}

static __always_inline struct sl_addr refused_source(const struct sl_limit *limit,
						     const struct packet *pkt)
{
	return sl_addr_mask(packet_src(pkt), limit->refusal_prefix_len[pkt->family & 1]);
}

/* 1: the packet is over its limit by an earlier refusal. 0: the table decides. */
static __always_inline int refused_before(const struct sl_rules *rules,
					  const struct sl_limit *limit, struct packet *pkt,
					  u64 cost)
{
	struct sl_addr src = refused_source(limit, pkt);
	struct sl_refused *slot = refused_slot(limit, src);
	u64 late;

	if (!slot || slot->source.hi != src.hi || slot->source.lo != src.lo ||
	    slot->tag != refused_tag(rules, limit, pkt) || cost < slot->cost)
		return 0;
	late = clock_bound_ns(pkt);
	if (late) {
		if (late < slot->until_ns)
			return 1;
		clock_read(pkt);
	}
	return pkt->now.mono_ns < slot->until_ns;
}

/* Remembers a refusal at pkt->now. */
static __always_inline void refused_store(const struct sl_rules *rules,
					  const struct sl_limit *limit, const struct packet *pkt,
					  u64 cost, u64 wait_ns)
{
	struct sl_addr src = refused_source(limit, pkt);
	struct sl_refused *slot = refused_slot(limit, src);

	if (!slot)
		return;
	slot->source = src;
	slot->tag = refused_tag(rules, limit, pkt);
	slot->until_ns = pkt->now.mono_ns + (wait_ns < REFUSED_MAX_NS ? wait_ns : REFUSED_MAX_NS);
	slot->cost = cost;
}

#endif
