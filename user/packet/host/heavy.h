/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * heavy.h - who sends: the heaviest sources of the last 4 to 9 seconds, summed over CPUs.
 *
 * From the data plane's entries of heavy sources; their error bound is in sluice/heavy.h.
 */
#ifndef SLUICE_HOST_HEAVY_H
#define SLUICE_HOST_HEAVY_H

#include "config/policy.h"
#include "lib/networks.h"
#include "packet/dataplane/dataplane.h"

struct heavy_count {
	u64 packets;	   /* at least so many were sent: a lower bound of the sample */
	u64 missed;	   /* and at most so many more */
	u64 bytes, opened; /* of `packets` */
};

struct heavy_source {
	struct sl_prefix source; /* IPv6: a /64 */
	struct heavy_count of[SL_HEAVY_LISTS];
	/* Of the last packet that was dropped; without one, of the last: */
	u16 limit_id; /* 0: no limit decided */
	u8 reason;    /* enum sl_reason */
	u8 iface_slot;
};

/*
 * All sources by sl_prefix_compare(): an array to be freed. *ret_span_ns: the time that counts are
 * of. 0 or -errno.
 */
int heavy_read(struct dp *dp, u64 mono_ns, struct heavy_source **ret, size_t *ret_count,
	       u64 *ret_span_ns);
/* The same, of the last window that is over: a caller that reads in each window reads each count
 * once. */
int heavy_read_window(struct dp *dp, u64 mono_ns, struct heavy_source **ret, size_t *ret_count);

/* The measures of networks.h. */
enum heavy_measure { HEAVY_DROPPED, HEAVY_PASSED, HEAVY_BYTES, HEAVY_OPENED };

/*
 * The networks among sources, which are in the order of heavy_read(). Their amounts are estimates
 * of what was sent, of packets + missed; exact if heavy_is_exact(). *ret_row, to be freed, names
 * the network of each source. Returns how many, or -ENOMEM.
 */
int heavy_networks(const struct heavy_source *source, size_t count,
		   struct network ret[NETWORKS_MAX], struct networks_row **ret_row);
/* Every packet of these lists was counted, and every source has its entry. */
bool heavy_is_exact(const struct heavy_source *source, size_t count);

#endif
