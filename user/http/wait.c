// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * wait.c - ask(): a call decided, observed and answered; or its answer held until it fits, where
 * the rule that refuses it says so (on_limit: wait, queue).
 *
 * A held answer stands in the queue of one bucket: of those that refuse it, the one it has to
 * wait for longest. Queues are in order of arrival over all workers, and nobody passes them:
 * decide() asks ahead() who queues for a bucket, and refuses whoever has somebody before it,
 * newcomers that would not wait as well. So nothing is charged in advance: only the first of a
 * queue tries again, when its hits fit, and is charged then; one that goes leaves nothing
 * behind; and whoever comes next is decided under the rules as they are by then. One that finds
 * another bucket in its way moves to that queue, to the place its arrival gives it.
 *
 * The first of a queue may belong to any worker: the one before tells it through its worker's
 * mailbox. Timers are the worker's own heap and one libevent timer.
 *
 * A timer comes late by what the kernel and the machine need. A bucket that counted from there
 * would lose that each time, so the call is decided as of the instant it was due, up to
 * WAIT_LATE_NS back: k-th at k times the interval, and no faster than the rate.
 *
 * Locks: waits->lock guards queues, mailboxes and places; decide() runs without it, and takes it
 * through ahead() inside the store's own. Heaps and timers belong to their worker's thread.
 */
#include "http/wait.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/queue.h>
#include <time.h>
#include <unistd.h>

#include "http/decide.h"
#include "http/observe.h"
#include "http/wait_heap.h"
#include "http/worker.h"

#define WAIT_LATE_NS 20000000ULL
#define WAIT_LEAST_NS 1000ULL		/* between two tries */
#define WAIT_CHAINS 1024
#define NEVER (~0ULL)

struct waiting {
	struct wait_timer timer;	/* first: the heap knows only this */
	struct worker *worker;
	const struct call *call;
	ask_done_fn done;
	void *arg;
	u64 ticket;			/* its place in the order of arrival */
	u64 hits;			/* that it wants of the bucket it waits for */
	u64 since_ns, until_ns;
	u64 due_ns;			/* first of its queue: when to try again; else NEVER */
	struct wait_queue *queue;
	TAILQ_ENTRY(waiting) in_queue, in_mail;
	bool told;			/* in its worker's mailbox: try again, as of told_ns */
	u64 told_ns;
};

TAILQ_HEAD(waiting_list, waiting);

struct wait_queue {
	u64 key, rule_id;
	u64 count, hits;
	struct waiting_list list;
	struct wait_queue *next;	/* of its chain */
};

struct wait_worker {
	struct wait_heap heap;
	struct event *timer, *mail_event;
	int mail_fd;
	struct waiting_list mail;
};

struct waits {
	pthread_mutex_t lock;
	u64 max_waiting, count, tickets;
	bool draining;
	struct wait_queue *chain[WAIT_CHAINS];
	u32 worker_count;
	struct wait_worker worker[];
};

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

/* Leaves its queue; the one behind it is the first now, and is told so. */
static void queue_leave(struct waits *waits, struct waiting *waiting, u64 now_ns)
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
		tell(waits, TAILQ_FIRST(&queue->list), now_ns);
	}
}

/*
 * Takes its place in the queue that `wait` names. False where there is no room. *ret_first:
 * nobody is before it.
 */
static bool queue_enter(struct waits *waits, struct waiting *waiting,
			const struct decide_wait *wait, bool *ret_first)
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

struct ahead {
	struct waits *waits;
	u64 ticket;		/* NEVER: it came just now */
};

static u64 ahead(void *arg, u64 key)
{
	struct ahead *of = arg;
	struct wait_queue *queue;
	struct waiting *before;
	u64 hits = 0;

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
		}
	pthread_mutex_unlock(&of->waits->lock);
	return hits;
}

/* ---------------------------------------------------------------- the worker's own */

static struct wait_worker *own_of(struct worker *worker)
{
	return &worker->tier->waits->worker[worker->index];
}

static void timer_arm(struct wait_worker *own, u64 now_ns)
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

