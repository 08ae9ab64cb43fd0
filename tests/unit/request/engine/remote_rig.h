/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * remote_rig.h - requests that need the cluster store, with time as a variable: a node is a counter
 * table, its quota and a worker without a thread. Include first: remote.c is compiled into the
 * test, on its clock.
 */
#ifndef SLUICE_TESTS_REMOTE_RIG_H
#define SLUICE_TESTS_REMOTE_RIG_H
#include "lib/test.h"

/* Rules of the test: without another thread they need no RCU. */
#define SLUICE_LIB_PUBLISH_H
static int rig_in_rules;
static struct ruleset *rig_rules;
#define publish_read_lock() ((void)rig_in_rules++)
#define publish_read_unlock(pointer) ((void)rig_in_rules--)
#define publish_get(pointer) ((void)(pointer), rig_rules)
#define publish_swap(pointer, next) (*(pointer))
static inline void rcu_register_thread(void)
{
}
static inline void rcu_unregister_thread(void)
{
}

#include "request/engine/decide_private.h"

static struct sl_now rig_time;
static struct sl_now rig_store_now(struct counters *counters)
{
	return rig_time;
}

#define counters_now rig_store_now
#include "cluster/quota/quota_charge.c"
#include "request/engine/remote.c"
#include "request/engine/engine.c"
#undef counters_now

#define cluster_request rig_send /* engine.h has another */
#include "lib/decide_rig.h"
#undef cluster_request

struct rig_node {
	struct engine engine;
	struct ledger *ledger; /* the engine's */
	struct engine_thread thread;
};

static const struct sl_seed rig_seed = { 1, 2 };

static void rig_node_open(struct rig_node *node, struct cluster_store *way)
{
	struct sl_err err = { 0 };

	*node = (struct rig_node){ .engine = { .max_delayed = 100 } };
	node->ledger = &node->engine.ledger;
	if (counters_open(NULL, 10000, 1 << 20, &node->ledger->counters, &err))
		fail_msg("%s", err.message);
	assert_int_equal(quotas_new(4096, &node->ledger->quotas), 0);
	if (engine_share(&node->engine, rig_seed, node->ledger->quotas, 5 * MS, NULL, NULL, NULL,
			 &err))
		fail_msg("%s", err.message);
	node->engine.store_deadline_ns = 5 * MS;
	node->thread = (struct engine_thread){ .engine = &node->engine, .store = way };
}

static void rig_node_close(struct rig_node *node)
{
	counters_close(node->ledger->counters);
	refusal_cache_free(node->ledger->refusal_cache);
	ban_outbox_free(node->ledger->bans);
	quotas_free(node->ledger->quotas);
}

static void rig_time_start(void)
{
	rig_time = (struct sl_now){ .mono_ns = 1000 * SEC, .utc_ns = RIG_UTC + SEC };
}

/* A client. */
struct rig_caller {
	struct request_descriptor descriptor[REQUEST_DESCRIPTORS_MAX];
	struct request request;
	struct remote *remote;
	struct response response;
	struct decide_delay wait;
	bool answered;
};

static void rig_answered(void *arg, struct response *response, const struct decide_delay *wait)
{
	struct rig_caller *who = arg;

	assert_int_equal(rig_in_rules, 1);
	assert_false(who->answered);
	who->answered = true;
	who->remote = NULL;
	who->response = *response;
	who->wait = *wait;
}

/* Sends it; what is in `who->call` already is sent. */
static void rig_go(struct rig_node *node, struct rig_caller *who)
{
	who->answered = false;
	who->wait = (struct decide_delay){ .ahead = NULL };
	who->remote = engine_decide(&node->thread, engine_rules_enter(&node->engine), &who->request,
				    rig_time, &who->response, &who->wait);
	engine_rules_leave(&node->engine);
	who->answered = !who->remote;
	if (who->remote)
		remote_on(who->remote, rig_answered, who);
}

/* ---------------------------------------------------------------- the cluster's thread */

#define RIG_DUES 64

struct rig_flush {
	struct cluster_store_request request;
	struct quota_due due;
	struct rig_node *node;
};

static u32 rig_flushing; /* flushes without an outcome that ends them */
/* Called with the first outcome of a flush; or NULL. */
static void (*rig_flush_noted)(struct rig_node *node, enum cluster_store_outcome outcome);

static void rig_flush_late(struct cluster_store_request *request,
			   enum cluster_store_outcome outcome)
{
	struct rig_flush *f = request->arg;

	quota_flushed(f->node->ledger->counters, f->node->ledger->quotas, &f->due, request, outcome,
		      rig_time);
	if (outcome == CLUSTER_STORE_LATE)
		return;
	rig_flushing--;
	free(f);
}

static void rig_flush_done(struct cluster_store_request *request,
			   enum cluster_store_outcome outcome)
{
	if (rig_flush_noted)
		rig_flush_noted(((struct rig_flush *)request->arg)->node, outcome);
	rig_flush_late(request, outcome);
}

/* Sends all flushes that are due. */
static __attribute__((unused)) void rig_flush(struct rig_node *node, u64 deadline_ns)
{
	struct cluster_store *store = node->thread.store;
	struct quota_due due[RIG_DUES];
	u32 count;

	do {
		count = quotas_due(node->ledger->quotas, due, RIG_DUES, rig_time);
		for (u32 i = 0; i < count; i++) {
			struct rig_flush *f = calloc(1, sizeof(*f));

			assert_non_null(f);
			*f = (struct rig_flush){ .due = due[i], .node = node };
			f->due.ref.def = &f->due.def;
			f->request = (struct cluster_store_request){ .bucket = &f->due.bucket,
								     .count = 1,
								     .deadline_ns = deadline_ns,
								     .done = rig_flush_done,
								     .late = rig_flush_late,
								     .arg = f };
			rig_flushing++;
			if (store->ops->send(store, &f->request) < 0)
				rig_flush_late(&f->request, CLUSTER_STORE_DOWN);
		}
	} while (count == RIG_DUES);
}

static __attribute__((unused)) void rig_send_hits(struct rig_node *node, struct rig_caller *who,
						  const char *text, u64 hits)
{
	who->request = rig_request(who->descriptor, text);
	for (u32 i = 0; i < who->request.count; i++)
		who->descriptor[i].hits = hits;
	rig_go(node, who);
}

#endif
