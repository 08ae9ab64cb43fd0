// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * behind.c - see behind.h.
 *
 * One job at a time: the main thread makes it where the last is done, the thread does it and
 * says how it went. Nobody waits for the other but at the end.
 */
#include "control/running/behind.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/clock.h"
#include "lib/file.h"
#include "packet/dataplane/dp_words.h"
#include "request/server/worker.h"
#include "lib/log.h"

#define WORDS_NAME "words"
#define EVERY_NS (10 * SL_NS_PER_SEC)
#define FAILING_NS (2 * SL_NS_PER_SEC)	/* after a failure */
#define SHARE 100			/* looking for words takes at most 1 % of the time */

struct behind {
	char *path;
	void *recalled;			/* words for the first rules, or NULL */
	u64 next_ns;
	u64 digest, left_out;		/* of what was written last */
	bool failing;			/* that it cannot be written was said */

	pthread_t thread;
	bool running;
	pthread_mutex_t lock;
	pthread_cond_t wake;
	/* Under the lock. */
	bool job, stop;
	void *data;			/* of the job: words to be written; NULL: as they were */
	size_t size;
	struct store *store;		/* of the job: NULL, or to be synced */
	int failed;			/* the last job did: -errno */
};

static struct sl_now words_now(const struct daemon *d)
{
	return clock_now(d->dp->ops->state(d->dp)->utc_offset_ns);
}

/* ------------------------------------------------------------------ reading */

static void *read_file(const char *path, size_t *ret_size)
{
	FILE *in = fopen(path, "re");
	void *data = in ? malloc(DP_WORDS_BYTES_MAX + 1) : NULL;

	*ret_size = data ? fread(data, 1, DP_WORDS_BYTES_MAX + 1, in) : 0;
	if (in)
		fclose(in);
	return data;
}

void behind_recall(struct daemon *d)
{
	struct behind *b = d->behind;
	const char *why;
	char bad[4096];
	size_t size;
	void *data = read_file(b->path, &size);

	if (!data)
		return;
	why = dp_words_check(data, size);
	if (!why) {
		d->dp->ops->state(d->dp)->seed = dp_words_seed(data);
		b->recalled = data;
		return;
	}
	free(data);
	snprintf(bad, sizeof(bad), "%s.bad", b->path);
	log_error("%s %s: long limits begin anew, it is kept as %s", b->path, why, bad);
	if (rename(b->path, bad) < 0)
		log_error("%s: %s", bad, strerror(errno));
}

void behind_rules(struct daemon *d)
{
	struct behind *b = d->behind;
	struct sl_seed seed, is;
	u64 put, gone;

	if (!b || !b->recalled)
		return;
	seed = dp_words_seed(b->recalled);
	is = d->dp->ops->rules(d->dp)->seed;
	if (memcmp(&seed, &is, sizeof(seed)) != 0) {
		log_warn("%s is of another secret than cluster.secret_file: long limits begin anew",
			 b->path);
	} else {
		put = dp_words_restore(d->dp, b->recalled, words_now(d), &gone);
		log_info("%llu sources go on with what they had used of long limits, %llu are over",
			 put, gone);
	}
	free(b->recalled);
	b->recalled = NULL;
}

/* ------------------------------------------------------------------ the thread */

static int do_job(struct behind *b, void *data, size_t size, struct store *store)
{
	struct sl_err err;
	int r = 0, synced;
	u64 placed;

	if (data) {
		dp_words_seal(data, size);
		r = file_replace(b->path, NULL, data, size, 0600, &err);
	}
	placed = store ? store_placed(store) : 0;
	synced = store ? store_sync(store) : 0;
	if (store && store_placed(store) != placed)
		log_warn("http.state was not where it belongs (deleted by others, or there was no room); it was written again");
	return r ? r : synced;
}

