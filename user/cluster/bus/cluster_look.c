// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * cluster_look.c - what the store has of a few buckets, for somebody who waits (`user show`).
 *
 *     main thread: cluster_look() --- struct looking ---> cluster's thread: asks, and hears
 *                  waits for `open` <--------------------
 *
 * Who waits goes when its time is over; asks that have no answer yet keep what they need until they
 * have one. The last one frees it.
 */
#include "cluster/bus/cluster_private.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "cluster/quota/quota_apply.h"
#include "counters/store.h"

struct look_one {
	struct shared_ask ask;		/* first */
	struct shared_bucket bucket;
	struct share_look look;
	struct looking *looking;
	bool late;			/* and said so */
};

struct looking {
	struct cluster *cluster;
	struct looking *next;
	u64 deadline_ns;
	pthread_mutex_t lock;
	pthread_cond_t heard;
	u32 open;			/* of which nothing was heard yet */
	u32 holders;			/* the one who waits, and each that is not answered */
	u32 count;
	struct look_one one[];
};

static void let_go(struct looking *looking)
{
	bool last;

	pthread_mutex_lock(&looking->lock);
	last = !--looking->holders;
	pthread_mutex_unlock(&looking->lock);
	if (!last)
		return;
	pthread_cond_destroy(&looking->heard);
	pthread_mutex_destroy(&looking->lock);
	free(looking);
}

static void heard(struct looking *looking)
{
	pthread_mutex_lock(&looking->lock);
	if (!--looking->open)
		pthread_cond_signal(&looking->heard);
	pthread_mutex_unlock(&looking->lock);
}

/* ------------------------------------------------------------------ the cluster's thread */

static void answered(struct look_one *one, enum shared_outcome outcome)
{
	struct looking *looking = one->looking;
	struct store *store = looking->cluster->store;

	quota_reply(store, &one->look.ref, &one->bucket, &one->ask, outcome, store_now(store));
	pthread_mutex_lock(&looking->lock);
	one->look.answered = outcome == SHARED_DONE;
	one->look.used = one->bucket.state.used;
	pthread_mutex_unlock(&looking->lock);
	if (!one->late)
		heard(looking);
	let_go(looking);
}

static void on_done(struct shared_ask *ask, enum shared_outcome outcome)
{
	struct look_one *one = (struct look_one *)ask;

	one->late = outcome == SHARED_LATE;
	if (one->late)
		heard(one->looking);
	else
		answered(one, outcome);
}

static void on_late(struct shared_ask *ask, enum shared_outcome outcome)
{
	answered((struct look_one *)ask, outcome);
}

static void ask_one(struct cluster *c, struct look_one *one)
{
	const struct shared_ops *ops = c->shared->ops;

	one->look.ref.def = &one->look.def;
	one->bucket = (struct shared_bucket){
		.key = one->look.ref.key, .tag = one->look.ref.tag, .def = one->look.def,
		.kind = SHARED_TAKE,
	};
	one->ask = (struct shared_ask){
		.bucket = &one->bucket, .count = 1, .deadline_ns = one->looking->deadline_ns,
		.done = on_done, .late = on_late,
	};
	share_ask(c->shares, &one->look.ref, &one->bucket, store_now(c->store));
	if (!ops->up(c->shared, ops->place(c->shared, one->bucket.tag)) ||
	    ops->ask(c->shared, &one->ask) < 0)
		answered(one, SHARED_DOWN);
}

void cluster_looks(struct cluster *c)
{
	struct looking *looking, *next;

	pthread_mutex_lock(&c->lock);
	looking = c->looking;
	c->looking = NULL;
	pthread_mutex_unlock(&c->lock);
	for (; looking; looking = next) {
		u32 count = looking->count;

		next = looking->next;
		/* It is there until the last of them has its answer. */
		for (u32 i = 0; i < count; i++)
			ask_one(c, &looking->one[i]);
	}
}

/* ------------------------------------------------------------------ the main thread */

static struct looking *looking_new(struct cluster *c, const struct share_look *look, u32 count,
				   u64 wait_ns)
{
	struct looking *looking = calloc(1, sizeof(*looking) + count * sizeof(looking->one[0]));
	pthread_condattr_t attr;

	if (!looking)
		return NULL;
	looking->cluster = c;
	looking->deadline_ns = wait_ns;
	looking->open = looking->count = count;
	looking->holders = count + 1;
	for (u32 i = 0; i < count; i++) {
		looking->one[i].looking = looking;
		looking->one[i].look = look[i];
	}
	pthread_mutex_init(&looking->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&looking->heard, &attr);
	pthread_condattr_destroy(&attr);
	return looking;
}

void cluster_look(struct cluster *c, struct share_look *look, u32 count, u64 wait_ns)
{
	u64 until_ns = bus_mono_ns() + wait_ns;
	struct timespec until = { .tv_sec = (time_t)(until_ns / SL_NS_PER_SEC),
				  .tv_nsec = (long)(until_ns % SL_NS_PER_SEC) };
	struct looking *looking;

	for (u32 i = 0; i < count; i++)
		look[i].answered = false;
	if (!c->running || !c->shared || !count)
		return;
	looking = looking_new(c, look, count, wait_ns);
	if (!looking)
		return;
	pthread_mutex_lock(&c->lock);
	looking->next = c->looking;
	c->looking = looking;
	pthread_mutex_unlock(&c->lock);
	notes_wake(&c->out);
	pthread_mutex_lock(&looking->lock);
	while (looking->open && pthread_cond_timedwait(&looking->heard, &looking->lock, &until) == 0)
		;
	for (u32 i = 0; i < count; i++) {
		look[i].answered = looking->one[i].look.answered;
		look[i].used = looking->one[i].look.used;
	}
	pthread_mutex_unlock(&looking->lock);
	let_go(looking);
}
