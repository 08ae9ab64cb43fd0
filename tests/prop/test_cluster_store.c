// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The cluster store in memory (cluster_store_memory.c): its replies to one node are those that the
 * counter table's own steps (spec.h, request_log.h) give for the same requests, for each algorithm,
 * verdict by verdict; and leases at even demand. charge.lua is tested in the same way in
 * test_cluster_store_script.c.
 */
#include "lib/test.h"
#include "lib/cluster_store_memory.h"
#include "lib/cluster_store_model.h"
#include "limiter/request_log.h"
#include "prop/cluster_store_requests.h"
#include "limiter/algorithm.h"

#define CHUNKS 65536

static const struct spec_def defs[] = {
	SPEC_DEF(TOKEN_BUCKET, 10, SL_NS_PER_SEC),
	SPEC_DEF(TOKEN_BUCKET, 7, 60 * SL_NS_PER_SEC, .burst = 20),
	SPEC_DEF(TOKEN_BUCKET, 1000000, SL_NS_PER_SEC),
	SPEC_DEF(TOKEN_BUCKET, 500, 3600 * SL_NS_PER_SEC, .burst = 500),
	SPEC_DEF(LEAKY_BUCKET, 3, SL_NS_PER_SEC),
	SPEC_DEF(FIXED_WINDOW, 10, SL_NS_PER_SEC),
	SPEC_DEF(FIXED_WINDOW, 100, 60 * SL_NS_PER_SEC),
	SPEC_DEF(FIXED_WINDOW, 1, 86400 * SL_NS_PER_SEC),
	SPEC_DEF(INTERVAL_BUCKET, 4, SL_NS_PER_SEC, .burst = 10),
	SPEC_DEF(SLIDING_WINDOW, 10, SL_NS_PER_SEC),
	SPEC_DEF(SLIDING_WINDOW, 1000, 3600 * SL_NS_PER_SEC),
	SPEC_DEF(SLIDING_WINDOW, 8000000, 86400 * SL_NS_PER_SEC),
	SPEC_DEF(SLIDING_LOG, 10, SL_NS_PER_SEC),
	SPEC_DEF(SLIDING_LOG, 300, 60 * SL_NS_PER_SEC),
	SPEC_DEF(WINDOW_COUNTERS, 10, SL_NS_PER_SEC, .buckets = 5),
	SPEC_DEF(WINDOW_COUNTERS, 300, 60 * SL_NS_PER_SEC, .buckets = 60),
	SPEC_DEF(FIRST_REQUEST, 10, SL_NS_PER_SEC),
	SPEC_DEF(FIRST_REQUEST, 100, 60 * SL_NS_PER_SEC),
	SPEC_DEF(FIRST_REQUEST, 50, 4 * SL_NS_PER_SEC, .buckets = 2),
};

/* ------------------------------------------------------------------ one node: the local steps */

struct local {
	struct spec spec;
	struct request_logs logs;
	u32 logs_used;
	u64 bucket_state;
};

static void local_open(struct local *l, const struct spec_def *def)
{
	*l = (struct local){ .logs_used = 1 };
	assert_int_equal(spec_make_def(def, &l->spec, NULL), 0);
	l->logs.chunk = calloc(CHUNKS, sizeof(struct request_chunk));
	assert_non_null(l->logs.chunk);
	l->logs.chunks = CHUNKS;
	l->logs.used = &l->logs_used;
}

static u64 log_add(struct local *l, struct sl_now now, u64 n)
{
	u32 chunk = 0;

	if (request_log_needs(&l->logs, &l->spec, l->bucket_state, now, n))
		assert_true((chunk = request_chunk_get(&l->logs)));
	return request_log_add(&l->logs, &l->spec, l->bucket_state, now, n, chunk);
}

static bool local_log(struct local *l, struct sl_now now, const struct cluster_store_bucket *b,
		      u64 *ret_wait_ns)
{
	u64 count, room = l->spec.capacity;

	l->bucket_state = request_log_expire(&l->logs, &l->spec, l->bucket_state, now);
	count = request_log_count(l->bucket_state);
	if (b->kind == CLUSTER_STORE_REFUND) {
		if (b->cost)
			l->bucket_state =
				request_log_remove(&l->logs, &l->spec, l->bucket_state, b->cost);
		return true;
	}
	room -= b->cost && b->kind == CLUSTER_STORE_CHARGE ? b->hold : 0;
	if (b->kind == CLUSTER_STORE_CHARGE && count + b->cost > room) {
		*ret_wait_ns = ~0ULL;
		if (b->cost <= room)
			*ret_wait_ns = request_log_wait(&l->logs, &l->spec, l->bucket_state, now,
							count + b->cost - room);
		return false;
	}
	if (b->cost)
		l->bucket_state = log_add(l, now, b->cost);
	return true;
}

