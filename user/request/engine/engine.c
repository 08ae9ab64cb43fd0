// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* engine.c - the engine as a whole, and request_submit(); see engine.h. */
#include "request/engine/measure.h"
#include "request/engine/engine.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/quota/quota.h"
#include "lib/log.h"
#include "request/engine/ban_outbox.h"
#include "request/engine/decide_private.h"
#include "request/engine/decision_log.h"
#include "request/engine/defer.h"
#include "request/engine/delay_private.h"
#include "request/engine/observe.h"
#include "request/engine/report_ids.h"
#include "request/engine/request_rules.h"

/* ------------------------------------------------------------------ made and taken down */

static int make_threads(struct engine *engine, u32 count)
{
	engine->thread = calloc(count, sizeof(*engine->thread));
	if (!engine->thread)
		return -ENOMEM;
	engine->thread_count = count;
	for (u32 i = 0; i < count; i++) {
		struct engine_thread *thread = &engine->thread[i];

		thread->engine = engine;
		thread->index = i;
		thread->stats = worker_stats_new();
		if (!thread->stats)
			return -ENOMEM;
		worker_stats_values(thread->stats, engine->max_values);
	}
	return 0;
}

static int open_counters(struct engine *engine, const struct engine_plan *plan, struct sl_err *err)
{
	int r = counters_open(plan->state_path, plan->users, plan->log_bytes,
			      &engine->ledger.counters, err);

	if (r < 0)
		return r;
	counters_on_full(engine->ledger.counters, plan->full_closed);
	if (counters_note(engine->ledger.counters)[0])
		log_warn("http: %s", counters_note(engine->ledger.counters));
	return 0;
}

int engine_open(const struct engine_plan *plan, struct engine **ret, struct sl_err *err)
{
	struct engine *engine = calloc(1, sizeof(*engine));
	int r = engine ? open_counters(engine, plan, err)
		       : sl_err_set(err, ENOMEM, "out of memory");

	if (!r) {
		engine->max_delayed = plan->max_delayed;
		engine->max_values = plan->max_values;
		engine->delays = delays_new(plan->threads, plan->max_delayed);
		engine->defers = defers_new();
		engine->log = decision_log_new(plan->threads);
		engine->ledger.request_rules = request_rules_new();
		engine->ledger.ended = report_ids_new();
		if (!engine->ledger.request_rules || !engine->ledger.ended || !engine->delays ||
		    !engine->defers || !engine->log || make_threads(engine, plan->threads) < 0)
			r = sl_err_set(err, ENOMEM, "out of memory");
	}
	if (r < 0) {
		engine_close(engine);
		return r;
	}
	*ret = engine;
	return 0;
}

/* A fifth of the time that a response may take is left for everything but Redis. */
static u64 store_deadline_ns(u64 deadline_ns)
{
	return deadline_ns - deadline_ns / 5;
}

int engine_share(struct engine *engine, struct sl_seed seed, struct quotas *quotas, u64 deadline_ns,
		 int (*open)(void *arg, struct event_base *base, struct cluster_store **ret),
		 void (*close)(void *arg, struct cluster_store *store), void *arg,
		 struct sl_err *err)
{
	engine->ledger.refusal_cache = refusal_cache_new();
	if (!engine->ledger.refusal_cache)
		return sl_err_set(err, ENOMEM, "out of memory");
	engine->ledger.bans = ban_outbox_new();
	if (!engine->ledger.bans)
		return sl_err_set(err, ENOMEM, "out of memory");
	engine->ledger.quotas = quotas;
	engine->store_deadline_ns = store_deadline_ns(deadline_ns);
	engine->open = open;
	engine->close = close;
	engine->open_arg = arg;
	quotas_publish_clock(quotas, counters_set_quotas(engine->ledger.counters, seed));
	return 0;
}

void engine_log_decisions(struct engine *engine, u32 every, bool plain)
{
	__atomic_store_n(&engine->log_plain, plain, __ATOMIC_RELAXED);
	__atomic_store_n(&engine->log_every, every, __ATOMIC_RELEASE);
}

void engine_close(struct engine *engine)
{
	if (!engine)
		return;
	delays_free(engine->delays);
	defers_free(engine->defers);
	for (u32 i = 0; i < engine->thread_count; i++)
		worker_stats_free(engine->thread[i].stats);
	free(engine->thread);
	ruleset_free(publish_swap(&engine->rules, NULL));
	decision_log_free(engine->log);
	measures_free(engine->measures);
	request_rules_free(engine->ledger.request_rules);
	report_ids_free(engine->ledger.ended);
	if (engine->ledger.quotas)
		quotas_publish_clock(engine->ledger.quotas, NULL);
	counters_close(engine->ledger.counters);
	refusal_cache_free(engine->ledger.refusal_cache);
	ban_outbox_free(engine->ledger.bans);
	free(engine);
}

