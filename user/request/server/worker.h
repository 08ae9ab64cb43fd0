/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * worker.h - the threads that answer, one event loop each, and what they share. What decides is the
 * engine (request/engine), of which each has a part.
 *
 * Every listener is accepted by every worker. A connection stays on the worker that accepted
 * it, so a frontend needs no locks. Frontends are given to tier_open(): which kind of listener they
 * serve, and what to do with a connection; nothing here knows one of them.
 *
 * The main thread starts and stops workers and talks to them by worker_post(); it never touches
 * what is on their loops.
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
struct listeners;			/* listen.h */
struct callers;				/* callers.c */
struct listen_sockets;
struct tls;				/* tls.c */
struct handshakes;

/* The HTTP tier: one, made by tier_open(). */
struct http_tier {
	const struct http_def *def;	/* workers: by tier_def() */
	struct http_def *started;	/* as at start: what listeners are of */
	struct engine *engine;
	struct worker *worker;
	u32 worker_count;
	struct listeners *listeners;
	struct callers *callers;	/* under RCU */
	struct tls *tls;		/* NULL: none */
	const struct frontend *frontend[LISTEN_KIND_COUNT];	/* NULL: none */
	void *shared[LISTEN_KIND_COUNT];	/* what a frontend's workers share; see frontend.free */
	bool draining;			/* no new connections; keep-alive ends; read atomically */
	u32 running;			/* workers that have not ended */
	void *owner;			/* the daemon, for the main thread's callbacks only */
};

/* Of a worker's thread; valid until its callback returns: reloads change it. */
static inline const struct http_def *tier_def(const struct http_tier *tier)
{
	return __atomic_load_n(&tier->def, __ATOMIC_ACQUIRE);
}

struct worker {
	struct http_tier *tier;
	u32 index;
	struct event_base *base;
	struct engine_thread *engine;	/* what decides on this loop */
	struct worker_private *private;	/* worker.c */
	struct handshakes *handshakes;	/* tls.c */
	struct listen_sockets *sockets;		/* listen.c */
	u64 connections;		/* open, of all kinds; the worker's own */
	void *frontend[LISTEN_KIND_COUNT]; /* each frontend's state on this worker, by its kind */
};

/*
 * Who is on the other side of a connection, decided once when it was accepted, or (a token)
 * for each request.
 */
struct peer_info {
	bool local;			/* Unix socket or loopback */
	bool unix_socket;
	uid_t uid;			/* Unix socket */
	bool tls;
	char cert_cn[64];		/* verified client certificate; "" none */
	struct connection *connection;	/* its place; NULL in tests */
	const struct listen_def *listener;	/* where it was accepted; NULL in tests */
};

/*
 * The rights of a peer for a domain; where that is empty, those it has for any. `token` may be
 * empty. 0 where it has none; a token that is not known is no fallback to rights without one:
 * *ret_bad_token.
 */
u32 caller_rights(const struct http_tier *tier, const struct peer_info *peer, struct bytes token,
		  struct bytes domain, bool *ret_bad_token);

/*
 * A kind of listener. `accept` owns `bev` (TLS is done already where the listener has it) and
 * serves the connection until it ends, with worker_connection_end(), and states what it waits for
 * by connection_set(); `drain` asks all of the
 * worker's connections of this kind to end soon. One static struct per frontend, given to
 * tier_open().
 */
struct frontend {
	const char *name;		/* "listen", "grpc", "spoe": the key under http */
	enum listen_kind kind;		/* of listeners that it serves */
	const char *alpn;		/* of TLS, with its length before it: "\x02h2" */
	void (*accept)(struct worker *worker, struct bufferevent *bev,
		       const struct peer_info *peer);
	void (*drain)(struct worker *worker);	/* NULL: nothing to ask */
	int (*start)(struct worker *worker);	/* in its thread, before any accept; NULL: none */
	void (*stop)(struct worker *worker);	/* in its thread, the last; NULL: none */
	/*
	 * Without connections, accept is NULL and the first worker reads the socket, which stays
	 * listen.c's: 0 or -ENOMEM.
	 */
	int (*receive)(struct worker *worker, int fd, const struct listen_def *def);
	/* What its workers shared (http_tier.shared), after all have ended. NULL: they share nothing. */
	void (*free)(void *shared);
};

/*
 * A trap of libevent 2.1.12: a bufferevent above its high watermark whose callback takes nothing
 * calls back without end. Disable EV_READ instead.
 */

/* A front's connection ends: before its bufferevent is freed. */
void worker_connection_end(struct worker *worker, const struct peer_info *peer);

/* ------------------------------------------------------------------ the main thread's part */

/* Event loops, without threads yet: what comes before privileges are dropped. */
int workers_make(struct http_tier *tier, u32 count, struct sl_err *err);
/* Threads; they inherit the filter and the capabilities of whoever calls it. */
int workers_run(struct http_tier *tier, struct sl_err *err);
/* Ends the loops now and waits for the threads. NULL workers are fine. */
void workers_stop(struct http_tier *tier);
/* What they had: the loops. */
void workers_free(struct http_tier *tier);
/* run() in the worker's thread, soon, in the order of the posts. -ENOMEM. From any thread. */
int worker_post(struct worker *worker, void (*run)(struct worker *worker, void *arg), void *arg);

/*
 * Frees `thing`, which workers may still have in their hands until the callback they are in
 * returns, when none can have it any more. Right after another one was put in its place.
 */
void workers_retire(struct http_tier *tier, void *thing, void (*free_thing)(void *thing));

#endif