static bool local_ask(struct local *l, struct sl_now now, const struct cluster_store_bucket *b,
		      u32 hold_permille, u64 *ret_wait_ns)
{
	struct spec_view view;
	struct sl_result res;

	*ret_wait_ns = 0;
	if (algorithm_is_log(l->spec.algo))
		return local_log(l, now, b, ret_wait_ns);
	spec_view_init(&view, &l->spec, 0, hold_permille);
	if (b->kind == CLUSTER_STORE_FORCE) {
		l->bucket_state = spec_force(&view, l->bucket_state, now, b->cost);
		return true;
	}
	if (b->kind == CLUSTER_STORE_REFUND) {
		l->bucket_state = spec_refund(&view, l->bucket_state, now, b->cost);
		return true;
	}
	res = spec_charge(&view, l->bucket_state, now, b->cost);
	*ret_wait_ns = res.wait_ns;
	if (res.verdict == SL_OVER)
		return false;
	l->bucket_state = res.bucket_state;
	return true;
}

/* ------------------------------------------------------------------ the shared store */

static bool cluster_store_request(struct cluster_store_memory *memory, struct cluster_store *node,
				  struct cluster_store_bucket *bucket, u32 count)
{
	struct response response;

	send_ask(node, &response, bucket, count);
	cluster_store_memory_run(memory);
	assert_int_equal(response.done, 1);
	assert_int_equal(response.outcome, CLUSTER_STORE_DONE);
	return response.request.passed;
}

/* Mostly what matters at the limit: short steps, and now and then one over an edge. */
static u64 some_us(const struct spec *spec)
{
	u64 period_us = spec->period_ns / 1000, interval = period_us / spec->requests + 1;

	switch (rng_below(8)) {
	case 0:
		return rng_below(2 * period_us);
	case 1:
		return period_us;
	case 2:
		return rng_below(3) * interval;
	default:
		return rng_below(2 * interval);
	}
}

/* The bucket state made of a reply equals the state that the requests made. */
static void mirror_agrees(const struct local *l, const struct cluster_store_state *state,
			  struct sl_now now)
{
	struct spec_view view;
	u64 bucket_state, charged, more = rng_below(3);

	if (algorithm_is_log(l->spec.algo)) {
		assert_int_equal(cluster_store_bucket_state(&l->spec, state, 0, now), 0);
		assert_int_equal(state->used, request_log_count(l->bucket_state));
		return;
	}
	spec_view_init(&view, &l->spec, 0, 0);
	bucket_state = cluster_store_bucket_state(&l->spec, state, 0, now);
	/* A bucket's state is cut to whole nanoseconds. */
	assert_in_range(spec_remaining(&view, bucket_state, now),
			spec_remaining(&view, l->bucket_state, now),
			spec_remaining(&view, l->bucket_state, now) +
				(l->spec.algo <= SL_ALGO_LEAKY_BUCKET));
	assert_in_range(spec_reset_ns(&view, bucket_state, now) + 1,
			spec_reset_ns(&view, l->bucket_state, now),
			spec_reset_ns(&view, l->bucket_state, now) + 1000);
	/* With more charged it is as if it had been charged there. */
	bucket_state = cluster_store_bucket_state(&l->spec, state, more, now);
	charged = spec_force(&view, l->bucket_state, now, more);
	assert_in_range(
		spec_remaining(&view, bucket_state, now), spec_remaining(&view, charged, now),
		spec_remaining(&view, charged, now) + (l->spec.algo <= SL_ALGO_LEAKY_BUCKET));
}

