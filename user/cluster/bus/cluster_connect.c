// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * cluster_connect.c - ways to the store: the cluster's thread has one, and each worker.
 *
 * A worker knows only struct shared; so that all of it goes with that, the client is wrapped.
 */
#include "cluster/bus/cluster_private.h"

#include <errno.h>
#include <stdlib.h>

#include "lib/log.h"

int cluster_connect(struct cluster *c, struct event_base *base, struct redis **ret_redis,
		    struct cluster_store **ret_shared, struct sl_err *err)
{
	struct cluster_store *shared = NULL;
	struct redis *redis = NULL;
	int r = redis_new(base, &c->def->redis, &redis, err);

	if (r < 0)
		return r;
	redis_name(redis, c->def->node);
	if (cluster_store_redis_new(redis, c->def->redis.prefix, c->def->node, &shared) < 0) {
		redis_free(redis);
		return sl_err_set(err, ENOMEM, "out of memory");
	}
	*ret_redis = redis;
	*ret_shared = shared;
	return 0;
}

/* The client first: what is on its way is answered, and by whoever asked. */
void cluster_disconnect(struct redis *redis, struct cluster_store *shared)
{
	redis_free(redis);
	if (shared)
		shared->ops->free(shared);
}

/* ------------------------------------------------------------------ workers */

static struct cluster_worker *worker_of(struct cluster_store *shared)
{
	return (struct cluster_worker *)shared;	/* its first member */
}

static u32 worker_place(struct cluster_store *shared, u64 tag)
{
	struct cluster_store *inner = worker_of(shared)->inner;

	return inner->ops->slot_of(inner, tag);
}

static int worker_request(struct cluster_store *shared, struct cluster_store_request *ask)
{
	struct cluster_store *inner = worker_of(shared)->inner;

	return inner->ops->send(inner, ask);
}

static bool worker_up(struct cluster_store *shared, u32 place)
{
	struct cluster_store *inner = worker_of(shared)->inner;

	return inner->ops->up(inner, place);
}

static void worker_free(struct cluster_store *shared)
{
	struct cluster_worker *worker = worker_of(shared), **link;
	struct cluster *c = worker->cluster;

	pthread_mutex_lock(&c->lock);
	for (link = &c->worker; *link != worker; link = &(*link)->next)
		;
	*link = worker->next;
	pthread_mutex_unlock(&c->lock);
	cluster_disconnect(worker->redis, worker->inner);
	free(worker);
}

int cluster_worker_open(struct cluster *c, struct event_base *base, struct cluster_store **ret)
{
	static const struct cluster_store_ops ops = {worker_place, worker_request, worker_up,
						     worker_free};
	struct cluster_worker *worker = calloc(1, sizeof(*worker));
	struct sl_err err;
	int r;

	if (!worker)
		return -ENOMEM;
	worker->shared.ops = &ops;
	worker->cluster = c;
	r = cluster_connect(c, base, &worker->redis, &worker->inner, &err);
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
	*ret = &worker->shared;
	return 0;
}
