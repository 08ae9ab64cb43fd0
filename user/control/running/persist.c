// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* persist.c - see persist.h. */
#include "control/running/persist.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "counters/counters.h"
#include "lib/file.h"
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
	int r = counters_sync(b->counters);

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

/* ------------------------------------------------------------------ what a restart would lose */

static const char *const files[] = { "live.json", "state.json", "bans.json" };
#define FILES (sizeof(files) / sizeof(*files))
_Static_assert(FILES <= 8, "a bit for each");

/* The first file that is missing although it was there, or NULL. */
static const char *find_deleted(struct running *run)
{
	for (size_t i = 0; i < FILES; i++) {
		char *path = file_join(run->state_dir, files[i]);
		bool there = !path || access(path, F_OK) == 0;
		bool missing = !there && errno == ENOENT && (run->files_seen & 1U << i);

		free(path);
		if (missing)
			return files[i];
		run->files_seen |= (u8)(there << i);
	}
	return NULL;
}

void persist_watch(struct running *run)
{
	const struct engine *engine = run->requests.engine;
	const char *file = find_deleted(run), *why = NULL;
	bool before = run->not_kept[0];

	if (engine)
		why = counters_not_kept(engine->ledger.counters);
	run->not_kept[0] = '\0';
	if (file)
		snprintf(run->not_kept, sizeof(run->not_kept), "%s was deleted by another process",
			 file);
	else if (why)
		snprintf(run->not_kept, sizeof(run->not_kept), "%s", why);
	if (run->not_kept[0] && !before)
		log_error("%s/%s; a restart would lose what it has", run->state_dir, run->not_kept);
}

const char *persist_not_kept(const struct running *run)
{
	return run->not_kept[0] ? run->not_kept : NULL;
}
