/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * dp_push.h - push-downs: decisions of the HTTP tier about a source, applied to its packets.
 *
 * A push-down comes beside bans in the order of decisions (step 6), is for a source address or
 * prefix, and ends by the data path's own clock. The daemon enforces which sources may never be
 * pushed down (push.c); the data path only keeps the order: exempt sources, login sessions and
 * failsafe ports come before.
 *
 * Called from one thread of the daemon. They are kept over its restarts, as bans are.
 */
#ifndef SLUICE_DP_PUSH_H
#define SLUICE_DP_PUSH_H

#include "packet/dataplane/dataplane.h"
#include "lib/units.h"

struct dp_push {
	struct sl_prefix src;	/* not /0; of a family at most four lengths at a time */
	enum sl_push_kind kind; /* limit, tag, no-new (TCP SYN without ACK), drop */
	struct rate rate;	/* SL_PUSH_LIMIT: packets; the burst is one second's worth */
	u64 until_ns;		/* CLOCK_MONOTONIC */
	u64 note;		/* the caller's: stored and returned unchanged */
	u64 packets, refused;	/* output: matched, and dropped or tagged */
};

/*
 * Puts one in force or replaces that of the same source, whose bucket and counters continue.
 * -EINVAL: it does not fit dp_push; -E2BIG: no room: SL_PUSHES_MAX of them, or a fifth length.
 */
int dp_push_put(struct dp *dp, const struct dp_push *push);
/* -ENOENT if there is none. */
int dp_push_del(struct dp *dp, const struct sl_prefix *src);
/* That of exactly this source, ended or not; -ENOENT if there is none. */
int dp_push_get(struct dp *dp, const struct sl_prefix *src, struct dp_push *ret);
/* All there are, also ended ones until dp_pushes_expire(); an array to be freed. */
int dp_pushes(struct dp *dp, struct dp_push **ret, size_t *ret_count);
/*
 * Every few seconds: removes ended ones, and builds the filter again. Returns how many, or -errno.
 * Costs nothing if there are none.
 */
int dp_pushes_expire(struct dp *dp, u64 mono_ns);
/*
 * Whether packets of an established TCP connection, or of QUIC past its handshake, came from the
 * source (an address) within the last within_ns, to a second. Noted only while dp_push_watch(dp,
 * true): it costs such a packet some 40 ns. Packets dropped by bans, blocks and push-downs, and
 * those of exempt sources, are not noted.
 */
bool dp_push_seen(struct dp *dp, const struct sl_prefix *src, u64 now_ns, u64 within_ns);
int dp_push_watch(struct dp *dp, bool on);

#endif
