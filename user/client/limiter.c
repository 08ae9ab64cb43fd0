// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * limiter.c - see sluice.h: one bucket in memory, and the queue of threads that wait for it.
 *
 * The first of the queue sleeps until its units fit; the others sleep until they are served or
 * first. A thread that is awake serves all that fit, in order, so units do not wait for threads to
 * wake up. Each sleeps on a semaphore of its own: a condition variable does not return when a
 * signal arrives.
 */
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "client/forks.h"
#include "client/sized.h"
#include "client/sluice.h"
#include "limiter/algorithm.h"
#include "limiter/request_log.h"

#define NO_DEADLINE UINT64_MAX
/* UTC, which windows are aligned to, may be set: that is noticed after so long. */
#define NAP_NS SL_NS_PER_SEC

_Static_assert((int)SLUICE_TOKEN_BUCKET == SL_ALGO_TOKEN_BUCKET &&
		       (int)SLUICE_LEAKY_BUCKET == SL_ALGO_LEAKY_BUCKET &&
		       (int)SLUICE_FIXED_WINDOW == SL_ALGO_FIXED_WINDOW &&
		       (int)SLUICE_SLIDING_WINDOW == SL_ALGO_SLIDING_WINDOW &&
		       (int)SLUICE_SLIDING_LOG == SL_ALGO_SLIDING_LOG &&
		       (int)SLUICE_FIRST_REQUEST == SL_ALGO_FIRST_REQUEST &&
		       (int)SLUICE_INTERVAL_BUCKET == SL_ALGO_INTERVAL_BUCKET &&
		       (int)SLUICE_WINDOW_COUNTERS == SL_ALGO_WINDOW_COUNTERS,
	       "the same numbers");

/* A thread that waits, on its own stack. */
struct waiter {
	struct waiter *next;
	struct sluice_limiter *limiter;
	u64 units;
	bool served;
	sem_t wake;
};

struct sluice_limiter {
	struct forked forked; /* the lock */
	struct spec spec;
	bool count_all;
	u64 state;
	struct request_logs logs; /* of a log, and of window counters */
	u32 chunks_used;
	struct waiter *first, **last;
	u32 waiting;
};

static struct sl_now read_clocks(void)
{
	struct timespec mono, utc;

	clock_gettime(CLOCK_MONOTONIC, &mono);
	clock_gettime(CLOCK_REALTIME, &utc);
	return (struct sl_now){
		.mono_ns = (u64)mono.tv_sec * SL_NS_PER_SEC + mono.tv_nsec,
		.utc_ns = (u64)utc.tv_sec * SL_NS_PER_SEC + utc.tv_nsec,
	};
}

/* ------------------------------------------------------------------ making one */

static int refuse(char *why, size_t why_size, int code, const char *words)
{
	if (why && why_size)
		snprintf(why, why_size, "%s", words);
	return code;
}

/* A log holds no more units than its limit, in the worst case one in each chunk. */
static int make_chunks(struct sluice_limiter *l)
{
	u64 chunks = (l->spec.buckets ? l->spec.buckets : l->spec.capacity) + 3;

	if (!algorithm_is_log(l->spec.algo))
		return 0;
	l->logs.chunk = calloc(chunks, sizeof(*l->logs.chunk));
	l->logs.chunks = chunks;
	l->logs.used = &l->chunks_used;
	l->chunks_used = 1;
	return l->logs.chunk ? 0 : -ENOMEM;
}

