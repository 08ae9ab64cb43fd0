// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* defer.c - see defer.h. */
#include "request/engine/defer.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/quota/quota.h"
#include "lib/log.h"
#include "request/engine/decide_private.h"
#include "request/engine/delay_private.h"

#define MS 1000000ULL
#define TICK_NS (10 * MS)
#define SCAN_NS (250 * MS)    /* between two looks for rules with defer */
#define IDLE_NS SL_NS_PER_SEC /* between polls of a queue where nothing waits */
#define SWEEP_NS (100 * MS)   /* ... where a worker may acknowledge something */
#define AOF_NS (5 * SL_NS_PER_SEC)
#define LEAST_NS (MS / 2) /* of its deadline must be left for a request to be deferred */

/* The queue of one rule, as the polling thread has it. */
struct defer_slot {
	struct defer_call call; /* first */
	u64 rule_id;		/* 0: free; read by other threads */
	bool polling, listed, warned;
	u64 due_ns, aof_ns; /* due_ns is set by other threads, too */
	u64 answered_ns;    /* 0: never */
	u64 number[DEFER_NUMBER_COUNT], failed;
	struct defer_queue queue;
	char *name;
};

struct defers {
	struct engine_thread *thread; /* NULL: not started */
	struct event *tick;
	u64 scan_ns;
	bool full;
	struct defer_slot slot[DEFER_RULES_MAX];
};

static struct defer_queue queue_of(const struct rule *rule, const char *name)
{
	return (struct defer_queue){
		.name = name,
		.max = rule->defer.max,
		.ttl_us = rule->defer.ttl_ns / 1000,
		.deliveries = rule->defer.deliveries,
		.retry_us = rule->defer.retry_ns / 1000,
	};
}

static char *name_of_rule(const struct rule *rule)
{
	char *name = NULL;

	return asprintf(&name, "%s/%s", rule->domain, rule->path) < 0 ? NULL : name;
}

static struct defer_slot *slot_of(struct defers *defers, u64 rule_id)
{
	for (u32 i = 0; i < DEFER_RULES_MAX; i++)
		if (__atomic_load_n(&defers->slot[i].rule_id, __ATOMIC_ACQUIRE) == rule_id)
			return &defers->slot[i];
	return NULL;
}

/* ------------------------------------------------------------------ polls */

static void note_aof(struct defer_slot *slot, u64 aof)
{
	u64 before = slot->number[DEFER_AOF];

	if (aof == ~0ULL)
		return;
	if (!aof && before != aof)
		log_warn(
			"http: requests that %s defers are lost when Redis stops: it has no append-only file; "
			"set appendonly yes there",
			slot->name);
	__atomic_store_n(&slot->number[DEFER_AOF], aof, __ATOMIC_RELAXED);
}

static void on_polled(struct defer_call *call)
{
	struct defer_slot *slot = (struct defer_slot *)call;
	const struct defers *defers = call->arg;
	u64 now_ns = clock_mono_ns(), next_ns = IDLE_NS, gap_ns;

	if (call->status != DEFER_OK) {
		__atomic_store_n(&slot->due_ns, now_ns + SWEEP_NS, __ATOMIC_RELAXED);
		return;
	}
	for (u32 i = 0; i < DEFER_NUMBER_COUNT; i++)
		if (i != DEFER_AOF)
			__atomic_store_n(&slot->number[i], call->number[i], __ATOMIC_RELAXED);
	note_aof(slot, call->number[DEFER_AOF]);
	__atomic_store_n(&slot->answered_ns, now_ns, __ATOMIC_RELEASE);
	if (call->number[DEFER_NOW_RELEASED])
		next_ns = SWEEP_NS;
	if (call->number[DEFER_NEXT_US] < next_ns / 1000)
		next_ns = call->number[DEFER_NEXT_US] * 1000;
	/* All nodes together poll as often as one alone would. */
	gap_ns = TICK_NS * 1000 / quota_even_permille(defers->thread->engine->ledger.quotas);
	if (next_ns < gap_ns && call->number[DEFER_NEXT_US])
		next_ns = gap_ns;
	__atomic_store_n(&slot->due_ns, now_ns + next_ns, __ATOMIC_RELAXED);
}

static void on_poll_ended(struct defer_call *call)
{
	((struct defer_slot *)call)->polling = false;
}

static void poll_slot(struct defers *defers, struct defer_slot *slot, u64 now_ns)
{
	bool aof = now_ns >= slot->aof_ns;

	slot->call =
		(struct defer_call){ .done = on_polled, .ended = on_poll_ended, .arg = defers };
	__atomic_store_n(&slot->due_ns, now_ns + IDLE_NS, __ATOMIC_RELAXED);
	if (defer_store_poll(defers->thread->store, &slot->queue, aof, &slot->call) < 0)
		return;
	slot->polling = true;
	if (aof)
		slot->aof_ns = now_ns + AOF_NS;
}

