// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* cluster_show.c - see cluster_show.h. */
#include "cluster/bus/cluster_show.h"

#include "cluster/bus/cluster_private.h"

static void add(struct redis_stats *sum, const struct redis_stats *one)
{
	sum->commands += one->commands;
	sum->replies += one->replies;
	sum->errors += one->errors;
	sum->late += one->late;
	sum->refused += one->refused;
	sum->connects += one->connects;
	sum->redirects += one->redirects;
	sum->reloads += one->reloads;
	sum->sum_ns += one->sum_ns;
	sum->count += one->count;
	for (u32 i = 0; i < HISTOGRAM_BUCKETS; i++)
		sum->bucket[i] += one->bucket[i];
	if (one->breakers_open > sum->breakers_open)
		sum->breakers_open = one->breakers_open;
}

void cluster_redis_stats(struct cluster *c, struct redis_stats *ret)
{
	redis_stats(c->redis, ret);
	pthread_mutex_lock(&c->lock);
	for (struct cluster_worker *worker = c->worker; worker; worker = worker->next) {
		struct redis_stats one;

		redis_stats(worker->redis, &one);
		add(ret, &one);
	}
	pthread_mutex_unlock(&c->lock);
}

u32 cluster_servers(struct cluster *c, struct redis_server_state *ret, u32 max)
{
	return redis_server_states(c->redis, ret, max);
}

void cluster_bus_stats(struct cluster *c, struct bus_stats *ret)
{
	pthread_mutex_lock(&c->lock);
	*ret = c->bus_shown;
	ret->dropped += c->out.dropped + c->in.dropped;
	pthread_mutex_unlock(&c->lock);
}
