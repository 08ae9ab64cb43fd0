/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * remote.h - requests that need Redis (`scope: cluster`), from decision to response.
 *
 *     engine_decide() -> a response
 *                     or struct remote -> done() with a response, or remote_cancel()
 *
 * A request that this node would admit, and whose quota does not cover it, is charged in the
 * cluster store (cluster/quota/quota_charge.h). A request that needs no command to Redis does not
 * come here.
 *
 * Runs on the engine's threads; a remote belongs to its thread.
 */
#ifndef SLUICE_HTTP_REMOTE_H
#define SLUICE_HTTP_REMOTE_H

#include "request/engine/decide.h"
#include "request/engine/engine.h"

struct remote;
struct decision;

/* In the rules' read section; the callee may change the response. Then the remote is freed. */
typedef void (*remote_done_fn)(void *arg, struct response *response,
			       const struct decide_delay *wait);

/*
 * As decide(). NULL: *ret has the response. Otherwise it comes later, never before this returns;
 * the caller sets the callback by remote_on() before the loop continues. The request has to stay
 * until then. (engine.c.)
 */
struct remote *engine_decide(struct engine_thread *thread, const struct ruleset *rules,
			     const struct request *request, struct sl_now now, struct response *ret,
			     struct decide_delay *ret_wait);
/*
 * Charges a decision that needs Redis (decide_here() was false). NULL: *ret is the response,
 * because no command could be sent, or memory is out.
 */
struct remote *remote_send(struct engine_thread *thread, const struct ruleset *rules,
			   const struct decision *d, struct response *ret,
			   struct decide_delay *ret_wait);
void remote_on(struct remote *remote, remote_done_fn done, void *arg);
/* The client disconnected: the request is refunded. */
void remote_cancel(struct remote *remote);

#endif
