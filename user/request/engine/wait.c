// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * wait.c - ask(): a call decided, observed and answered; or its answer held until it fits, where
 * the rule that refuses it says so (on_limit: wait, queue).
 *
 * A held answer stands in the queue of one bucket: of those that refuse it, the one it has to
 * wait for longest. Queues are in order of arrival over all workers, and nobody passes them:
 * decide() asks waits_ahead() who queues for a bucket, and refuses whoever has somebody before it,
 * newcomers that would not wait as well. So nothing is charged in advance: only the first of a
 * queue tries again, when its hits fit, and is charged then; one that goes leaves nothing
 * behind; and whoever comes next is decided under the rules as they are by then. One that finds
 * another bucket in its way moves to that queue, to the place its arrival gives it.
 *
 * The first of a queue may belong to any worker: the one before tells it through its worker's
 * mailbox. Timers are the worker's own heap and one libevent timer.
 *
 * Where the store of all nodes has to be asked (remote.h) the answer, or the next try, comes when
 * that has answered. One that asks keeps its place, and hears that it is to try again when it has
 * its answer; so of a queue one asks at a time.
 *
 * A timer comes late by what the kernel and the machine need. A bucket that counted from there
 * would lose that each time, so the call is decided as of the instant it was due, up to
 * WAIT_LATE_NS back: k-th at k times the interval, and no faster than the rate.
 */
#include <stdlib.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "request/engine/observe.h"
#include "request/engine/wait_private.h"

#define WAIT_LATE_NS 20000000ULL
#define WAIT_LEAST_NS 1000ULL		/* between two tries */

static void on_remote(void *arg, struct answer *answer, const struct decide_wait *wait);

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

static void tell(struct waiting *waiting, const struct answer *answer)
{
	observe(waiting->worker, waiting->call, answer, clock_ns() - waiting->began_ns);
	waiting->done(waiting->call, answer, waiting->arg);
}

/*
 * It was decided anew as of when_ns; now it is now_ns. True: answered, and gone from its queue.
 * Within the rules' read section.
 */
static bool tried(struct waiting *waiting, struct answer *answer, const struct decide_wait *wait,
		  u64 when_ns, u64 now_ns)
{
	struct waits *waits = waiting->worker->tier->waits;
	u64 most_ns = may_wait_ns(waiting->call, answer, wait);
	bool first, stays = false;

	if (waiting->until_ns > waiting->since_ns + most_ns)
		waiting->until_ns = waiting->since_ns + most_ns;
	pthread_mutex_lock(&waits->lock);
	if (when_ns < waiting->until_ns && wait->wait_ns <= waiting->until_ns - when_ns) {
		struct wait_queue *queue = waiting->queue;

		/* Out and in again: the rule, the hits or the bucket may be others now. */
		if (queue->key == wait->key && queue->rule_id == wait->rule_id &&
		    waiting->hits == wait->hits && !waits->draining) {
			stays = true;
			first = TAILQ_FIRST(&queue->list) == waiting;
		} else {
			wait_leave(waits, waiting, when_ns);
			stays = wait_enter(waits, waiting, wait, &first);
		}
	}
	if (!stays && waiting->queue)
		wait_leave(waits, waiting, when_ns);
	pthread_mutex_unlock(&waits->lock);
	if (stays) {
		timer_set(own_of(waiting->worker), waiting,
			  waiting->again ? when_ns : due(wait, first, when_ns));
		waiting->again = false;
		return false;
	}
	answer->waited_ns = now_ns - waiting->since_ns;
	tell(waiting, answer);
	return true;
}

/* Tries again; `now` is now. True: answered and gone. Within the rules' read section. */
static bool try_again(struct waiting *waiting, const struct ruleset *rules, struct sl_now now,
		      struct answer *answer)
{
	struct wait_place before = { .waits = waiting->worker->tier->waits,
				     .ticket = waiting->ticket };
	struct decide_wait wait = { .ahead = waits_ahead, .arg = &before };
	u64 late_ns = 0, now_ns = now.mono_ns;

