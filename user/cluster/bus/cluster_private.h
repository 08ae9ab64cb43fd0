/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* cluster_private.h - what the files of cluster.h share: cluster*.c; nobody else includes it. */
#ifndef SLUICE_CLUSTER_PRIVATE_H
#define SLUICE_CLUSTER_PRIVATE_H

#include <pthread.h>

#include "cluster/bus/bus.h"
#include "cluster/bus/cluster.h"
#include "cluster/quota/quota.h"

#define CLUSTER_KINDS_MAX 32

/* From the main thread to the cluster's (kind, body), or back (message; NULL: `node` joined). */
struct cluster_note {
	struct cluster_note *next;
	const char *kind;
	char *body;
	u64 until_ns;			/* CLOCK_MONOTONIC */
	json_t *message;
	char node[CLUSTER_NODE_MAX + 1];
	u64 sent_us;
	struct bus_time at;		/* when it was heard */
};

struct cluster_notes {
	struct cluster_note *first, **last;
	u32 count;
	u64 dropped;			/* too many were waiting */
	int wake_fd;
	struct event *wake;
};

/* What a worker has of Redis: a client, and the cluster store over it. */
struct cluster_worker {
	struct cluster_store *shared;
	struct redis *redis;
	struct cluster_worker *next;
};

struct cluster_receiver {
	const char *kind;		/* NULL: of joins */
	void (*receive)(void *arg, const struct cluster_message *message);
	void (*joined)(void *arg, const char *node);
	void *arg;
};

struct cluster {
	struct cluster_def *def;
	struct cluster_keys keys;
	struct counters *counters;
	struct quotas *quotas;

	/* The cluster's thread's own. */
	pthread_t thread;
	bool running;			/* the main thread's: it has to be joined */
	struct event_base *base;
	struct redis *redis;
	struct cluster_store *shared;		/* NULL where there are no shares */
	u64 up_ns;			/* since when the store answers; 0: it does not */
	u32 sharing;			/* nodes that quotas_set_nodes() knows of */
	struct bus *bus;
	struct bus_peers *peers;
	struct event *tick, *flush, *due;
	u64 ending_ns;			/* when it was told to; 0: it was not */
	u32 asked;			/* groups of shares that are not answered yet */

	/* Under the lock. */
	pthread_mutex_t lock;
	struct cluster_notes out, in;
	struct lookup *lookup;
	bool end;
	struct bus_stats bus_shown;
	struct cluster_peer *peer;	/* as of the last tick */
	size_t peer_count;
	struct cluster_worker *worker;

	u32 size;			/* atomic */
	u64 store_less_mono_us;		/* atomic, wrapping; 0: not known */
	struct cluster_receiver hearer[CLUSTER_KINDS_MAX];	/* the main thread's */
	u32 hearer_count;
};

/* ---- cluster_notes.c ---- */

int notes_open(struct cluster_notes *notes, struct event_base *base, event_callback_fn take,
	       void *arg);
void notes_close(struct cluster_notes *notes);
/* The note is given away; of too many the new one is left out. */
void notes_put(struct cluster *cluster, struct cluster_notes *notes, struct cluster_note *note);
void notes_wake(struct cluster_notes *notes);
/* All there are, by the thread that was woken. */
struct cluster_note *notes_take(struct cluster *cluster, struct cluster_notes *notes);
void note_free(struct cluster_note *note);

/* ---- cluster_connect.c ---- */

/* A client on a loop, and how shares are charged through it. */
int cluster_connect(struct cluster *cluster, struct event_base *base, struct redis **ret_redis,
		    struct cluster_store **ret_shared, struct sl_err *err);
void cluster_disconnect(struct redis *redis, struct cluster_store *shared);

/* cluster_look.c: what the main thread waits for, on the cluster's thread. */
void cluster_looks(struct cluster *cluster);

/* cluster_due.c: every few milliseconds, on the cluster's thread. */
void cluster_due(struct cluster *cluster);

#endif