static int make_spec(const struct sluice_config *config, struct spec *ret, char *why,
		     size_t why_size)
{
	struct spec_def def = {
		.count = config->units,
		.period_ns = config->interval_ns,
		.burst = config->burst,
		.scale = 1,
		.ceiling_percent = 100,
		.algo = config->algorithm,
	};
	const struct algorithm *row;
	struct sl_err err;

	if (config->reserved)
		return refuse(why, why_size, -EINVAL, "reserved is not 0");
	if ((u32)config->algorithm >= SL_ALGO_COUNT ||
	    algorithm_kind((enum sl_algo)config->algorithm) == STATE_TIME)
		return refuse(why, why_size, -EINVAL, "unknown algorithm");
	row = algorithms[config->algorithm];
	if (!config->units)
		return refuse(why, why_size, -EINVAL, "units is 0");
	if (config->interval_ns < RATE_PERIOD_MIN_NS || config->interval_ns > SL_BIT(56))
		return refuse(why, why_size, -EINVAL,
			      "interval_ns is below 10^7 (10 ms) or above 2^56");
	if (config->flags & ~(SLUICE_COUNT_ALL | SLUICE_ROUND_UP))
		return refuse(why, why_size, -EINVAL, "unknown flags");
	if (config->flags & SLUICE_ROUND_UP && !row->has_rounding)
		return refuse(why, why_size, -EINVAL,
			      "SLUICE_ROUND_UP is given, but only a sliding window is rounded");
	def.round_up = !!(config->flags & SLUICE_ROUND_UP);
	if (config->flags & SLUICE_COUNT_ALL && row->count_note)
		return refuse(
			why, why_size, -EINVAL,
			"with this algorithm refused units make no difference: its count starts again at an edge");
	if (config->burst && !row->default_burst)
		return refuse(why, why_size, -EINVAL,
			      "burst is given, but this algorithm has none");
	if (config->buckets && !row->has_buckets)
		return refuse(why, why_size, -EINVAL,
			      "buckets are given, but this algorithm has none");
	if (row->has_buckets)
		def.buckets = config->buckets ? config->buckets : 60;
	if (config->buckets > 240)
		return refuse(why, why_size, -EINVAL, "more than 240 buckets");
	if (spec_make_def(&def, ret, &err))
		return refuse(why, why_size, -ERANGE, err.message);
	return 0;
}

/* The child inherits the bucket's state, but no thread waits for it there. */
static void in_child(struct forked *forked)
{
	struct sluice_limiter *l =
		(struct sluice_limiter *)((char *)forked - offsetof(struct sluice_limiter, forked));

	l->first = NULL;
	l->last = &l->first;
	l->waiting = 0;
}

int sluice_limiter_new(const struct sluice_config *theirs, struct sluice_limiter **ret, char *why,
		       size_t why_size)
{
	struct sluice_config config;
	struct sluice_limiter *l;
	struct spec spec;
	int err;

	*ret = NULL;
	refuse(why, why_size, 0, "");
	err = sized_read(&config, sizeof(config), SIZED_TO(struct sluice_config, reserved), theirs);
	if (err)
		return refuse(
			why, why_size, err,
			err == -E2BIG
				? "struct sluice_config is larger than this library knows, and its end is not 0"
				: "size is not that of struct sluice_config");
	err = make_spec(&config, &spec, why, why_size);
	if (err)
		return err;
	l = calloc(1, sizeof(*l));
	if (!l)
		return refuse(why, why_size, -ENOMEM, "no memory");
	l->spec = spec;
	l->count_all = config.flags & SLUICE_COUNT_ALL;
	l->last = &l->first;
	if (make_chunks(l) || forked_add(&l->forked, in_child)) {
		free(l->logs.chunk);
		free(l);
		return refuse(why, why_size, -ENOMEM, "no memory for the log");
	}
	*ret = l;
	return 0;
}

void sluice_limiter_free(struct sluice_limiter *l)
{
	if (!l)
		return;
	forked_remove(&l->forked);
	free(l->logs.chunk);
	free(l);
}

/* ------------------------------------------------------------------ the bucket; locked */

static bool has_log(const struct sluice_limiter *l)
{
	return algorithm_is_log(l->spec.algo);
}

static void put_log(struct sluice_limiter *l, struct sl_now now, u64 units)
{
	u32 chunk = 0;

	if (request_log_needs(&l->logs, &l->spec, l->state, now, units))
		chunk = request_chunk_get(&l->logs);
	l->state = request_log_add(&l->logs, &l->spec, l->state, now, units, chunk);
}

/* How long until the units fit, 0: now; and the bucket state with them. */
static u64 look(struct sluice_limiter *l, struct sl_now now, u64 units, u64 *ret_state)
{
	struct spec_view view;
	struct sl_result res;
	u64 count;

	if (units > l->spec.capacity)
		return ~0ULL;
	if (!has_log(l)) {
		spec_view_init(&view, &l->spec, 0, 0);
		res = spec_charge(&view, l->state, now, units);
		*ret_state = res.bucket_state;
		return res.verdict == SL_PASS ? 0 : res.wait_ns;
	}
	l->state = request_log_expire(&l->logs, &l->spec, l->state, now);
	count = request_log_count(l->state);
	if (count + units <= l->spec.capacity)
		return 0;
	return request_log_wait(&l->logs, &l->spec, l->state, now,
				count + units - l->spec.capacity);
}

