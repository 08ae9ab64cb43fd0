/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * rows.h - the third stage's second half, a program of its own: all matching limits are
 * charged, or none.
 *
 * Limits that drop come first: all are looked at, and only if every one has room are they
 * charged. One that turns out full between the look and the charge (another CPU was faster)
 * is a refusal as well: what was charged before it is given back. Tagging and shadow limits
 * are then charged by what passed; they never refuse anything.
 */
#ifndef SLUICE_BPF_ROWS_H
#define SLUICE_BPF_ROWS_H

#include "bpf/account.h"
#include "bpf/ban.h"

/*
 * Takes the first limit out of a bitmap; SL_LIMITS_MAX where it is empty. Global: as part of
 * a loop its paths would multiply.
 */
SL_GLOBAL u32 bitmap_take(struct sl_bitmap *bits)
{
	u32 word;

	if (!bits)
		return SL_LIMITS_MAX;
	for (word = 0; word < SL_BITMAP_WORDS; word++) {
		u64 w = bits->w[word];

		if (w) {
			bits->w[word] = w & (w - 1);
			return word * 64 + lowest_bit(w);
		}
	}
	return SL_LIMITS_MAX;
}

enum match_kind {
	MATCH_COUNTS = 1 << 0,
	MATCH_DROPS = 1 << 1,
};

/* Global so that its answer is unknown to the verifier, which else tries 3^16 of them. */
SL_GLOBAL u32 match_kind(const struct sl_rules *rules, const struct packet *pkt, u32 index)
{
	const struct sl_limit *limit;

	if (!rules || !pkt || index >= SL_LIMITS_MAX)
		return 0;
	limit = limit_at(rules, index);
	if (!limit || !charge_cost(rules, limit, pkt))
		return 0;
	if (rules->dropping.w[index / 64] & SL_BIT(index % 64))
		return MATCH_COUNTS | MATCH_DROPS;
	return MATCH_COUNTS;
}

/*
 * The limits that match and count this packet at all (a limit on connections counts only
 * what opens one). Takes them out of pkt->match; what is left there were too many.
 */
static __always_inline void matches_collect(const struct sl_rules *rules, struct packet *pkt)
{
	struct matches *m = &pkt->matches;
	u32 n, index, kind;

	m->mask = 0;
	m->drop_mask = 0;
	for (n = 0; n < SL_MATCHES_MAX; n++) {
		index = bitmap_take(&pkt->match);
		if (index >= SL_LIMITS_MAX)
			break;
		kind = match_kind(rules, pkt, index);
		m->index[n] = index;
		m->mask |= (kind & 1) << n;
		m->drop_mask |= (kind >> 1 & 1) << n;
	}
}

/* Gives back what the dropping limits before number `end` of the matches were charged. */
static __always_inline void rows_give_back(const struct sl_rules *rules, struct packet *pkt,
					      u32 end)
{
	u32 i;

	for (i = 0; i < SL_MATCHES_MAX; i++) {
		if (i >= end)
			break;
		if (!(pkt->matches.drop_mask & (1U << i)))
			continue;
		charge_prepare(rules, pkt, pkt->matches.index[i]);
		charge_give_back(rules, pkt, pkt->matches.index[i]);
	}
}

/* Looks at the dropping limits, or charges them. 1: one of them refuses, and is counted. */
static __always_inline int rows_dropping(const struct sl_rules *rules, struct packet *pkt,
					    u32 mode)
{
	const struct sl_limit *limit;
	u32 i, said, index;

	for (i = 0; i < SL_MATCHES_MAX; i++) {
		if (!(pkt->matches.drop_mask & (1U << i)))
			continue;
		index = pkt->matches.index[i];
		charge_prepare(rules, pkt, index);
		said = charge_limit(rules, pkt, index, mode);
		limit = limit_at(rules, index);
		if (!limit || limit_said(limit, pkt, said) != SL_LV_DROP)
			continue;
		count_limit(limit->slot, SL_LV_DROP, pkt->length);
		if (said == CHARGE_OVER)
			ban_refused(limit, pkt, index, index);
		if (mode == CHARGE_TAKE)
			rows_give_back(rules, pkt, i);
		return 1;
	}
	return 0;
}

