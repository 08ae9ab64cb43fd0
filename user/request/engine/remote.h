/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * remote.h - decisions that need the store that nodes have in common (`scope: cluster`).
 *
 *     engine_decide() -> an answer
 *                     or struct remote: asked -> done() with an answer, or remote_cancel()
 *
 * What this node would let through and nothing covers (quota.h) is charged here, asked for in
 * one command per place, all at once, and answered when all have answered, or at the deadline: what
 * nobody answered for is decided by its rule's on_store_failure. Where one refuses, the rest is
 * given back, here and there. A call that needs nobody's word does not come here.
 *
 * What is charged is right also when nobody hears of it: one that is cancelled is given back; an
 * answer after the deadline that charged what had been refused is given back; one that did not
 * charge what had been let through is owed.
 *
 * Runs on the engine's threads; a remote is its thread's own.
 */
#ifndef SLUICE_HTTP_REMOTE_H
#define SLUICE_HTTP_REMOTE_H

#include "cluster/quota/quota_apply.h"
#include "request/engine/decide.h"
#include "request/engine/engine.h"

struct remote;
struct decision;

/* Within the rules' read section; the answer is the callee's to change. Then it is gone. */
typedef void (*remote_done_fn)(void *arg, struct response *response,
			       const struct decide_delay *wait);

/*
 * As decide(). NULL: *ret has the answer. Else it comes later, never before this returns: who it
 * is to be told must be said (remote_on()) before the loop goes on. The call lives until then.
 * (engine.c.)
 */
struct remote *engine_decide(struct engine_thread *thread, const struct ruleset *rules,
			     const struct request *request, struct sl_now now, struct response *ret,
			     struct decide_delay *ret_wait);
/*
 * Of a decision that has to ask (decide_here() was false). NULL: no memory, and *ret says so.
 * Nothing is sent yet: the decision may go first.
 */
struct remote *remote_new(struct engine_thread *thread, const struct decision *d,
			  struct response *ret, struct decide_delay *ret_wait);
/* Asks. NULL: nobody could be asked, and *ret is the answer. */
struct remote *remote_send(struct remote *remote, const struct ruleset *rules,
			   struct response *ret, struct decide_delay *ret_wait);
void remote_on(struct remote *remote, remote_done_fn done, void *arg);
/* Nobody wants the answer any more: it is as if the call had not been made. */
void remote_cancel(struct remote *remote);

#endif
