/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * check.h - what requests over HTTP/1.1 that check a limit have in common: asking, and the reply.
 * check.c has the plainest of them, too, POST /v1/check: the call as JSON, the answer as JSON.
 */
#ifndef SLUICE_HTTP_FRONT_H
#define SLUICE_HTTP_FRONT_H

#include "request/server/response.h"
#include "request/frontends/http1/http1.h"
#include "request/rules/json_request.h"

/*
 * How long the caller waits: X-Sluice-Wait ("2s"), else the listener's max_wait, else as long as
 * the rule says. False where the header says something else than a duration.
 */
bool frontend_wait(const struct http1_request *request, u64 *ret_ns);

/*
 * Asks where the caller may check, for as long as it waits; `done` replies. Else the reply is that
 * of http1_rights(), or `malformed` (a status) for an X-Sluice-Wait that is none. `call` lives in
 * `front`, which frontend_free() gets when the reply is out or the client is gone.
 */
void frontend_submit(struct http1_request *request, struct request *rl_request, int malformed,
		     request_done_fn done, void *frontend, void (*frontend_free)(void *frontend));

/* The call of a body (json_request.h), or where that is too large one that is refused. */
int frontend_read(const struct http1_request *request,
		  int (*read)(const char *text, size_t len, struct json_request **ret, struct sl_err *err),
		  struct json_request **ret, struct sl_err *err);

/* The answer's headers on the reply to be. */
void frontend_headers(struct http1_request *request, const struct response *response);
/* A whole reply: headers, and the body of /v1/check. */
void frontend_reply(struct http1_request *request, const struct response *response);
/* A call that is none: 400 with the words, or 503 where memory ended (-ENOMEM). */
void frontend_reply_error(struct http1_request *request, int r, const struct sl_err *err);

#endif
