/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* view.h - what metrics and commands show alike: limits with their slots, rates, the table. */
#ifndef SLUICE_HOST_VIEW_H
#define SLUICE_HOST_VIEW_H

#include "packet/host/host.h"

/* A limit in force. */
struct limit_view {
	const char *name;
	const struct limit_def *def;	/* NULL: one of the order's own, "@essential"... */
	const struct sl_limit *limit;
	u32 slot;
};

/* All of them in file order, the order's own last; ret has room for SL_METER_FURTHER. */
size_t view_limits(const struct policy *policy, const struct sl_image *image,
		   struct limit_view *ret);

/* The table's counts, at most a second old. */
const struct dp_table_stats *view_table(struct packet_host *host);

/* About how many sources a limit in shadow mode would have refused since its counters began. */
u64 view_shadow_sources(const struct packet_host *host, const struct limit_view *view);

/* "native", "generic", "removed", "replaced", "absent", "failed" or "detached". */
const char *view_iface_state(const struct iface *iface);
/* Whether it is to be shown at all. */
bool view_iface_shown(const struct iface *iface);

/* Reads all counters once more for the rates; each second (timers.c). */
void view_sample(struct packet_host *host, const struct policy *policy,
		 const struct sl_image *image);

#endif
