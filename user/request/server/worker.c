// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * worker.c - the threads and their loops; see worker.h.
 *
 * Loops are made without libevent's locks: only its own thread touches a loop. Other threads post
 * notes to a worker's mailbox (a list under a mutex, held for a few instructions) and wake it by
 * an eventfd.
 */
#include "request/server/worker.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "request/server/listen.h"

struct note {
	struct note *next;
	void (*run)(struct worker *worker, void *arg);
	void *arg;
};

struct worker_private {
	pthread_t thread;
	bool started;
	int wake_fd;
	struct event *wake;
	pthread_mutex_t lock;
	struct note *first, **last;
};

/* ------------------------------------------------------------------ the mailbox */

int worker_post(struct worker *worker, void (*run)(struct worker *worker, void *arg), void *arg)
{
	struct worker_private *p = worker->private;
	struct note *note = malloc(sizeof(*note));
	u64 one = 1;

	if (!note)
		return -ENOMEM;
	*note = (struct note){ NULL, run, arg };
	pthread_mutex_lock(&p->lock);
	*p->last = note;
	p->last = &note->next;
	pthread_mutex_unlock(&p->lock);
	/* write() fails only if 2^64 - 2 wakeups are pending. */
	return write(p->wake_fd, &one, sizeof(one)) == sizeof(one) ? 0 : -errno;
}

static struct note *take_notes(struct worker_private *p)
{
	struct note *first;

	pthread_mutex_lock(&p->lock);
	first = p->first;
	p->first = NULL;
	p->last = &p->first;
	pthread_mutex_unlock(&p->lock);
	return first;
}

static void on_wake(evutil_socket_t fd, short what, void *arg)
{
	struct worker *worker = arg;
	struct note *note, *next;
	u64 count;

	if (read(fd, &count, sizeof(count)) < 0)
		return;
	for (note = take_notes(worker->private); note; note = next) {
		next = note->next;
		note->run(worker, note->arg);
		free(note);
	}
}

/* ------------------------------------------------------------------ a worker */

static void *worker_main(void *arg)
{
	struct worker *worker = arg;
	char name[16];

	snprintf(name, sizeof(name), "sluice-http-%u", worker->index % 1000);
	pthread_setname_np(pthread_self(), name);
	engine_thread_begin(worker->engine);
	if (listen_worker_start(worker) == 0)
		event_base_dispatch(worker->base);
	listen_worker_stop(worker);
	engine_thread_end(worker->engine);
	__atomic_sub_fetch(&worker->tier->running, 1, __ATOMIC_RELEASE);
	return NULL;
}

#define CALLBACKS_MAX 32 /* as many events as libevent takes from one epoll_wait() */

static struct event_base *make_base(void)
{
	struct event_config *config = event_config_new();
	struct event_base *base = NULL;

	/*
	 * Bounds the callbacks between two polls: else a connection that always has more work
	 * would keep the loop from polling. Fewer than a poll reports would be polled again.
	 */
	if (config && event_config_set_flag(config, EVENT_BASE_FLAG_NOLOCK) == 0 &&
	    event_config_set_max_dispatch_interval(config, NULL, CALLBACKS_MAX, 0) == 0)
		base = event_base_new_with_config(config);
	if (config)
		event_config_free(config);
	return base;
}

static int worker_init(struct worker *worker)
{
	struct worker_private *p = calloc(1, sizeof(*p));

	worker->private = p;
	if (!p)
		return -ENOMEM;
	p->last = &p->first;
	pthread_mutex_init(&p->lock, NULL);
	p->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	worker->base = make_base();
	if (p->wake_fd < 0 || !worker->base)
		return -ENOMEM;
	worker->engine = &worker->tier->engine->thread[worker->index];
	worker->engine->base = worker->base;
	p->wake = event_new(worker->base, p->wake_fd, EV_READ | EV_PERSIST, on_wake, worker);
	return p->wake && event_add(p->wake, NULL) == 0 ? 0 : -ENOMEM;
}

