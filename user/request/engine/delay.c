// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * delay.c - delayed responses: until the request fits, where the rule that refuses it has on_limit
 * (wait, queue), or until Redis has replied.
 *
 * A delayed request is in the queue of one bucket: of those that refuse it, the one with the
 * longest wait. Queues are first in, first out over all workers: decide() gets the hits that queue
 * for a bucket from delays_ahead() and refuses every request behind them, also one that may not
 * wait. Nothing is charged in advance. Only the first of a queue tries again, when its hits fit,
 * and is charged then, under the rules in force by then. A cancelled request leaves the queue. A
 * request that another bucket refuses moves to the queue of that bucket, in order of its arrival.
 *
 * The first of a queue may belong to any worker: the request before it notifies it through the
 * mailbox of its worker. Timers are the worker's own heap and one libevent timer.
 *
 * A request that waits for Redis (remote.h) gets its response, or tries again, after the reply. It
 * keeps its position, and a notification waits until the reply; so of a queue one request at a time
 * is sent to Redis.
 *
 * A timer fires late by what the kernel and the machine need. A bucket that counted from there
 * would lose that time at each try, so the request is decided as of the time that it was due, up to
 * DELAY_LATE_NS ago: the k-th at k times the interval, and no faster than the rate.
 */
#include <stdlib.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "request/engine/defer.h"
#include "request/engine/delay_private.h"
#include "request/engine/observe.h"

#define DELAY_STEPS 64
#define DELAY_LATE_NS 20000000ULL
#define DELAY_LEAST_NS 1000ULL /* between two tries */

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

/* Has the request try again, as of notified_ns: notifies its worker. */
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

/* Leaves its queue. The next one becomes the first and tries again as of as_of_ns. */
static void delay_leave(struct delays *delays, struct delayed *delayed, u64 as_of_ns)
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

/* Joins the queue that `wait` names. False: no room. *ret_first: it is the first there. */
static bool delay_enter(struct delays *delays, struct delayed *delayed,
			const struct decide_delay *wait, bool *ret_first)
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

/* ---------------------------------------------------------------- the hits ahead of a request */

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
			/* Far behind: the hits of the whole queue are close enough. */
			if (++steps == DELAY_STEPS) {
				hits = queue->hits;
				break;
			}
		}
	pthread_mutex_unlock(&of->delays->lock);
	return hits;
}

/* ---------------------------------------------------------------- from other threads */

/* Notifies the first of each queue, or all. */
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

static void on_remote(void *arg, struct response *response, const struct decide_delay *wait);

/* ---------------------------------------------------------------- the worker's own */

static struct delay_worker *own_of(struct engine_thread *thread)
{
	return &thread->engine->delays->worker[thread->index];
}

static void timer_arm(struct delay_worker *own, u64 now_ns)
{
	struct timeval in = { 0 };
	u64 at_ns, us;

	if (!own->heap.count) {
		event_del(own->timer);
		return;
	}
	at_ns = own->heap.at[0]->at_ns;
	us = at_ns > now_ns ? (at_ns - now_ns + 999) / 1000 : 0;
	in.tv_sec = us / 1000000;
	in.tv_usec = us % 1000000;
	event_add(own->timer, &in);
}

/* The next try: when its hits may fit, and at the latest at the end of its time. */
static void timer_set(struct delay_worker *own, struct delayed *delayed, u64 due_ns)
{
	delayed->due_ns = due_ns;
	timer_heap_set(&own->heap, &delayed->timer,
		       due_ns < delayed->until_ns ? due_ns : delayed->until_ns);
}

/* How long the rule that refuses a request, and its client, permit to wait; 0: not at all. */
static u64 may_wait_ns(const struct request *request, const struct response *response,
		       const struct decide_delay *wait)
{
	u64 most_ns = request->max_wait_ns < wait->limit_ns ? request->max_wait_ns : wait->limit_ns;

	if (response->code != RESPONSE_OVER_LIMIT || !wait->key || request->peek || request->report)
		return 0;
	return most_ns;
}

/*
 * When a request that was refused at when_ns tries again. Its wait includes the hits before it; the
 * first of a queue has none, and is decided again at once.
 */
static u64 due(const struct decide_delay *wait, bool first, u64 when_ns)
{
	if (!first)
		return NEVER;
	if (wait->before)
		return when_ns;
	return when_ns + (wait->wait_ns > DELAY_LEAST_NS ? wait->wait_ns : DELAY_LEAST_NS);
}

void delay_respond(struct delayed *delayed, const struct response *response)
{
	observe(delayed->thread, delayed->request, response, clock_mono_ns() - delayed->began_ns);
	delayed->done(delayed->request, response, delayed->arg);
}

/*
 * After another decision as of when_ns; the time is now_ns. True: the response was sent, and the
 * request has left its queue. In the rules' read section.
 */
