/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * ask.h - how a front asks: ask() decides at once, or holds the answer while a rule says wait.
 *
 * Runs on worker threads (worker.h). The callback gets the answer within an RCU read section:
 * what the answer points to holds until the callback returns. It is called exactly once per
 * ask(), in the thread of the worker, possibly before ask() returns; not at all after
 * ask_cancel(). call and its bytes stay the caller's and must live until then.
 */
#ifndef SLUICE_HTTP_ASK_H
#define SLUICE_HTTP_ASK_H

#include "request/rules/call.h"

struct worker;
struct waiting;			/* an answer that is held (wait.c) */

typedef void (*ask_done_fn)(const struct call *call, const struct answer *answer, void *arg);

/* Returns NULL when `done` has been called already, else what ask_cancel() takes. */
struct waiting *ask(struct worker *worker, const struct call *call, ask_done_fn done, void *arg);
/* The caller went away: its place goes to the next. */
void ask_cancel(struct waiting *waiting);

#endif
