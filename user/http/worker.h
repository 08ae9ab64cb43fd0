/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * worker.h - the threads that answer, one event loop each, and what they share.
 *
 * Every listener is accepted by every worker. A connection stays on the worker that accepted
 * it, so a front needs no locks. Fronts register themselves in listen.c's table: which kind of
 * listener they serve, and what to do with a connection.
 */
#ifndef SLUICE_HTTP_WORKER_H
#define SLUICE_HTTP_WORKER_H

#include <event2/bufferevent.h>
#include <event2/event.h>

#include "http/ask.h"
#include "http/rule.h"
#include "http/store.h"
#include "policy/http_def.h"

/* The HTTP tier: one, made by http_tier_start(). */
struct http_tier {
	const struct http_def *def;	/* as at start */
	struct store *store;
	struct worker *worker;
	u32 worker_count;
	struct waits *waits;		/* wait.c */
	struct aggregate *aggregate;	/* aggregate.c; NULL: no push_down and no source_budget */
	bool draining;			/* no new connections; keep-alive ends */
	void *owner;			/* the daemon, for the main thread's callbacks only */
};

/* A series of sluice_decisions_total and its kin, by rule->metric. */
enum decision_verdict {
	DECISION_OK, DECISION_OVER_LIMIT, DECISION_SOFT, DECISION_SHADOW, DECISION_WAITED,
	DECISION_PEEK, DECISION_NO_RULE, DECISION_ERROR,
	DECISION_COUNT,
};

struct worker {
	struct http_tier *tier;
	u32 index;
	struct event_base *base;
	struct worker_stats *stats;	/* observe.c */
	struct worker_private *private;	/* worker.c */
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
};

/*
 * The rights of a peer for a domain. `token` may be empty. 0 where it has none; a token that is
 * not known is no fallback to rights without one: *ret_bad_token.
 */
u32 caller_rights(const struct http_tier *tier, const struct peer_info *peer, struct bytes token,
		  struct bytes domain, bool *ret_bad_token);

/*
 * A kind of listener. `accept` owns `bev` (TLS is done already where the listener has it) and
 * serves the connection until it ends; `drain` asks all of the worker's connections of this kind
 * to end soon. One static struct per front, in listen.c's table.
 */
struct front {
	const char *name;		/* "listen", "grpc", "spoe": the key under http */
	void (*accept)(struct worker *worker, struct bufferevent *bev,
		       const struct peer_info *peer);
	void (*drain)(struct worker *worker);
};
extern const struct front front_http1, front_grpc, front_spoe;

/* snapshot.c: the rules now. Read between enter and leave (ask() does it for fronts). */
const struct ruleset *rules_enter(void);
void rules_leave(void);
/* Puts another set in force, from the main thread; the old one is freed when nobody reads it. */
void rules_publish(struct ruleset *next);

#endif
