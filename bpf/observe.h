/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * observe.h - counting, on this CPU's own memory. A counter that cannot be reached is itself
 * not countable; nothing here ever changes a verdict.
 */
#ifndef SLUICE_BPF_OBSERVE_H
#define SLUICE_BPF_OBSERVE_H

#include "bpf/packet.h"

static __always_inline void count_map_error(enum sl_map_error error)
{
	struct sl_global_stats *stats = map_global_stats();

	if (stats)
		stats->errors[error]++;
}

/* Every packet, once. */
static __always_inline void count_packet(const struct packet *pkt, enum sl_action action)
{
	struct sl_iface_stats *stats = map_iface_stats();
	u32 reason = pkt->reason;

	if (!stats) {
		count_map_error(SL_ME_STATS_LOOKUP);
		return;
	}
	OPAQUE(reason);
	OPAQUE(action);
	if (reason >= SL_R_COUNT || action >= SL_ACT_COUNT)
		return;
	stats->packets[reason][action]++;
	stats->bytes[action] += pkt->length;
}

/* Every packet that a limit decided about, under the limit's verdict. */
static __always_inline void count_limit(u32 slot, enum sl_limit_verdict verdict, u32 length)
{
	struct sl_limit_stats *stats = map_limit_stats(slot);

	if (!stats) {
		count_map_error(SL_ME_STATS_LOOKUP);
		return;
	}
	OPAQUE(verdict);
	if (verdict >= SL_LV_COUNT)
		return;
	stats->packets[verdict]++;
	stats->bytes[verdict] += length;
}

#endif