/* ------------------------------------------------------------------ which rules defer */

static void warn_of(struct defers *defers, struct defer_slot *slot)
{
	if (slot->warned || (defers->thread->store && defer_store_can(defers->thread->store)))
		return;
	slot->warned = true;
	log_warn(
		"http: %s refuses requests that it should defer: that needs cluster.redis with mode: single or "
		"sentinel",
		slot->name);
}

static void list_rule(struct defers *defers, const struct rule *rule)
{
	struct defer_slot *slot = slot_of(defers, rule->id);
	bool added = !slot;

	if (!slot)
		slot = slot_of(defers, 0);
	if (!slot) {
		if (!defers->full)
			log_warn("http: more than %d rules defer requests: %s/%s refuses them",
				 DEFER_RULES_MAX, rule->domain, rule->path);
		defers->full = true;
		return;
	}
	if (added && !(slot->name = name_of_rule(rule)))
		return;
	slot->queue = queue_of(rule, slot->name);
	slot->listed = true;
	if (added) {
		slot->number[DEFER_AOF] = ~0ULL;
		__atomic_store_n(&slot->rule_id, rule->id, __ATOMIC_RELEASE);
	}
	warn_of(defers, slot);
}

static void scan(struct defers *defers)
{
	struct engine *engine = defers->thread->engine;
	const struct ruleset *rules = engine_rules_enter(engine);

	for (u32 i = 0; i < DEFER_RULES_MAX; i++)
		defers->slot[i].listed = false;
	for (u32 i = 0; rules && i < rules->rule_count; i++)
		if (rules->rule[i]->defer.max)
			list_rule(defers, rules->rule[i]);
	engine_rules_leave(engine);
	for (u32 i = 0; i < DEFER_RULES_MAX; i++) {
		struct defer_slot *slot = &defers->slot[i];

		if (!slot->rule_id || slot->listed || slot->polling)
			continue;
		__atomic_store_n(&slot->rule_id, 0, __ATOMIC_RELEASE);
		free(slot->name);
		*slot = (struct defer_slot){ .rule_id = 0 };
	}
}

static void on_tick(evutil_socket_t fd, short what, void *arg)
{
	struct defers *defers = arg;
	u64 now_ns = clock_mono_ns();

	if (now_ns >= defers->scan_ns) {
		scan(defers);
		defers->scan_ns = now_ns + SCAN_NS;
	}
	for (u32 i = 0; i < DEFER_RULES_MAX; i++) {
		struct defer_slot *slot = &defers->slot[i];

		if (slot->rule_id && slot->listed && !slot->polling && defers->thread->store &&
		    now_ns >= __atomic_load_n(&slot->due_ns, __ATOMIC_RELAXED))
			poll_slot(defers, slot, now_ns);
	}
}

struct defers *defers_new(void)
{
	return calloc(1, sizeof(struct defers));
}

void defers_start(struct defers *defers, struct engine_thread *thread)
{
	static const struct timeval tick = { .tv_usec = TICK_NS / 1000 };

	defers->thread = thread;
	defers->tick = event_new(thread->base, -1, EV_PERSIST, on_tick, defers);
	if (!defers->tick || event_add(defers->tick, &tick) < 0)
		log_error("http: no memory for deferred requests: this node does not release any");
}

void defers_stop(struct defers *defers)
{
	if (defers->tick)
		event_free(defers->tick);
	defers->tick = NULL;
}

void defers_free(struct defers *defers)
{
	for (u32 i = 0; defers && i < DEFER_RULES_MAX; i++)
		free(defers->slot[i].name);
	free(defers);
}

bool defers_show(struct defers *defers, u64 rule_id, struct defer_shown *ret)
{
	struct defer_slot *slot = slot_of(defers, rule_id);
	u64 at_ns = slot ? __atomic_load_n(&slot->answered_ns, __ATOMIC_ACQUIRE) : 0;

	if (!at_ns)
		return false;
	for (u32 i = 0; i < DEFER_NUMBER_COUNT; i++)
		ret->number[i] = __atomic_load_n(&slot->number[i], __ATOMIC_RELAXED);
	ret->failed = __atomic_load_n(&slot->failed, __ATOMIC_RELAXED);
	ret->age_ns = clock_mono_ns() - at_ns;
	return true;
}

/* ------------------------------------------------------------------ a request */

