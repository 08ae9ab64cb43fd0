/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* front.h - what the HTTP/1.1 fronts have in common: asking, and saying the answer. */
#ifndef SLUICE_HTTP_FRONT_H
#define SLUICE_HTTP_FRONT_H

#include "request/server/answer.h"
#include "request/frontends/http1/http1.h"

/*
 * How long the caller waits: X-Sluice-Wait ("2s"), else the listener's max_wait, else as long as
 * the rule says. False where the header says something else than a duration.
 */
bool front_wait(const struct http1_request *request, u64 *ret_ns);

/*
 * Asks where the caller may check, for as long as it waits; `done` replies. Else the reply is that
 * of http1_rights(), or `malformed` (a status) for an X-Sluice-Wait that is none. `call` lives in
 * `front`, which front_free() gets when the reply is out or the client is gone.
 */
void front_ask(struct http1_request *request, struct call *call, int malformed, ask_done_fn done,
	       void *front, void (*front_free)(void *front));

/* The answer's headers on the reply to be. */
void front_headers(struct http1_request *request, const struct answer *answer);
/* A whole reply: headers, and the body of /v1/check. */
void front_reply(struct http1_request *request, const struct answer *answer);
/* A call that is none: 400 with the words, or 503 where memory ended (-ENOMEM). */
void front_reply_error(struct http1_request *request, int r, const struct sl_err *err);

#endif