/* When to look at it next: when its hits are to fit, and at the latest when its time is up. */
static void timer_set(struct wait_worker *own, struct waiting *waiting, u64 due_ns)
{
	waiting->due_ns = due_ns;
	wait_heap_move(&own->heap, &waiting->timer,
		       due_ns < waiting->until_ns ? due_ns : waiting->until_ns);
}

static u64 clock_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (u64)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* How long the rule that refuses a call and its caller let it wait; 0: not at all. */
static u64 may_wait_ns(const struct call *call, const struct answer *answer,
		       const struct decide_wait *wait)
{
	u64 most_ns = call->max_wait_ns < wait->limit_ns ? call->max_wait_ns : wait->limit_ns;

	if (answer->code != CALL_OVER_LIMIT || !wait->key || call->peek || call->report)
		return 0;
	return most_ns;
}

/*
 * When one that was refused at when_ns is to try again. It was told to wait for those before it
 * as well; who is the first now has nobody to wait for, and must be decided without them.
 */
static u64 due(const struct decide_wait *wait, bool first, u64 when_ns)
{
	if (!first)
		return NEVER;
	if (wait->before)
		return when_ns;
	return when_ns + (wait->wait_ns > WAIT_LEAST_NS ? wait->wait_ns : WAIT_LEAST_NS);
}

/*
 * Tries again; `now` is now. True: answered and gone. Within the rules' read section.
 */
static bool try_again(struct waiting *waiting, const struct ruleset *rules, struct sl_now now,
		      struct answer *answer)
{
	struct waits *waits = waiting->worker->tier->waits;
	struct ahead before = { .waits = waits, .ticket = waiting->ticket };
	struct decide_wait wait = { .ahead = ahead, .arg = &before };
	u64 began_ns = clock_ns(), late_ns = 0, when_ns, most_ns;
	bool first, stays = false;

	if (waiting->due_ns < now.mono_ns)
		late_ns = now.mono_ns - waiting->due_ns;
	if (late_ns > WAIT_LATE_NS)
		late_ns = WAIT_LATE_NS;
	now.mono_ns -= late_ns;
	now.utc_ns -= late_ns;
	when_ns = now.mono_ns;
	decide(waiting->worker->tier->store, rules, waiting->call, now, answer, &wait);

	most_ns = may_wait_ns(waiting->call, answer, &wait);
	if (waiting->until_ns > waiting->since_ns + most_ns)
		waiting->until_ns = waiting->since_ns + most_ns;
	pthread_mutex_lock(&waits->lock);
	if (when_ns < waiting->until_ns && wait.wait_ns <= waiting->until_ns - when_ns) {
		struct wait_queue *queue = waiting->queue;

		/* Out and in again: the rule, the hits or the bucket may be others now. */
		if (queue->key == wait.key && queue->rule_id == wait.rule_id &&
		    waiting->hits == wait.hits && !waits->draining) {
			stays = true;
			first = TAILQ_FIRST(&queue->list) == waiting;
		} else {
			queue_leave(waits, waiting, when_ns);
			stays = queue_enter(waits, waiting, &wait, &first);
		}
	}
	if (!stays && waiting->queue)
		queue_leave(waits, waiting, when_ns);
	pthread_mutex_unlock(&waits->lock);
	if (stays) {
		timer_set(own_of(waiting->worker), waiting, due(&wait, first, when_ns));
		return false;
	}
	answer->waited_ns = now.mono_ns + late_ns - waiting->since_ns;
	observe(waiting->worker, waiting->call, answer, clock_ns() - began_ns);
	waiting->done(waiting->call, answer, waiting->arg);
	return true;
}

/* Looks at whatever is due in this worker. */
static void waits_run(struct worker *worker)
{
	struct wait_worker *own = own_of(worker);
	struct sl_now now = store_now(worker->tier->store);
	struct answer answer;

	while (own->heap.count && own->heap.at[0]->at_ns <= now.mono_ns) {
		struct waiting *waiting = (struct waiting *)own->heap.at[0];

		if (try_again(waiting, rules_enter(), now, &answer)) {
			wait_heap_del(&own->heap, &waiting->timer);
			free(waiting);
		}
		rules_leave();
		now = store_now(worker->tier->store);
	}
	timer_arm(own, now.mono_ns);
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
	waits_run(arg);
}

