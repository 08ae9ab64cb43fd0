/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * dp_push.h - push-downs: what the HTTP tier learned about a source, carried out on its packets.
 *
 * A push-down stands beside bans in a packet's way (INTERFACE: Order, step 6), is for a source
 * address or prefix, and ends by the data path's own clock. What never may be pushed down is
 * the daemon's to know (push.c); the data path only keeps its order: exempt, failsafe sessions
 * and ports come before.
 */
#ifndef SLUICE_DP_PUSH_H
#define SLUICE_DP_PUSH_H

#include "dataplane/dataplane.h"
#include "http/rule.h"

struct dp_push {
	struct sl_prefix src;
	enum push_kind kind;		/* limit, tag, no-new (TCP SYN without ACK), drop */
	struct rate rate;		/* PUSH_LIMIT: packets */
	u64 until_ns;			/* CLOCK_MONOTONIC */
	u64 packets, refused;		/* out: met, and dropped or tagged */
};

/* Puts one in force or replaces that of the same source; -E2BIG where there is no room. */
int dp_push_put(struct dp *dp, const struct dp_push *push);
/* -ENOENT where there is none. */
int dp_push_del(struct dp *dp, const struct sl_prefix *src);
/* All that are in force, an array to be freed. */
int dp_pushes(struct dp *dp, struct dp_push **ret, size_t *ret_count);
/*
 * Whether the packet tier saw traffic of an established TCP connection, or of QUIC past its
 * handshake, from the source (an address) within the last within_ns. Noted only while
 * dp_push_watch(dp, true): it costs a packet a few nanoseconds.
 */
bool dp_push_seen(struct dp *dp, const struct sl_prefix *src, u64 now_ns, u64 within_ns);
int dp_push_watch(struct dp *dp, bool on);

#endif
