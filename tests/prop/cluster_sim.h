/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * cluster_sim.h - many nodes and one cluster store in one process, in virtual time: the daemon's
 * quota (user/cluster/quota) and the store's model (cluster_store_memory.c); this is only the code
 * between them, the part of user/request that has a bucket state for each bucket and sends
 * commands.
 *
 * Every passed request is logged with the store's time, and judged afterwards by that log alone.
 */
#ifndef SLUICE_TESTS_CLUSTER_SIM_H
#define SLUICE_TESTS_CLUSTER_SIM_H

#include <math.h>

#include "lib/test.h"
#include "cluster/quota/quota.h"
#include "lib/cluster_store_memory.h"
#include "lib/rng.h"

#define MS 1000ULL /* virtual time is in microseconds */
#define SEC (1000 * MS)
#define SIM_START (1790000000ULL * SEC)
#define SIM_POLL (5 * MS) /* how often a node looks for due flushes */
#define SIM_DELAY 700ULL  /* until the store has replied */
#define SIM_DEADLINE (5 * MS)
#define SIM_DUES 64

struct sim_node {
	struct quotas *quotas;
	struct cluster_store *store;
	u64 mono_base;
	s64 utc_error;				  /* of its own clock */
	u64 *bucket_state, *own_state, *probe_us; /* of each key */
	u64 cut_until, polled_us;
	bool gone;
};

struct sim_pass {
	u64 at_us;
	u32 node, key;
};

struct sim {
	/* In. */
	const char *name;
	u32 nodes, keys;
	double rate, skew; /* requests a second, Zipf's exponent */
	u64 length_us;
	struct spec_def def;
	enum consistency consistency;
	u64 every_us;
	enum store_failure contract;
	bool partitions, clock_steps, churn, loses;
	bool even;     /* each node gets as many requests as any other */
	bool unlogged; /* passed requests are not logged */
	/* The rest is the simulation's. */
	u64 now_us, next_event, lost_at_us;
	struct spec spec;
	struct cluster_store_memory *memory;
	struct sim_node *node;
	u32 node_count, node_room, alive;
	double *zipf;
	struct sim_pass *pass;
	u64 pass_count, pass_room;
	u32 *demand;		      /* of key x window, as aligned */
	u64 *asked, *decided;	      /* of a key: commands, and decisions */
	u64 warm_asked, warm_decided; /* those of the first half of the time, all keys */
	u64 unpublished;	      /* units that nodes held when they were cut off or vanished */
	u32 windows;
};

/* ------------------------------------------------------------------ nodes */

static inline struct sl_now sim_now(const struct sim *sim, const struct sim_node *node)
{
	return (struct sl_now){
		.mono_ns = (node->mono_base + sim->now_us - SIM_START) * 1000,
		.utc_ns = (sim->now_us + node->utc_error) * 1000,
	};
}

static inline void *sim_alloc(size_t count, size_t size)
{
	void *memory = calloc(count, size);

	assert_non_null(memory);
	return memory;
}

static inline void sim_join(struct sim *sim)
{
	struct sim_node *node = &sim->node[sim->node_count];
	char name[32];

	assert_true(sim->node_count < sim->node_room);
	snprintf(name, sizeof(name), "node%u", sim->node_count++);
	assert_int_equal(quotas_new(sim->keys, &node->quotas), 0);
	assert_int_equal(cluster_store_memory_node(sim->memory, name, &node->store), 0);
	/* Nodes flush a key at different times. */
	node->mono_base = (1 + rng_below(100000)) * SEC + rng_below(SEC);
	node->utc_error = sim->clock_steps ? (s64)rng_below(4 * SEC) - (s64)(2 * SEC) : 0;
	node->bucket_state = sim_alloc(sim->keys, sizeof(u64));
	node->own_state = sim_alloc(sim->keys, sizeof(u64));
	node->probe_us = sim_alloc(sim->keys, sizeof(u64));
	sim->alive++;
	for (u32 i = 0; i < sim->node_count; i++)
		if (!sim->node[i].gone)
			quotas_set_nodes(sim->node[i].quotas, sim->alive);
}

/* Units that it may let through without the store's knowledge: leases, spent or not. */
static inline u64 sim_held(const struct sim_node *node)
{
	struct quotas_stats stats;

	quotas_stats(node->quotas, &stats);
	return stats.unflushed + stats.credit;
}

