// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * delay_queue.c - queues of held answers, one per bucket, over all workers; and the mailboxes by
 * which a worker hears that one of its own has become the first of its queue.
 *
 * A queue is there as long as somebody is in it, so memory is bounded by what is held.
 */
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "request/engine/delay_private.h"

#define DELAY_STEPS 64

struct delays *delays_new(u32 worker_count, u64 max_delayed)
{
	struct delays *delays =
		calloc(1, sizeof(*delays) + worker_count * sizeof(delays->worker[0]));

	if (!delays)
		return NULL;
	pthread_mutex_init(&delays->lock, NULL);
	delays->max_delayed = max_delayed;
	delays->worker_count = worker_count;
	for (u32 i = 0; i < worker_count; i++) {
		delays->worker[i].mail_fd = -1;
		TAILQ_INIT(&delays->worker[i].mail);
	}
	return delays;
}

void delays_free(struct delays *delays)
{
	struct delay_queue *queue;

	if (!delays)
		return;
	for (u32 i = 0; i < delays->worker_count; i++) {
		struct delay_worker *own = &delays->worker[i];

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
	for (u32 i = 0; i < DELAY_CHAINS; i++)
		while ((queue = delays->chain[i])) {
			delays->chain[i] = queue->next;
			free(queue);
		}
	pthread_mutex_destroy(&delays->lock);
	free(delays);
}

/* ---------------------------------------------------------------- queues; the lock is held */

static struct delay_queue **queue_find(struct delays *delays, u64 key)
{
	struct delay_queue **at = &delays->chain[key % DELAY_CHAINS];

	while (*at && (*at)->key != key)
		at = &(*at)->next;
	return at;
}

/* `waiting` is to try again, as of notified_ns; its worker hears of it. */
static void notify(struct delays *delays, struct delayed *delayed, u64 notified_ns)
{
	struct delay_worker *own = &delays->worker[delayed->thread->index];
	u64 one = 1;

	delayed->notified_ns = notified_ns;
	if (delayed->notified)
		return;
	delayed->notified = true;
	TAILQ_INSERT_TAIL(&own->mail, delayed, in_mail);
	/* Fails only where the count is at its most: it is readable then anyway. */
	if (write(own->mail_fd, &one, sizeof(one)) < 0)
		return;
}

void delay_leave(struct delays *delays, struct delayed *delayed, u64 as_of_ns)
{
	struct delay_queue *queue = delayed->queue, **at;
	bool first = TAILQ_FIRST(&queue->list) == delayed;

	TAILQ_REMOVE(&queue->list, delayed, in_queue);
	queue->count--;
	queue->hits -= delayed->hits;
	__atomic_sub_fetch(&delays->count, 1, __ATOMIC_RELAXED);
	delayed->queue = NULL;
	if (delayed->notified)
		TAILQ_REMOVE(&delays->worker[delayed->thread->index].mail, delayed, in_mail);
	delayed->notified = false;
	if (!queue->count) {
		at = queue_find(delays, queue->key);
		*at = queue->next;
		free(queue);
	} else if (first) {
		notify(delays, TAILQ_FIRST(&queue->list), as_of_ns);
	}
}

bool delay_enter(struct delays *delays, struct delayed *delayed, const struct decide_delay *wait,
		 bool *ret_first)
{
	struct delay_queue **at = queue_find(delays, wait->key), *queue = *at;
	struct delayed *before;

	if (delays->draining || delays->count >= delays->max_delayed ||
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
	TAILQ_FOREACH_REVERSE(before, &queue->list, delayed_list, in_queue)
		if (before->ticket < delayed->ticket)
			break;
	if (before)
		TAILQ_INSERT_AFTER(&queue->list, before, delayed, in_queue);
	else
		TAILQ_INSERT_HEAD(&queue->list, delayed, in_queue);
	delayed->queue = queue;
	delayed->hits = wait->hits;
	queue->count++;
	queue->hits += wait->hits;
	__atomic_add_fetch(&delays->count, 1, __ATOMIC_RELAXED);
	*ret_first = !before;
	return true;
}

/* ---------------------------------------------------------------- who is before a call */

u64 delays_ahead(void *arg, u64 key)
{
	const struct delay_position *of = arg;
	struct delay_queue *queue;
	struct delayed *before;
	u64 hits = 0;
	u32 steps = 0;

	if (!of->delays || !__atomic_load_n(&of->delays->count, __ATOMIC_RELAXED))
		return 0;
	pthread_mutex_lock(&of->delays->lock);
	queue = *queue_find(of->delays, key);
	if (queue && of->ticket == NEVER)
		hits = queue->hits;
	else if (queue)
		TAILQ_FOREACH(before, &queue->list, in_queue) {
			if (before->ticket >= of->ticket)
				break;
			hits += before->hits;
			/* Far behind: all of them will do, and costs no more. */
			if (++steps == DELAY_STEPS) {
				hits = queue->hits;
				break;
			}
		}
	pthread_mutex_unlock(&of->delays->lock);
	return hits;
}

/* ---------------------------------------------------------------- from other threads */

/* The first of each queue tries again, or all of them. */
static void notify_queues(struct delays *delays, bool all)
{
	struct delayed *delayed;

	for (u32 i = 0; i < DELAY_CHAINS; i++)
		for (struct delay_queue *queue = delays->chain[i]; queue; queue = queue->next)
			TAILQ_FOREACH(delayed, &queue->list, in_queue) {
				notify(delays, delayed, 0);
				if (!all)
					break;
			}
}

void delays_recheck(struct delays *delays)
{
	pthread_mutex_lock(&delays->lock);
	notify_queues(delays, false);
	pthread_mutex_unlock(&delays->lock);
}

void delays_drain(struct delays *delays)
{
	pthread_mutex_lock(&delays->lock);
	delays->draining = true;
	notify_queues(delays, true);
	pthread_mutex_unlock(&delays->lock);
}

void delays_each(struct delays *delays, delays_each_fn each, void *arg)
{
	pthread_mutex_lock(&delays->lock);
	for (u32 i = 0; i < DELAY_CHAINS; i++)
		for (struct delay_queue *queue = delays->chain[i]; queue; queue = queue->next)
			each(arg, queue->rule_id, queue->count);
	pthread_mutex_unlock(&delays->lock);
}

u64 delays_total(const struct delays *delays)
{
	return __atomic_load_n(&delays->count, __ATOMIC_RELAXED);
}