static void worker_clear(struct worker *worker)
{
	struct worker_private *p = worker->private;

	if (!p)
		return;
	for (struct note *note = take_notes(p), *next; note; note = next) {
		next = note->next;
		free(note);
	}
	if (p->wake)
		event_free(p->wake);
	if (p->wake_fd >= 0)
		close(p->wake_fd);
	pthread_mutex_destroy(&p->lock);
	if (worker->base)
		event_base_free(worker->base);
	free(p);
}

/* ------------------------------------------------------------------ all of them */

int workers_make(struct http_tier *tier, u32 count, struct sl_err *err)
{
	int r = 0;

	tier->worker = calloc(count, sizeof(*tier->worker));
	if (!tier->worker)
		return sl_err_set(err, ENOMEM, "out of memory");
	tier->worker_count = count;
	for (u32 i = 0; !r && i < count; i++) {
		tier->worker[i].tier = tier;
		tier->worker[i].index = i;
		r = worker_init(&tier->worker[i]);
	}
	return r < 0 ? sl_err_set(err, -r, "cannot create %u event loops: %s", count, strerror(-r))
		     : 0;
}

int workers_run(struct http_tier *tier, struct sl_err *err)
{
	sigset_t all, before;
	int r = 0;

	/* Signals are handled by the main thread. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	for (u32 i = 0; !r && i < tier->worker_count; i++) {
		struct worker *worker = &tier->worker[i];

		__atomic_add_fetch(&tier->running, 1, __ATOMIC_RELAXED);
		r = pthread_create(&worker->private->thread, NULL, worker_main, worker);
		worker->private->started = !r;
		if (r)
			__atomic_sub_fetch(&tier->running, 1, __ATOMIC_RELAXED);
	}
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return r ? sl_err_set(err, r, "cannot start the threads of the HTTP tier: %s", strerror(r))
		 : 0;
}

static void end_loop(struct worker *worker, void *arg)
{
	event_base_loopbreak(worker->base);
}

void workers_stop(struct http_tier *tier)
{
	for (u32 i = 0; i < tier->worker_count; i++)
		if (tier->worker[i].private && tier->worker[i].private->started)
			worker_post(&tier->worker[i], end_loop, NULL);
	for (u32 i = 0; i < tier->worker_count; i++) {
		struct worker_private *p = tier->worker[i].private;

		if (p && p->started)
			pthread_join(p->thread, NULL);
		if (p)
			p->started = false;
	}
}

void workers_free(struct http_tier *tier)
{
	for (u32 i = 0; i < tier->worker_count; i++)
		worker_clear(&tier->worker[i]);
	free(tier->worker);
	tier->worker = NULL;
	tier->worker_count = 0;
}

struct retired {
	void *thing;
	void (*free_thing)(void *thing);
	u32 left;
};

static void let_go(struct worker *worker, void *arg)
{
	struct retired *retired = arg;

	if (__atomic_sub_fetch(&retired->left, 1, __ATOMIC_ACQ_REL))
		return;
	retired->free_thing(retired->thing);
	free(retired);
}

void workers_retire(struct http_tier *tier, void *thing, void (*free_thing)(void *thing))
{
	struct retired *retired = malloc(sizeof(*retired));

	/* Without memory for the notes it is never freed. */
	if (!retired)
		return;
	*retired = (struct retired){ thing, free_thing, tier->worker_count };
	for (u32 i = 0; i < tier->worker_count; i++)
		worker_post(&tier->worker[i], let_go, retired);
}

void worker_connection_end(struct worker *worker, const struct peer_info *peer)
{
	connection_end(peer->connection);
	__atomic_store_n(&worker->connections, worker->connections - 1, __ATOMIC_RELAXED);
	__atomic_store_n(&worker->waited, worker->waited - peer->waited, __ATOMIC_RELAXED);
}
