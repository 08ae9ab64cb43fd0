/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * cluster.h - this node among others: the thread that exchanges messages, and the list of nodes.
 *
 *     main thread  --- cluster_send() -->  cluster's thread  -- stream in Redis -->  other nodes
 *                  <-- cluster_on() -----
 *
 * The thread has an event loop and a Redis client of its own: it flushes quota (quota.h), sends
 * and reads messages, and sends a heartbeat every sync interval. Workers have their own
 * clients (cluster_worker_open()) on their loops, so no decision waits for this thread.
 *
 * A message is JSON, signed with a key derived from cluster.secret_file, numbered by its node
 * (repeated numbers are refused), and it always has an end time. The sender repeats it, so that
 * nodes that were unavailable or are new receive it. Without repetition it expires on all nodes.
 */
#ifndef SLUICE_CLUSTER_H
#define SLUICE_CLUSTER_H

#include <event2/event.h>
#include <jansson.h>

#include "cluster/quota/quota.h"
#include "config/cluster_def.h"
#include "sluice/key.h"

struct cluster;
struct quotas;
struct counters;

/* Keys derived from the secret: the same on all nodes. */
struct cluster_keys {
	struct sl_seed seed; /* of bucket keys (SipHash) */
	u8 signature[32];    /* HMAC-SHA256 of messages */
};
int cluster_keys_read(const char *secret_file, struct cluster_keys *ret, struct sl_err *err);

/*
 * Performs all steps that need privileges or can fail, but does not start the thread. `counters`,
 * `quotas`: of the HTTP tier, NULL without one. `base`: the main thread's.
 */
int cluster_open(const struct cluster_def *def, struct event_base *base, struct counters *counters,
		 struct quotas *quotas, struct cluster **ret, struct sl_err *err);
/*
 * Call it before the start, with the number of nodes of the last run. It gives the node's fraction
 * of limits until Redis has been available for a few seconds.
 */
void cluster_expect(struct cluster *cluster, u32 nodes);
/* The number of nodes used for the fractions of limits. Any thread. */
u32 cluster_sharing(const struct cluster *cluster);
int cluster_run(struct cluster *cluster, struct sl_err *err);
/* Sends goodbye, returns leases (within a second), ends the thread. NULL is fine. */
void cluster_stop(struct cluster *cluster);
/* The same, then frees it; call after the workers have ended. NULL is fine. */
void cluster_close(struct cluster *cluster);

/* The definition it was opened with. */
const struct cluster_def *cluster_def(const struct cluster *cluster);
const struct cluster_keys *cluster_keys(const struct cluster *cluster);
/*
 * In a worker's thread: its own cluster store, on its loop; closed in that thread before the loop.
 */
int cluster_worker_open(struct cluster *cluster, struct event_base *base,
			struct cluster_store **ret);
void cluster_worker_close(struct cluster *cluster, struct cluster_store *store);

/*
 * Redis' current time in microseconds since 1970; false if it has not been read yet. Any thread.
 */
bool cluster_now(const struct cluster *cluster, u64 *ret_us);

/*
 * Main thread: reads these buckets from Redis, waits at most `wait_ns`, and updates the local
 * bucket states. Without a reply, or without Redis, `answered` stays false.
 */
void cluster_look(struct cluster *cluster, struct quota_lookup *look, u32 count, u64 wait_ns);

/* ------------------------------------------------------------------ messages, main thread */

struct cluster_message {
	const char *node; /* the sender */
	const char *kind;
	const json_t *body; /* an object */
	u64 sent_utc_ns;    /* Redis' time */
	u64 age_ns;
	u64 until_ns; /* CLOCK_MONOTONIC: the message expires then */
};
/*
 * Every other node receives it within two sync intervals; `valid_ns` counts from now. `kind` must
 * be static; the ownership of `body` passes. -E2BIG above 64 KiB of text. While Redis is
 * unavailable messages are queued; if the queue is full the oldest are dropped.
 */
int cluster_send(struct cluster *cluster, const char *kind, json_t *body, u64 valid_ns);
/* `received` runs on the main thread. */
void cluster_on(struct cluster *cluster, const char *kind,
		void (*receive)(void *arg, const struct cluster_message *message), void *arg);
/* Called when a node is new or was unavailable, to send it the current state again. */
void cluster_on_join(struct cluster *cluster, void (*joined)(void *arg, const char *node),
		     void *arg);

/* ------------------------------------------------------------------ nodes */

struct cluster_peer {
	char node[CLUSTER_NODE_MAX + 1];
	bool alive;	       /* a batch was received within ten sync intervals (at least 2 s) */
	bool left;	       /* it sent goodbye */
	u64 received_ns;       /* CLOCK_MONOTONIC */
	u64 lag_ns;	       /* age of its last message on arrival */
	u64 messages, refused; /* refused: invalid signature, number or time */
	char version[32];
};
/* Nodes seen within an hour: an array for the caller to free. */
int cluster_peers(struct cluster *cluster, struct cluster_peer **ret, size_t *ret_count);
/* The number of live nodes, including this one. */
u32 cluster_size(const struct cluster *cluster);

#endif
