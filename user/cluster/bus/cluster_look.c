// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * cluster_look.c - reads a few buckets from Redis for a waiting caller (`user show`).
 *
 *     main thread: cluster_look() --- struct lookup ---> cluster's thread: sends, receives
 *                  waits for `open` <--------------------
 *
 * The caller stops waiting at its time limit; commands without a reply still hold the lookup. The
 * last holder frees it.
 */
#include "cluster/bus/cluster_private.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "cluster/quota/quota_apply.h"
#include "counters/counters.h"

struct lookup_one {
	struct cluster_store_request request; /* first */
	struct cluster_store_bucket bucket;
	struct quota_lookup look;
	struct lookup *lookup;
	bool late; /* its deadline passed, and this was reported */
};

struct lookup {
	struct cluster *cluster;
	struct lookup *next;
	u64 deadline_ns;
	pthread_mutex_t lock;
	pthread_cond_t received;
	u32 open;    /* buckets without a reply yet */
	u32 holders; /* the waiting caller and the commands without a reply */
	u32 count;
	struct lookup_one one[];
};

static void let_go(struct lookup *lookup)
{
	bool last;

	pthread_mutex_lock(&lookup->lock);
	last = !--lookup->holders;
	pthread_mutex_unlock(&lookup->lock);
	if (!last)
		return;
	pthread_cond_destroy(&lookup->received);
	pthread_mutex_destroy(&lookup->lock);
	free(lookup);
}

static void received(struct lookup *lookup)
{
	pthread_mutex_lock(&lookup->lock);
	if (!--lookup->open)
		pthread_cond_signal(&lookup->received);
	pthread_mutex_unlock(&lookup->lock);
}

/* ------------------------------------------------------------------ the cluster's thread */

static void answered(struct lookup_one *one, enum cluster_store_outcome outcome)
{
	struct lookup *lookup = one->lookup;
	struct counters *counters = lookup->cluster->counters;

	quota_reply(counters, lookup->cluster->quotas, &one->look.ref, &one->bucket, &one->request,
		    outcome, counters_now(counters));
	pthread_mutex_lock(&lookup->lock);
	one->look.answered = outcome == CLUSTER_STORE_DONE;
	one->look.used = one->bucket.state.used;
	pthread_mutex_unlock(&lookup->lock);
	if (!one->late)
		received(lookup);
	let_go(lookup);
}

static void on_done(struct cluster_store_request *request, enum cluster_store_outcome outcome)
{
	struct lookup_one *one = (struct lookup_one *)request;

	one->late = outcome == CLUSTER_STORE_LATE;
	if (one->late)
		received(one->lookup);
	else
		answered(one, outcome);
}

static void on_late(struct cluster_store_request *request, enum cluster_store_outcome outcome)
{
	answered((struct lookup_one *)request, outcome);
}

static void request_one(struct cluster *c, struct lookup_one *one)
{
	const struct cluster_store_ops *ops = c->store->ops;

	one->look.ref.def = &one->look.def;
	one->bucket = (struct cluster_store_bucket){
		.key = one->look.ref.key,
		.tag = one->look.ref.tag,
		.def = one->look.def,
		.kind = CLUSTER_STORE_CHARGE,
	};
	one->request = (struct cluster_store_request){
		.bucket = &one->bucket,
		.count = 1,
		.deadline_ns = one->lookup->deadline_ns,
		.done = on_done,
		.late = on_late,
	};
	quota_prepare(c->quotas, &one->look.ref, &one->bucket, counters_now(c->counters));
	if (!ops->up(c->store, ops->slot_of(c->store, one->bucket.tag)) ||
	    ops->send(c->store, &one->request) < 0)
		answered(one, CLUSTER_STORE_DOWN);
}

void cluster_looks(struct cluster *c)
{
	struct lookup *lookup, *next;

	pthread_mutex_lock(&c->lock);
	lookup = c->lookup;
	c->lookup = NULL;
	pthread_mutex_unlock(&c->lock);
	for (; lookup; lookup = next) {
		u32 count = lookup->count;

		next = lookup->next;
		/* The request is kept until the last command has its reply. */
		for (u32 i = 0; i < count; i++)
			request_one(c, &lookup->one[i]);
	}
}

/* ------------------------------------------------------------------ the main thread */

static struct lookup *lookup_new(struct cluster *c, const struct quota_lookup *look, u32 count,
				 u64 wait_ns)
{
	struct lookup *lookup = calloc(1, sizeof(*lookup) + count * sizeof(lookup->one[0]));
	pthread_condattr_t attr;

	if (!lookup)
		return NULL;
	lookup->cluster = c;
	lookup->deadline_ns = wait_ns;
	lookup->open = lookup->count = count;
	lookup->holders = count + 1;
	for (u32 i = 0; i < count; i++) {
		lookup->one[i].lookup = lookup;
		lookup->one[i].look = look[i];
	}
	pthread_mutex_init(&lookup->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&lookup->received, &attr);
	pthread_condattr_destroy(&attr);
	return lookup;
}

void cluster_look(struct cluster *c, struct quota_lookup *look, u32 count, u64 wait_ns)
{
	u64 until_ns = clock_mono_ns() + wait_ns;
	struct timespec until = { .tv_sec = (time_t)(until_ns / SL_NS_PER_SEC),
				  .tv_nsec = (long)(until_ns % SL_NS_PER_SEC) };
	struct lookup *lookup;

	for (u32 i = 0; i < count; i++)
		look[i].answered = false;
	if (!c->running || !c->store || !count)
		return;
	lookup = lookup_new(c, look, count, wait_ns);
	if (!lookup)
		return;
	pthread_mutex_lock(&c->lock);
	lookup->next = c->lookup;
	c->lookup = lookup;
	pthread_mutex_unlock(&c->lock);
	notes_wake(&c->out);
	pthread_mutex_lock(&lookup->lock);
	while (lookup->open &&
	       pthread_cond_timedwait(&lookup->received, &lookup->lock, &until) == 0)
		;
	for (u32 i = 0; i < count; i++) {
		look[i].answered = lookup->one[i].look.answered;
		look[i].used = lookup->one[i].look.used;
	}
	pthread_mutex_unlock(&lookup->lock);
	let_go(lookup);
}
