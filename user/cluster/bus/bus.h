/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * bus.h - publishes batches to a stream in Redis, and reads those of the other nodes.
 *
 *     bus_publish() -> next tick: XADD PREFIX{bus} -> every node's next tick: XREAD -> receive()
 *
 * One stream for the cluster, trimmed to about ten thousand batches. It is polled each sync
 * interval instead of XREAD BLOCK: with n nodes, each of n batches would wake n readers, where
 * one XREAD returns a whole interval. A message is sent an eighth of the interval after it was
 * published, so every node has it after little more than one interval.
 *
 * A reader that fell behind skips batches that are too old. A reader that lost its position in the
 * stream (Redis was emptied) finds it again by its own batches. Nothing is sent before the last
 * seconds of the stream have been read: they may contain a batch of the previous daemon of this
 * node, and new numbers must be higher.
 *
 * Runs on the cluster's thread.
 */
#ifndef SLUICE_BUS_H
#define SLUICE_BUS_H

#include <event2/event.h>

#include "cluster/bus/bus_peers.h"
#include "cluster/redis/redis.h"
#include "lib/clock.h"

struct bus;

struct bus_callbacks {
	/* One message of another node; the callee frees `message`. */
	void (*receive)(void *arg, const struct bus_head *head, json_t *message,
			const struct bus_time *now);
	void (*joined)(void *arg, const char *node);
	void *arg;
};

/* The caller keeps the ownership of `redis` and `peers`. */
int bus_new(const struct cluster_def *def, const struct cluster_keys *keys, struct redis *redis,
	    struct bus_peers *peers, const struct bus_callbacks *callbacks, struct bus **ret);
void bus_free(struct bus *bus); /* NULL is fine; before its redis */

/* `kind` is static; `body` is JSON text, and the bus takes its ownership. */
void bus_publish(struct bus *bus, const char *kind, char *body, u64 until_mono_ns);
/* Each sync interval: sends queued messages and a heartbeat, then reads. */
void bus_tick(struct bus *bus);
/* Sends only queued messages: no heartbeat, no read. */
void bus_flush(struct bus *bus);
/* The last batch. */
void bus_goodbye(struct bus *bus);
/* Offset of Redis' clock from CLOCK_MONOTONIC, us, wrapping; valid if clock_known. */
u64 bus_clock(const struct bus *bus);
/* Whether all commands have their replies. */
bool bus_is_idle(const struct bus *bus);

struct bus_stats {
	u64 sent; /* messages */
	u64 received;
	u64 dropped;			/* not sent: too old, or the queue was full */
	u64 skipped;			/* times that it fell behind or lost its position */
	u64 refused[BUS_VERDICT_COUNT]; /* batches */
	s64 ahead_ns;			/* offset of Redis' clock from this machine's */
	bool clock_known;
	bool twice;	 /* another daemon had this node's name within the last 10 s */
	bool strangers;	 /* batches with another secret were received within the last 10 s */
	char error[200]; /* the last error; "": none */
};
void bus_stats(const struct bus *bus, struct bus_stats *ret);

#endif
