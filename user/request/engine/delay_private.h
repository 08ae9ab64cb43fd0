/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * delay_private.h - delayed responses, as delay.c makes them and engine.c (request_submit()) uses
 * them.
 *
 * Locks: delays->lock guards queues, mailboxes and positions. decide() runs without it, and takes
 * it in delays_ahead(), inside the locks of the counter table. Heaps and timers belong to their
 * worker's thread.
 */
#ifndef SLUICE_HTTP_DELAY_PRIVATE_H
#define SLUICE_HTTP_DELAY_PRIVATE_H

#include <pthread.h>
#include <sys/queue.h>

#include "lib/clock.h"
#include "lib/timer_heap.h"
#include "request/engine/decide.h"
#include "request/engine/delay.h"
#include "request/engine/remote.h"

#define DELAY_CHAINS 1024
#define NEVER (~0ULL)

struct delayed {
	struct timer timer; /* first: of the next try */
	struct engine_thread *thread;
	const struct request *request;
	request_done_fn done;
	void *arg;
	u64 ticket; /* its position in the order of arrival */
	u64 hits;   /* of the bucket that it waits for */
	u64 since_ns, until_ns;
	u64 due_ns;		     /* first of its queue: when to try again; else NEVER */
	u64 began_ns;		     /* CLOCK_MONOTONIC: when its last decision began */
	struct delay_queue *queue;   /* NULL: it waits for Redis, and is in no queue yet */
	struct remote *remote;	     /* NULL: it does not wait for Redis */
	struct deferring *deferring; /* NULL: it is not being deferred: defer.h */
	bool again;		     /* notified while it waited for Redis */
	TAILQ_ENTRY(delayed) in_queue, in_mail;
	bool notified; /* in its worker's mailbox: try again, as of notified_ns */
	u64 notified_ns;
};

TAILQ_HEAD(delayed_list, delayed);

struct delay_queue {
	u64 key, rule_id;
	u64 count, hits;
	struct delayed_list list;
	struct delay_queue *next; /* of its chain */
};

struct delay_worker {
	struct timer_heap heap;
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

/* The position of a request that is decided; delays NULL: there are no queues. */
struct delay_position {
	struct delays *delays;
	u64 ticket; /* NEVER: behind all */
};

/*
 * Of a request that arrived at now_ns (the counter table's clock; began_ns: CLOCK_MONOTONIC's), in
 * the rules' read section. NULL: it cannot be delayed, and *response is due now.
 */
/* It waits for Redis. Without memory the response is an error. */
struct delayed *wait_remote(struct engine_thread *thread, const struct request *request,
			    request_done_fn done, void *arg, u64 now_ns, u64 began_ns,
			    struct remote *remote, struct response *response);
/* It was refused: queues it, if its rule and its client permit that. */
struct delayed *wait_hold(struct engine_thread *thread, const struct request *request,
			  request_done_fn done, void *arg, u64 now_ns, u64 began_ns,
			  const struct decide_delay *wait, const struct response *response);

/* The same: it is deferred, if its rule and Redis permit that. */
struct delayed *wait_defer(struct engine_thread *thread, const struct request *request,
			   request_done_fn done, void *arg, u64 now_ns, u64 began_ns,
			   const struct decide_delay *wait, const struct response *response);
/* Sends the response, in the rules' read section. */
void delay_respond(struct delayed *delayed, const struct response *response);

/* Hits that queue for a bucket before a position: decide_delay.ahead. */
u64 delays_ahead(void *position, u64 key);

#endif
