/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* dims.h - the classifier's dimensions of 8 and 16 bits. Prefixes: prefix_index.h. */
#ifndef SLUICE_POLICY_DIMS_H
#define SLUICE_POLICY_DIMS_H

#include "config/policy.h"

/*
 * Fills dims (its bits of 8 and 16), none16, none8, dim8, dim16 and class16 of `rules` from
 * the matches of the limits in rules->all. iface: SL_IFACES_MAX names by slot, "" where free,
 * or NULL. 0, or -E2BIG with a message for more than SL_CLASS16_MAX classes; -ENOMEM.
 */
int dims_compile(const struct policy *policy, const char (*iface)[16], struct sl_rules *rules,
		 struct sl_err *err);

#endif
