/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A hundred nodes, or a thousand, and one limit (cluster_sim.h): by how much each consistency lets
 * more through than the limit, and how much less, with skewed demand, nodes that are cut off,
 * vanish and come, clocks that step, and a store that forgets all. The bounds are those that
 * quota.h states.
 *
 * SLUICE_LONG=1: ten times as long.
 */
#include "cluster_sim.h"
#include "limiter/algorithm.h"

#define LIMIT 2000
#define PERIOD (2 * SEC)

static u64 longer(u64 us)
{
	return getenv("SLUICE_LONG") ? 10 * us : us;
}

/* ------------------------------------------------------------------ judging */

static int by_key_and_time(const void *a, const void *b)
{
	const struct sim_pass *x = a, *y = b;

	if (x->key != y->key)
		return x->key < y->key ? -1 : 1;
	return x->at_us < y->at_us ? -1 : x->at_us > y->at_us;
}

struct verdict {
	double over, under; /* at most, as a ratio to the limit; under: the mean where demand was
			       above it */
	double beyond;	    /* over the limit by more than the bound, requests at most; 0: never */
	u64 full;	    /* windows in which demand was above the limit */
};

/*
 * The most that nodes let through within any time of length `span`: all of them together but the
 * one that let through the least, of those that let through any.
 */
static u64 others(const struct sim *sim, const struct sim_pass *pass, u64 count, u64 span)
{
	static u64 first[1024];
	static u32 most[1024], now[1024];
	u64 sum = 0, least = ~0ULL;

	assert_true(sim->node_count <= COUNT(most));
	memset(most, 0, sizeof(most));
	for (u32 n = 0; n < sim->node_count; n++) {
		first[n] = 0;
		now[n] = 0;
	}
	for (u64 i = 0; i < count; i++) {
		u32 n = pass[i].node;

		now[n]++;
		while (pass[first[n]].node != n || pass[first[n]].at_us + span < pass[i].at_us) {
			now[n] -= pass[first[n]].node == n;
			first[n]++;
		}
		if (now[n] > most[n])
			most[n] = now[n];
	}
	for (u32 n = 0; n < sim->node_count; n++) {
		sum += most[n];
		if (most[n] && most[n] < least)
			least = most[n];
	}
	return sum ? sum - least : 0;
}

/* How far above its capacity a bucket is that all requests were charged to. */
static double bucket_excess(const struct sim *sim, const struct sim_pass *pass, u64 count)
{
	double interval = (double)sim->def.period_ns / 1e3 / sim->def.count, debt = 0, worst = 0;
	u64 at = count ? pass[0].at_us : 0;

	for (u64 i = 0; i < count; i++) {
		debt -= (pass[i].at_us - at) / interval;
		debt = (debt < 0 ? 0 : debt) + 1;
		at = pass[i].at_us;
		if (debt - sim->spec.capacity > worst + 0.01)
			worst = debt - sim->spec.capacity;
	}
	return worst;
}

static void note(struct verdict *v, double excess, double bound, u64 capacity)
{
	if (excess / capacity > v->over)
		v->over = excess / capacity;
	if (excess - bound > v->beyond)
		v->beyond = excess - bound;
}

static double bound_of(const struct sim *sim, const struct sim_pass *pass, u64 count)
{
	if (sim->consistency != CONSISTENCY_WRITE_BACK)
		return 0;
	return others(sim, pass, count, sim->every_us + 2 * SIM_POLL + SIM_DELAY + SIM_DEADLINE);
}

/* Whether a request at that time is of the window that begins with `from`; of a bucket all are. */
static bool is_of(const struct sim *sim, u64 from_us, u64 at_us)
{
	u64 period = sim->def.period_ns / 1000;

	if (sim->def.algo <= SL_ALGO_LEAKY_BUCKET)
		return true;
	if (sim->def.algo == SL_ALGO_FIRST_REQUEST)
		return at_us - from_us < period;
	return at_us / period == from_us / period;
}

static struct verdict judge(struct sim *sim)
{
	u64 period = sim->def.period_ns / 1000, capacity = sim->spec.capacity;
	bool windows = sim->def.algo > SL_ALGO_LEAKY_BUCKET;
	bool aligned = windows && sim->def.algo != SL_ALGO_FIRST_REQUEST;
	struct verdict v = { 0 };

