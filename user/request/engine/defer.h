/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * defer.h - requests for later (on_limit: defer): what the engine does with
 * cluster/quota/defer_store.h.
 *
 *     a refusal with a reference -> defer_begin() -> a ticket, or the refusal as it was
 *     the first worker's loop    -> a poll of each queue, which releases what fits
 *
 * Every node polls; together some hundred times a second while requests wait. Nothing of a queue is
 * on a node, so a node that is killed loses nothing.
 */
#ifndef SLUICE_DEFER_H
#define SLUICE_DEFER_H

#include "cluster/quota/defer_store.h"
#include "request/engine/engine.h"

struct deferring;

#define DEFER_RULES_MAX 64 /* with defer; others do not release */

struct defers *defers_new(void);
void defers_free(struct defers *defers); /* NULL is fine */
/* In the thread whose loop polls. */
void defers_start(struct defers *defers, struct engine_thread *thread);
void defers_stop(struct defers *defers);

/*
 * In the rules' read section, right after the decision. False: it cannot be deferred, and the
 * response stands. True: delayed->done() is called later, and `delayed` freed; or defer_abandon()
 * before.
 */
bool defer_begin(struct delayed *delayed, const struct decide_delay *wait,
		 const struct response *response);
/* The client has gone: what was put in the queue is cancelled. */
void defer_abandon(struct deferring *deferring);

/*
 * Looks a ticket up, or cancels it while it waits. 0: done(arg) comes later. -ENOENT: no such rule.
 * Other errors: Redis cannot be reached. abandon: done() is not called any more.
 */
struct defer_lookup;
/* The domain of a ticket's rule, of which the caller needs rights. False: no such rule. */
bool defer_domain(struct engine *engine, struct bytes ticket, char *buf, size_t size);
int defer_look(struct engine_thread *thread, struct bytes ticket, bool cancel,
	       void (*done)(void *arg, enum defer_status status, u64 number), void *arg,
	       struct defer_lookup **ret);
void defer_lookup_abandon(struct defer_lookup *lookup);

/* A rule's queue as of the last poll; false: none yet. From any thread. */
struct defer_shown {
	u64 number[DEFER_NUMBER_COUNT]; /* enum defer_number */
	u64 failed;			/* refusals of this node that Redis did not take in time */
	u64 age_ns;			/* of the last poll that Redis answered */
};
bool defers_show(struct defers *defers, u64 rule_id, struct defer_shown *ret);

#endif
