/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * worker.h - the threads of the HTTP tier, one event loop each, and their common data. The engine
 * (request/engine) decides; each thread has a part of it.
 *
 * Every worker accepts on every listener. A connection stays on the worker that accepted it, so a
 * frontend needs no locks. Frontends are passed to tier_open(): the kind of listener they serve,
 * and how to handle a connection; nothing here depends on one of them.
 *
 * The main thread starts and stops workers and sends them work by worker_post(); it never touches
 * their loops.
 */
#ifndef SLUICE_HTTP_WORKER_H
#define SLUICE_HTTP_WORKER_H

#include <event2/bufferevent.h>
#include <event2/event.h>
#include <sys/types.h>

#include "config/http_def.h"
#include "request/engine/engine.h"
#include "request/server/connections.h"

#define WORKERS_MAX 256

struct frontend;
struct listeners; /* listen.h */
struct callers;	  /* callers.c */
struct listen_sockets;
struct tls; /* tls.c */
struct handshakes;

/* The HTTP tier: one, made by tier_open(). */
struct http_tier {
	const struct http_def *def; /* workers use tier_def() */
	struct http_def *started;   /* as at start: the listeners' definition */
	struct engine *engine;
	struct worker *worker;
	u32 worker_count;
	struct listeners *listeners;
	struct callers *callers;			    /* under RCU */
	struct tls *tls;				    /* NULL: none */
	const struct frontend *frontend[LISTEN_KIND_COUNT]; /* NULL: none */
	void *shared[LISTEN_KIND_COUNT]; /* of a frontend's workers; see frontend.free */
	bool draining;			 /* before exit: keep-alive ends; read atomically */
	u32 running;			 /* workers that have not ended */
	void *owner;			 /* the daemon, for the main thread's callbacks only */
};

/* From a worker's thread; valid until its callback returns: a reload may replace it. */
static inline const struct http_def *tier_def(const struct http_tier *tier)
{
	return __atomic_load_n(&tier->def, __ATOMIC_ACQUIRE);
}

struct worker {
	struct http_tier *tier;
	u32 index;
	struct event_base *base;
	struct engine_thread *engine;	   /* decides on this loop */
	struct worker_private *private;	   /* worker.c */
	struct handshakes *handshakes;	   /* tls.c */
	struct listen_sockets *sockets;	   /* listen.c */
	u64 connections;		   /* open, of all kinds; the worker's own */
	u64 waited;			   /* those of them that draining waits for */
	void *frontend[LISTEN_KIND_COUNT]; /* each frontend's state on this worker, by its kind */
};

/*
 * The peer of a connection, determined once when it was accepted, or (a token) for each request.
 */
struct peer_info {
	bool local; /* Unix socket or loopback */
	bool unix_socket;
	uid_t uid; /* Unix socket */
	bool tls;
	bool waited;			   /* accepted before draining, by a frontend that drains */
	char cert_cn[64];		   /* verified client certificate; "" none */
	struct connection *connection;	   /* its entry; NULL in tests */
	const struct listen_def *listener; /* where it was accepted; NULL in tests */
};

/*
 * The rights of a peer for a domain; with an empty domain, those for any. `token` may be empty. 0
 * without rights; an unknown token does not fall back to rights without one: *ret_bad_token.
 */
u32 caller_rights(const struct http_tier *tier, const struct peer_info *peer, struct bytes token,
		  struct bytes domain, bool *ret_bad_token);

/*
 * A kind of listener. `accept` owns `bev` (after TLS if the listener has it) and serves the
 * connection until it ends with worker_connection_end(); it sets the connection's state by
 * connection_set(). One static struct per frontend, passed to tier_open().
 *
 * Before exit, first `drain` makes the connections end whose clients lose nothing by it, while new
 * ones are still accepted and served; then, when no more are accepted, `finish` ends all within
 * TIER_FINISH_MS. Without `drain`, connections are served until then.
 */
struct frontend {
	const char *name;      /* "listen", "grpc", "spoe": the key under http */
	enum listen_kind kind; /* of its listeners */
	const char *alpn;      /* of TLS, with its length before it: "\x02h2" */
	void (*accept)(struct worker *worker, struct bufferevent *bev,
		       const struct peer_info *peer);
	void (*drain)(struct worker *worker);  /* NULL: nothing to do */
	void (*finish)(struct worker *worker); /* likewise */
	int (*start)(struct worker *worker);   /* in its thread, before any accept; NULL: none */
	void (*stop)(struct worker *worker);   /* in its thread, last; NULL: none */
	/*
	 * Without connections, accept is NULL and the first worker reads the socket, which
	 * listen.c owns: 0 or -ENOMEM.
	 */
	int (*receive)(struct worker *worker, int fd, const struct listen_def *def);
	/* Frees what its workers shared (http_tier.shared), after all have ended. NULL: nothing. */
	void (*free)(void *shared);
};

/*
 * A trap of libevent 2.1.12: a bufferevent above its high watermark whose callback takes nothing
 * calls back without end. Disable EV_READ instead.
 */

/* A frontend's connection ends: call it before freeing its bufferevent. */
void worker_connection_end(struct worker *worker, const struct peer_info *peer);

/* ------------------------------------------------------------------ the main thread's part */

/* Creates the event loops, without threads yet: called before privileges are dropped. */
int workers_make(struct http_tier *tier, u32 count, struct sl_err *err);
/* Starts the threads; they inherit the caller's filter and capabilities. */
int workers_run(struct http_tier *tier, struct sl_err *err);
/* Ends the loops now and waits for the threads. Again is fine. */
void workers_stop(struct http_tier *tier);
/* Frees the loops. */
void workers_free(struct http_tier *tier);
/* Runs run() in the worker's thread, soon, in the order of the posts. -ENOMEM. From any thread. */
int worker_post(struct worker *worker, void (*run)(struct worker *worker, void *arg), void *arg);

/*
 * Frees `thing` when no worker can use it any more: workers may until their current callback
 * returns. Call it right after another one was put in its place.
 */
void workers_retire(struct http_tier *tier, void *thing, void (*free_thing)(void *thing));

#endif
