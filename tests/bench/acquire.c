// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * acquire [THREADS ACQUISITIONS RATE] - libsluice under threads: acquisitions in all, 64 threads, a
 * token bucket of RATE a second with a burst of a hundredth of it. None may be earlier than the
 * exact bucket, full at the beginning, admits it. Late: all of them in no more time than the rate
 * takes, and a fifth and a second more. Exit 1 if not.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "client/sluice.h"

#define SEC 1000000000ull

static struct sluice_limiter *limiter;
static unsigned long left;
static uint64_t *done_at;
static unsigned long done;

static uint64_t mono(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * SEC + now.tv_nsec;
}

static void *run(void *arg)
{
	while (__atomic_fetch_sub(&left, 1, __ATOMIC_RELAXED) - 1 < ~0ul / 2) {
		if (sluice_acquire(limiter, 1))
			abort();
		done_at[__atomic_fetch_add(&done, 1, __ATOMIC_RELAXED)] = mono();
	}
	return NULL;
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
	unsigned long threads = argc > 1 ? strtoul(argv[1], NULL, 10) : 64;
	unsigned long count = argc > 2 ? strtoul(argv[2], NULL, 10) : 1000000;
	unsigned long rate = argc > 3 ? strtoul(argv[3], NULL, 10) : 200000;
	struct sluice_config config = {
		.size = sizeof(config),
		.units = rate,
		.interval_ns = SEC,
		.burst = rate / 100,
	};
	pthread_t *id = calloc(threads, sizeof(*id));
	uint64_t begun, due_ns, took_ns, early = 0;
	char why[200];

	done_at = calloc(count, sizeof(*done_at));
	if (!id || !done_at || sluice_limiter_new(&config, &limiter, why, sizeof(why)))
		return 2;
	left = count;
	begun = mono();
	for (unsigned long i = 0; i < threads; i++)
		if (pthread_create(&id[i], NULL, run, NULL))
			return 2;
	for (unsigned long i = 0; i < threads; i++)
		pthread_join(id[i], NULL);
	if (done != count || sluice_waiting(limiter))
		return 2;
	/* A time is read after its acquisition, so in order of these times none may be early. */
	qsort(done_at, count, sizeof(*done_at), compare);
	/* The bucket was full at the beginning: the n-th needs n - burst units refilled since
	 * then. */
	for (unsigned long i = config.burst; i < count; i++)
		early += done_at[i] + 1 <
			 begun + (uint64_t)((double)(i + 1 - config.burst) / rate * SEC);
	due_ns = (uint64_t)((double)(count - config.burst) / rate * SEC);
	took_ns = done_at[count - 1] - begun;
	printf("%lu acquisitions by %lu threads at %lu/s: %llu early; %.3f s, due %.3f s\n", count,
	       threads, rate, (unsigned long long)early, (double)took_ns / SEC,
	       (double)due_ns / SEC);
	sluice_limiter_free(limiter);
	free(done_at);
	free(id);
	return early || took_ns > due_ns + due_ns / 5 + SEC;
}
