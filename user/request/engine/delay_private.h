/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * delay_private.h - delayed responses, as delay.c makes them and engine.c (request_submit()) uses them.
 *
 * Locks: waits->lock guards queues, mailboxes and places in them; decide() runs without it, and
 * takes it through delays_ahead() inside the store's own. Heaps and timers belong to their
 * worker's thread.
 */
#ifndef SLUICE_HTTP_DELAY_PRIVATE_H
#define SLUICE_HTTP_DELAY_PRIVATE_H

#include <pthread.h>
#include <sys/queue.h>
#include <time.h>

#include "request/engine/decide.h"
#include "request/engine/delay.h"
#include "request/engine/delay_heap.h"
#include "request/engine/remote.h"

#define DELAY_CHAINS 1024
#define NEVER (~0ULL)

struct delayed {
	struct delay_timer timer;	/* first: the heap knows only this */
	struct engine_thread *thread;
	const struct request *request;
	request_done_fn done;
	void *arg;
	u64 ticket;			/* its place in the order of arrival */
	u64 hits;			/* that it wants of the bucket it waits for */
	u64 since_ns, until_ns;
	u64 due_ns;			/* first of its queue: when to try again; else NEVER */
	u64 began_ns;			/* CLOCK_MONOTONIC: when it was asked last */
	struct delay_queue *queue;	/* NULL: the store is asked, and nothing is waited for yet */
	struct remote *remote;		/* NULL: nobody is asked */
	bool again;			/* told to try again while the store was asked */
	TAILQ_ENTRY(delayed) in_queue, in_mail;
	bool notified;			/* in its worker's mailbox: try again, as of notified_ns */
	u64 notified_ns;
};

TAILQ_HEAD(delayed_list, delayed);

struct delay_queue {
	u64 key, rule_id;
	u64 count, hits;
	struct delayed_list list;
	struct delay_queue *next;	/* of its chain */
};

struct delay_worker {
	struct delay_heap heap;
	struct event *timer, *mail_event;
	int mail_fd;
	struct delayed_list mail;
};

struct delays {
	pthread_mutex_t lock;
	u64 max_delayed, count, tickets;
	bool draining;
	struct delay_queue *chain[DELAY_CHAINS];
	u32 worker_count;
	struct delay_worker worker[];
};

/* Who asks: its waits (NULL: nobody queues) and its place. */
struct delay_position {
	struct delays *delays;
	u64 ticket;			/* NEVER: it came just now */
};

static inline u64 engine_clock_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (u64)now.tv_sec * 1000000000 + now.tv_nsec;
}

/*
 * Of a call that was made at now_ns (the counter table's clock; began_ns: CLOCK_MONOTONIC's), within
 * the rules' read section. NULL: it cannot be held, and *answer is to be given now.
 */
/* The cluster store is asked: the answer comes later. Without memory for that it is an error. */
struct delayed *wait_remote(struct engine_thread *thread, const struct request *request,
			    request_done_fn done, void *arg, u64 now_ns, u64 began_ns,
			    struct remote *remote, struct response *response);
/* It was refused: has it queue, if its rule and its caller say so. */
struct delayed *wait_hold(struct engine_thread *thread, const struct request *request,
			  request_done_fn done, void *arg, u64 now_ns, u64 began_ns,
			  const struct decide_delay *wait, const struct response *response);

/* Hits that queue for a bucket before the place: decide_delay.ahead. */
u64 delays_ahead(void *place, u64 key);

#endif