	if (waiting->due_ns < now.mono_ns)
		late_ns = now.mono_ns - waiting->due_ns;
	if (late_ns > WAIT_LATE_NS)
		late_ns = WAIT_LATE_NS;
	now.mono_ns -= late_ns;
	now.utc_ns -= late_ns;
	waiting->began_ns = clock_ns();
	waiting->remote = remote_decide(waiting->worker, rules, waiting->call, now, answer, &wait);
	if (!waiting->remote)
		return tried(waiting, answer, &wait, now.mono_ns, now_ns);
	remote_on(waiting->remote, on_remote, waiting);
	wait_heap_move(&own_of(waiting->worker)->heap, &waiting->timer, NEVER);
	return false;
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
		if (waiting->remote)
			waiting->again = true;
		else
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

/* Has it queue, as of when it came; false where it cannot. */
static bool hold(struct waiting *waiting, const struct decide_wait *wait, u64 most_ns, u64 now_ns)
{
	struct waits *waits = waiting->worker->tier->waits;
	struct wait_worker *own = own_of(waiting->worker);
	bool first, held;

	if (!own_ready(waiting->worker) || wait_heap_add(&own->heap, &waiting->timer))
		return false;
	waiting->until_ns = waiting->since_ns + most_ns;
	pthread_mutex_lock(&waits->lock);
	waiting->ticket = waits->tickets++;
	held = wait_enter(waits, waiting, wait, &first);
	pthread_mutex_unlock(&waits->lock);
	if (!held) {
		wait_heap_del(&own->heap, &waiting->timer);
		return false;
	}
	timer_set(own, waiting, due(wait, first, now_ns));
	timer_arm(own, now_ns);
	return true;
}

/* Whether one that was decided for the first time is to queue; most_ns: how long at most. */
static bool may_hold(const struct worker *worker, const struct call *call,
		     const struct answer *answer, const struct decide_wait *wait, u64 *ret_most_ns)
{
	*ret_most_ns = may_wait_ns(call, answer, wait);
	return worker->tier->waits && *ret_most_ns && wait->wait_ns <= *ret_most_ns;
}

/* The store of all nodes has answered, or somebody in its place. */
static void on_remote(void *arg, struct answer *answer, const struct decide_wait *wait)
{
	struct waiting *waiting = arg;
	struct worker *worker = waiting->worker;
	u64 now_ns = store_now(worker->tier->store).mono_ns, most_ns;
	bool queued = waiting->queue, gone = true;

	waiting->remote = NULL;
	if (queued)
		gone = tried(waiting, answer, wait, now_ns, now_ns);
	else if (may_hold(worker, waiting->call, answer, wait, &most_ns) &&
		 hold(waiting, wait, most_ns, now_ns))
		return;
	else
		tell(waiting, answer);
	if (queued && gone)
		wait_heap_del(&own_of(worker)->heap, &waiting->timer);
	if (gone)
		free(waiting);
	if (queued)
		timer_arm(own_of(worker), now_ns);
}

static struct waiting *waiting_new(struct worker *worker, const struct call *call, ask_done_fn done,
				   void *arg, u64 now_ns, u64 began_ns)
{
	struct waiting *waiting = calloc(1, sizeof(*waiting));

	if (!waiting)
		return NULL;
	*waiting = (struct waiting){
		.timer = { .at_ns = NEVER },
		.worker = worker,
		.call = call,
		.done = done,
		.arg = arg,
		.since_ns = now_ns,
		.began_ns = began_ns,
	};
	return waiting;
}

/* The store is asked: the answer comes later. Without memory for that it is an error, now. */
static struct waiting *ask_remote(struct waiting *waiting, struct remote *remote,
				  const struct call *call, struct answer *ret)
{
	if (!waiting) {
		remote_cancel(remote);
		*ret = (struct answer){ .code = CALL_ERROR, .count = call->count };
		return NULL;
	}
	waiting->remote = remote;
	remote_on(remote, on_remote, waiting);
	return waiting;
}

struct waiting *ask(struct worker *worker, const struct call *call, ask_done_fn done, void *arg)
{
	struct wait_place before = { .waits = worker->tier->waits, .ticket = NEVER };
	struct decide_wait wait = { .ahead = waits_ahead, .arg = &before };
	const struct ruleset *rules = rules_enter();
	struct sl_now now = store_now(worker->tier->store);
	u64 began_ns = clock_ns(), most_ns;
	struct waiting *waiting = NULL;
	struct remote *remote;
	struct answer answer;

	/* What has happened is charged, whoever waits. */
	if (call->report)
		wait.ahead = NULL;
	remote = remote_decide(worker, rules, call, now, &answer, &wait);
	if (remote || may_hold(worker, call, &answer, &wait, &most_ns))
		waiting = waiting_new(worker, call, done, arg, now.mono_ns, began_ns);
	if (remote) {
		waiting = ask_remote(waiting, remote, call, &answer);
	} else if (waiting && !hold(waiting, &wait, most_ns, now.mono_ns)) {
		free(waiting);
		waiting = NULL;
	}
	if (!waiting) {
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

	if (waiting->remote)
		remote_cancel(waiting->remote);
	if (waiting->queue) {
		pthread_mutex_lock(&waits->lock);
		/* Those behind are told when it leaves; of the past, so that no time is lost. */
		wait_leave(waits, waiting, 0);
		pthread_mutex_unlock(&waits->lock);
		wait_heap_del(&own_of(worker)->heap, &waiting->timer);
	}
	free(waiting);
}