/* Without a message to anybody. */
static inline void sim_vanish(struct sim *sim, struct sim_node *node)
{
	sim->unpublished += sim_held(node);
	node->gone = true;
	cluster_store_memory_cut(node->store, true);
	sim->alive--;
	for (u32 i = 0; i < sim->node_count; i++)
		if (!sim->node[i].gone)
			quotas_set_nodes(sim->node[i].quotas, sim->alive);
}

/* Logged, and charged to the units that this node alone has let through. */
static inline void sim_passed(struct sim *sim, const struct sim_node *node, u32 key, u64 at_us)
{
	struct spec_view view;

	spec_view_init(&view, &sim->spec, 0, 0);
	node->own_state[key] = spec_force(&view, node->own_state[key],
					  quotas_now(node->quotas, sim_now(sim, node)), 1);
	if (sim->unlogged)
		return;
	if (sim->pass_count == sim->pass_room) {
		sim->pass_room = sim->pass_room ? 2 * sim->pass_room : 65536;
		sim->pass = realloc(sim->pass, sim->pass_room * sizeof(*sim->pass));
		assert_non_null(sim->pass);
	}
	sim->pass[sim->pass_count++] = (struct sim_pass){ at_us, node - sim->node, key };
}

/* ------------------------------------------------------------------ asks */

struct sim_ask {
	struct cluster_store_request request;
	struct cluster_store_bucket bucket;
	struct quota_due due;
	bool is_due;
	struct sim *sim;
	struct sim_node *node;
	u32 key;
};

static inline struct quota_ref sim_ref(const struct sim *sim, u32 key)
{
	u64 hash = (key + 1) * 0x9e3779b97f4a7c15ULL;

	return (struct quota_ref){ hash, hash, &sim->def, sim->consistency, sim->every_us * 1000,
				   1,	 false };
}

static inline u32 sim_key(u64 hash)
{
	/* The multiplier's inverse modulo 2^64. */
	return hash * 0xf1de83e19937733dULL - 1;
}

static inline void sim_adopt(struct sim *sim, struct sim_node *node, u32 key,
			     const struct cluster_store_bucket *bucket, u64 unflushed)
{
	node->bucket_state[key] =
		cluster_store_bucket_state(&sim->spec, &bucket->state, unflushed,
					   quotas_now(node->quotas, sim_now(sim, node)));
}

/* The store is unavailable: on_store_failure of the rule. */
static inline void sim_contract(struct sim *sim, struct sim_node *node, u32 key)
{
	struct sl_now now = quotas_now(node->quotas, sim_now(sim, node));
	struct quota_ref ref = sim_ref(sim, key);
	struct spec_def def = sim->def;
	struct spec_view view;
	struct sl_result res;
	struct spec spec;

	if (sim->contract != STORE_FAILS_LOCAL)
		return;
	def.soft_permille = quota_permille(node->quotas, ref.key, now);
	assert_int_equal(spec_make_def(&def, &spec, NULL), 0);
	spec_view_init(&view, &spec, 0, 0);
	res = spec_charge(&view, node->own_state[key], now, 1);
	if (res.verdict != SL_PASS)
		return;
	sim_passed(sim, node, key, sim->now_us);
	quota_add_unflushed(node->quotas, &ref, 1, sim_now(sim, node));
}

static inline void sim_told(struct sim_ask *a, enum cluster_store_outcome outcome)
{
	struct sim_node *node = a->node;
	u64 unflushed;

	quotas_flushed(node->quotas, &a->due, &a->request, outcome, sim_now(a->sim, node),
		       &unflushed);
	if (outcome == CLUSTER_STORE_DONE)
		sim_adopt(a->sim, node, a->key, &a->due.bucket, unflushed);
}

static inline void sim_answered(struct sim_ask *a, enum cluster_store_outcome outcome, bool first)
{
	struct quota_ref ref = sim_ref(a->sim, a->key);
	struct sim_node *node = a->node;

	quota_complete(node->quotas, &ref, &a->bucket, &a->request, outcome, sim_now(a->sim, node));
	if (outcome == CLUSTER_STORE_DONE) {
		sim_adopt(a->sim, node, a->key, &a->bucket, quota_unflushed(node->quotas, ref.key));
		if (a->request.passed)
			sim_passed(a->sim, node, a->key, a->request.now_us);
	} else if (first) {
		sim_contract(a->sim, node, a->key);
	}
}

static inline void sim_replied(struct sim_ask *a, enum cluster_store_outcome outcome, bool first)
{
	if (a->node->gone)
		return;
	if (a->is_due)
		sim_told(a, outcome);
	else
		sim_answered(a, outcome, first);
}

