// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * shares.c - the cost of each consistency in a real Redis: decisions, and commands for them, over
 * Zipf(1.0) keys, with the daemon's own quota, client and script. No HTTP: a decision here is what
 * user/request does with a cluster bucket, and nothing else.
 *
 *     shares PORT CONSISTENCY RATE SECONDS [NODES] [KEYS] [INTERVAL_MS]
 *
 * So many nodes in one process, each with its quota and a client of its own; RATE decisions a
 * second in all, 0: as many as possible, with 256 commands in flight. One line:
 *
 *     consistency decisions/s commands/decision hot tail late
 *
 * hot, tail: buckets sent to Redis per decision, of the thousand hottest keys and of all others
 * (one command may renew the leases of many buckets: commands/decision is counted by Redis).
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cluster/redis/redis.h"
#include "cluster/quota/quota.h"
#include "lib/rng.h"

#define HOT 1000
#define POLL_NS 5000000ULL
#define FLIGHTS_MAX 256
#define DUES CLUSTER_STORE_BUCKETS_MAX

struct node {
	struct redis *redis;
	struct cluster_store *shared;
	struct quotas *quotas;
	u64 *bucket_state;
};

struct flight {
	struct cluster_store_request ask;
	struct node *node;
	u32 key;	       /* of one that is no due */
	struct quota_due *due; /* NULL: of a decision */
	struct cluster_store_bucket bucket[];
};

static struct event_base *base;
static struct node *nodes;
static u32 node_count = 3, keys = 20000, flights;
static enum consistency consistency;
static u64 every_ns = 5000000000ULL;
static double *zipf;
static u64 decided[2], asked[2], late;
static struct spec spec;
/* The clients keep it. */
static struct redis_url url = { .text = "redis://127.0.0.1", .host = "127.0.0.1" };
static struct redis_def redis_def = { .url = &url, .url_count = 1, .prefix = "bench:" };
static const struct spec_def def = {
	.count = 100000000,
	.period_ns = 3600 * SL_NS_PER_SEC,
	.scale = 1,
	.ceiling_percent = 100,
	.algo = SL_ALGO_FIXED_WINDOW,
};

static struct sl_now time_now(void)
{
	struct timespec mono, utc;

	clock_gettime(CLOCK_MONOTONIC, &mono);
	clock_gettime(CLOCK_REALTIME, &utc);
	return (struct sl_now){ mono.tv_sec * SL_NS_PER_SEC + mono.tv_nsec,
				utc.tv_sec * SL_NS_PER_SEC + utc.tv_nsec };
}

static struct quota_ref ref_of(u32 key)
{
	u64 hash = (key + 1) * 0x9e3779b97f4a7c15ULL;

	return (struct quota_ref){ hash, hash, &def, consistency, every_ns, 0, false };
}

static u32 key_of(u64 hash)
{
	/* The multiplier's inverse modulo 2^64. */
	return hash * 0xf1de83e19937733dULL - 1;
}

/* ------------------------------------------------------------------ asks */

static void adopt(struct node *node, u32 key, const struct cluster_store_bucket *bucket,
		  u64 unflushed)
{
	node->bucket_state[key] = cluster_store_bucket_state(&spec, &bucket->state, unflushed,
							     quotas_now(node->quotas, time_now()));
}

static void answered(struct flight *f, enum cluster_store_outcome outcome)
{
	struct sl_now now = time_now();
	u64 unflushed;

	for (u32 i = 0; i < f->ask.count; i++) {
		if (f->due) {
			f->due[i].bucket = f->bucket[i];
			f->due[i].ref.def = &f->due[i].def;
			quotas_flushed(f->node->quotas, &f->due[i], &f->ask, outcome, now,
				       &unflushed);
			if (outcome == CLUSTER_STORE_DONE)
				adopt(f->node, key_of(f->bucket[i].key), &f->bucket[i], unflushed);
			continue;
		}
		struct quota_ref ref = ref_of(f->key);

		quota_complete(f->node->quotas, &ref, &f->bucket[i], &f->ask, outcome, now);
		if (outcome == CLUSTER_STORE_DONE)
			adopt(f->node, f->key, &f->bucket[i],
			      quota_unflushed(f->node->quotas, ref.key));
	}
	late += outcome != CLUSTER_STORE_DONE;
	if (outcome == CLUSTER_STORE_LATE)
		return;
	flights--;
	free(f->due);
	free(f);
}

static void on_response(struct cluster_store_request *ask, enum cluster_store_outcome outcome)
{
	answered(ask->arg, outcome);
}

static void send_flight(struct flight *f)
{
	f->ask.bucket = f->bucket;
	f->ask.deadline_ns = SL_NS_PER_SEC;
	f->ask.done = f->ask.late = on_response;
	f->ask.arg = f;
	flights++;
	for (u32 i = 0; i < f->ask.count; i++)
		asked[(f->due ? key_of(f->bucket[i].key) : f->key) >= HOT]++;
	if (f->node->shared->ops->send(f->node->shared, &f->ask) < 0)
		answered(f, CLUSTER_STORE_DOWN);
}

static struct flight *flight_of(struct node *node, u32 buckets)
{
	struct flight *f = calloc(1, sizeof(*f) + buckets * sizeof(f->bucket[0]));

	if (!f)
		abort();
	f->node = node;
	f->ask.count = buckets;
	return f;
}

