/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * match.h - between classify and account: limits without a rate, which decide by their match alone.
 *
 * In file order the first enforced drop or pass that matches decides. If it is a drop, the packet
 * is dropped and charged to no limit. If it is a pass, the limits before it in the file apply, and
 * those after it do not. Tags and shadow mode decide nothing: they stay in ev->match, as limits
 * that are always over (meters.h).
 *
 * A packet that hides fields meets every drop that it could belong to, but no pass by them. A later
 * fragment whose first is not known does not meet a drop that its first must have met: without that
 * one no receiver completes the datagram.
 */
#ifndef SLUICE_BPF_MATCH_H
#define SLUICE_BPF_MATCH_H

#include "bpf/account.h"

/* Clears from ev->match what a packet that hides fields does not meet. */
static __always_inline void match_prove(const struct sl_rules *rules, struct evaluation *ev)
{
	u32 hidden = ev->pkt.flags & PKT_PROTO ? SL_HIDDEN_L4 : SL_HIDDEN_PROTO, i;
	u64 drops = (ev->pkt.flags & (PKT_LATER | PKT_UNREAD)) == PKT_LATER ? ~0ULL : 0;

	if (!is_l4_hidden(ev->pkt.flags))
		return;
	for (i = 0; i < SL_BITMAP_WORDS; i++)
		ev->match.w[i] &= ~(rules->unproven[hidden].w[i] & (rules->passing.w[i] | drops));
}

/*
 * The first limit in ev->match that decides, or SL_NO_METER; those behind it are cleared. Global:
 * rule sets with only rates do not pay for it.
 */
SL_GLOBAL u32 match_decide(const struct sl_rules *rules, struct evaluation *ev)
{
	u32 i, decides = SL_NO_METER;
	u64 w, first;

	if (!rules || !ev)
		return SL_NO_METER;
	match_prove(rules, ev);
	for (i = 0; i < SL_BITMAP_WORDS; i++) {
		w = ev->match.w[i];
		if (decides != SL_NO_METER) {
			ev->match.w[i] = 0;
			continue;
		}
		first = w & (rules->refusing.w[i] | rules->passing.w[i]);
		if (!first)
			continue;
		first &= -first;
		ev->match.w[i] = w & (first | (first - 1));
		decides = i * 64 + lowest_bit(first);
	}
	return decides;
}

/* Whether limit `index`, of match_decide(), needs no more than this: with the action. */
static __always_inline int match_is_final(const struct sl_rules *rules, struct evaluation *ev,
					  u32 index, enum stage_result *ret_action)
{
	const struct sl_limit *limit = limit_at(rules, index);
	int drops = limit && limit->action == SL_ACT_DROP;
	u64 any;

	/* Limits before a pass may refuse the packet. */
	if (!limit || (!drops && bitmap_only(&ev->match, &any) == SL_NO_METER))
		return 0;
	count_limit(limit->slot, drops ? SL_LV_DROP : SL_LV_PASS, ev->pkt.length);
	ev->limit_id = limit->slot;
	ev->pkt.reason = SL_R_MATCH;
	*ret_action = drops ? STAGE_DROP : STAGE_PASS;
	return 1;
}

#endif
