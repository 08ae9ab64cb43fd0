/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * heavy.h - notes who sends: the heaviest sources by verdict, sluice/heavy.h. A packet that is not
 * sampled costs a decrement. Nothing here changes a verdict.
 */
#ifndef SLUICE_BPF_HEAVY_H
#define SLUICE_BPF_HEAVY_H

#include "bpf/clock.h"
#include "bpf/evaluation.h"

static __always_inline u32 heavy_set_index(const struct sl_state *st, struct sl_addr source,
					   u32 list)
{
	struct sl_sip sip;

	sl_sip_start(&sip, st->seed);
	sl_sip_add(&sip, source.hi);
	sl_sip_add(&sip, source.lo);
	return list << SL_HEAVY_SETS_BITS | (sl_sip_finish(&sip) & (SL_HEAVY_SETS - 1));
}

/* The entry of a source: its own, or the lightest one's, made its own. */
static __always_inline struct sl_heavy *heavy_entry(const struct packet *pkt,
						    struct sl_heavy_set *set, struct sl_addr source,
						    u8 v6, u32 window)
{
	u64 least = ~0ULL, lightest = 0, own = SL_HEAVY_WAYS, weight;
	struct sl_heavy *way;
	u32 i;

	for (i = 0; i < SL_HEAVY_WAYS; i++) {
		way = &set->way[i];
		weight = sl_heavy_rank(way, window);
		FORGET(pkt, weight);
		if (!((way->source.hi ^ source.hi) | (way->source.lo ^ source.lo) |
		      ((way->family_iface ^ v6) & 0x80)) &&
		    way->window)
			own = i;
		if (weight < least) {
			least = weight;
			lightest = i;
		}
		FORGET(pkt, own);
		FORGET(pkt, least);
		FORGET(pkt, lightest);
	}
	if (own < SL_HEAVY_WAYS) {
		way = &set->way[own & (SL_HEAVY_WAYS - 1)];
		sl_heavy_turn(way, window);
		return way;
	}
	way = &set->way[lightest & (SL_HEAVY_WAYS - 1)];
	sl_heavy_turn(way, window);
	sl_heavy_inherit(&way->now);
	sl_heavy_inherit(&way->before);
	way->source = source;
	return way;
}

/* Counts a sample of `weight` packets like this one. */
static __always_inline void heavy_sample(struct evaluation *ev, u32 list)
{
	const struct sl_state *st = map_state();
	struct sl_heavy_sampling *s;
	struct sl_heavy_set *set;
	struct sl_heavy *way;
	struct sl_addr source;
	u32 window;
	u8 v6;

	if (!st)
		return;
	clock_read(&ev->pkt);
	window = sl_heavy_window(ev->pkt.now.mono_ns);
	s = &ev->sampling[list & 1];
	source = packet_src(&ev->pkt);
	v6 = ev->pkt.family == SL_V6 ? 0x80 : 0;
	if (v6)
		source = sl_addr_mask(source, SL_HEAVY_V6_LEN);
	set = map_heavy(heavy_set_index(st, source, list & 1));
	if (set) {
		if (s->window != window)
			s->weight = 1;
		way = heavy_entry(&ev->pkt, set, source, v6, window);
		ev->weight = s->weight;
		way->now.packets += s->weight;
		way->now.bytes += (u64)s->weight * ev->pkt.length;
		if (ev->pkt.proto == PROTO_TCP && (ev->pkt.flags & PKT_L4) &&
		    (ev->pkt.tcp_flags & (TCP_SYN | TCP_ACK)) == TCP_SYN)
			way->now.opened += s->weight;
		way->family_iface = v6 | (env_iface_slot() & 0x7f);
		way->reason = ev->pkt.reason;
		way->limit_id = ev->pkt.reason == SL_R_OVER || ev->pkt.reason == SL_R_MATCH
					? ev->limit_id
					: 0;
	}
	sl_heavy_next(s, window, env_random());
}

static __always_inline u32 heavy_list(enum sl_action action)
{
	return action == SL_ACT_DROP ? SL_HEAVY_DROPPED : SL_HEAVY_PASSED;
}

/* Every packet, once: 1, it has a source and is the next sample. Inline: a call costs 10 ns
 * here. */
static __always_inline int heavy_is_due(struct evaluation *ev, enum sl_action action)
{
	struct sl_heavy_sampling *sampling = &ev->sampling[heavy_list(action)];

	if (!(ev->pkt.flags & PKT_ADDR))
		return 0;
	if (!sampling->left)
		return 1;
	sampling->left--;
	return 0;
}

/* A sample; returns 1. Global: verified once, in a path that joins all others. */
SL_GLOBAL int heavy_note(struct evaluation *ev, enum sl_action action)
{
	if (ev)
		heavy_sample(ev, heavy_list(action));
	return 1;
}

#endif