/* The packet passes: count it with each limit, charge those that tag or only watch. */
static __always_inline void rows_passing(const struct sl_rules *rules, struct packet *pkt)
{
	const struct sl_limit *limit;
	u32 i, said, verdict, index;

	for (i = 0; i < SL_MATCHES_MAX; i++) {
		if (!(pkt->matches.mask & (1U << i)))
			continue;
		index = pkt->matches.index[i];
		said = CHARGE_PASS;
		if (!(pkt->matches.drop_mask & (1U << i))) {
			charge_prepare(rules, pkt, index);
			said = charge_limit(rules, pkt, index, CHARGE_TAKE);
		}
		limit = limit_at(rules, index);
		if (!limit)
			continue;
		verdict = limit_said(limit, pkt, said);
		count_limit(limit->slot, verdict, pkt->length);
	}
}

/* Whatever pkt->match has. */
SL_GLOBAL u32 rows_all(const struct sl_rules *rules, struct packet *pkt)
{
	if (!rules || !pkt)
		return SL_ACT_PASS;
	matches_collect(rules, pkt);
	if (!pkt->matches.mask) {
		pkt->reason = SL_R_NO_MATCH;
		return SL_ACT_PASS;
	}
	pkt->reason = SL_R_WITHIN;
	if ((pkt->matches.drop_mask & (pkt->matches.drop_mask - 1)) &&
	    rows_dropping(rules, pkt, CHARGE_PEEK))
		return SL_ACT_DROP;
	if (rows_dropping(rules, pkt, CHARGE_TAKE))
		return SL_ACT_DROP;
	if (bitmap_take(&pkt->match) < SL_LIMITS_MAX)
		pkt->reason = SL_R_TOO_MANY_LIMITS;
	rows_passing(rules, pkt);
	return pkt->tag ? SL_ACT_TAG : SL_ACT_PASS;
}

/*
 * One of the order's own limits. A full table or contention there never costs the admin his
 * neighbours or his session.
 */
static __always_inline u32 rows_internal(const struct sl_rules *rules, struct packet *pkt,
					 u32 index)
{
	const struct sl_limit *limit = limit_at(rules, index);
	u32 said;

	charge_prepare(rules, pkt, index);
	said = charge_limit(rules, pkt, index, CHARGE_TAKE);
	if (!limit)
		return SL_ACT_PASS;
	count_limit(limit->slot, said == CHARGE_OVER ? SL_LV_DROP : SL_LV_PASS, pkt->length);
	if (said != CHARGE_OVER)
		return SL_ACT_PASS;
	pkt->reason = index == SL_LIMIT_ESSENTIAL ? SL_R_ESSENTIAL_OVER : SL_R_FAILSAFE_OVER;
	return SL_ACT_DROP;
}

/* The plain limit that charge_quickly() prepared and could not answer for. */
static __always_inline u32 rows_plain(const struct sl_rules *rules, struct packet *pkt, u32 index)
{
	const struct sl_limit *limit = limit_at(rules, index);
	u32 said = charge_limit(rules, pkt, index, CHARGE_TAKE), verdict;

	if (!limit)
		return SL_ACT_PASS;
	verdict = limit_said(limit, pkt, said);
	count_limit(limit->slot, verdict, pkt->length);
	if (verdict == SL_LV_DROP)
		return SL_ACT_DROP;
	return pkt->tag ? SL_ACT_TAG : SL_ACT_PASS;
}

/* Returns enum sl_action; pkt->reason says why, pkt->tag what to put on. */
static __always_inline u32 rows(const struct sl_rules *rules, struct packet *pkt)
{
	u32 single = pkt->single, action;

	if (single < SL_LIMITS_MAX)
		return rows_plain(rules, pkt, single);
	if (single < SL_ROWS_MAX)
		return rows_internal(rules, pkt, single);
	action = rows_all(rules, pkt);
	ban_note_drop(rules, pkt);
	return action;
}

#endif