static bool tried(struct delayed *delayed, struct response *response,
		  const struct decide_delay *wait, u64 when_ns, u64 now_ns)
{
	struct delays *delays = delayed->thread->engine->delays;
	u64 most_ns = may_wait_ns(delayed->request, response, wait);
	bool first, stays = false;

	if (delayed->until_ns > delayed->since_ns + most_ns)
		delayed->until_ns = delayed->since_ns + most_ns;
	pthread_mutex_lock(&delays->lock);
	if (when_ns < delayed->until_ns && wait->wait_ns <= delayed->until_ns - when_ns) {
		struct delay_queue *queue = delayed->queue;

		/* Leaves and enters again: the rule, the hits or the bucket may have changed. */
		if (queue->key == wait->key && queue->rule_id == wait->rule_id &&
		    delayed->hits == wait->hits && !delays->draining) {
			stays = true;
			first = TAILQ_FIRST(&queue->list) == delayed;
		} else {
			delay_leave(delays, delayed, when_ns);
			stays = delay_enter(delays, delayed, wait, &first);
		}
	}
	if (!stays && delayed->queue)
		delay_leave(delays, delayed, when_ns);
	pthread_mutex_unlock(&delays->lock);
	if (stays) {
		timer_set(own_of(delayed->thread), delayed,
			  delayed->again ? when_ns : due(wait, first, when_ns));
		delayed->again = false;
		return false;
	}
	response->delayed_ns = now_ns - delayed->since_ns;
	delay_respond(delayed, response);
	return true;
}

/* Tries again. True: the response was sent. In the rules' read section. */
static bool try_again(struct delayed *delayed, const struct ruleset *rules, struct sl_now now,
		      struct response *response)
{
	struct delay_position before = { .delays = delayed->thread->engine->delays,
					 .ticket = delayed->ticket };
	struct decide_delay wait = { .ahead = delays_ahead, .arg = &before };
	u64 late_ns = 0, now_ns = now.mono_ns;

	if (delayed->due_ns < now.mono_ns)
		late_ns = now.mono_ns - delayed->due_ns;
	if (late_ns > DELAY_LATE_NS)
		late_ns = DELAY_LATE_NS;
	now.mono_ns -= late_ns;
	now.utc_ns -= late_ns;
	delayed->began_ns = clock_mono_ns();
	delayed->remote =
		engine_decide(delayed->thread, rules, delayed->request, now, response, &wait);
	if (!delayed->remote)
		return tried(delayed, response, &wait, now.mono_ns, now_ns);
	remote_on(delayed->remote, on_remote, delayed);
	timer_heap_set(&own_of(delayed->thread)->heap, &delayed->timer, NEVER);
	return false;
}

/* Retries the requests of this worker that are due. */
static void delays_run(struct engine_thread *thread)
{
	struct engine *engine = thread->engine;
	struct delay_worker *own = own_of(thread);
	struct sl_now now = counters_now(engine->ledger.counters);
	struct response response;

	while (own->heap.count && own->heap.at[0]->at_ns <= now.mono_ns) {
		struct delayed *delayed = (struct delayed *)own->heap.at[0];

		if (try_again(delayed, engine_rules_enter(engine), now, &response)) {
			timer_heap_unset(&own->heap, &delayed->timer);
			free(delayed);
		}
		engine_rules_leave(engine);
		now = counters_now(engine->ledger.counters);
	}
	timer_arm(own, now.mono_ns);
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
	delays_run(arg);
}

/* Requests in the mailbox try again now. */
static void on_mail(evutil_socket_t fd, short what, void *arg)
{
	struct engine_thread *thread = arg;
	struct delays *delays = thread->engine->delays;
	struct delay_worker *own = own_of(thread);
	struct delayed *delayed;
	u64 count;

	if (read(own->mail_fd, &count, sizeof(count)) < 0)
		count = 0;
	pthread_mutex_lock(&delays->lock);
	while ((delayed = TAILQ_FIRST(&own->mail))) {
		TAILQ_REMOVE(&own->mail, delayed, in_mail);
		delayed->notified = false;
		if (delayed->remote)
			delayed->again = true;
		else
			timer_set(own, delayed, delayed->notified_ns);
	}
	pthread_mutex_unlock(&delays->lock);
	delays_run(thread);
}

/* The worker's timer and mailbox: made for its first delayed request. */
static bool own_ready(struct engine_thread *thread)
{
	struct delay_worker *own = own_of(thread);

	if (own->timer)
		return true;
	own->mail_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (own->mail_fd < 0)
		return false;
	own->mail_event =
		event_new(thread->base, own->mail_fd, EV_READ | EV_PERSIST, on_mail, thread);
	own->timer = evtimer_new(thread->base, on_timer, thread);
	if (own->timer && own->mail_event && !event_add(own->mail_event, NULL))
		return true;
	if (own->timer)
		event_free(own->timer);
	if (own->mail_event)
		event_free(own->mail_event);
	close(own->mail_fd);
	own->timer = own->mail_event = NULL;
	return false;
}

