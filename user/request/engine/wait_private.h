/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * wait_private.h - what wait.c (asking, timers) and wait_queue.c (queues, mailboxes) share.
 *
 * Locks: waits->lock guards queues, mailboxes and places in them; decide() runs without it, and
 * takes it through waits_ahead() inside the store's own. Heaps and timers belong to their
 * worker's thread.
 */
#ifndef SLUICE_HTTP_WAIT_PRIVATE_H
#define SLUICE_HTTP_WAIT_PRIVATE_H

#include <pthread.h>
#include <sys/queue.h>

#include "request/engine/decide.h"
#include "request/engine/remote.h"
#include "request/engine/wait.h"
#include "request/engine/wait_heap.h"
#include "request/server/worker.h"

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
	u64 began_ns;			/* CLOCK_MONOTONIC: when it was asked last */
	struct wait_queue *queue;	/* NULL: the store is asked, and nothing is waited for yet */
	struct remote *remote;		/* NULL: nobody is asked */
	bool again;			/* told to try again while the store was asked */
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

/* Who asks: its waits (NULL: nobody queues) and its place. */
struct wait_place {
	struct waits *waits;
	u64 ticket;			/* NEVER: it came just now */
};

/* Hits that queue for a bucket before the place: decide_wait.ahead. */
u64 waits_ahead(void *place, u64 key);

/* With the lock held: */

/*
 * Takes its place in the queue that `wait` names. False where there is no room. *ret_first:
 * nobody is before it.
 */
bool wait_enter(struct waits *waits, struct waiting *waiting, const struct decide_wait *wait,
		bool *ret_first);
/* Leaves it; the one behind is the first now, and is told to try again as of `as_of_ns`. */
void wait_leave(struct waits *waits, struct waiting *waiting, u64 as_of_ns);

#endif
