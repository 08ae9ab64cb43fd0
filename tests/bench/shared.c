// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * shared SOCKET SECONDS IN-FLIGHT ALGORITHM - strict decisions as a worker makes them: through
 * cluster_store_redis.c over one connection, each for one of 10000 keys, a new command for each
 * reply. Prints how many got a reply, and how many did not pass (none should).
 *
 * scripts/bench-redis.sh measures their cost in Redis.
 */
#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/redis/redis.h"
#include "cluster/quota/cluster_store.h"
#include "limiter/algorithm.h"
#include "lib/spec_def.h"

#define IN_FLIGHT_MAX 4096
#define KEYS 10000

struct load {
	struct cluster_store *shared;
	struct cluster_store_bucket bucket[IN_FLIGHT_MAX];
	struct cluster_store_request ask[IN_FLIGHT_MAX];
	struct spec_def def;
	u64 answered, refused, failed, random;
	u32 in_flight;
	bool over;
};

static struct load load;

static void request_submit(u32 i);

static void done(struct cluster_store_request *response, enum cluster_store_outcome outcome)
{
	u32 i = response - load.ask;

	if (outcome == CLUSTER_STORE_LATE)
		return;
	load.in_flight--;
	load.answered++;
	load.refused += outcome == CLUSTER_STORE_DONE && !response->passed;
	load.failed += outcome != CLUSTER_STORE_DONE;
	if (!load.over)
		request_submit(i);
}

static void request_submit(u32 i)
{
	load.random = load.random * 6364136223846793005ULL + 1442695040888963407ULL;
	load.bucket[i] = (struct cluster_store_bucket){
		.key = 1 + (load.random >> 33) % KEYS,
		.tag = 1,
		.cost = 1,
		.def = load.def,
	};
	load.ask[i] = (struct cluster_store_request){ .bucket = &load.bucket[i],
						      .count = 1,
						      .done = done,
						      .late = done,
						      .deadline_ns = 5 * SL_NS_PER_SEC };
	if (load.shared->ops->send(load.shared, &load.ask[i])) {
		fprintf(stderr, "shared: cannot ask\n");
		exit(1);
	}
	load.in_flight++;
}

static void on_end(evutil_socket_t fd, short what, void *arg)
{
	load.over = true;
}

int main(int argc, char **argv)
{
	struct redis_url url = { .unix_socket = true };
	struct redis_def def = { .url = &url, .url_count = 1, .prefix = "sluice:" };
	struct event_base *base = event_base_new();
	struct redis *redis;
	struct sl_err err;
	struct timeval end;

	if (argc != 5 || atoi(argv[3]) < 1 || atoi(argv[3]) > IN_FLIGHT_MAX) {
		fprintf(stderr, "usage: shared SOCKET SECONDS IN-FLIGHT ALGORITHM\n");
		return 2;
	}
	url.text = url.host = argv[1];
	load.def = (struct spec_def)SPEC_DEF(COUNT, 1000000, 3600 * SL_NS_PER_SEC);
	for (u8 algo = 0; algo < SL_ALGO_GRACE; algo++)
		if (!strcmp(algorithm_name(algo), argv[4]))
			load.def.algo = algo;
	if (load.def.algo == SL_ALGO_TOKEN_BUCKET)
		load.def.burst = load.def.count;
	if (redis_new(base, &def, &redis, &err) ||
	    cluster_store_redis_new(redis, "sluice:", "bench", &load.shared)) {
		fprintf(stderr, "shared: no client\n");
		return 1;
	}
	end.tv_sec = atof(argv[2]);
	end.tv_usec = (atof(argv[2]) - end.tv_sec) * 1e6;
	event_base_once(base, -1, EV_TIMEOUT, on_end, NULL, &end);
	for (u32 i = 0; i < (u32)atoi(argv[3]); i++)
		request_submit(i);
	while (!load.over || load.in_flight)
		event_base_loop(base, EVLOOP_ONCE);
	printf("%llu %llu\n", load.answered, load.refused + load.failed);
	redis_free(redis);
	load.shared->ops->free(load.shared);
	event_base_free(base);
	return load.failed != 0;
}
