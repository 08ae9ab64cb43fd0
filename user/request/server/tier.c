// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* tier.c - see tier.h. */
#include "request/server/tier.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "request/server/callers.h"
#include "request/server/listen.h"
#include "request/server/tls.h"
#include "request/engine/delay.h"

static u32 worker_count(const struct http_def *def)
{
	cpu_set_t set;
	int count = 1;

	if (def->workers)
		return def->workers;
	if (sched_getaffinity(0, sizeof(set), &set) == 0)
		count = CPU_COUNT(&set);
	return count > WORKERS_MAX ? WORKERS_MAX : (u32)count;
}

static void configure_engine(struct engine *engine, const struct http_def *def)
{
	u32 every = def->decision_sample ? def->decision_sample : 1;

	engine_log_decisions(engine, def->decision_log ? every : 0, def->decision_values);
}

static int open_parts(struct http_tier *tier, const struct tier_plan *plan, struct sl_err *err)
{
	const struct http_def *def = tier->def;
	const struct engine_plan engine = {
		.state_path = plan->state_path,
		.users = def->users,
		.log_bytes = def->log_bytes,
		.full_closed = def->on_full == FULL_CLOSED,
		.threads = worker_count(def),
		.max_delayed = def->max_delayed,
		.max_values = plan->max_values,
	};
	int r = callers_publish(tier, def, err);

	if (!r)
		r = tls_publish(tier, def, err);
	if (!r)
		r = engine_open(&engine, &tier->engine, err);
	if (r < 0)
		return r;
	configure_engine(tier->engine, def);
	return workers_make(tier, engine.threads, err);
}

int tier_open(const struct tier_plan *plan, struct http_tier **ret, struct sl_err *err)
{
	struct http_tier *tier = calloc(1, sizeof(*tier));
	struct http_def *def = NULL;
	int r = 0;

	if (!tier || http_def_clone(plan->def, &tier->started) < 0 ||
	    http_def_clone(plan->def, &def) < 0)
		r = sl_err_set(err, ENOMEM, "out of memory");
	if (!r) {
		tier->def = def;
		for (size_t i = 0; i < plan->frontend_count; i++)
			tier->frontend[plan->frontend[i]->kind] = plan->frontend[i];
		r = open_parts(tier, plan, err);
	}
	if (!r) {
		r = listen_open(tier, plan->fd, plan->fd_count, err);
	} else {
		for (size_t i = 0; i < plan->fd_count; i++)
			close(plan->fd[i]);
	}
	if (r < 0) {
		tier_close(tier, false);
		return r;
	}
	*ret = tier;
	return 0;
}

int tier_run(struct http_tier *tier, struct sl_err *err)
{
	return workers_run(tier, err);
}

static void drain_worker(struct worker *worker, void *arg)
{
	listen_worker_drain(worker);
}

void tier_drain(struct http_tier *tier)
{
	if (__atomic_exchange_n(&tier->draining, true, __ATOMIC_RELAXED))
		return;
	for (u32 i = 0; i < tier->worker_count; i++)
		worker_post(&tier->worker[i], drain_worker, NULL);
	delays_drain(tier->engine->delays);
}

bool tier_drained(const struct http_tier *tier)
{
	u64 waited = 0;

	for (u32 i = 0; i < tier->worker_count; i++)
		waited += __atomic_load_n(&tier->worker[i].waited, __ATOMIC_RELAXED);
	return !waited;
}

static void finish_worker(struct worker *worker, void *arg)
{
	listen_worker_finish(worker);
	__atomic_add_fetch((u32 *)arg, 1, __ATOMIC_RELEASE);
}

static bool is_finished(const struct http_tier *tier, const u32 *finishing)
{
	u64 connections = 0;

	if (__atomic_load_n(finishing, __ATOMIC_ACQUIRE) < tier->worker_count)
		return false;
	for (u32 i = 0; i < tier->worker_count; i++)
		connections += __atomic_load_n(&tier->worker[i].connections, __ATOMIC_RELAXED);
	return !connections;
}

void tier_finish(struct http_tier *tier)
{
	u32 finishing = 0;

	if (!__atomic_load_n(&tier->running, __ATOMIC_RELAXED))
		return;
	for (u32 i = 0; i < tier->worker_count; i++)
		worker_post(&tier->worker[i], finish_worker, &finishing);
	for (int ms = 0; ms < TIER_FINISH_MS && !is_finished(tier, &finishing); ms++)
		usleep(1000);
	workers_stop(tier);
}

void tier_close(struct http_tier *tier, bool kept)
{
	if (!tier)
		return;
	workers_stop(tier);
	engine_close(tier->engine);
	workers_free(tier);
	listen_close(tier->listeners, kept);
	for (size_t kind = 0; kind < LISTEN_KIND_COUNT; kind++)
		if (tier->frontend[kind] && tier->frontend[kind]->free)
			tier->frontend[kind]->free(tier->shared[kind]);
	callers_free(tier->callers);
	tls_free(tier->tls);
	http_def_free((struct http_def *)tier->def);
	http_def_free(tier->started);
	free(tier);
}

/* ------------------------------------------------------------------ changes */

static void retire(void *def)
{
	http_def_free(def);
}

int tier_configure(struct http_tier *tier, const struct http_def *def, struct sl_err *err)
{
	struct http_def *next = NULL, *old = (struct http_def *)tier->def;
	int r = http_def_clone(def, &next) < 0 ? sl_err_set(err, ENOMEM, "out of memory") : 0;

	if (!r)
		r = callers_publish(tier, next, err);
	if (!r)
		r = tls_publish(tier, next, err);
	if (r < 0) {
		http_def_free(next);
		return r;
	}
	__atomic_store_n(&tier->def, next, __ATOMIC_RELEASE);
	configure_engine(tier->engine, next);
	workers_retire(tier, old, retire);
	return 0;
}