	qsort(sim->pass, sim->pass_count, sizeof(*sim->pass), by_key_and_time);
	for (u64 i = 0, end; i < sim->pass_count; i = end) {
		const struct sim_pass *from = &sim->pass[i];
		u64 window = from->at_us / period, index = window - SIM_START / period;

		end = i;
		while (end < sim->pass_count && sim->pass[end].key == from->key &&
		       is_of(sim, from->at_us, sim->pass[end].at_us))
			end++;
		note(&v, windows ? (double)(end - i) - capacity : bucket_excess(sim, from, end - i),
		     bound_of(sim, from, end - i), capacity);
		/* The first is a part of a window. */
		if (aligned && index && sim->demand[index * sim->keys + from->key] > capacity &&
		    (index + 1) * period <= sim->length_us) {
			v.full++;
			v.under += end - i < capacity ? 1 - (double)(end - i) / capacity : 0;
		}
	}
	if (v.full)
		v.under /= v.full;
	return v;
}

/* ------------------------------------------------------------------ judging at each time */

/*
 * The most that nodes let through in an interval and a round trip, of the two before `at`, the last
 * one that passed: all of them but the one that let through the least.
 */
static u64 others_then(const struct sim *sim, const struct sim_pass *first,
		       const struct sim_pass *at)
{
	u64 span = sim->every_us + 30 * MS + 2 * SIM_POLL + SIM_DELAY;
	const struct sim_pass *from = at;

	while (from > first && from[-1].at_us + 2 * span >= at->at_us)
		from--;
	return others(sim, from, at + 1 - from, span);
}

/*
 * The largest excess above what the others let through just before. A bucket is one that all
 * requests were charged to.
 */
static double judge_each(struct sim *sim)
{
	double interval = (double)sim->def.period_ns / 1e3 / sim->def.count, worst = 0;
	bool bucket = sim->def.algo <= SL_ALGO_LEAKY_BUCKET;
	struct sim_pass *first = sim->pass;
	double count = 0;

	qsort(sim->pass, sim->pass_count, sizeof(*sim->pass), by_key_and_time);
	for (u64 i = 0; i < sim->pass_count; i++) {
		struct sim_pass *at = &sim->pass[i];

		if (at->key != first->key || !is_of(sim, first->at_us, at->at_us)) {
			first = at;
			count = 0;
		}
		if (bucket && at > first)
			count -= fmin(count, (at->at_us - at[-1].at_us) / interval);
		count++;
		if (count - sim->spec.capacity > worst + 0.01)
			worst = fmax(worst,
				     count - sim->spec.capacity - others_then(sim, first, at));
	}
	return worst;
}

/* ------------------------------------------------------------------ runs */

static struct sim make(const char *name, enum consistency consistency, enum sl_algo algo)
{
	return (struct sim){
		.name = name,
		.nodes = 100,
		.keys = 300,
		.rate = 40000,
		.skew = 1,
		.length_us = longer(6 * SEC),
		.def = { .count = LIMIT,
			 .period_ns = PERIOD * 1000,
			 .scale = 1,
			 .ceiling_percent = 100,
			 .burst = algo == SL_ALGO_TOKEN_BUCKET ? LIMIT : 0,
			 .algo = algo },
		.consistency = consistency,
		.every_us = consistency == CONSISTENCY_LEASE ? 100 * MS : 200 * MS,
		.contract = STORE_FAILS_CLOSED,
	};
}

static const char *const names[] = { "strict", "lease", "write_back" };

struct outcome {
	struct verdict v;
	double reported; /* the overshoot in the nodes' metrics */
	u64 lost, restored, unpublished;
};

static struct outcome run(struct sim *sim)
{
	struct outcome o = { 0 };

	sim_run(sim);
	o.v = judge(sim);
	o.unpublished = sim->unpublished;
	for (u32 i = 0; i < sim->node_count; i++) {
		double ratio = quotas_overshoot(sim->node[i].quotas, 1);
		struct quotas_stats stats;

		quotas_stats(sim->node[i].quotas, &stats);
		o.lost += stats.lost;
		o.restored += stats.restored;
		if (ratio > o.reported)
			o.reported = ratio;
		if (!sim->node[i].gone)
			assert_int_equal(stats.unflushed, 0);
	}
	fprintf(stderr,
		"# %-10s %-14s %-20s over %6.2f%% (reported %6.2f%%), beyond its bound %.0f, under %5.2f%% of %llu windows; held when cut off %llu; lost %llu, put back %llu\n",
		names[sim->consistency], algorithm_name(sim->def.algo), sim->name, 100 * o.v.over,
		100 * o.reported, o.v.beyond, 100 * o.v.under, o.v.full, o.unpublished, o.lost,
		o.restored);
	sim_close(sim);
	return o;
}

static const enum sl_algo algos[] = { SL_ALGO_FIXED_WINDOW, SL_ALGO_SLIDING_WINDOW,
				      SL_ALGO_TOKEN_BUCKET, SL_ALGO_FIRST_REQUEST,
				      SL_ALGO_LEAKY_BUCKET };

