/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * bus.h - batches out to a stream in Redis, and those of the other nodes in from it.
 *
 *     bus_publish() -> next tick: XADD PREFIX{bus} -> every node's next tick: XREAD -> hear()
 *
 * One stream for the cluster, cut to about ten thousand batches. It is asked each sync interval
 * rather than waited on (XREAD BLOCK): with n nodes each of n batches would wake n readers, where
 * one question brings all of an interval. An eighth of the interval after something was said it
 * goes out, so it is known everywhere after little more than one interval.
 *
 * A reader that fell behind leaves out what is too old to be news, and one whose place in the
 * stream is gone (Redis was emptied) finds it again by what it said itself. Nothing is said before
 * the stream's last seconds have been read: they may have a batch of the daemon before this one,
 * whose numbers ours have to be above.
 *
 * On the cluster's thread.
 */
#ifndef SLUICE_BUS_H
#define SLUICE_BUS_H

#include <event2/event.h>

#include "cluster/bus/bus_peers.h"
#include "cluster/redis/redis.h"

struct bus;

u64 bus_mono_ns(void);		/* CLOCK_MONOTONIC */

struct bus_callbacks {
	/* One message of another node; `message` is the callee's to free. */
	void (*receive)(void *arg, const struct bus_head *head, json_t *message,
			const struct bus_time *now);
	void (*joined)(void *arg, const char *node);
	void *arg;
};

/* `redis` and `peers` stay the caller's. */
int bus_new(const struct cluster_def *def, const struct cluster_keys *keys, struct redis *redis,
	    struct bus_peers *peers, const struct bus_callbacks *callbacks, struct bus **ret);
void bus_free(struct bus *bus);		/* NULL is fine; before its redis */

/* `kind` is static, `body` JSON text that is taken over. */
void bus_publish(struct bus *bus, const char *kind, char *body, u64 until_mono_ns);
/* Each sync interval: says what there is and that this node lives; reads. */
void bus_tick(struct bus *bus);
/* Only what was said since: no sign of life, nothing read. */
void bus_flush(struct bus *bus);
/* The last batch. */
void bus_goodbye(struct bus *bus);
/* The store's time less CLOCK_MONOTONIC, us, wrapping; where clock_known. */
u64 bus_clock(const struct bus *bus);
/* Whether all that was sent has been answered. */
bool bus_is_idle(const struct bus *bus);

struct bus_stats {
	u64 sent, batches_sent;		/* messages */
	u64 received;
	u64 dropped;			/* not sent: too old, or too many were waiting */
	u64 skipped;			/* how often it fell behind, or lost its place */
	u64 refused[BUS_VERDICT_COUNT];	/* batches */
	s64 ahead_ns;			/* the store's clock, of this machine's */
	bool clock_known;
	bool twice;			/* another daemon has this node's name: within the last 10 s */
	bool strangers;			/* somebody writes who has another secret: within the last 10 s */
	char error[200];		/* what went wrong last; "" it goes well */
};
void bus_stats(const struct bus *bus, struct bus_stats *ret);

#endif