static void decide_one(struct node *node, u32 key)
{
	struct sl_now now = time_now();
	struct quota_ref ref = ref_of(key);
	struct spec_view view;
	struct flight *f;

	decided[key >= HOT]++;
	spec_view_init(&view, &spec, 0, 0);
	node->bucket_state[key] =
		spec_charge(&view, node->bucket_state[key], quotas_now(node->quotas, now), 1)
			.bucket_state;
	if (quota_acquire(node->quotas, &ref, 1, now) == QUOTA_COVERED)
		return;
	f = flight_of(node, 1);
	f->key = key;
	f->bucket[0] = (struct cluster_store_bucket){
		.key = ref.key, .tag = ref.tag, .def = def, .kind = CLUSTER_STORE_CHARGE, .cost = 1
	};
	quota_prepare(node->quotas, &ref, f->bucket, now);
	send_flight(f);
}

static void tell(struct node *node)
{
	static struct quota_due due[DUES];
	struct flight *f;
	u32 count;

	do {
		count = quotas_due(node->quotas, due, DUES, time_now());
		if (!count)
			return;
		f = flight_of(node, count);
		f->due = malloc(count * sizeof(*f->due));
		if (!f->due)
			abort();
		memcpy(f->due, due, count * sizeof(*f->due));
		for (u32 i = 0; i < count; i++)
			f->bucket[i] = due[i].bucket;
		send_flight(f);
	} while (count == DUES);
}

/* ------------------------------------------------------------------ the run */

static void node_open(struct node *node, u32 number)
{
	struct sl_err err = { 0 };
	char name[16];

	snprintf(name, sizeof(name), "node%u", number);
	node->bucket_state = calloc(keys, sizeof(u64));
	if (!node->bucket_state || quotas_new(keys, &node->quotas) ||
	    redis_new(base, &redis_def, &node->redis, &err) ||
	    cluster_store_redis_new(node->redis, redis_def.prefix, name, &node->shared)) {
		fprintf(stderr, "shares: %s\n", err.message);
		exit(1);
	}
	quotas_set_nodes(node->quotas, node_count);
	redis_warm(node->redis);
}

static u64 commands(void)
{
	struct redis_stats stats;
	u64 sum = 0;

	for (u32 i = 0; i < node_count; i++) {
		redis_stats(nodes[i].redis, &stats);
		sum += stats.commands;
	}
	return sum;
}

/* The first whose sum is above `at`. */
static u32 mix_pick(const double *upto, u32 count, double at)
{
	u32 low = 0, high = count - 1;

	while (low < high) {
		u32 mid = (low + high) / 2;

		if (upto[mid] > at)
			high = mid;
		else
			low = mid + 1;
	}
	return low;
}

/* For so long, after half as long that is not counted: demand has to be known first. */
static double run(double rate, double seconds, u64 *ret_commands)
{
	u64 start = time_now().mono_ns, now = start, from = start, polled = 0, made = 0;
	u64 warm = start + seconds * 5e8, end = warm + seconds * 1e9;
	bool counting = false;

	for (; now < end; now = time_now().mono_ns) {
		u64 due = rate ? (now - start) / 1e9 * rate : made + 64;

		for (; made < due && flights < FLIGHTS_MAX; made++)
			decide_one(&nodes[rng_below(node_count)],
				   mix_pick(zipf, keys, (rng() >> 11) * 0x1p-53 * zipf[keys - 1]));
		if (now >= polled + POLL_NS) {
			polled = now;
			for (u32 i = 0; i < node_count; i++)
				tell(&nodes[i]);
		}
		event_base_loop(base, EVLOOP_NONBLOCK);
		if (!counting && now >= warm) {
			counting = true;
			from = now;
			memset(decided, 0, sizeof(decided));
			memset(asked, 0, sizeof(asked));
			*ret_commands = commands();
		}
	}
	*ret_commands = commands() - *ret_commands;
	return (now - from) / 1e9;
}

int main(int argc, char **argv)
{
	static const char *const names[] = { "strict", "lease", "write_back" };
	double seconds, took;
	u64 sent = 0;

	if (argc < 5) {
		fprintf(stderr,
			"usage: shares PORT strict|lease|write_back RATE SECONDS [NODES] [KEYS] [INTERVAL_MS]\n");
		return 2;
	}
	url.port = atoi(argv[1]);
	while (consistency <= CONSISTENCY_WRITE_BACK && strcmp(argv[2], names[consistency]))
		consistency++;
	seconds = atof(argv[4]);
	node_count = argc > 5 ? (u32)atoi(argv[5]) : node_count;
	keys = argc > 6 ? (u32)atoi(argv[6]) : keys;
	every_ns = argc > 7 ? strtoull(argv[7], NULL, 10) * 1000000 : every_ns;
	if (consistency > CONSISTENCY_WRITE_BACK || !node_count || keys <= HOT || !every_ns)
		return 2;
	rng_start("shares");
	zipf = calloc(keys, sizeof(*zipf));
	nodes = calloc(node_count, sizeof(*nodes));
	base = event_base_new();
	if (!zipf || !nodes || !base || spec_make_def(&def, &spec, NULL))
		return 1;
	for (u32 i = 0; i < keys; i++)
		zipf[i] = (i ? zipf[i - 1] : 0) + 1.0 / (i + 1);
	for (u32 i = 0; i < node_count; i++)
		node_open(&nodes[i], i);
	took = run(atof(argv[3]), seconds, &sent);
	printf("%s %.0f %.4f %.4f %.4f %llu\n", names[consistency],
	       (decided[0] + decided[1]) / took, (double)sent / (decided[0] + decided[1]),
	       (double)asked[0] / decided[0], (double)asked[1] / decided[1], late);
	/* Commands in flight need no reply: the process ends here, with all its memory. */
	return 0;
}