#define EACH_OF(count, c, algo)                                                                    \
	for (u32 c = CONSISTENCY_STRICT; c <= CONSISTENCY_WRITE_BACK; c++)                         \
		for (const enum sl_algo *algo = algos; algo < algos + (count); algo++)
/* A leaky bucket holds one request: there is nothing in it to lease, to lose or to restore. */
#define EACH(c, algo) EACH_OF(COUNT(algos) - 1, c, algo)

/* Every node reaches the store; their own clocks are of no account. */
TEST(test_clock_steps)
{
	EACH_OF(COUNT(algos), c, algo)
	{
		struct sim sim = make("clock steps", c, *algo);
		struct outcome o;

		sim.clock_steps = true;
		o = run(&sim);
		assert_true(o.v.beyond <= 0);
		assert_true(o.lost == 0);
		/* No node is starved where nothing is out of order. */
		assert_true(o.v.under < 0.02);
		/* Metrics and log agree; a hundred nodes flush a bucket at
		   different times, so it adds up as if some of it had come later. */
		assert_true(fabs(o.reported - o.v.over) < (*algo == SL_ALGO_TOKEN_BUCKET ? 0.03
							   : *algo == SL_ALGO_LEAKY_BUCKET
								   ? 0.2 * o.v.over + 1
								   : 0.01));
		if (c == CONSISTENCY_WRITE_BACK)
			assert_true(o.v.over > 0.05);
	}
}

/* Each node stays below the limit, and all together are far above it: each flush finds a bucket
 * empty by itself. */
TEST(test_each_below)
{
	for (const enum sl_algo *algo = algos; algo < algos + COUNT(algos); algo++) {
		struct sim sim = make("each below the limit", CONSISTENCY_WRITE_BACK, *algo);
		struct outcome o;

		sim.nodes = 3;
		sim.keys = 1;
		sim.even = true;
		sim.rate = 270;
		sim.every_us = SEC;
		sim.length_us = longer(20 * SEC);
		sim.def.count = 100;
		sim.def.period_ns = SEC * 1000;
		sim.def.burst = *algo == SL_ALGO_TOKEN_BUCKET ? 100 : 0;
		o = run(&sim);
		assert_true(o.v.beyond <= 0);
		assert_true(o.reported > o.v.over / 2);
	}
}

/*
 * Each node uses each key in bursts: for a while several times an interval, for a while less often
 * than once an interval. Up to `burst` requests each, and none within a ms of the edge of an
 * aligned window: nodes know Redis' time to half a round trip.
 */
static void run_bursts(struct sim *sim, u32 burst)
{
	u64 period_us = sim->def.period_ns / 1000;
	u32 users = sim->nodes * sim->keys;
	u64 *next = sim_alloc(users, sizeof(*next)), end = SIM_START + sim->length_us;
	bool *often = sim_alloc(users, sizeof(*often));

	sim_open(sim);
	for (u32 i = 0; i < users; i++)
		next[i] = SIM_START + rng_below(4 * sim->every_us);
	for (; sim->now_us < end; sim->now_us += 500) {
		sim_turn(sim);
		for (u32 i = 0; i < users; i++) {
			if (next[i] > sim->now_us || (sim->now_us + MS) % period_us < 2 * MS)
				continue;
			for (u32 k = 1 + rng_below(burst); k; k--)
				sim_request(sim, &sim->node[i % sim->nodes], i / sim->nodes);
			if (!rng_below(4))
				often[i] = rng_below(2);
			next[i] += often[i] ? rng_below(sim->every_us / 2)
					    : sim->every_us + rng_below(8 * sim->every_us);
		}
	}
	free(next);
	free(often);
	sim_end(sim);
}

/* A node that seldom uses a key decides by what the others have flushed meanwhile. */
TEST(test_seldom)
{
	for (const enum sl_algo *algo = algos; algo < algos + COUNT(algos); algo++) {
		struct sim sim = make("seldom and often", CONSISTENCY_WRITE_BACK, *algo);
		double beyond;

		/* Its windows begin in Redis with a flush, so from outside they cannot be seen so
		 * exactly. */
		if (*algo == SL_ALGO_FIRST_REQUEST)
			continue;
		sim.nodes = 4;
		sim.keys = 20;
		sim.length_us = longer(30 * SEC);
		sim.def.count = 40;
		sim.def.burst = *algo == SL_ALGO_TOKEN_BUCKET ? 40 : 0;
		sim.clock_steps = true;
		run_bursts(&sim, 20);
		beyond = judge_each(&sim);
		fprintf(stderr, "# %s: %llu passed, %.1f beyond the bound\n", algorithm_name(*algo),
			sim.pass_count, beyond);
		sim_close(&sim);
		assert_true(beyond <= 0);
	}
}