static void *behind_main(void *arg)
{
	struct behind *b = arg;

	pthread_mutex_lock(&b->lock);
	while (b->job || !b->stop) {
		void *data = b->data;
		size_t size = b->size;
		struct store *store = b->store;
		int r;

		if (!b->job) {
			pthread_cond_wait(&b->wake, &b->lock);
			continue;
		}
		pthread_mutex_unlock(&b->lock);
		r = do_job(b, data, size, store);
		free(data);
		pthread_mutex_lock(&b->lock);
		b->data = NULL;
		b->job = false;
		b->failed = r;
	}
	pthread_mutex_unlock(&b->lock);
	return NULL;
}

/* ------------------------------------------------------------------ making jobs */

/* The words as they are, where that is not as they were written. */
static void *find_words(struct daemon *d, size_t *ret_size)
{
	struct behind *b = d->behind;
	struct dp_words_saved saved;

	if (d->http_only || !d->dp->ops->rules(d->dp))
		return NULL;
	if (dp_words_save(d->dp, words_now(d), &saved) < 0 || saved.digest == b->digest) {
		free(saved.data);
		return NULL;
	}
	if (saved.left_out && !b->left_out)
		log_warn("%s holds what %llu sources have used of long limits; %llu more would begin anew "
			 "after a reboot", b->path, saved.words, saved.left_out);
	b->left_out = saved.left_out;
	b->digest = saved.digest;
	*ret_size = saved.size;
	return saved.data;
}

static void make_job(struct daemon *d)
{
	struct behind *b = d->behind;
	size_t size = 0;
	void *data = find_words(d, &size);

	pthread_mutex_lock(&b->lock);
	b->data = data;
	b->size = size;
	b->store = d->http ? d->http->store : NULL;
	b->job = data || b->store;
	pthread_cond_signal(&b->wake);
	pthread_mutex_unlock(&b->lock);
}

void behind_again(struct daemon *d)
{
	if (d->behind)
		d->behind->digest = d->behind->next_ns = 0;
}

void behind_tick(struct daemon *d)
{
	struct behind *b = d->behind;
	u64 from_ns = clock_mono_ns(), spent_ns, every_ns;
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
		b->digest = 0;	/* again */
	if (failed && !b->failing)
		log_error("cannot write to %s: %s; a reboot would lose what sources have used since",
			  d->state_dir, strerror(-failed));
	b->failing = failed != 0;
	make_job(d);
	spent_ns = clock_mono_ns() - from_ns;
	every_ns = b->failing ? FAILING_NS : EVERY_NS;
	b->next_ns = from_ns + (spent_ns * SHARE > every_ns ? spent_ns * SHARE : every_ns);
}

/* ------------------------------------------------------------------ start and end */

int behind_open(struct daemon *d, struct sl_err *err)
{
	struct behind *b = calloc(1, sizeof(*b));

	d->behind = b;
	if (!b)
		return sl_err_set(err, ENOMEM, "out of memory");
	pthread_mutex_init(&b->lock, NULL);
	pthread_cond_init(&b->wake, NULL);
	b->path = file_join(d->state_dir, WORDS_NAME);
	return b->path ? 0 : sl_err_set(err, ENOMEM, "out of memory");
}

int behind_run(struct daemon *d, struct sl_err *err)
{
	struct behind *b = d->behind;
	sigset_t all, before;
	int r;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	r = pthread_create(&b->thread, NULL, behind_main, b);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (r)
		return sl_err_set(err, r, "cannot start a thread: %s", strerror(r));
	b->running = true;
	return 0;
}

void behind_close(struct daemon *d)
{
	struct behind *b = d->behind;

	if (!b)
		return;
	if (b->running) {
		pthread_mutex_lock(&b->lock);
		b->stop = true;
		pthread_cond_signal(&b->wake);
		pthread_mutex_unlock(&b->lock);
		pthread_join(b->thread, NULL);
		b->running = false;
		b->data = find_words(d, &b->size);
		do_job(b, b->data, b->size, d->http ? d->http->store : NULL);
		free(b->data);
	}
	free(b->recalled);
	free(b->path);
	free(b);
	d->behind = NULL;
}
