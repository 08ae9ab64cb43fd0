/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * check.h - common to HTTP/1.1 requests that check a limit: submitting and replying. check.c also
 * has POST /v1/check: request and response as JSON.
 */
#ifndef SLUICE_HTTP_FRONT_H
#define SLUICE_HTTP_FRONT_H

#include "request/server/response.h"
#include "request/frontends/http1/http1.h"
#include "request/rules/json_request.h"

/*
 * The time for which the caller waits: X-Sluice-Wait ("2s"), else the listener's max_wait, else the
 * longest that the rule permits. False if the header is not a duration.
 */
bool frontend_wait(const struct http1_request *request, u64 *ret_ns);

/*
 * Submits the request if the caller may check, with its wait; `done` replies. Otherwise it sends
 * the reply of http1_rights(), or `malformed` (a status) for a bad X-Sluice-Wait. `rl_request`
 * lives in `frontend`, which frontend_free() gets after the reply or when the client is gone.
 */
void frontend_submit(struct http1_request *request, struct request *rl_request, int malformed,
		     request_done_fn done, void *frontend, void (*frontend_free)(void *frontend));

/*
 * Reads the request from a body (json_request.h); a body that is too large results in a request
 * that is refused.
 */
int frontend_read(const struct http1_request *request,
		  int (*read)(const char *text, size_t len, struct json_request **ret,
			      struct sl_err *err),
		  struct json_request **ret, struct sl_err *err);

/* For the proxy itself: X-Sluice-Shadow for its log, or X-Sluice-Violated-Policies for its page of
 * a refusal. */
void frontend_proxy_headers(struct http1_request *request, const struct response *response);
/* Adds the response's headers to the reply. */
void frontend_headers(struct http1_request *request, const struct response *response);
/* X-Sluice-Ticket and X-Sluice-Position, of a request that was deferred. */
void frontend_ticket_headers(struct http1_request *request, const struct response *response);
/* A whole reply: headers, and the body of /v1/check. */
void frontend_reply(struct http1_request *request, const struct response *response);
/* For a malformed request: 400 with the message, or 503 without memory (-ENOMEM). */
void frontend_reply_error(struct http1_request *request, int r, const struct sl_err *err);

#endif