/* A node that is cut off refuses; its lease may be given to others meanwhile. */
TEST(test_partitions)
{
	EACH(c, algo)
	{
		struct sim sim = make("partitions", c, *algo);
		struct outcome o;

		sim.partitions = true;
		o = run(&sim);
		if (c == CONSISTENCY_LEASE)
			assert_true(o.v.over * LIMIT <= o.unpublished);
		else
			assert_true(o.v.beyond <= 0);
	}
}

TEST(test_churn)
{
	EACH(c, algo)
	{
		struct sim sim = make("nodes vanish", c, *algo);
		struct outcome o;

		sim.churn = true;
		o = run(&sim);
		if (c == CONSISTENCY_LEASE)
			assert_true(o.v.over * LIMIT <= o.unpublished);
		else if (c == CONSISTENCY_STRICT)
			assert_true(o.v.beyond <= 0);
	}
}

/* A node that is cut off goes on with its share: the cost of that, either way. */
TEST(test_partitions_local)
{
	for (u32 c = CONSISTENCY_STRICT; c <= CONSISTENCY_WRITE_BACK; c++) {
		struct sim sim = make("partitions, local", c, SL_ALGO_FIXED_WINDOW);
		struct outcome o;

		sim.partitions = true;
		sim.contract = STORE_FAILS_LOCAL;
		o = run(&sim);
		assert_true(o.v.over < 1);
	}
}

/* Charges are restored by the nodes that made them. */
TEST(test_lost)
{
	EACH(c, algo)
	{
		struct sim sim = make("store lost all", c, *algo);
		struct outcome o;

		sim.def.period_ns = 60 * SEC * 1000;
		sim.rate = 4000;
		sim.loses = true;
		o = run(&sim);
		assert_true(o.restored > 0);
		assert_true(o.restored <= o.lost);
		assert_true(o.v.over < (c == CONSISTENCY_WRITE_BACK ? 0.3 : 0.2));
	}
}

/* A lease takes nothing from other nodes while they have enough of it. */
TEST(test_even)
{
	for (const enum sl_algo *algo = algos; algo < algos + COUNT(algos); algo++) {
		struct sim sim = make("even demand", CONSISTENCY_LEASE, *algo);
		struct outcome o;

		sim.nodes = 10;
		sim.even = true;
		sim.length_us = 12 * SEC;
		o = run(&sim);
		assert_true(o.v.beyond <= 0);
		assert_true(o.v.under < 0.10);
	}
}

/*
 * A thousand nodes, each with a thousandth of the demand: the same bounds, and all of the limit is
 * used, although there are only two units for each node.
 */
TEST(test_thousand_nodes)
{
	for (u32 c = CONSISTENCY_STRICT; c <= CONSISTENCY_WRITE_BACK; c++) {
		struct sim sim = make("a thousand nodes", c, SL_ALGO_FIXED_WINDOW);
		struct outcome o;

		sim.nodes = 1000;
		sim.keys = 100;
		sim.even = true;
		o = run(&sim);
		assert_true(o.v.beyond <= 0);
		assert_true(o.lost == 0);
		assert_true(o.v.full >= 5);
		assert_true(o.v.under < 0.10);
	}
}

/* ------------------------------------------------------------------ the cost of leases */

/* Commands a decision over the keys of ranks from..to. */
static double commands(const struct sim *sim, u32 from, u32 to)
{
	u64 asked = 0, decided = 0;

	for (u32 i = from; i < to; i++) {
		asked += sim->asked[i];
		decided += sim->decided[i];
	}
	return (double)asked / decided;
}

TEST(test_commands)
{
	struct sim sim = make("commands", CONSISTENCY_LEASE, SL_ALGO_FIXED_WINDOW);
	double hot, tail, worst = 0;

	sim.nodes = 3;
	sim.keys = 20000;
	sim.rate = 100000;
	sim.every_us = 5 * SEC;
	sim.length_us = longer(15 * SEC);
	sim.def.count = 100000000;
	sim.def.period_ns = 60 * SEC * 1000;
	sim_run(&sim);
	hot = commands(&sim, 0, 1000);
	tail = commands(&sim, 1000, sim.keys);
	/* No key, however often it is used. */
	for (u32 i = 0; i < sim.keys; i++)
		if (sim.decided[i] && commands(&sim, i, i + 1) > worst)
			worst = commands(&sim, i, i + 1);
	fprintf(stderr,
		"# commands a decision: hottest thousand %.4f, the tail %.4f, any key at most %.4f\n",
		hot, tail, worst);
	sim_close(&sim);
	assert_true(hot <= 0.05);
	assert_true(tail <= 1.05);
	assert_true(worst <= 1.05);
}

int main(void)
{
	rng_start("cluster_sim");
	return test_run(NULL, NULL);
}
