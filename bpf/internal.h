/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * internal.h - the order's own limits (enum sl_internal_limit): essentials, failsafe ports and
 * path-MTU messages, each charged by itself, beside the limits of the file.
 */
#ifndef SLUICE_BPF_INTERNAL_H
#define SLUICE_BPF_INTERNAL_H

#include "bpf/account.h"

static __always_inline u32 internal_run(const struct sl_rules *rules, struct evaluation *ev,
					u32 index, u32 mode)
{
	charge_prepare(rules, ev, index);
	return charge_limit(rules, ev, index, mode);
}

/* Charges one of the order's own limits, of segments without a socket their sum as well. */
SL_GLOBAL u32 internal_charge(const struct sl_rules *rules, struct evaluation *ev, u32 index)
{
	u32 said;

	if (!rules || !ev)
		return CHARGE_PASS;
	if (index != SL_LIMIT_FAILSAFE_TCP)
		return internal_run(rules, ev, index, CHARGE_COMMIT);
	if (internal_run(rules, ev, SL_LIMIT_FAILSAFE_SUM, CHARGE_PEEK) == CHARGE_OVER)
		return CHARGE_OVER;
	if (internal_run(rules, ev, index, CHARGE_COMMIT) == CHARGE_OVER)
		return CHARGE_OVER;
	said = internal_run(rules, ev, SL_LIMIT_FAILSAFE_SUM, CHARGE_COMMIT);
	if (said != CHARGE_OVER)
		return said;
	charge_prepare(rules, ev, index);
	charge_refund(rules, ev, index);
	return said;
}

/*
 * One of the order's own limits. A full table or contention there never costs the admin his
 * neighbours or his session. ACCOUNT_ON: a failsafe port's share is spent, the order goes on.
 */
static __always_inline u32 internal_account(const struct sl_rules *rules, struct evaluation *ev,
					    u32 index)
{
	const struct sl_limit *limit = limit_at(rules, index);
	u32 said = internal_charge(rules, ev, index);

	if (!limit)
		return SL_ACT_PASS;
	if (said == CHARGE_OVER &&
	    (index == SL_LIMIT_FAILSAFE_TCP || index == SL_LIMIT_FAILSAFE_SOCKET))
		return ACCOUNT_ON;
	count_limit(limit->slot, said == CHARGE_OVER ? SL_LV_DROP : SL_LV_PASS, ev->pkt.length);
	if (said != CHARGE_OVER)
		return SL_ACT_PASS;
	ev->pkt.reason = index == SL_LIMIT_ESSENTIAL  ? SL_R_ESSENTIAL_OVER
			 : index == SL_LIMIT_FAILSAFE ? SL_R_FAILSAFE_OVER
						      : SL_R_PATH_MTU_OVER;
	return SL_ACT_DROP;
}

#endif
