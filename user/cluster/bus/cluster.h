/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * cluster.h - this node among others: the thread that talks to them, and who they are.
 *
 *     main thread  --- cluster_send() -->  cluster's thread  -- stream in Redis -->  other nodes
 *                  <-- cluster_on() -----
 *
 * The thread has an event loop and a Redis client of its own: it writes shares back (quota.h),
 * sends and reads messages, and says every sync interval that this node lives. Workers have
 * clients of their own (cluster_worker_open()), on their loops, so no decision waits for it.
 *
 * A message is JSON, signed with a key derived from cluster.secret_file, numbered by its node (a
 * number that was had already is refused), and it expires. It says what to do until when, never
 * "for ever": whoever sent it says it again while it lives, so that nodes that were away or are new
 * hear of it, and what nobody says any more ends everywhere.
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

/* Keys that come from the secret: the same on all nodes. */
struct cluster_keys {
	struct sl_seed seed;		/* of bucket keys (SipHash) */
	u8 signature[32];		/* HMAC-SHA256 of messages */
};
int cluster_keys_read(const char *secret_file, struct cluster_keys *ret, struct sl_err *err);

/*
 * Everything that needs privileges or can fail; no thread yet. `store`, `shares`: of the HTTP
 * tier, NULL where there is none. `base`: the main thread's.
 */
int cluster_open(const struct cluster_def *def, struct event_base *base, struct counters *counters,
		 struct quotas *quotas, struct cluster **ret, struct sl_err *err);
/*
 * Before that: so many nodes there were when this one was here last. By that shares go while the store
 * is away, until it has been there for a while.
 */
void cluster_expect(struct cluster *cluster, u32 nodes);
/* How many they go by now. Any thread. */
u32 cluster_sharing(const struct cluster *cluster);
int cluster_run(struct cluster *cluster, struct sl_err *err);
/* Says goodbye, gives leases back (at most a second), ends the thread. NULL is fine. */
void cluster_stop(struct cluster *cluster);
/* The same, and frees it; after the workers. NULL is fine. */
void cluster_close(struct cluster *cluster);

/* As it was opened with. */
const struct cluster_def *cluster_def(const struct cluster *cluster);
const struct cluster_keys *cluster_keys(const struct cluster *cluster);
/* In a worker's thread: its own cluster store, on its loop; closed in that thread before the loop. */
int cluster_worker_open(struct cluster *cluster, struct event_base *base,
			struct cluster_store **ret);
void cluster_worker_close(struct cluster *cluster, struct cluster_store *shared);

/*
 * The store's time in microseconds since 1970, as it would be now; false where it has not been
 * asked yet. From any thread.
 */
bool cluster_now(const struct cluster *cluster, u64 *ret_us);

/*
 * Main thread: asks the store what it has of these, waits `wait_ns` at most, and makes the local words
 * by it. Who has no answer, or no store, is not `answered`.
 */
void cluster_look(struct cluster *cluster, struct quota_lookup *look, u32 count, u64 wait_ns);

/* ------------------------------------------------------------------ messages, main thread */

struct cluster_message {
	const char *node;		/* who says it */
	const char *kind;
	const json_t *body;		/* an object */
	u64 sent_utc_ns;		/* store time */
	u64 age_ns;
	u64 until_ns;			/* CLOCK_MONOTONIC: what it says is over then */
};
/*
 * Every node but this one gets it, within two sync intervals; `valid_ns` from now. `kind` lasts as
 * long as the program, `body` is given away. -E2BIG above 64 KiB of text. While the store is away
 * messages wait; of many the oldest are left out.
 */
int cluster_send(struct cluster *cluster, const char *kind, json_t *body, u64 valid_ns);
/* Heard on the main thread. */
void cluster_on(struct cluster *cluster, const char *kind,
		void (*receive)(void *arg, const struct cluster_message *message), void *arg);
/* A node was not there before, or was away: say again what it should know. */
void cluster_on_join(struct cluster *cluster, void (*joined)(void *arg, const char *node), void *arg);

/* ------------------------------------------------------------------ nodes */

struct cluster_peer {
	char node[CLUSTER_NODE_MAX + 1];
	bool alive;			/* heard of within ten sync intervals (at least 2 s) */
	bool left;			/* it said goodbye */
	u64 received_ns;			/* CLOCK_MONOTONIC */
	u64 lag_ns;			/* how old its last message was when it came */
	u64 messages, refused;		/* of its messages: bad signature, number or time */
	char version[32];
};
/* Those heard of within an hour: an array to be freed. */
int cluster_peers(struct cluster *cluster, struct cluster_peer **ret, size_t *ret_count);
/* Nodes that live, this one included. */
u32 cluster_size(const struct cluster *cluster);

#endif
