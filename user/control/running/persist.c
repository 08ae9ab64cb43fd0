// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * persist.c - see persist.h.
 *
 * One job at a time: the main thread submits it when the previous one is done, the thread executes
 * it and stores the result. Neither waits for the other, except at exit.
 */
#include "control/running/persist.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/clock.h"
#include "lib/file.h"
#include "packet/dataplane/dp_state.h"
#include "counters/counters.h"
#include "request/engine/engine.h"
#include "lib/log.h"

#define BUCKETS_NAME "buckets"
#define EVERY_NS (10 * SL_NS_PER_SEC)
#define FAILING_NS (2 * SL_NS_PER_SEC) /* after a failure */
#define SHARE 100		       /* scanning the table takes at most 1 % of a CPU */

struct persist {
	char *path;
	void *recalled; /* bucket states for the first rules, or NULL */
	u64 next_ns;
	u64 digest, left_out; /* of the last written file */
	bool failing;	      /* the error was logged */

	pthread_t thread;
	bool running;
	pthread_mutex_t lock;
	pthread_cond_t wake;
	/* Under the lock. */
	bool job, stop;
	void *data; /* of the job: bucket states to be written; NULL: unchanged */
	size_t size;
	struct counters *counters; /* of the job: NULL, or to be synced */
	int failed;		   /* -errno of the last job, or 0 */
};

/* ------------------------------------------------------------------ reading */

static void *read_file(const char *path, size_t *ret_size)
{
	FILE *in = fopen(path, "re");
	void *data = in ? malloc(DP_STATE_BYTES_MAX + 1) : NULL;

	*ret_size = data ? fread(data, 1, DP_STATE_BYTES_MAX + 1, in) : 0;
	if (in)
		fclose(in);
	return data;
}

void persist_restore(struct running *run)
{
	struct persist *b = run->persist;
	const char *why;
	char bad[4096];
	size_t size;
	void *data = read_file(b->path, &size);

	if (!data)
		return;
	why = dp_state_check(data, size);
	if (!why) {
		run->packets->dp->ops->state(run->packets->dp)->seed = dp_state_seed(data);
		dp_state_bind(run->packets->dp, data);
		b->recalled = data;
		return;
	}
	free(data);
	snprintf(bad, sizeof(bad), "%s.bad", b->path);
	log_error("%s %s: buckets of long limits start empty; the file is kept as %s", b->path, why,
		  bad);
	if (rename(b->path, bad) < 0)
		log_error("%s: %s", bad, strerror(errno));
}

void persist_rules(struct running *run)
{
	struct persist *b = run->persist;
	struct sl_seed seed, is;
	struct dp_state_restored did;

	if (!b || !b->recalled)
		return;
	seed = dp_state_seed(b->recalled);
	is = run->packets->dp->ops->rules(run->packets->dp)->seed;
	if (memcmp(&seed, &is, sizeof(seed)) != 0) {
		log_warn(
			"%s was saved under another cluster.secret_file: buckets of long limits start "
			"empty",
			b->path);
	} else {
		did = dp_state_restore(run->packets->dp, b->recalled, dp_now(run->packets->dp));
		log_info(
			"restored the use of long limits: %llu sources, %llu expired, %llu records of "
			"evicted ones",
			did.put, did.gone, did.records);
	}
	free(b->recalled);
	b->recalled = NULL;
}

/* ------------------------------------------------------------------ the thread */

static int do_job(struct persist *b, void *data, size_t size, struct counters *counters)
{
	struct sl_err err;
	int r = 0, synced;
	u64 placed;

	if (data) {
		dp_state_seal(data, size);
		r = file_replace(b->path, NULL, data, size, 0600, &err);
	}
	placed = counters ? counters_rewrites(counters) : 0;
	synced = counters ? counters_sync(counters) : 0;
	if (counters && counters_rewrites(counters) != placed)
		log_warn("http.state was missing (deleted by another process, or no space); it was "
			 "written again");
	return r ? r : synced;
}

static void *persist_main(void *arg)
{
	struct persist *b = arg;

	pthread_mutex_lock(&b->lock);
	while (b->job || !b->stop) {
		void *data = b->data;
		size_t size = b->size;
		struct counters *counters = b->counters;
		int r;

		if (!b->job) {
			pthread_cond_wait(&b->wake, &b->lock);
			continue;
		}
		pthread_mutex_unlock(&b->lock);
		r = do_job(b, data, size, counters);
		free(data);
		pthread_mutex_lock(&b->lock);
		b->data = NULL;
		b->job = false;
		b->failed = r;
	}
	pthread_mutex_unlock(&b->lock);
	return NULL;
}

