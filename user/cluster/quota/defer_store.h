/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * defer_store.h - requests for later (on_limit: defer), in Redis: a refused request's reference
 * waits there and is released to a stream at the limit's rate.
 *
 *     add -> waits in its bucket's queue -> poll, of any node: charged and released -> a worker of
 * the consumer group "workers" acknowledges it: done; or nobody does: dead
 *
 * All of it is one script, defer.lua, on top of charge.lua. A release charges the request's buckets
 * in the same step, so it is charged exactly once, whichever node polls, and a redelivery is not
 * charged. While requests wait for a bucket, no other request gets any of it
 * (cluster_store_bucket.queued).
 *
 * Keys are below PREFIXdefer:{NAME}: (defer.lua lists them), which the application reads, too. A
 * script needs all keys of a queue and its buckets, so there has to be one server: single or
 * sentinel.
 */
#ifndef SLUICE_DEFER_STORE_H
#define SLUICE_DEFER_STORE_H

#include "cluster/quota/cluster_store.h"
#include "cluster/redis/redis.h"

#define DEFER_TICKET_LEN 48 /* base 16: the rule's id, and 128 random bits */

/* The queue of a rule; the caller's, until the call has ended. */
struct defer_queue {
	const char *name; /* DOMAIN/PATH of its rule */
	u64 max;	  /* requests that wait, or were released and are not done */
	u64 ttl_us;
	u64 deliveries; /* without XACK, each for retry_us: then it is dead */
	u64 retry_us;
};

enum defer_status {
	DEFER_FAILED,	/* Redis is late or unavailable, or its reply makes no sense */
	DEFER_OK,	/* of poll */
	DEFER_WAITING,	/* number[0]: its position, from 1 */
	DEFER_RELEASED, /* number[0]: how often a worker received it */
	DEFER_DONE,
	DEFER_DEAD,
	DEFER_CANCELLED,
	DEFER_FULL,
	DEFER_NONE, /* no such ticket */
	DEFER_STATUS_COUNT,
};
extern const char *const defer_status_names[DEFER_STATUS_COUNT];

/* The places of the numbers that a poll returns in number[]. */
enum defer_number {
	DEFER_NEXT_US, /* until the next release may be due; ~0: nothing waits */
	DEFER_NOW_WAITING,
	DEFER_NOW_RELEASED,
	DEFER_NOW_DEAD,
	DEFER_AOF, /* 0 or 1; ~0: not asked, or not known */
	/* Sums over all nodes since the queue's first request: */
	DEFER_SUM_DEFERRED,
	DEFER_SUM_FULL,
	DEFER_SUM_CANCELLED,
	DEFER_SUM_RELEASED,
	DEFER_SUM_DONE,
	DEFER_SUM_DEAD,
	DEFER_NUMBER_COUNT,
};

/*
 * One command. done() is called once, never before the function that sent it returns. After
 * DEFER_FAILED with `late` set, ended() is called when nothing more will come: with the late reply,
 * or DEFER_FAILED. Without that, `ended` follows done() at once. The call must stay until ended().
 */
struct defer_call {
	void (*done)(struct defer_call *call);
	void (*ended)(struct defer_call *call);
	void *arg;
	enum defer_status status;
	bool late;
	u64 number[DEFER_NUMBER_COUNT];
	char ticket[DEFER_TICKET_LEN + 1];
};

/* Whether this store can defer: Redis with one server. */
bool defer_store_can(const struct cluster_store *store);

/*
 * 0, or -errno if it cannot be sent: then nothing is called. `request` has the buckets that a
 * release charges (kind CHARGE), bucket[0] is the one whose queue it joins. Fills in call->ticket.
 */
int defer_store_add(struct cluster_store *store, const struct defer_queue *queue, u64 rule_id,
		    const struct cluster_store_request *request, const char *reference, size_t len,
		    u64 deadline_ns, struct defer_call *call);
int defer_store_poll(struct cluster_store *store, const struct defer_queue *queue, bool ask_aof,
		     struct defer_call *call);
/* Looks call->ticket up. */
int defer_store_look(struct cluster_store *store, const struct defer_queue *queue, u64 deadline_ns,
		     struct defer_call *call);
int defer_store_cancel(struct cluster_store *store, const struct defer_queue *queue,
		       u64 deadline_ns, struct defer_call *call);
/* The rule's id of a ticket; false: it is none. */
bool defer_ticket_rule(const char *text, size_t len, u64 *ret_rule_id);

/* For cluster_store_redis.c: charge.lua and defer.lua in one; NULL: no memory. */
const struct redis_script *defer_script(void);

#endif
