/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * dp_push.h - push-downs: decisions of the HTTP tier about a source, applied to its packets.
 *
 * A push-down stands beside bans in a packet's way (INTERFACE: Order, step 6), is for a source
 * address or prefix, and ends by the data path's own clock. The daemon enforces which sources may
 * never be pushed down (push.c); the data path only keeps its order: exempt, failsafe sessions and
 * ports come before.
 *
 * One thread of the daemon calls these. They are kept over its restarts, as bans are.
 */
#ifndef SLUICE_DP_PUSH_H
#define SLUICE_DP_PUSH_H

#include "packet/dataplane/dataplane.h"
#include "lib/units.h"

struct dp_push {
	struct sl_prefix src;		/* not /0; of a family at most four lengths at a time */
	enum sl_push_kind kind;		/* limit, tag, no-new (TCP SYN without ACK), drop */
	struct rate rate;		/* SL_PUSH_LIMIT: packets; the burst is one second's worth */
	u64 until_ns;			/* CLOCK_MONOTONIC */
	u64 note;			/* the caller's: stored and returned unchanged */
	u64 packets, refused;		/* out: met, and dropped or tagged */
};

/*
 * Puts one in force or replaces that of the same source, whose bucket and counters go on.
 * -EINVAL for what dp_push has no room for, -E2BIG where there is no room: SL_PUSHES_MAX of
 * them, or a fifth length.
 */
int dp_push_put(struct dp *dp, const struct dp_push *push);
/* -ENOENT where there is none. */
int dp_push_del(struct dp *dp, const struct sl_prefix *src);
/* That of exactly this source, ended or not; -ENOENT where there is none. */
int dp_push_get(struct dp *dp, const struct sl_prefix *src, struct dp_push *ret);
/* All there are, also ended ones until dp_pushes_expire(); an array to be freed. */
int dp_pushes(struct dp *dp, struct dp_push **ret, size_t *ret_count);
/*
 * Every few seconds: takes out those that have ended, and tidies up after what was taken out.
 * Returns how many, or -errno. Costs nothing where there are none.
 */
int dp_pushes_expire(struct dp *dp, u64 mono_ns);
/*
 * Whether the packet tier saw traffic of an established TCP connection, or of QUIC past its
 * handshake, from the source (an address) within the last within_ns, give or take a second.
 * Noted only while dp_push_watch(dp, true): it costs such a packet some 40 ns. Of what bans,
 * blocks and push-downs drop, and of exempt sources, nothing is noted.
 */
bool dp_push_seen(struct dp *dp, const struct sl_prefix *src, u64 now_ns, u64 within_ns);
int dp_push_watch(struct dp *dp, bool on);

#endif
