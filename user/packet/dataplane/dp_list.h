/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * dp_list.h - what is listed beside the rule set, in any data plane: bpf/list.h has its rules.
 * Called from one thread of the daemon.
 */
#ifndef SLUICE_DP_LIST_H
#define SLUICE_DP_LIST_H

#include "packet/dataplane/dataplane.h"

static inline struct sl_list_key dp_list_key(const struct sl_prefix *prefix)
{
	return (struct sl_list_key){ sl_addr_mask(prefix->addr, prefix->len), prefix->family,
				     prefix->len };
}

/*
 * Puts entries in force, also over older ones. -E2BIG: no room; some of them may be in force then.
 */
int dp_list_put(struct dp *dp, const struct dp_listed *listed, size_t count);
/* Those that are not there are skipped. Their filter bits stay. */
int dp_list_del(struct dp *dp, const struct sl_list_key *key, size_t count);

/*
 * What all entries that cover a source (an address) list, now: the latest end of each, 0: none, ~0:
 * no end.
 */
void dp_list_covering(struct dp *dp, const struct sl_prefix *source, u64 now_ns, u64 *ret_block,
		      u64 *ret_exempt);

/* Adds a key to a filter. */
void dp_list_filter_add(struct sl_list_filter *filter, const struct sl_list_key *key);
/* Makes the filter `wanted`, which has every key that is listed. */
void dp_list_refilter(struct dp *dp, const struct sl_list_filter *wanted);

#endif
