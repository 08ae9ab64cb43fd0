/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* cluster_private.h - shared by cluster*.c; included nowhere else. */
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
	u64 until_ns; /* CLOCK_MONOTONIC */
	json_t *message;
	char node[CLUSTER_NODE_MAX + 1];
	u64 sent_us;
	struct bus_time at; /* when it was received */
};

struct cluster_notes {
	struct cluster_note *first, **last;
	u32 count;
	u64 dropped; /* messages refused because the list was full */
	int wake_fd;
	struct event *wake;
};

/* A worker's access to Redis: a client, and the cluster store on top of it. */
struct cluster_worker {
	struct cluster_store *store;
	struct redis *redis;
	struct cluster_worker *next;
};

struct cluster_receiver {
	const char *kind; /* NULL: for joins */
	void (*receive)(void *arg, const struct cluster_message *message);
	void (*joined)(void *arg, const char *node);
	void *arg;
};

struct cluster {
	struct cluster_def *def;
	struct cluster_keys keys;
	struct counters *counters;
	struct quotas *quotas;

	/* Owned by the cluster's thread. */
	pthread_t thread;
	bool running; /* owned by the main thread: it must be joined */
	struct event_base *base;
	struct redis *redis;
	struct cluster_store *store; /* NULL without quotas */
	u64 up_ns;		     /* the time since which Redis is available; 0: unavailable */
	u32 sharing;		     /* node count last passed to quotas_set_nodes() */
	struct bus *bus;
	struct bus_peers *peers;
	struct event *tick, *flush, *due;
	u64 ending_ns; /* when it received the request to stop; 0: not yet */
	u32 pending;   /* groups of charges without a reply */

	/* Under the lock. */
	pthread_mutex_t lock;
	struct cluster_notes out, in;
	struct lookup *lookup;
	bool end;
	struct bus_stats bus_shown;
	struct cluster_peer *peer; /* as of the last tick */
	size_t peer_count;
	struct cluster_worker *worker;

	u32 size;					     /* atomic */
	u64 store_less_mono_us;				     /* atomic, wrapping; 0: not known */
	struct cluster_receiver receiver[CLUSTER_KINDS_MAX]; /* the main thread's */
	u32 receiver_count;
};

/* ---- cluster_notes.c ---- */

int notes_open(struct cluster_notes *notes, struct event_base *base, event_callback_fn take,
	       void *arg);
void notes_close(struct cluster_notes *notes);
/* Takes the ownership of the note; if the list is full the note is dropped. */
void notes_put(struct cluster *cluster, struct cluster_notes *notes, struct cluster_note *note);
void notes_wake(struct cluster_notes *notes);
/* Takes all notes; called by the receiving thread. */
struct cluster_note *notes_take(struct cluster *cluster, struct cluster_notes *notes);
void note_free(struct cluster_note *note);

/* ---- cluster_connect.c ---- */

/* Creates a client on a loop, and the cluster store on top of it. */
int cluster_connect(struct cluster *cluster, struct event_base *base, struct redis **ret_redis,
		    struct cluster_store **ret_store, struct sl_err *err);
void cluster_disconnect(struct redis *redis, struct cluster_store *store);

/* cluster_look.c: lookups of the main thread, run on the cluster's thread. */
void cluster_looks(struct cluster *cluster);

/* cluster_due.c: every few milliseconds, on the cluster's thread. */
void cluster_due(struct cluster *cluster);

#endif
