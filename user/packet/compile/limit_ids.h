/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * limit_ids.h - the limit_id of a limit: its identity in the table and the counters, over rule
 * sets and restarts.
 */
#ifndef SLUICE_POLICY_LIMIT_IDS_H
#define SLUICE_POLICY_LIMIT_IDS_H

#include <stdbool.h>
#include <stddef.h>

#include "sluice/abi.h"

/* A limit that needs a limit_id. */
struct limit_id_claim {
	const char *name; /* with its kind unique among the claims */
	u64 kind;
	bool kept; /* its buckets use the places kept for prefixes */
	u32 slot;  /* out */
};

/* A hash of the properties that two limits need in common for compatible bucket states. */
u64 limit_kind(const struct sl_limit *limit);
/* The same for a further meter, whose name may have only a part of its limit's name. */
u64 limit_kind_of(u64 kind, const char *limit);

/*
 * Gives each claim a limit_id, its present one if it has one, and sets all other bound ones to
 * DRAINING. slots: SL_LIMIT_IDS of them. 0, or -ENOSPC; `slots` is then partly changed.
 */
int limit_ids_claim(struct sl_limit_id_info *slots, struct limit_id_claim *claim, size_t count);

/*
 * Enters a limit's parameters in the history of its limit_id (as a new rate generation if needed)
 * and the history in the parameters: gen and rescale_*.
 */
void limit_id_set_params(struct sl_limit_id_info *slot, struct sl_params *params);

#endif
