// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * wait_queue.c - queues of held answers, one per bucket, over all workers; and the mailboxes by
 * which a worker hears that one of its own has become the first of its queue.
 *
 * A queue is there as long as somebody is in it, so memory is bounded by what is held.
 */
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "request/engine/wait_private.h"

#define WAIT_STEPS 64

struct waits *waits_new(u32 worker_count, u64 max_waiting)
{
	struct waits *waits = calloc(1, sizeof(*waits) + worker_count * sizeof(waits->worker[0]));

	if (!waits)
		return NULL;
	pthread_mutex_init(&waits->lock, NULL);
	waits->max_waiting = max_waiting;
	waits->worker_count = worker_count;
	for (u32 i = 0; i < worker_count; i++) {
		waits->worker[i].mail_fd = -1;
		TAILQ_INIT(&waits->worker[i].mail);
	}
	return waits;
}

void waits_free(struct waits *waits)
{
	struct wait_queue *queue;

	if (!waits)
		return;
	for (u32 i = 0; i < waits->worker_count; i++) {
		struct wait_worker *own = &waits->worker[i];

		for (u32 k = 0; k < own->heap.count; k++)
			free(own->heap.at[k]);
		free(own->heap.at);
		if (own->timer)
			event_free(own->timer);
		if (own->mail_event)
			event_free(own->mail_event);
		if (own->mail_fd >= 0)
			close(own->mail_fd);
	}
	for (u32 i = 0; i < WAIT_CHAINS; i++)
		while ((queue = waits->chain[i])) {
			waits->chain[i] = queue->next;
			free(queue);
		}
	pthread_mutex_destroy(&waits->lock);
	free(waits);
}

/* ---------------------------------------------------------------- queues; the lock is held */

static struct wait_queue **queue_find(struct waits *waits, u64 key)
{
	struct wait_queue **at = &waits->chain[key % WAIT_CHAINS];

	while (*at && (*at)->key != key)
		at = &(*at)->next;
	return at;
}

/* `waiting` is to try again, as of told_ns; its worker hears of it. */
static void tell(struct waits *waits, struct waiting *waiting, u64 told_ns)
{
	struct wait_worker *own = &waits->worker[waiting->worker->index];
	u64 one = 1;

	waiting->told_ns = told_ns;
	if (waiting->told)
		return;
	waiting->told = true;
	TAILQ_INSERT_TAIL(&own->mail, waiting, in_mail);
	/* Fails only where the count is at its most: it is readable then anyway. */
	if (write(own->mail_fd, &one, sizeof(one)) < 0)
		return;
}

void wait_leave(struct waits *waits, struct waiting *waiting, u64 as_of_ns)
{
	struct wait_queue *queue = waiting->queue, **at;
	bool first = TAILQ_FIRST(&queue->list) == waiting;

	TAILQ_REMOVE(&queue->list, waiting, in_queue);
	queue->count--;
	queue->hits -= waiting->hits;
	__atomic_sub_fetch(&waits->count, 1, __ATOMIC_RELAXED);
	waiting->queue = NULL;
	if (waiting->told)
		TAILQ_REMOVE(&waits->worker[waiting->worker->index].mail, waiting, in_mail);
	waiting->told = false;
	if (!queue->count) {
		at = queue_find(waits, queue->key);
		*at = queue->next;
		free(queue);
	} else if (first) {
		tell(waits, TAILQ_FIRST(&queue->list), as_of_ns);
	}
}

bool wait_enter(struct waits *waits, struct waiting *waiting, const struct decide_wait *wait,
		bool *ret_first)
{
	struct wait_queue **at = queue_find(waits, wait->key), *queue = *at;
	struct waiting *before;

	if (waits->draining || waits->count >= waits->max_waiting ||
	    (queue ? queue->count : 0) >= wait->queue)
		return false;
	if (!queue) {
		queue = calloc(1, sizeof(*queue));
		if (!queue)
			return false;
		queue->key = wait->key;
		queue->rule_id = wait->rule_id;
		TAILQ_INIT(&queue->list);
		*at = queue;
	}
	TAILQ_FOREACH_REVERSE(before, &queue->list, waiting_list, in_queue)
		if (before->ticket < waiting->ticket)
			break;
	if (before)
		TAILQ_INSERT_AFTER(&queue->list, before, waiting, in_queue);
	else
		TAILQ_INSERT_HEAD(&queue->list, waiting, in_queue);
	waiting->queue = queue;
	waiting->hits = wait->hits;
	queue->count++;
	queue->hits += wait->hits;
	__atomic_add_fetch(&waits->count, 1, __ATOMIC_RELAXED);
	*ret_first = !before;
	return true;
}

/* ---------------------------------------------------------------- who is before a call */

u64 waits_ahead(void *arg, u64 key)
{
	const struct wait_place *of = arg;
	struct wait_queue *queue;
	struct waiting *before;
	u64 hits = 0;
	u32 steps = 0;

	if (!of->waits || !__atomic_load_n(&of->waits->count, __ATOMIC_RELAXED))
		return 0;
	pthread_mutex_lock(&of->waits->lock);
	queue = *queue_find(of->waits, key);
	if (queue && of->ticket == NEVER)
		hits = queue->hits;
	else if (queue)
		TAILQ_FOREACH(before, &queue->list, in_queue) {
			if (before->ticket >= of->ticket)
				break;
			hits += before->hits;
			/* Far behind: all of them will do, and costs no more. */
			if (++steps == WAIT_STEPS) {
				hits = queue->hits;
				break;
			}
		}
	pthread_mutex_unlock(&of->waits->lock);
	return hits;
}

/* ---------------------------------------------------------------- from other threads */

/* The first of each queue tries again, or all of them. */
static void tell_queues(struct waits *waits, bool all)
{
	struct waiting *waiting;

	for (u32 i = 0; i < WAIT_CHAINS; i++)
		for (struct wait_queue *queue = waits->chain[i]; queue; queue = queue->next)
			TAILQ_FOREACH(waiting, &queue->list, in_queue) {
				tell(waits, waiting, 0);
				if (!all)
					break;
			}
}

void waits_recheck(struct waits *waits)
{
	pthread_mutex_lock(&waits->lock);
	tell_queues(waits, false);
	pthread_mutex_unlock(&waits->lock);
}

void waits_drain(struct waits *waits)
{
	pthread_mutex_lock(&waits->lock);
	waits->draining = true;
	tell_queues(waits, true);
	pthread_mutex_unlock(&waits->lock);
}

void waits_each(struct waits *waits, waits_each_fn each, void *arg)
{
	pthread_mutex_lock(&waits->lock);
	for (u32 i = 0; i < WAIT_CHAINS; i++)
		for (struct wait_queue *queue = waits->chain[i]; queue; queue = queue->next)
			each(arg, queue->rule_id, queue->count);
	pthread_mutex_unlock(&waits->lock);
}

u64 waits_total(const struct waits *waits)
{
	return __atomic_load_n(&waits->count, __ATOMIC_RELAXED);
}
