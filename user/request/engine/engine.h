/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * engine.h - decides about requests: counter table, quota, rule set, delays, statistics, hooks.
 *
 *     request_submit() -> decide() on this machine's counters   -> a response, observed
 *                 a cluster limit without quota: remote.h sends a command to Redis
 *                 refused, and the rule has on_limit: delay.h delays the response
 *
 * It uses request/rules, counters, limiter and cluster/quota. It does not depend on listeners,
 * connections and protocols, nor on what is done with what it observes. It has no thread of its
 * own: the server provides event loops, each of which gets a struct engine_thread.
 */
#ifndef SLUICE_ENGINE_H
#define SLUICE_ENGINE_H

#include <event2/event.h>

#include "lib/err.h"
#include "lib/publish.h"
#include "request/engine/decide.h"
#include "request/engine/undecided.h"
#include "request/rules/request.h"
#include "request/rules/rule.h"

struct decision_log;
struct delayed; /* a delayed response: delay.h */
struct delays;
struct defers;	     /* defer.h */
struct worker_stats; /* observe.h */

/* The part of one event loop; only its counters are read by other threads. */
struct engine_thread {
	struct engine *engine;
	u32 index;
	struct event_base *base;
	struct worker_stats *stats;
	struct cluster_store *store; /* its connections to Redis; NULL: none, or unavailable */
};

/* Called on the thread that decided, within the read section of its rules; must not block. */
struct engine_hook {
	void (*decided)(void *arg, u32 thread, const struct request *request,
			const struct response *response);
	void *arg;
};

struct engine {
	struct ledger ledger;
	struct ruleset *rules; /* under RCU: engine_rules_enter() */
	struct delays *delays; /* NULL: nothing is delayed (tests) */
	struct defers *defers;
	struct decision_log *log;
	u32 log_every;	/* one of this many decisions is logged; 0: none; atomic */
	bool log_plain; /* values as they are; atomic */
	struct undecided undecided;
	struct engine_hook hook;   /* decided NULL: none. Set before the first thread begins */
	struct measures *measures; /* of what is reported; under RCU: measure.h */
	u64 max_delayed;	   /* requests that are delayed or wait for Redis */
	u32 max_values;		   /* series of values */
	/* Of cluster limits (ledger.quotas): */
	u64 store_deadline_ns; /* how long a request waits for Redis */
	u64 pending;	       /* requests that wait for it, or for a late reply; atomic */
	int (*open)(void *arg, struct event_base *base, struct cluster_store **ret);
	void (*close)(void *arg, struct cluster_store *store);
	void *open_arg;
	u32 thread_count;
	struct engine_thread *thread;
};

/* ------------------------------------------------------------------ open and close */

struct engine_plan {
	const char *state_path; /* of the counter table; NULL: in memory */
	u64 users, log_bytes;	/* counters_open() */
	bool full_closed;	/* counters_on_full() */
	u32 threads;
	u64 max_delayed;
	u32 max_values;
};

int engine_open(const struct engine_plan *plan, struct engine **ret, struct sl_err *err);
/*
 * Before the first thread begins: limits of scope cluster count for all nodes from now on. `seed`
 * is of their keys; `quotas` stay the caller's and outlive the engine. Each thread calls open()
 * when it begins, and close() with the result when it ends. If open() fails, Redis is unavailable
 * to it.
 */
int engine_share(struct engine *engine, struct sl_seed seed, struct quotas *quotas, u64 deadline_ns,
		 int (*open)(void *arg, struct event_base *base, struct cluster_store **ret),
		 void (*close)(void *arg, struct cluster_store *store), void *arg,
		 struct sl_err *err);
/* One of `every` decisions goes to the decision log (0: none), with values as they are or
 * hashed. */
void engine_log_decisions(struct engine *engine, u32 every, bool plain);
/* After all threads have ended, and before their loops are freed. Frees the rules. NULL is fine. */
void engine_close(struct engine *engine);

/* In a thread, before its first and after its last request; `base` stays until engine_close(). */
void engine_thread_begin(struct engine_thread *thread);
void engine_thread_end(struct engine_thread *thread);

/* ------------------------------------------------------------------ the rules in force */

/*
 * Readers never wait: one pointer under RCU (liburcu, its default flavor: readers cost two stores
 * where the kernel has membarrier). request_submit() does it for frontends.
 */
static inline const struct ruleset *engine_rules_enter(struct engine *engine)
{
	publish_read_lock();
	return publish_get(&engine->rules);
}

static inline void engine_rules_leave(struct engine *engine)
{
	publish_read_unlock(&engine->rules);
}

/*
 * Puts another rule set in force, from the main thread. The old one is freed after its last reader;
 * delayed requests are decided again. Also the same set: then returns after the last reader of what
 * was replaced in it.
 */
void engine_rules_publish(struct engine *engine, struct ruleset *next);

/* ------------------------------------------------------------------ requests */

/*
 * The callback gets the response in a read section: what it points to is valid until the callback
 * returns. It is called once for each request_submit(), in the same thread, possibly before that
 * returns; not after request_cancel(). The request and its bytes stay the caller's, until then.
 */
typedef void (*request_done_fn)(const struct request *request, const struct response *response,
				void *arg);

/* Returns NULL when `done` has been called already, else what request_cancel() takes. */
struct delayed *request_submit(struct engine_thread *thread, const struct request *request,
			       request_done_fn done, void *arg);
/* The client disconnected: the request leaves its queue. */
void request_cancel(struct delayed *delayed);

#endif