struct deferring {
	struct defer_call call; /* first */
	struct engine_thread *thread;
	struct delayed *delayed; /* NULL: the client has gone, or has its response */
	bool kept;		 /* the client has its ticket */
	u64 rule_id, retry_after_ns;
	struct defer_queue queue;
	char *name;
};

static void deferring_free(struct defer_call *call)
{
	struct deferring *deferring = (struct deferring *)call;

	__atomic_sub_fetch(&deferring->thread->engine->pending, 1, __ATOMIC_RELAXED);
	free(deferring->name);
	free(deferring);
}

static void ignore(struct defer_call *call)
{
}

/*
 * The response as it is now; the rules that it was made by may be gone. The request was refused,
 * whatever fits by now.
 */
static void respond(struct deferring *deferring)
{
	struct delayed *delayed = deferring->delayed;
	struct engine *engine = deferring->thread->engine;
	const struct ruleset *rules = engine_rules_enter(engine);
	struct request peek = *delayed->request;
	struct response response;

	peek.peek = true;
	decide_here(decision_begin(&engine->ledger, &peek, counters_now(engine->ledger.counters)),
		    rules, &response, NULL);
	if (response.code != RESPONSE_OVER_LIMIT ||
	    response.retry_after_ns < deferring->retry_after_ns)
		response.retry_after_ns = deferring->retry_after_ns;
	response.code = RESPONSE_OVER_LIMIT;
	if (deferring->call.status == DEFER_WAITING) {
		strcpy(response.ticket, deferring->call.ticket);
		response.position = deferring->call.number[0];
	}
	delay_respond(delayed, &response);
	engine_rules_leave(engine);
	free(delayed);
}

static void note_failed(struct defers *defers, u64 rule_id)
{
	struct defer_slot *slot = slot_of(defers, rule_id);

	if (slot)
		__atomic_add_fetch(&slot->failed, 1, __ATOMIC_RELAXED);
}

static void on_added(struct defer_call *call)
{
	struct deferring *deferring = (struct deferring *)call;
	struct defers *defers = deferring->thread->engine->defers;
	struct defer_slot *slot = slot_of(defers, deferring->rule_id);

	if (call->status == DEFER_WAITING && slot)
		__atomic_store_n(&slot->due_ns, 0, __ATOMIC_RELAXED);
	if (call->status == DEFER_FAILED)
		note_failed(defers, deferring->rule_id);
	if (!deferring->delayed)
		return;
	deferring->kept = call->status == DEFER_WAITING;
	respond(deferring);
	deferring->delayed = NULL;
}

/*
 * Cancels what nobody has the ticket of: its client went away, the reply came after the deadline,
 * or was an error (too few replicas have it).
 */
static void on_add_ended(struct defer_call *call)
{
	struct deferring *deferring = (struct deferring *)call;

	call->done = ignore;
	call->ended = deferring_free;
	if (deferring->kept || call->status == DEFER_FULL ||
	    defer_store_cancel(deferring->thread->store, &deferring->queue, 0, call) < 0)
		deferring_free(call);
}

/* The buckets of the decision, that of the queue first. */
static u32 list_buckets(const struct decision *d, u32 first, struct cluster_store_bucket *ret)
{
	u32 count = 0;

	for (u32 i = 0; i < d->part_count; i++)
		for (u32 k = 0; !d->part[i].shadow && k < d->part[i].count; k++) {
			const struct bucket *b = &d->bucket[d->part[i].bucket[k]];
			bool is_first = d->part[i].bucket[k] == first, seen = false;
			struct cluster_store_bucket one = {
				.key = d->ref[b->ref].key,
				.tag = b->tag,
				.def = d->ref[b->ref].def,
				.kind = CLUSTER_STORE_CHARGE,
				.cost = b->cost,
				.hold = b->view.hold,
			};

			for (u32 n = 0; n < count; n++)
				seen |= ret[n].key == one.key && ret[n].tag == one.tag;
			if (seen)
				continue;
			if (count == CLUSTER_STORE_BUCKETS_MAX)
				return 0;
			ret[count++] = one;
			if (is_first) {
				ret[count - 1] = ret[0];
				ret[0] = one;
			}
		}
	return count;
}