static inline void sim_done(struct cluster_store_request *request,
			    enum cluster_store_outcome outcome)
{
	sim_replied(request->arg, outcome, true);
	if (outcome != CLUSTER_STORE_LATE)
		free(request->arg);
}

static inline void sim_late(struct cluster_store_request *request,
			    enum cluster_store_outcome outcome)
{
	sim_replied(request->arg, outcome, false);
	free(request->arg);
}

static inline void sim_send(struct sim *sim, struct sim_node *node, u32 key,
			    const struct quota_due *due)
{
	struct sim_ask *a = sim_alloc(1, sizeof(*a));
	struct quota_ref ref = sim_ref(sim, key);

	a->sim = sim;
	a->node = node;
	a->key = key;
	a->request = (struct cluster_store_request){ .bucket = &a->bucket,
						     .count = 1,
						     .done = sim_done,
						     .deadline_ns = SIM_DEADLINE * 1000,
						     .late = sim_late,
						     .arg = a };
	sim->asked[key]++;
	if (due) {
		a->is_due = true;
		a->due = *due;
		a->due.ref.def = &a->due.def;
		a->request.bucket = &a->due.bucket;
	} else {
		a->bucket = (struct cluster_store_bucket){ .key = ref.key,
							   .tag = ref.tag,
							   .def = sim->def,
							   .kind = CLUSTER_STORE_CHARGE,
							   .cost = 1 };
		quota_prepare(node->quotas, &ref, &a->bucket, sim_now(sim, node));
	}
	assert_int_equal(node->store->ops->send(node->store, &a->request), 0);
}

/* ------------------------------------------------------------------ requests */

static inline void sim_request(struct sim *sim, struct sim_node *node, u32 key)
{
	struct sl_now now = sim_now(sim, node), counters = quotas_now(node->quotas, now);
	struct quota_ref ref = sim_ref(sim, key);
	struct spec_view view;
	struct sl_result res;

	sim->decided[key]++;
	sim->demand[(sim->now_us / (sim->def.period_ns / 1000) -
		     SIM_START / (sim->def.period_ns / 1000)) *
			    sim->keys +
		    key]++;
	spec_view_init(&view, &sim->spec, 0, 0);
	res = spec_charge(&view, node->bucket_state[key], counters, 1);
	if (res.verdict != SL_PASS) {
		/* There may be room by now that this node has not received. */
		if (sim->now_us >= node->probe_us[key] + SEC) {
			node->probe_us[key] = sim->now_us;
			sim_send(sim, node, key, NULL);
		}
		return;
	}
	if (quota_acquire(node->quotas, &ref, 1, now) == QUOTA_COVERED) {
		node->bucket_state[key] = res.bucket_state;
		sim_passed(sim, node, key, sim->now_us);
		return;
	}
	node->bucket_state[key] = res.bucket_state;
	sim_send(sim, node, key, NULL);
}

static inline void sim_poll(struct sim *sim, struct sim_node *node)
{
	struct quota_due due[SIM_DUES];
	u32 count;

	do {
		count = quotas_due(node->quotas, due, SIM_DUES, sim_now(sim, node));
		for (u32 i = 0; i < count; i++)
			sim_send(sim, node, sim_key(due[i].ref.key), &due[i]);
	} while (count == SIM_DUES);
	node->polled_us = sim->now_us;
}

static inline struct sim_node *sim_any(struct sim *sim)
{
	struct sim_node *node;

	do
		node = &sim->node[rng_below(sim->node_count)];
	while (node->gone);
	return node;
}

/* Faults of nodes and the store, about ten times a second. */
static inline void sim_event(struct sim *sim)
{
	struct sim_node *node = sim_any(sim);

	sim->next_event = sim->now_us + 50 * MS + rng_below(100 * MS);
	if (sim->partitions && !node->cut_until) {
		node->cut_until = sim->now_us + 100 * MS + rng_below(2 * SEC);
		cluster_store_memory_cut(node->store, true);
		sim->unpublished += sim_held(node);
	}
	if (sim->clock_steps)
		sim_any(sim)->utc_error = (s64)rng_below(7200 * SEC) - (s64)(3600 * SEC);
	if (sim->churn && !rng_below(4) && sim->node_count < sim->node_room && sim->alive > 1) {
		sim_vanish(sim, node);
		sim_join(sim);
	}
	if (sim->loses && !sim->lost_at_us && sim->now_us > SIM_START + sim->length_us / 2) {
		cluster_store_memory_lose(sim->memory);
		sim->lost_at_us = sim->now_us;
	}
}