/* Queues the request, as of its arrival. False: no room or no memory. */
static bool delay_request(struct delayed *delayed, const struct decide_delay *wait, u64 most_ns,
			  u64 now_ns)
{
	struct delays *delays = delayed->thread->engine->delays;
	struct delay_worker *own = own_of(delayed->thread);
	bool first, held;

	if (!own_ready(delayed->thread) || timer_heap_reserve(&own->heap, own->heap.count + 1))
		return false;
	delayed->until_ns = delayed->since_ns + most_ns;
	pthread_mutex_lock(&delays->lock);
	delayed->ticket = delays->tickets++;
	held = delay_enter(delays, delayed, wait, &first);
	pthread_mutex_unlock(&delays->lock);
	if (!held)
		return false;
	timer_set(own, delayed, due(wait, first, now_ns));
	timer_arm(own, now_ns);
	return true;
}

/* Whether a request may queue after its first decision; most_ns: how long at most. */
static bool may_delay(const struct engine *engine, const struct request *request,
		      const struct response *response, const struct decide_delay *wait,
		      u64 *ret_most_ns)
{
	*ret_most_ns = may_wait_ns(request, response, wait);
	return engine->delays && *ret_most_ns && wait->wait_ns <= *ret_most_ns;
}

/* The response after Redis replied, or its deadline. */
static void on_remote(void *arg, struct response *response, const struct decide_delay *wait)
{
	struct delayed *delayed = arg;
	struct engine_thread *thread = delayed->thread;
	u64 now_ns = counters_now(thread->engine->ledger.counters).mono_ns, most_ns;
	bool queued = delayed->queue, gone = true;

	delayed->remote = NULL;
	if (queued)
		gone = tried(delayed, response, wait, now_ns, now_ns);
	else if (may_delay(thread->engine, delayed->request, response, wait, &most_ns) &&
		 delay_request(delayed, wait, most_ns, now_ns))
		return;
	else if (defer_begin(delayed, wait, response))
		return;
	else
		delay_respond(delayed, response);
	if (queued && gone)
		timer_heap_unset(&own_of(thread)->heap, &delayed->timer);
	if (gone)
		free(delayed);
	if (queued)
		timer_arm(own_of(thread), now_ns);
}

static struct delayed *delayed_new(struct engine_thread *thread, const struct request *request,
				   request_done_fn done, void *arg, u64 now_ns, u64 began_ns)
{
	struct delayed *delayed = calloc(1, sizeof(*delayed));

	if (!delayed)
		return NULL;
	*delayed = (struct delayed){
		.thread = thread,
		.request = request,
		.done = done,
		.arg = arg,
		.since_ns = now_ns,
		.began_ns = began_ns,
	};
	return delayed;
}

struct delayed *wait_remote(struct engine_thread *thread, const struct request *request,
			    request_done_fn done, void *arg, u64 now_ns, u64 began_ns,
			    struct remote *remote, struct response *response)
{
	struct delayed *delayed = delayed_new(thread, request, done, arg, now_ns, began_ns);

	if (!delayed) {
		remote_cancel(remote);
		*response = (struct response){ .code = RESPONSE_ERROR, .count = request->count };
		return NULL;
	}
	delayed->remote = remote;
	remote_on(remote, on_remote, delayed);
	return delayed;
}

struct delayed *wait_hold(struct engine_thread *thread, const struct request *request,
			  request_done_fn done, void *arg, u64 now_ns, u64 began_ns,
			  const struct decide_delay *wait, const struct response *response)
{
	struct delayed *delayed;
	u64 most_ns;

	if (!may_delay(thread->engine, request, response, wait, &most_ns))
		return NULL;
	delayed = delayed_new(thread, request, done, arg, now_ns, began_ns);
	if (!delayed || delay_request(delayed, wait, most_ns, now_ns))
		return delayed;
	free(delayed);
	return NULL;
}

struct delayed *wait_defer(struct engine_thread *thread, const struct request *request,
			   request_done_fn done, void *arg, u64 now_ns, u64 began_ns,
			   const struct decide_delay *wait, const struct response *response)
{
	struct delayed *delayed;

	if (!wait->defer)
		return NULL;
	delayed = delayed_new(thread, request, done, arg, now_ns, began_ns);
	if (!delayed || defer_begin(delayed, wait, response))
		return delayed;
	free(delayed);
	return NULL;
}

void request_cancel(struct delayed *delayed)
{
	struct engine_thread *thread = delayed->thread;
	struct delays *delays = thread->engine->delays;

	if (delayed->remote)
		remote_cancel(delayed->remote);
	if (delayed->deferring)
		defer_abandon(delayed->deferring);
	if (delayed->queue) {
		pthread_mutex_lock(&delays->lock);
		/* The next one is notified, as of the past, so that no time is lost. */
		delay_leave(delays, delayed, 0);
		pthread_mutex_unlock(&delays->lock);
		timer_heap_unset(&own_of(thread)->heap, &delayed->timer);
	}
	free(delayed);
}