void engine_thread_begin(struct engine_thread *thread)
{
	const struct engine *engine = thread->engine;
	int r;

	rcu_register_thread();
	if (!engine->open)
		return;
	r = engine->open(engine->open_arg, thread->base, &thread->store);
	if (r)
		log_error("http: cannot open the cluster store, it counts as unavailable: %s",
			  strerror(-r));
	if (!thread->index)
		defers_start(engine->defers, thread);
}

void engine_thread_end(struct engine_thread *thread)
{
	if (!thread->index)
		defers_stop(thread->engine->defers);
	/* Requests on their way end as unavailable; their clients are gone. */
	if (thread->store)
		thread->engine->close(thread->engine->open_arg, thread->store);
	thread->store = NULL;
	rcu_unregister_thread();
}

void engine_rules_publish(struct engine *engine, struct ruleset *next)
{
	struct ruleset *before = publish_swap(&engine->rules, next);

	if (before != next)
		ruleset_free(before);
	delays_recheck(engine->delays);
}

/* ------------------------------------------------------------------ requests */

/* Requests that wait for Redis are bounded together with delayed ones. */
static bool has_room(const struct engine *engine)
{
	u64 count = __atomic_load_n(&engine->pending, __ATOMIC_RELAXED);

	if (engine->delays)
		count += __atomic_load_n(&engine->delays->count, __ATOMIC_RELAXED);
	return count < engine->max_delayed;
}

struct remote *engine_decide(struct engine_thread *thread, const struct ruleset *rules,
			     const struct request *request, struct sl_now now, struct response *ret,
			     struct decide_delay *ret_wait)
{
	struct engine *engine = thread->engine;
	struct decision *d = decision_begin(&engine->ledger, request, now);

	if (engine->ledger.refusal_cache) {
		d->refusal_cache = engine->ledger.refusal_cache;
		d->store = has_room(engine) ? thread->store : NULL;
	}
	if (decide_here(d, rules, ret, ret_wait))
		return NULL;
	return remote_send(thread, rules, d, ret, ret_wait);
}

/* Releases what a request held that has ended. */
static u32 release_units(struct engine_thread *thread, const struct request *request,
			 struct sl_now now)
{
	u32 released = decide_release(&thread->engine->ledger, &request->release, now);

	observe_released(thread, request->release.count, released);
	return released;
}

/* Whether it asks for a decision, too. */
static bool has_entries(const struct request *request)
{
	for (u32 i = 0; i < request->count; i++)
		if (request->descriptor[i].count)
			return true;
	return false;
}

/* Refused as a whole: no rule is evaluated, nothing waits and nothing is charged. */
static void refuse_beyond(struct engine_thread *thread, const struct request *request,
			  request_done_fn done, void *arg)
{
	struct response response = {
		.code = RESPONSE_OVER_LIMIT,
		.beyond = request->beyond,
		.retry_after_ns = ~0ULL,
	};

	observe_beyond(thread, request);
	engine_rules_enter(thread->engine);
	done(request, &response, arg);
	engine_rules_leave(thread->engine);
}

struct delayed *request_submit(struct engine_thread *thread, const struct request *request,
			       request_done_fn done, void *arg)
{
	struct engine *engine = thread->engine;
	struct delay_position before = { .delays = engine->delays, .ticket = NEVER };
	struct decide_delay wait = { .ahead = delays_ahead, .arg = &before };
	struct delayed *delayed = NULL;
	const struct ruleset *rules;
	struct remote *remote;
	struct response response;
	struct sl_now now;
	u64 began_ns;
	u32 released = 0;

	if (request->beyond) {
		refuse_beyond(thread, request, done, arg);
		return NULL;
	}
	rules = engine_rules_enter(engine);
	now = counters_now(engine->ledger.counters);
	if (request->release.count)
		released = release_units(thread, request, now);
	if (request->release.count && !has_entries(request)) {
		response = (struct response){ .code = RESPONSE_OK, .released = released };
		done(request, &response, arg);
		engine_rules_leave(engine);
		return NULL;
	}
	began_ns = clock_mono_ns();
	/* A report is charged whatever is queued. */
	if (request->report)
		wait.ahead = NULL;
	remote = engine_decide(thread, rules, request, now, &response, &wait);
	if (remote)
		delayed = wait_remote(thread, request, done, arg, now.mono_ns, began_ns, remote,
				      &response);
	else if (response.code == RESPONSE_OVER_LIMIT && wait.key)
		delayed = wait_hold(thread, request, done, arg, now.mono_ns, began_ns, &wait,
				    &response);
	if (!delayed && !remote)
		delayed = wait_defer(thread, request, done, arg, now.mono_ns, began_ns, &wait,
				     &response);
	if (!delayed) {
		response.released = released;
		observe(thread, request, &response, clock_mono_ns() - began_ns);
		done(request, &response, arg);
	}
	engine_rules_leave(engine);
	return delayed;
}
