// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * cluster_connect.c - connections to Redis: the cluster's thread has a client, and each worker has
 * one on its own loop.
 */
#include "cluster/bus/cluster_private.h"

#include <errno.h>
#include <stdlib.h>

#include "lib/log.h"

int cluster_connect(struct cluster *c, struct event_base *base, struct redis **ret_redis,
		    struct cluster_store **ret_store, struct sl_err *err)
{
	struct cluster_store *store = NULL;
	struct redis *redis = NULL;
	int r = redis_new(base, &c->def->redis, &redis, err);

	if (r < 0)
		return r;
	redis_name(redis, c->def->node);
	if (cluster_store_redis_new(redis, c->def->redis.prefix, c->def->node, &store) < 0) {
		redis_free(redis);
		return sl_err_set(err, ENOMEM, "out of memory");
	}
	*ret_redis = redis;
	*ret_store = store;
	return 0;
}

/* Frees the client first: it completes pending requests through the cluster store. */
void cluster_disconnect(struct redis *redis, struct cluster_store *store)
{
	redis_free(redis);
	if (store)
		store->ops->free(store);
}

/* ------------------------------------------------------------------ workers */

int cluster_worker_open(struct cluster *c, struct event_base *base, struct cluster_store **ret)
{
	struct cluster_worker *worker = calloc(1, sizeof(*worker));
	struct sl_err err;
	int r;

	if (!worker)
		return -ENOMEM;
	r = cluster_connect(c, base, &worker->redis, &worker->store, &err);
	if (r < 0) {
		log_error("cluster: %s", err.message);
		free(worker);
		return r;
	}
	redis_warm(worker->redis);
	pthread_mutex_lock(&c->lock);
	worker->next = c->worker;
	c->worker = worker;
	pthread_mutex_unlock(&c->lock);
	*ret = worker->store;
	return 0;
}

void cluster_worker_close(struct cluster *c, struct cluster_store *store)
{
	struct cluster_worker *worker, **link;

	pthread_mutex_lock(&c->lock);
	for (link = &c->worker; (*link)->store != store; link = &(*link)->next)
		;
	worker = *link;
	*link = worker->next;
	pthread_mutex_unlock(&c->lock);
	cluster_disconnect(worker->redis, worker->store);
	free(worker);
}