static inline u32 sim_draw_key(const struct sim *sim)
{
	double x = (rng() >> 11) * 0x1p-53 * sim->zipf[sim->keys - 1];
	u32 low = 0, high = sim->keys - 1;

	while (low < high) {
		u32 middle = (low + high) / 2;

		if (sim->zipf[middle] > x)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

/* Half of a key's requests come to one node, unless demand is even. */
static inline struct sim_node *sim_draw_node(struct sim *sim, u32 key)
{
	struct sim_node *node;

	if (sim->even || rng_below(2))
		return sim_any(sim);
	node = &sim->node[key * 7919 % sim->nodes];
	return node->gone ? sim_any(sim) : node;
}

static inline void sim_turn(struct sim *sim)
{
	cluster_store_memory_set_time(sim->memory, sim->now_us);
	cluster_store_memory_run(sim->memory);
	for (u32 i = 0; i < sim->node_count; i++) {
		struct sim_node *node = &sim->node[i];

		if (node->gone)
			continue;
		if (node->cut_until && node->cut_until <= sim->now_us) {
			node->cut_until = 0;
			cluster_store_memory_cut(node->store, false);
		}
		if (sim->now_us >= node->polled_us + SIM_POLL)
			sim_poll(sim, node);
	}
	if (sim->now_us >= sim->next_event)
		sim_event(sim);
}

static inline void sim_open(struct sim *sim)
{
	u64 period_us = sim->def.period_ns / 1000;

	sim->now_us = sim->next_event = SIM_START;
	sim->windows = sim->length_us / period_us + 3;
	sim->node_room = sim->nodes * (sim->churn ? 2 : 1);
	sim->node = sim_alloc(sim->node_room, sizeof(*sim->node));
	sim->zipf = sim_alloc(sim->keys, sizeof(*sim->zipf));
	sim->demand = sim_alloc((size_t)sim->windows * sim->keys, sizeof(*sim->demand));
	sim->asked = sim_alloc(sim->keys, sizeof(*sim->asked));
	sim->decided = sim_alloc(sim->keys, sizeof(*sim->decided));
	assert_int_equal(spec_make_def(&sim->def, &sim->spec, NULL), 0);
	assert_int_equal(cluster_store_memory_new(&sim->memory), 0);
	cluster_store_memory_set_time(sim->memory, sim->now_us);
	cluster_store_memory_set_delay(sim->memory, SIM_DELAY);
	for (u32 i = 0; i < sim->keys; i++)
		sim->zipf[i] = (i ? sim->zipf[i - 1] : 0) + pow(i + 1, -sim->skew);
	for (u32 i = 0; i < sim->nodes; i++)
		sim_join(sim);
}

static inline void sim_count_warm(struct sim *sim)
{
	for (u32 i = 0; i < sim->keys; i++) {
		sim->warm_asked += sim->asked[i];
		sim->warm_decided += sim->decided[i];
	}
}

/* The last counts are flushed. */
static inline void sim_end(struct sim *sim)
{
	sim->partitions = sim->churn = false;
	for (u64 to = sim->now_us + 4 * sim->every_us + 6 * SEC; sim->now_us < to;
	     sim->now_us += MS)
		sim_turn(sim);
}

static inline void sim_run(struct sim *sim)
{
	double next = SIM_START, turn = SIM_START;
	u64 end = SIM_START + sim->length_us;

	sim_open(sim);
	while (sim->now_us < end) {
		u32 key = sim_draw_key(sim);

		next += -log(1 - (rng() >> 11) * 0x1p-53) / sim->rate * 1e6;
		for (; turn < next; turn += 500) {
			sim->now_us = turn;
			sim_turn(sim);
		}
		sim->now_us = next;
		cluster_store_memory_set_time(sim->memory, sim->now_us);
		cluster_store_memory_run(sim->memory);
		sim_request(sim, sim_draw_node(sim, key), key);
		if (!sim->warm_decided && sim->now_us >= SIM_START + sim->length_us / 2)
			sim_count_warm(sim);
	}
	sim_end(sim);
}

static inline void sim_close(struct sim *sim)
{
	for (u32 i = 0; i < sim->node_count; i++)
		sim->node[i].gone = true;
	cluster_store_memory_free(sim->memory);
	for (u32 i = 0; i < sim->node_count; i++) {
		quotas_free(sim->node[i].quotas);
		free(sim->node[i].bucket_state);
		free(sim->node[i].own_state);
		free(sim->node[i].probe_us);
	}
	free(sim->node);
	free(sim->zipf);
	free(sim->demand);
	free(sim->asked);
	free(sim->decided);
	free(sim->pass);
}

#endif
