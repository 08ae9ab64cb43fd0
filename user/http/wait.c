// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * wait.c - ask(): one call under the rules as they are now, decided, observed and answered.
 */
#include "http/wait.h"

#include <stdlib.h>
#include <time.h>

#include "http/decide.h"
#include "http/observe.h"
#include "http/worker.h"

struct waits {
	u32 worker_count;
	u64 max_waiting;
};

struct waits *waits_new(u32 worker_count, u64 max_waiting)
{
	struct waits *waits = calloc(1, sizeof(*waits));

	if (!waits)
		return NULL;
	waits->worker_count = worker_count;
	waits->max_waiting = max_waiting;
	return waits;
}

void waits_free(struct waits *waits)
{
	free(waits);
}

static u64 clock_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (u64)now.tv_sec * 1000000000 + now.tv_nsec;
}

struct waiting *ask(struct worker *worker, const struct call *call, ask_done_fn done, void *arg)
{
	struct store *store = worker->tier->store;
	const struct ruleset *rules = rules_enter();
	u64 begin_ns = clock_ns();
	struct decide_wait wait = { .ahead = NULL };
	struct answer answer;

	decide(store, rules, call, store_now(store), &answer, &wait);
	observe(worker, call, &answer, clock_ns() - begin_ns);
	done(call, &answer, arg);
	rules_leave();
	return NULL;
}

void ask_cancel(struct waiting *waiting)
{
	free(waiting);
}