bool defer_begin(struct delayed *delayed, const struct decide_delay *wait,
		 const struct response *response)
{
	static _Thread_local struct cluster_store_bucket bucket[CLUSTER_STORE_BUCKETS_MAX];
	struct cluster_store_request request = { .bucket = bucket };
	struct engine_thread *thread = delayed->thread;
	struct engine *engine = thread->engine;
	u64 took_ns = clock_mono_ns() - delayed->began_ns;
	struct deferring *deferring;

	if (!wait->defer)
		return false;
	deferring = thread->store && took_ns + LEAST_NS <= engine->store_deadline_ns &&
				    __atomic_load_n(&engine->pending, __ATOMIC_RELAXED) <
					    engine->max_delayed
			    ? calloc(1, sizeof(*deferring))
			    : NULL;
	if (!deferring || !(deferring->name = name_of_rule(wait->defer))) {
		note_failed(engine->defers, wait->defer->id);
		free(deferring);
		return false;
	}
	deferring->call = (struct defer_call){ .done = on_added, .ended = on_add_ended };
	deferring->thread = thread;
	deferring->delayed = delayed;
	deferring->rule_id = wait->defer->id;
	deferring->retry_after_ns = response->retry_after_ns;
	deferring->queue = queue_of(wait->defer, deferring->name);
	request.count = list_buckets(wait->decision, wait->defer_bucket, bucket);
	__atomic_add_fetch(&engine->pending, 1, __ATOMIC_RELAXED);
	if (!request.count ||
	    defer_store_add(thread->store, &deferring->queue, deferring->rule_id, &request,
			    delayed->request->reference.at, delayed->request->reference.len,
			    engine->store_deadline_ns - took_ns, &deferring->call) < 0) {
		note_failed(engine->defers, wait->defer->id);
		deferring_free(&deferring->call);
		return false;
	}
	delayed->deferring = deferring;
	return true;
}

void defer_abandon(struct deferring *deferring)
{
	deferring->delayed = NULL;
}

/* ------------------------------------------------------------------ tickets */

struct defer_lookup {
	struct defer_call call;					       /* first */
	void (*done)(void *arg, enum defer_status status, u64 number); /* NULL: abandoned */
	void *arg;
	struct defer_queue queue;
	char *name;
};

static void on_looked(struct defer_call *call)
{
	struct defer_lookup *lookup = (struct defer_lookup *)call;

	if (lookup->done)
		lookup->done(lookup->arg, call->status, call->number[0]);
	lookup->done = NULL;
}

static void lookup_free(struct defer_call *call)
{
	struct defer_lookup *lookup = (struct defer_lookup *)call;

	free(lookup->name);
	free(lookup);
}

static const struct rule *find_rule(const struct ruleset *rules, u64 rule_id)
{
	for (u32 i = 0; rules && i < rules->rule_count; i++)
		if (rules->rule[i]->id == rule_id && rules->rule[i]->defer.max)
			return rules->rule[i];
	return NULL;
}

bool defer_domain(struct engine *engine, struct bytes ticket, char *buf, size_t size)
{
	const struct rule *rule;
	u64 rule_id;

	if (!defer_ticket_rule(ticket.at, ticket.len, &rule_id))
		return false;
	rule = find_rule(engine_rules_enter(engine), rule_id);
	if (rule)
		snprintf(buf, size, "%s", rule->domain);
	engine_rules_leave(engine);
	return rule;
}

static int find_queue(struct engine *engine, u64 rule_id, struct defer_lookup *lookup)
{
	const struct rule *rule = find_rule(engine_rules_enter(engine), rule_id);

	lookup->name = rule ? name_of_rule(rule) : NULL;
	if (lookup->name)
		lookup->queue = queue_of(rule, lookup->name);
	engine_rules_leave(engine);
	return !rule ? -ENOENT : lookup->name ? 0 : -ENOMEM;
}

int defer_look(struct engine_thread *thread, struct bytes ticket, bool cancel,
	       void (*done)(void *arg, enum defer_status status, u64 number), void *arg,
	       struct defer_lookup **ret)
{
	u64 rule_id, deadline_ns = thread->engine->store_deadline_ns;
	struct defer_lookup *lookup;
	int r;

	if (!defer_ticket_rule(ticket.at, ticket.len, &rule_id))
		return -ENOENT;
	lookup = calloc(1, sizeof(*lookup));
	r = lookup ? find_queue(thread->engine, rule_id, lookup) : -ENOMEM;
	if (!r) {
		lookup->call = (struct defer_call){ .done = on_looked, .ended = lookup_free };
		lookup->done = done;
		lookup->arg = arg;
		memcpy(lookup->call.ticket, ticket.at, ticket.len);
		r = (cancel ? defer_store_cancel : defer_store_look)(thread->store, &lookup->queue,
								     deadline_ns, &lookup->call);
	}
	if (r < 0) {
		if (lookup)
			lookup_free(&lookup->call);
		return r;
	}
	*ret = lookup;
	return 0;
}

void defer_lookup_abandon(struct defer_lookup *lookup)
{
	lookup->done = NULL;
}