static void one_node(const struct spec_def *def)
{
	struct cluster_store_memory *memory;
	struct cluster_store *node;
	struct local local;
	u64 now_us = START_US + rng_below(SL_NS_PER_SEC), passed = 0, refused = 0;

	local_open(&local, def);
	assert_int_equal(cluster_store_memory_new(&memory), 0);
	assert_int_equal(cluster_store_memory_node(memory, "a", &node), 0);
	for (u32 i = 0; i < 20000; i++) {
		u32 hold_permille = rng_below(4) ? 0 : 200;
		struct cluster_store_bucket b = {
			.key = 1,
			.tag = 2,
			.def = *def,
			.kind = rng_below(10) ? CLUSTER_STORE_CHARGE : CLUSTER_STORE_REFUND,
			.cost = some_cost(local.spec.capacity),
			.hold = local.spec.capacity * hold_permille / 1000,
		};
		struct sl_now now;
		bool ok, local_ok;
		u64 wait_ns;

		now_us += some_us(&local.spec);
		now = (struct sl_now){ (now_us - START_US) * 1000 + SL_NS_PER_SEC, now_us * 1000 };
		cluster_store_memory_set_time(memory, now_us);
		local_ok = local_ask(&local, now, &b, hold_permille, &wait_ns);
		ok = cluster_store_request(memory, node, &b, 1);
		/* The store's clock has microseconds: its waits are rounded up to one. */
		if (ok != local_ok || b.wait_ns - wait_ns >= 1000 || ok == b.over)
			fail_msg(
				"%s: at %u: shared %d after %llu ns, local %d after %llu ns; kind %u cost %llu",
				algorithm_name(def->algo), i, ok, b.wait_ns, local_ok, wait_ns,
				b.kind, b.cost);
		ok ? passed++ : refused++;
		mirror_agrees(&local, &b.state, now);
	}
	if (passed < 1000 || refused < 1000)
		fail_msg("%s: %llu passed, %llu refused", algorithm_name(def->algo), passed,
			 refused);
	cluster_store_memory_free(memory);
	free(local.logs.chunk);
}

TEST(test_one_node)
{
	for (u32 i = 0; i < COUNT(defs); i++)
		one_node(&defs[i]);
}

/* ------------------------------------------------------------------ leases */

/*
 * Nodes with the same demand on one limit, each of which requests far more than it gets: all of the
 * limit is granted and no more, and a tenth of it at most is out on leases, at any time.
 */
static void even_demand(u32 nodes, u8 algo, u64 capacity)
{
	struct cluster_store_bucket b = { .key = 1, .tag = 1 };
	struct cluster_store_memory *memory;
	struct cluster_store *node[16];
	u64 credit[16] = { 0 }, spent[16] = { 0 }, out = 0, most_out = 0, admitted = 0, asks = 0;
	u32 refused = 0;
	char name[16];

	b.def = (struct spec_def){ .count = capacity,
				   .period_ns = 86400 * SL_NS_PER_SEC,
				   .burst = algo == SL_ALGO_TOKEN_BUCKET ? capacity : 0,
				   .scale = 1,
				   .ceiling_percent = 100,
				   .algo = algo };
	assert_int_equal(cluster_store_memory_new(&memory), 0);
	cluster_store_memory_set_time(memory, START_US);
	for (u32 i = 0; i < nodes; i++) {
		snprintf(name, sizeof(name), "n%u", i);
		assert_int_equal(cluster_store_memory_node(memory, name, &node[i]), 0);
	}
	for (u32 turn = 0; refused < nodes; turn++) {
		u32 i = turn % nodes;

		refused = i ? refused : 0;
		if (credit[i]) {
			credit[i]--;
			spent[i]++;
			out--;
			admitted++;
			continue;
		}
		b.cost = 1;
		b.want = capacity;
		b.spent = spent[i];
		b.lease_us = 3600000000ULL;
		spent[i] = 0;
		asks++;
		if (!cluster_store_request(memory, node[i], &b, 1)) {
			refused++;
			continue;
		}
		admitted++;
		credit[i] += b.granted;
		out += b.granted;
		if (out > most_out)
			most_out = out;
	}
	fprintf(stderr,
		"# %s %llu, %u nodes: %llu admitted, %llu asks, at most %llu out, %llu at the end\n",
		algorithm_name(algo), capacity, nodes, admitted, asks, most_out, out);
	assert_true(admitted + out == capacity && most_out <= capacity / 10);
	assert_true(asks < (capacity < 1000 ? admitted / 2 : admitted / 15));
	cluster_store_memory_free(memory);
}

TEST(test_even_demand)
{
	static const u8 algos[] = { SL_ALGO_TOKEN_BUCKET, SL_ALGO_FIXED_WINDOW,
				    SL_ALGO_SLIDING_WINDOW, SL_ALGO_SLIDING_LOG,
				    SL_ALGO_FIRST_REQUEST };

	for (u32 i = 0; i < COUNT(algos); i++) {
		even_demand(1, algos[i], 1000);
		even_demand(3, algos[i], 100);
		even_demand(3, algos[i], 10000);
		even_demand(16, algos[i], 20000);
	}
}

int main(void)
{
	rng_start("shared");
	return test_run(NULL, NULL);
}
