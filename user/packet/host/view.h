/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* view.h - values that metrics and commands both show: limits with their ids, rates, the table. */
#ifndef SLUICE_HOST_VIEW_H
#define SLUICE_HOST_VIEW_H

#include "packet/host/host.h"

/* A limit in force. */
struct limit_view {
	const char *name;
	const struct limit_def *def; /* NULL: one of the built-in limits, "@essential"... */
	const struct sl_limit *limit;
	u32 slot;
};

/* All limits in file order, the built-in ones last; ret has room for SL_METER_FURTHER. */
size_t view_limits(const struct policy *policy, const struct sl_image *image,
		   struct limit_view *ret);

/* The table's counts, at most a second old. */
const struct dp_table_stats *view_table(struct packet_host *host);

/*
 * The approximate number of sources that a limit in shadow mode would have refused since its
 * counters began.
 */
u64 view_shadow_sources(const struct packet_host *host, const struct limit_view *view);

/* "native", "generic", "removed", "replaced", "absent", "failed" or "detached". */
const char *view_iface_state(const struct iface *iface);
/* Whether lists show it. */
bool view_iface_shown(const struct iface *iface);

/* Reads all counters for the rates; each second (timers.c). */
void view_sample(struct packet_host *host, const struct policy *policy,
		 const struct sl_image *image);

#endif
