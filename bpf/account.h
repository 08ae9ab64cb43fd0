/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * account.h - the third stage, as far as it is inline: a single limit with one meter (one
 * rate, one prefix, nothing that stands in for it), whose key is in the table or gets a place there
 * that nobody needs. That is nearly every packet of a flood.
 *
 * Everything else is done in meters.h, a program of its own (STAGE_JUMP): the 512 bytes of stack
 * and the million instructions that the verifier grants one program do not suffice for both.
 */
#ifndef SLUICE_BPF_ACCOUNT_H
#define SLUICE_BPF_ACCOUNT_H

#include "bpf/charge.h"
#include "bpf/classify.h"
#include "bpf/passed.h"

/* What a stage returns: the packet's action, or that the other program continues. */
enum stage_result {
	STAGE_PASS = SL_ACT_PASS,
	STAGE_DROP = SL_ACT_DROP,
	STAGE_TAG = SL_ACT_TAG,
	STAGE_JUMP, /* ev->single and ev->match are what is to be charged */
};

/* The first limit that tags decides, for DSCP and mark separately. */
static __always_inline void tag_with(const struct sl_limit *limit, struct packet *pkt)
{
	if ((limit->tag & SL_TAG_DSCP) && !(pkt->tag & SL_TAG_DSCP))
		pkt->dscp = limit->dscp;
	if ((limit->tag & SL_TAG_MARK) && !(pkt->tag & SL_TAG_MARK))
		pkt->mark = limit->mark;
	pkt->tag |= limit->tag;
}

/*
 * What the result of a charge means for the packet; reason and tags are set in pkt. SL_LV_PASS
 * from a full table is `on_full: open`.
 */
static __always_inline enum sl_limit_verdict
limit_verdict_of(const struct sl_limit *limit, struct packet *pkt, enum charge result)
{
	int drops = limit->mode == SL_MODE_ENFORCE && limit->action == SL_ACT_DROP;
	struct sl_limit_stats *stats;

	if (result == CHARGE_PASS)
		return SL_LV_PASS;
	if (result == CHARGE_FULL) {
		stats = map_limit_stats(limit->slot);
		if (stats)
			stats->full++;
		pkt->reason = SL_R_TABLE_FULL;
		return drops && limit->on_full == SL_FULL_CLOSED ? SL_LV_DROP : SL_LV_PASS;
	}
	if (limit->mode == SL_MODE_SHADOW)
		return SL_LV_SHADOW;
	if (limit->by_match)
		pkt->reason = pkt->reason == SL_R_WITHIN ? SL_R_MATCH : pkt->reason;
	else
		pkt->reason = result == CHARGE_CONTENDED ? SL_R_CONTENDED : SL_R_OVER;
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

/* Remembers a refusal by charge_quickly(). */
static __always_inline void refused_quickly(const struct sl_rules *rules, struct evaluation *ev,
					    u32 index)
{
	u64 wait_ns = ev->meter.wait_ns;

	if (wait_ns >= REFUSED_MIN_NS)
		refused_store(rules, ev, index,
			      ev->pkt.now.mono_ns + earlier_ns(wait_ns, REFUSED_MAX_NS));
}

/* One single-meter limit matches, as for most packets. Short for those that are over. */
static __always_inline enum stage_result account_single(const struct sl_rules *rules,
							const struct sl_limit *limit,
							struct evaluation *ev, u32 index)
{
	u64 cost = charge_cost(limit, &ev->pkt);
	enum sl_limit_verdict verdict;
	enum attempt result;

	FORGET(&ev->pkt, cost);
	if (!cost) {
		ev->pkt.reason = SL_R_NO_MATCH;
		return STAGE_PASS;
	}
	ev->pkt.reason = SL_R_WITHIN;
	result = charge_quickly(rules, limit, ev, index, cost);
	if (result == ATTEMPT_AGAIN) {
		ev->single = index;
		return STAGE_JUMP;
	}
	verdict = limit_verdict_of(limit, &ev->pkt, (enum charge)result);
	count_limit(limit->slot, verdict, ev->pkt.length);
	ev->limit_id = limit->slot;
	if (verdict == SL_LV_DROP) {
		refused_quickly(rules, ev, index);
		return STAGE_DROP;
	}
	if (result == ATTEMPT_PASS && passed_is_due(ev))
		passed_single(rules, ev, index);
	return ev->pkt.tag ? STAGE_TAG : STAGE_PASS;
}

/* Returns enum stage_result; sets pkt->reason, and the tags to write in pkt->tag. */
static __always_inline enum stage_result account(const struct sl_rules *rules,
						 struct evaluation *ev)
{
	const struct sl_limit *limit;
	u64 any;
	u32 only = bitmap_only(&ev->match, &any);

	if (!any) {
		ev->pkt.reason = SL_R_NO_MATCH;
		return STAGE_PASS;
	}
	FORGET(&ev->pkt, only);
	limit = limit_at(rules, only);
	if (limit && limit->single_meter && limit->mode == SL_MODE_ENFORCE &&
	    !sl_link_own(limit, ev->pkt.family, packet_src(&ev->pkt)))
		return account_single(rules, limit, ev, only);
	ev->single = SL_NO_METER;
	return STAGE_JUMP;
}

/*
 * One of the order's own limits (`essential`, failsafe_rate); `reason` is that of a packet
 * that passes.
 */
static __always_inline enum stage_result account_internal(const struct sl_rules *rules,
							  struct evaluation *ev, u32 index,
							  enum sl_reason reason)
{
	const struct sl_limit *limit = limit_at(rules, index);

	ev->pkt.reason = reason;
	if (!limit || !charge_cost_at(limit, &ev->pkt, index))
		return STAGE_PASS;
	ev->single = index;
	return STAGE_JUMP;
}

#endif
