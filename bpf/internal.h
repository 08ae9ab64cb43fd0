/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * internal.h - the order's own limits (enum sl_internal_limit): essentials, failsafe ports and
 * path-MTU messages, each charged by itself, beside the limits of the file.
 */
#ifndef SLUICE_BPF_INTERNAL_H
#define SLUICE_BPF_INTERNAL_H

#include "bpf/account.h"

static __always_inline enum charge internal_run(const struct sl_rules *rules, struct evaluation *ev,
						u32 index, enum charge_mode mode)
{
	charge_prepare(rules, ev, index);
	return charge_limit(rules, ev, index, mode);
}

/* Whether the source is a gateway of this host. */
static __always_inline int internal_is_gateway(const struct sl_rules *rules,
					       const struct packet *pkt)
{
	u32 family = pkt->family & 1, i;

	for (i = 0; i < SL_GATEWAYS_MAX && i < rules->gateways[family]; i++)
		if (rules->gateway[family][i].hi == pkt->src.hi &&
		    rules->gateway[family][i].lo == pkt->src.lo)
			return 1;
	return 0;
}

/* The limit that holds the sources of another one in sum, or SL_NO_METER. */
static __always_inline u32 internal_sum(const struct packet *pkt, u32 index)
{
	if (index == SL_LIMIT_FAILSAFE_TCP)
		return SL_LIMIT_FAILSAFE_SUM;
	return index == SL_LIMIT_ESSENTIAL && pkt->family == SL_V6 ? SL_LIMIT_ESSENTIAL_LINK
								   : SL_NO_METER;
}

/* Charges one of the order's own limits, and where there is one the sum over it. */
SL_GLOBAL enum charge internal_charge(const struct sl_rules *rules, struct evaluation *ev,
				      u32 index)
{
	enum charge result;
	u32 sum;

	if (!rules || !ev)
		return CHARGE_PASS;
	sum = internal_sum(&ev->pkt, index);
	if (sum == SL_NO_METER)
		return internal_run(rules, ev, index, CHARGE_COMMIT);
	if (internal_run(rules, ev, sum, CHARGE_PEEK) == CHARGE_OVER)
		return CHARGE_OVER;
	if (internal_run(rules, ev, index, CHARGE_COMMIT) == CHARGE_OVER)
		return CHARGE_OVER;
	result = internal_run(rules, ev, sum, CHARGE_COMMIT);
	if (result != CHARGE_OVER)
		return result;
	charge_prepare(rules, ev, index);
	charge_refund(rules, ev, index);
	return result;
}

/*
 * One of the order's own limits. A full table or contention never drops neighbor discovery or an
 * administrator's session. STAGE_JUMP: failsafe_rate is used up, the later steps decide.
 */
static __always_inline enum stage_result internal_account(const struct sl_rules *rules,
							  struct evaluation *ev, u32 index)
{
	const struct sl_limit *limit;
	enum charge result;

	if (index == SL_LIMIT_ESSENTIAL && internal_is_gateway(rules, &ev->pkt))
		index = SL_LIMIT_ESSENTIAL_GATEWAY;
	limit = limit_at(rules, index);
	result = internal_charge(rules, ev, index);
	if (!limit)
		return STAGE_PASS;
	if (result == CHARGE_OVER &&
	    (index == SL_LIMIT_FAILSAFE_TCP || index == SL_LIMIT_FAILSAFE_SOCKET))
		return STAGE_JUMP;
	count_limit(limit->slot, result == CHARGE_OVER ? SL_LV_DROP : SL_LV_PASS, ev->pkt.length);
	if (result != CHARGE_OVER)
		return STAGE_PASS;
	ev->pkt.reason = index == SL_LIMIT_FAILSAFE	   ? SL_R_FAILSAFE_OVER
			 : ev->pkt.reason == SL_R_PATH_MTU ? SL_R_PATH_MTU_OVER
							   : SL_R_ESSENTIAL_OVER;
	return STAGE_DROP;
}

#endif
