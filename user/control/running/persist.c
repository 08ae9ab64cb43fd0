// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* persist.c - see persist.h. */
#include "control/running/persist.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "counters/counters.h"
#include "lib/log.h"
#include "request/engine/engine.h"

#define EVERY_S 10
#define FAILING_S 2 /* after a failure */

struct persist {
	struct counters *counters;
	const char *state_dir;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t wake;
	bool stop; /* under the lock */
};

static bool sync_counters(struct persist *b, bool failing)
{
	u64 placed = counters_rewrites(b->counters);
	int r = counters_sync(b->counters);

	if (counters_rewrites(b->counters) != placed)
		log_warn("http.state was missing (deleted by another process, or no space); it was "
			 "written again");
	if (r < 0 && !failing)
		log_error(
			"cannot write to %s: %s; a power failure would lose the counts since the last write",
			b->state_dir, strerror(-r));
	return r < 0;
}

static void *persist_main(void *arg)
{
	struct persist *b = arg;
	bool failing = false;
	struct timespec next;

	pthread_mutex_lock(&b->lock);
	while (!b->stop) {
		pthread_mutex_unlock(&b->lock);
		failing = sync_counters(b, failing);
		clock_gettime(CLOCK_MONOTONIC, &next);
		next.tv_sec += failing ? FAILING_S : EVERY_S;
		pthread_mutex_lock(&b->lock);
		while (!b->stop && pthread_cond_timedwait(&b->wake, &b->lock, &next) == 0)
			;
	}
	pthread_mutex_unlock(&b->lock);
	sync_counters(b, failing);
	return NULL;
}

int persist_run(struct running *run, struct sl_err *err)
{
	pthread_condattr_t attr;
	sigset_t all, before;
	struct persist *b;
	int r;

	if (!run->requests.engine)
		return 0;
	b = calloc(1, sizeof(*b));
	if (!b)
		return sl_err_set(err, ENOMEM, "out of memory");
	b->counters = run->requests.engine->ledger.counters;
	b->state_dir = run->state_dir;
	pthread_mutex_init(&b->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&b->wake, &attr);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	r = pthread_create(&b->thread, NULL, persist_main, b);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (r) {
		free(b);
		return sl_err_set(err, r, "cannot start a thread: %s", strerror(r));
	}
	run->persist = b;
	return 0;
}

void persist_close(struct running *run)
{
	struct persist *b = run->persist;

	if (!b)
		return;
	pthread_mutex_lock(&b->lock);
	b->stop = true;
	pthread_cond_signal(&b->wake);
	pthread_mutex_unlock(&b->lock);
	pthread_join(b->thread, NULL);
	free(b);
	run->persist = NULL;
}