/* The same, and takes them if they fit. */
static u64 take(struct sluice_limiter *l, struct sl_now now, u64 units)
{
	u64 state, wait_ns = look(l, now, units, &state);

	if (!wait_ns && has_log(l))
		put_log(l, now, units);
	else if (!wait_ns)
		l->state = state;
	return wait_ns;
}

/* SLUICE_COUNT_ALL: refused units count, up to the limit. */
static void count_refused(struct sluice_limiter *l, struct sl_now now, u64 units)
{
	u64 capacity = l->spec.capacity, count;
	struct spec_view view;

	units = units < capacity ? units : capacity;
	if (has_log(l)) {
		count = request_log_count(l->state);
		if (count > capacity - units)
			l->state = request_log_drop(&l->logs, &l->spec, l->state,
						    count - (capacity - units));
		put_log(l, now, units);
		return;
	}
	spec_view_init(&view, &l->spec, 0, 0);
	l->state = spec_fill(&view, l->state, now, units);
}

#define RESULT_LEAST SIZED_TO(struct sluice_result, retry_after_ns)

static void describe(struct sluice_limiter *l, struct sl_now now, u64 wait_ns,
		     struct sluice_result *ret)
{
	struct spec_view view;

	ret->admitted = !wait_ns;
	ret->retry_after_ns = wait_ns;
	if (has_log(l)) {
		l->state = request_log_expire(&l->logs, &l->spec, l->state, now);
		ret->remaining = l->spec.capacity - request_log_count(l->state);
		ret->reset_ns = request_log_reset(&l->logs, &l->spec, l->state, now);
		return;
	}
	spec_view_init(&view, &l->spec, 0, 0);
	ret->remaining = spec_remaining(&view, l->state, now);
	ret->reset_ns = spec_reset_ns(&view, l->state, now);
}

/* Threads wait, so the bucket is as good as empty: until it is full. */
static u64 wait_behind(struct sluice_limiter *l, struct sl_now now)
{
	u64 state;

	return look(l, now, l->spec.capacity, &state) + 1;
}

int sluice_try(struct sluice_limiter *l, uint64_t units, struct sluice_result *ret)
{
	struct sluice_result result = {};
	u64 wait_ns = 0, state;
	struct sl_now now;

	if (ret && sized_write(ret, &result, sizeof(result), RESULT_LEAST))
		return -EINVAL;
	pthread_mutex_lock(&l->forked.lock);
	now = read_clocks();
	if (units && l->first) {
		wait_ns = units > l->spec.capacity ? ~0ULL : wait_behind(l, now);
	} else if (units) {
		wait_ns = take(l, now, units);
		if (wait_ns && l->count_all) {
			count_refused(l, now, units);
			wait_ns = look(l, now, units, &state);
		}
	}
	if (ret)
		describe(l, now, wait_ns, &result);
	pthread_mutex_unlock(&l->forked.lock);
	if (ret)
		sized_write(ret, &result, sizeof(result), RESULT_LEAST);
	return !wait_ns ? 0 : wait_ns == ~0ULL ? -ERANGE : -EAGAIN;
}

/* ------------------------------------------------------------------ waiting */

unsigned int sluice_waiting(struct sluice_limiter *l)
{
	unsigned int waiting;

	pthread_mutex_lock(&l->forked.lock);
	waiting = l->waiting;
	pthread_mutex_unlock(&l->forked.lock);
	return waiting;
}

static void join(struct sluice_limiter *l, struct waiter *w)
{
	sem_init(&w->wake, 0, 0);
	*l->last = w;
	l->last = &w->next;
	l->waiting++;
}

/* Removes one from the queue, which is empty if the thread has called fork() in a signal
 * handler. */
static void leave(struct sluice_limiter *l, struct waiter *w)
{
	struct waiter **at = &l->first;

	while (*at && *at != w)
		at = &(*at)->next;
	if (!*at)
		return;
	*at = w->next;
	if (!*at)
		l->last = at;
	l->waiting--;
}

