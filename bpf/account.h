/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * account.h - the third stage, as far as it is inline: a single limit of the plain kind (one
 * rate, one prefix, nothing to fall back on), whose key is in the table. That is nearly every
 * packet of a flood.
 *
 * Everything else goes on in meters.h, which is a program of its own (ACCOUNT_ON): together they
 * would not fit into the 512 bytes of stack and the million instructions that one may have.
 */
#ifndef SLUICE_BPF_ACCOUNT_H
#define SLUICE_BPF_ACCOUNT_H

#include "bpf/charge.h"
#include "bpf/classify.h"

/* Beside enum sl_action: ev->single and ev->match are what is to be charged. */
#define ACCOUNT_ON SL_ACT_COUNT

/* The first limit that tags has its way, with DSCP and mark each for itself. */
static __always_inline void tag_with(const struct sl_limit *limit, struct packet *pkt)
{
	if ((limit->tag & SL_TAG_DSCP) && !(pkt->tag & SL_TAG_DSCP))
		pkt->dscp = limit->dscp;
	if ((limit->tag & SL_TAG_MARK) && !(pkt->tag & SL_TAG_MARK))
		pkt->mark = limit->mark;
	pkt->tag |= limit->tag;
}

/*
 * What the answer of a limit means for the packet: enum sl_limit_verdict, with reason and
 * tags in pkt. SL_LV_PASS from a full table is `on_full: open`.
 */
static __always_inline u32 limit_verdict_of(const struct sl_limit *limit, struct packet *pkt,
					    u32 said)
{
	int drops = limit->mode == SL_MODE_ENFORCE && limit->action == SL_ACT_DROP;
	struct sl_limit_stats *stats;

	if (said == CHARGE_PASS)
		return SL_LV_PASS;
	if (said == CHARGE_FULL) {
		stats = map_limit_stats(limit->slot);
		if (stats)
			stats->full++;
		pkt->reason = SL_R_TABLE_FULL;
		return drops && limit->on_full == SL_FULL_CLOSED ? SL_LV_DROP : SL_LV_PASS;
	}
	if (limit->mode == SL_MODE_SHADOW)
		return SL_LV_SHADOW;
	pkt->reason = said == CHARGE_CONTENDED ? SL_R_CONTENDED : SL_R_OVER;
	if (drops)
		return SL_LV_DROP;
	tag_with(limit, pkt);
	return SL_LV_TAG;
}

/* The only limit in a bitmap, or SL_NO_METER where there are none or several. */
static __always_inline u32 bitmap_only(const struct sl_bitmap *bits, u64 *ret_any)
{
	u64 w = 0, several = 0;
	u32 i, word = 0;

	for (i = 0; i < SL_BITMAP_WORDS; i++) {
		if (!bits->w[i])
			continue;
		several |= w;
		w = bits->w[i];
		word = i;
	}
	*ret_any = w;
	if (!w || several || (w & (w - 1)))
		return SL_NO_METER;
	return word * 64 + lowest_bit(w);
}

/* A single plain limit matches: the way of most packets, short for those that are over. */
static __always_inline u32 account_single(const struct sl_rules *rules,
					  const struct sl_limit *limit, struct evaluation *ev,
					  u32 index)
{
	u64 cost = charge_cost(limit, &ev->pkt);
	u32 said, verdict;

	FORGET(&ev->pkt, cost);
	if (!cost) {
		ev->pkt.reason = SL_R_NO_MATCH;
		return SL_ACT_PASS;
	}
	ev->pkt.reason = SL_R_WITHIN;
	said = charge_quickly(rules, limit, ev, index, cost);
	if (said == CHARGE_RETRY) {
		ev->single = index;
		return ACCOUNT_ON;
	}
	verdict = limit_verdict_of(limit, &ev->pkt, said);
	count_limit(limit->slot, verdict, ev->pkt.length);
	if (verdict == SL_LV_DROP)
		return SL_ACT_DROP;
	return ev->pkt.tag ? SL_ACT_TAG : SL_ACT_PASS;
}

/* Returns enum sl_action, or ACCOUNT_ON; pkt->reason says why, pkt->tag what to put on. */
static __always_inline u32 account(const struct sl_rules *rules, struct evaluation *ev)
{
	const struct sl_limit *limit;
	u64 any;
	u32 only = bitmap_only(&ev->match, &any);

	if (!any) {
		ev->pkt.reason = SL_R_NO_MATCH;
		return SL_ACT_PASS;
	}
	FORGET(&ev->pkt, only);
	limit = limit_at(rules, only);
	if (limit && limit->single_meter && limit->mode == SL_MODE_ENFORCE)
		return account_single(rules, limit, ev, only);
	ev->single = SL_NO_METER;
	return ACCOUNT_ON;
}

/*
 * One of the order's own limits (`essential`, failsafe_rate); `reason` is that of a packet
 * that passes.
 */
static __always_inline u32 account_internal(const struct sl_rules *rules, struct evaluation *ev,
					    u32 index, u32 reason)
{
	const struct sl_limit *limit = limit_at(rules, index);

	ev->pkt.reason = reason;
	if (!limit || !charge_cost_at(limit, &ev->pkt, index))
		return SL_ACT_PASS;
	ev->single = index;
	return ACCOUNT_ON;
}

#endif