/* ------------------------------------------------------------------ submitting jobs */

/* The bucket states, if they differ from the last written ones. */
static void *find_saved(struct running *run, size_t *ret_size)
{
	struct persist *b = run->persist;
	struct dp_saved_state saved;

	if (run->packets->absent || !run->packets->dp->ops->rules(run->packets->dp))
		return NULL;
	if (dp_state_save(run->packets->dp, dp_now(run->packets->dp), &saved) < 0 ||
	    saved.digest == b->digest) {
		free(saved.data);
		return NULL;
	}
	if (saved.left_out && !b->left_out)
		log_warn(
			"%s has no space for all long limits: %llu sources saved, %llu more would start "
			"empty after a reboot",
			b->path, saved.words, saved.left_out);
	b->left_out = saved.left_out;
	b->digest = saved.digest;
	*ret_size = saved.size;
	return saved.data;
}

/* The counters of the request tier, or NULL. */
static struct counters *counters_of(const struct running *run)
{
	return run->requests.engine ? run->requests.engine->ledger.counters : NULL;
}

static void make_job(struct running *run)
{
	struct persist *b = run->persist;
	size_t size = 0;
	void *data = find_saved(run, &size);

	pthread_mutex_lock(&b->lock);
	b->data = data;
	b->size = size;
	b->counters = counters_of(run);
	b->job = data || b->counters;
	pthread_cond_signal(&b->wake);
	pthread_mutex_unlock(&b->lock);
}

void persist_again(struct running *run)
{
	if (run->persist)
		run->persist->digest = run->persist->next_ns = 0;
}

void persist_tick(struct running *run)
{
	struct persist *b = run->persist;
	u64 from_ns = clock_mono_ns(), cpu_ns = clock_cpu_ns(), spent_ns, every_ns;
	bool busy;
	int failed;

	if (!b || !b->running || from_ns < b->next_ns)
		return;
	pthread_mutex_lock(&b->lock);
	busy = b->job;
	failed = b->failed;
	b->failed = 0;
	pthread_mutex_unlock(&b->lock);
	if (busy)
		return;
	if (failed)
		b->digest = 0; /* write again */
	if (failed && !b->failing)
		log_error(
			"cannot write to %s: %s; a reboot would lose the use since the last write",
			run->state_dir, strerror(-failed));
	b->failing = failed != 0;
	make_job(run);
	spent_ns = clock_cpu_ns() - cpu_ns;
	every_ns = b->failing ? FAILING_NS : EVERY_NS;
	b->next_ns = from_ns + (spent_ns * SHARE > every_ns ? spent_ns * SHARE : every_ns);
}

/* ------------------------------------------------------------------ start and end */

int persist_open(struct running *run, struct sl_err *err)
{
	struct persist *b = calloc(1, sizeof(*b));

	run->persist = b;
	if (!b)
		return sl_err_set(err, ENOMEM, "out of memory");
	pthread_mutex_init(&b->lock, NULL);
	pthread_cond_init(&b->wake, NULL);
	b->path = file_join(run->state_dir, BUCKETS_NAME);
	return b->path ? 0 : sl_err_set(err, ENOMEM, "out of memory");
}

int persist_run(struct running *run, struct sl_err *err)
{
	struct persist *b = run->persist;
	sigset_t all, before;
	int r;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	r = pthread_create(&b->thread, NULL, persist_main, b);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (r)
		return sl_err_set(err, r, "cannot start a thread: %s", strerror(r));
	b->running = true;
	return 0;
}

void persist_close(struct running *run)
{
	struct persist *b = run->persist;

	if (!b)
		return;
	if (b->running) {
		pthread_mutex_lock(&b->lock);
		b->stop = true;
		pthread_cond_signal(&b->wake);
		pthread_mutex_unlock(&b->lock);
		pthread_join(b->thread, NULL);
		b->running = false;
		b->data = find_saved(run, &b->size);
		do_job(b, b->data, b->size, counters_of(run));
		free(b->data);
	}
	free(b->recalled);
	free(b->path);
	free(b);
	run->persist = NULL;
}