/*
 * Gives the first ones their units as long as they fit, and wakes them; and the one that is first
 * then, so that it sleeps no longer than until its units fit, unless it is `self`. Returns that
 * time.
 */
static u64 serve(struct sluice_limiter *l, struct sl_now now, const struct waiter *self)
{
	struct waiter *w;
	u64 wait_ns = 0;

	while ((w = l->first)) {
		wait_ns = take(l, now, w->units);
		if (wait_ns)
			break;
		leave(l, w);
		w->served = true;
		sem_post(&w->wake);
	}
	if (w && w != self)
		sem_post(&w->wake);
	return wait_ns;
}

static void return_units(struct sluice_limiter *l, struct sl_now now, u64 units)
{
	struct spec_view view;

	if (has_log(l)) {
		l->state = request_log_remove(&l->logs, &l->spec, l->state, units);
		return;
	}
	spec_view_init(&view, &l->spec, 0, 0);
	l->state = spec_refund(&view, l->state, now, units);
}

void sluice_refund(struct sluice_limiter *l, uint64_t units)
{
	struct sl_now now;

	pthread_mutex_lock(&l->forked.lock);
	now = read_clocks();
	return_units(l, now, units);
	serve(l, now, NULL);
	pthread_mutex_unlock(&l->forked.lock);
}

/* Cleans up after a thread that was cancelled while it slept without the lock. It may have been
 * served. */
static void cancel(void *arg)
{
	struct waiter *w = arg;
	struct sluice_limiter *l = w->limiter;
	struct sl_now now = read_clocks();

	pthread_mutex_lock(&l->forked.lock);
	if (w->served)
		return_units(l, now, w->units);
	else
		leave(l, w);
	serve(l, now, NULL);
	pthread_mutex_unlock(&l->forked.lock);
	sem_destroy(&w->wake);
}

/*
 * Until a time, or until it is woken. False: a signal handler ran. Always with a time: without one
 * Linux would go on sleeping after a handler with SA_RESTART.
 */
static bool sleep_until(struct sluice_limiter *l, struct waiter *w, u64 at_ns)
{
	struct timespec at = { at_ns / SL_NS_PER_SEC, at_ns % SL_NS_PER_SEC };
	bool interrupted;

	pthread_mutex_unlock(&l->forked.lock);
	interrupted = sem_clockwait(&w->wake, CLOCK_MONOTONIC, &at) && errno == EINTR;
	pthread_mutex_lock(&l->forked.lock);
	return !interrupted;
}

static int wait_in_turn(struct sluice_limiter *l, struct waiter *w, u64 deadline_ns)
{
	while (!w->served) {
		struct sl_now now = read_clocks();
		u64 wait_ns, until_ns = deadline_ns;

		if (l->first == w) {
			wait_ns = serve(l, now, w);
			if (w->served)
				break;
			if (deadline_ns != NO_DEADLINE &&
			    (now.mono_ns >= deadline_ns || wait_ns > deadline_ns - now.mono_ns))
				return -ETIMEDOUT;
			until_ns = now.mono_ns + (wait_ns < NAP_NS ? wait_ns : NAP_NS);
		} else if (now.mono_ns >= deadline_ns) {
			return -ETIMEDOUT;
		}
		if (!sleep_until(l, w, until_ns) && !w->served)
			return -EINTR;
	}
	return 0;
}

int sluice_wait(struct sluice_limiter *l, uint64_t units, uint64_t deadline_ns)
{
	struct waiter w = { .limiter = l, .units = units };
	int rc;

	if (units > l->spec.capacity)
		return -ERANGE;
	if (!units)
		return 0;
	pthread_mutex_lock(&l->forked.lock);
	/* The usual case, without a queue. */
	if (!l->first && !take(l, read_clocks(), units)) {
		pthread_mutex_unlock(&l->forked.lock);
		return 0;
	}
	join(l, &w);
	pthread_cleanup_push(cancel, &w);
	rc = wait_in_turn(l, &w, deadline_ns);
	pthread_cleanup_pop(0);
	if (rc) {
		leave(l, &w);
		serve(l, read_clocks(), NULL);
	}
	pthread_mutex_unlock(&l->forked.lock);
	sem_destroy(&w.wake);
	return rc;
}

int sluice_acquire(struct sluice_limiter *l, uint64_t units)
{
	return sluice_wait(l, units, NO_DEADLINE);
}
