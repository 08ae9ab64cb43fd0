/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * engine.h - decides about requests: counter table, quota, rule set, delays, statistics, hooks.
 *
 *     request_submit() -> decide() on this machine's counters   -> an answer, observed
 *                 a limit is shared between nodes: remote.h asks the cluster store
 *                 refused, and its rule says on_limit: delay.h delays the answer
 *
 * It knows rules, counters and quota. It does not know who asks (listeners, connections, protocols)
 * nor what is done with what it observes. It may use request/rules, counters, limiter,
 * cluster/quota. It has no thread of its own: whoever embeds it lends it event loops, each of which
 * gets a struct engine_thread.
 */
#ifndef SLUICE_ENGINE_H
#define SLUICE_ENGINE_H

#include <event2/event.h>

#include "lib/err.h"
#include "lib/publish.h"
#include "request/engine/decide.h"
#include "request/rules/request.h"
#include "request/rules/rule.h"

struct decision_log;
struct delayed;				/* an answer that is held: delay.h */
struct delays;
struct worker_stats;			/* observe.h */

/* The part of one event loop; its thread's own, but for the counters. */
struct engine_thread {
	struct engine *engine;
	u32 index;
	struct event_base *base;
	struct worker_stats *stats;
	struct cluster_store *store;	/* its connections to Redis; NULL: none, or unavailable */
};

/* Called on the thread that decided, within the read section of its rules; must not block. */
struct engine_hook {
	void (*decided)(void *arg, u32 thread, const struct request *request,
			const struct response *response);
	void *arg;
};

struct engine {
	struct ledger ledger;
	struct ruleset *rules;		/* under RCU: engine_rules_enter() */
	struct delays *delays;		/* NULL: nothing is held (tests) */
	struct decision_log *log;
	u32 log_every;			/* one of so many decisions is logged; 0: none; atomic */
	bool log_plain;			/* values as they are; atomic */
	struct engine_hook hook;	/* decided NULL: none. Set before the first thread begins */
	u64 max_delayed;		/* answers that are held, and that wait for the cluster store */
	u32 max_values;			/* series of values */
	/* Of limits that nodes share (ledger.shares): */
	u64 store_deadline_ns;		/* how long a call waits for the cluster store */
	u64 pending;			/* requests that wait for it, or for a late reply; atomic */
	int (*open)(void *arg, struct event_base *base, struct cluster_store **ret);
	void (*close)(void *arg, struct cluster_store *store);
	void *open_arg;
	u32 thread_count;
	struct engine_thread *thread;
};

/* ------------------------------------------------------------------ made and taken down */

struct engine_plan {
	const char *state_path;		/* of the counter table; NULL: in memory */
	u64 users, log_bytes;		/* counters_open() */
	bool full_closed;		/* counters_on_full() */
	u32 threads;
	u64 max_delayed;
	u32 max_values;
};

int engine_open(const struct engine_plan *plan, struct engine **ret, struct sl_err *err);
/*
 * Before the first thread begins: limits of scope cluster are shared with other nodes from now on.
 * `seed` is of their keys; `quotas` stay the caller's and outlive the engine. Each thread calls
 * open() when it begins, and close() with what that made when it ends. Where open() fails, the
 * cluster store is unavailable.
 */
int engine_share(struct engine *engine, struct sl_seed seed, struct quotas *quotas, u64 deadline_ns,
		 int (*open)(void *arg, struct event_base *base, struct cluster_store **ret),
		 void (*close)(void *arg, struct cluster_store *store), void *arg,
		 struct sl_err *err);
/* One of `every` decisions goes to the decision log (0: none), its values as they are or hashed. */
void engine_log_decisions(struct engine *engine, u32 every, bool plain);
/* When all threads have ended, and before their loops are freed. The rules go, too. NULL is fine. */
void engine_close(struct engine *engine);

/* In a thread, before and after it asks; `base` is its loop until the engine is closed. */
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
 * Puts another set in force, from the main thread; the old one is freed when nobody reads it, and
 * what is held is decided anew.
 */
void engine_rules_publish(struct engine *engine, struct ruleset *next);

/* ------------------------------------------------------------------ asking */

/*
 * The callback gets the answer within a read section: what the answer points to holds until the
 * callback returns. It is called exactly once per request_submit(), in the thread of the asker, possibly
 * before request_submit() returns; not at all after request_cancel(). call and its bytes stay the caller's and
 * must live until then.
 */
typedef void (*request_done_fn)(const struct request *request, const struct response *response,
				void *arg);

/* Returns NULL when `done` has been called already, else what request_cancel() takes. */
struct delayed *request_submit(struct engine_thread *thread, const struct request *request,
		    request_done_fn done, void *arg);
/* The caller went away: its place goes to the next. */
void request_cancel(struct delayed *delayed);

#endif
