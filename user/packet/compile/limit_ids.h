/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * limit_ids.h - which slot a limit has: its identity in the table and the counters, over rule
 * sets and restarts.
 */
#ifndef SLUICE_POLICY_LIMIT_IDS_H
#define SLUICE_POLICY_LIMIT_IDS_H

#include <stdbool.h>
#include <stddef.h>

#include "sluice/abi.h"

/* A limit that needs a slot. */
struct limit_id_claim {
	const char *name;	/* with its kind unique among the claims */
	u64 kind;
	bool kept;		/* its buckets go to the places kept for prefixes */
	u32 slot;		/* out */
};

/* What makes two limits' bucket states comparable, hashed. */
u64 limit_kind(const struct sl_limit *limit);
/* The same for a further meter: its slot's name may have but a part of its limit's. */
u64 limit_kind_of(u64 kind, const char *limit);

/*
 * Gives each claim a slot, its own one where it has one, and sets all others that are bound
 * to DRAINING. slots: SL_LIMIT_IDS of them. 0, or -ENOSPC; `slots` is then half changed.
 */
int limit_ids_claim(struct sl_limit_id_info *slots, struct limit_id_claim *claim, size_t count);

/*
 * Enters a limit's parameters in its slot's history (a new rate generation where they need
 * one) and the history in the parameters: gen and rescale_*.
 */
void limit_id_set_params(struct sl_limit_id_info *slot, struct sl_params *params);

#endif
