/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * submit.h - how a front asks: ask() decides at once, or holds the answer while a rule says wait.
 *
 * Runs on worker threads (worker.h). The callback gets the answer within an RCU read section:
 * what the answer points to holds until the callback returns. It is called exactly once per
 * ask(), in the thread of the worker, possibly before ask() returns; not at all after
 * request_cancel(). call and its bytes stay the caller's and must live until then.
 */
#ifndef SLUICE_HTTP_SUBMIT_H
#define SLUICE_HTTP_SUBMIT_H

#include "request/rules/request.h"

struct worker;
struct delayed;			/* an answer that is held (delay.c) */

typedef void (*request_done_fn)(const struct request *request, const struct response *response,
				void *arg);

/* Returns NULL when `done` has been called already, else what request_cancel() takes. */
struct delayed *request_submit(struct worker *worker, const struct request *request,
			       request_done_fn done, void *arg);
/* The caller went away: its place goes to the next. */
void request_cancel(struct delayed *delayed);

#endif