/* Mail: those in it try again now. */
static void on_mail(evutil_socket_t fd, short what, void *arg)
{
	struct worker *worker = arg;
	struct waits *waits = worker->tier->waits;
	struct wait_worker *own = own_of(worker);
	struct waiting *waiting;
	u64 count;

	if (read(own->mail_fd, &count, sizeof(count)) < 0)
		count = 0;
	pthread_mutex_lock(&waits->lock);
	while ((waiting = TAILQ_FIRST(&own->mail))) {
		TAILQ_REMOVE(&own->mail, waiting, in_mail);
		waiting->told = false;
		timer_set(own, waiting, waiting->told_ns);
	}
	pthread_mutex_unlock(&waits->lock);
	waits_run(worker);
}

/* The worker's timer and mailbox: made when somebody waits there for the first time. */
static bool own_ready(struct worker *worker)
{
	struct wait_worker *own = own_of(worker);

	if (own->timer)
		return true;
	own->mail_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (own->mail_fd < 0)
		return false;
	own->mail_event = event_new(worker->base, own->mail_fd, EV_READ | EV_PERSIST, on_mail,
				    worker);
	own->timer = evtimer_new(worker->base, on_timer, worker);
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

/* Holds the answer of a call that was refused; NULL where it cannot be. */
static struct waiting *hold(struct worker *worker, const struct call *call,
			    const struct decide_wait *wait, u64 most_ns, u64 now_ns)
{
	struct waits *waits = worker->tier->waits;
	struct wait_worker *own = own_of(worker);
	struct waiting *waiting;
	bool first, held;

	if (!own_ready(worker))
		return NULL;
	waiting = calloc(1, sizeof(*waiting));
	if (!waiting)
		return NULL;
	*waiting = (struct waiting){
		.timer = { .at_ns = NEVER },
		.worker = worker,
		.call = call,
		.since_ns = now_ns,
		.until_ns = now_ns + most_ns,
	};
	if (wait_heap_add(&own->heap, &waiting->timer)) {
		free(waiting);
		return NULL;
	}
	pthread_mutex_lock(&waits->lock);
	waiting->ticket = waits->tickets++;
	held = queue_enter(waits, waiting, wait, &first);
	pthread_mutex_unlock(&waits->lock);
	if (!held) {
		wait_heap_del(&own->heap, &waiting->timer);
		free(waiting);
		return NULL;
	}
	timer_set(own, waiting, due(wait, first, now_ns));
	timer_arm(own, now_ns);
	return waiting;
}

struct waiting *ask(struct worker *worker, const struct call *call, ask_done_fn done, void *arg)
{
	struct store *store = worker->tier->store;
	struct ahead before = { .waits = worker->tier->waits, .ticket = NEVER };
	struct decide_wait wait = { .ahead = ahead, .arg = &before };
	const struct ruleset *rules = rules_enter();
	struct sl_now now = store_now(store);
	struct waiting *waiting = NULL;
	u64 began_ns = clock_ns(), most_ns;
	struct answer answer;

	decide(store, rules, call, now, &answer, &wait);
	most_ns = may_wait_ns(call, &answer, &wait);
	if (before.waits && most_ns && wait.wait_ns <= most_ns)
		waiting = hold(worker, call, &wait, most_ns, now.mono_ns);
	if (waiting) {
		waiting->done = done;
		waiting->arg = arg;
	} else {
		observe(worker, call, &answer, clock_ns() - began_ns);
		done(call, &answer, arg);
	}
	rules_leave();
	return waiting;
}

void ask_cancel(struct waiting *waiting)
{
	struct worker *worker = waiting->worker;
	struct waits *waits = worker->tier->waits;

	pthread_mutex_lock(&waits->lock);
	/* Those behind are told when it leaves; of the past, so that no time is lost. */
	queue_leave(waits, waiting, 0);
	pthread_mutex_unlock(&waits->lock);
	wait_heap_del(&own_of(worker)->heap, &waiting->timer);
	free(waiting);
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
