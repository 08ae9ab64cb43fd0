// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* libsluice's limiter: bounds of its fields, the queue, and the same verdicts as the steps. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "client/sized.h"
#include "client/sluice.h"
#include "lib/rng.h"
#include "lib/test.h"
#include "lib/units.h"

#define SEC SL_NS_PER_SEC
#define MS (SEC / 1000)

static u64 mono(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (u64)now.tv_sec * SEC + now.tv_nsec;
}

static struct sluice_limiter *make(struct sluice_config config)
{
	struct sluice_limiter *l;
	char why[200];

	config.size = sizeof(config);
	if (sluice_limiter_new(&config, &l, why, sizeof(why)))
		fail_msg("%s", why);
	return l;
}

#define ONE_A_SECOND .size = sizeof(struct sluice_config), .units = 1, .interval_ns = SEC

TEST(test_refused)
{
	static const struct {
		struct sluice_config config;
		int code;
		const char *why;
	} bad[] = {
		{ { .units = 1, .interval_ns = SEC }, -EINVAL, "size" },
		{ { .size = sizeof(struct sluice_config), .interval_ns = SEC }, -EINVAL, "units" },
		{ { ONE_A_SECOND, .reserved = 1 }, -EINVAL, "reserved" },
		{ { .size = sizeof(struct sluice_config), .units = 1 }, -EINVAL, "interval_ns" },
		{ { .size = sizeof(struct sluice_config),
		    .units = 1,
		    .interval_ns = SEC / 100 - 1 },
		  -EINVAL,
		  "10 ms" },
		{ { ONE_A_SECOND, .algorithm = 6 }, -EINVAL, "unknown algorithm" },
		{ { ONE_A_SECOND, .algorithm = 99 }, -EINVAL, "unknown algorithm" },
		{ { ONE_A_SECOND, .burst = 1, .algorithm = SLUICE_FIXED_WINDOW },
		  -EINVAL,
		  "burst" },
		{ { ONE_A_SECOND, .buckets = 5 }, -EINVAL, "buckets" },
		{ { ONE_A_SECOND, .buckets = 50, .algorithm = SLUICE_WINDOW_COUNTERS },
		  -ERANGE,
		  "100ms" },
		{ { ONE_A_SECOND, .flags = SLUICE_ROUND_UP }, -EINVAL, "sliding window" },
		{ { ONE_A_SECOND, .flags = 4 }, -EINVAL, "flags" },
		{ { ONE_A_SECOND, .flags = 1, .algorithm = SLUICE_FIXED_WINDOW },
		  -EINVAL,
		  "no difference" },
	};

	for (size_t i = 0; i < COUNT(bad); i++) {
		struct sluice_limiter *l = (void *)1;
		char why[200] = "";

		assert_int_equal(sluice_limiter_new(&bad[i].config, &l, why, sizeof(why)),
				 bad[i].code);
		assert_null(l);
		if (!strstr(why, bad[i].why))
			fail_msg("%zu: \"%s\" has no \"%s\"", i, why, bad[i].why);
	}
	sluice_limiter_free(NULL);
}

/* A program of a later version may pass what this library does not know only if it is 0. */
TEST(test_sizes)
{
	struct {
		struct sluice_config known;
		u64 more;
	} config = { .known = { .size = sizeof(config), .units = 1, .interval_ns = 86400 * SEC },
		     .more = 1 };
	struct {
		struct sluice_result known;
		u64 more;
	} result = { .known.size = sizeof(result), .more = 7 };
	struct {
		size_t size;
		u32 first;
	} earlier = { sizeof(earlier), 5 };
	struct later {
		size_t size;
		u32 first, added;
	} later = { .added = 7 };
	struct sluice_limiter *l;

	assert_int_equal(sluice_limiter_new(&config.known, &l, NULL, 0), -E2BIG);
	config.more = 0;
	assert_int_equal(sluice_limiter_new(&config.known, &l, NULL, 0), 0);
	result.known.size = 8;
	assert_int_equal(sluice_try(l, 1, &result.known), -EINVAL);
	result.known.size = sizeof(result);
	assert_int_equal(sluice_try(l, 1, &result.known), 0);
	assert_true(result.known.size == sizeof(result) && result.known.admitted && !result.more);
	sluice_limiter_free(l);
	/* One of an earlier version has 0 in what was added. */
	assert_int_equal(sized_read(&later, sizeof(later), SIZED_TO(struct later, first), &earlier),
			 0);
	assert_true(later.first == 5 && later.added == 0);
	assert_int_equal(sized_read(&later, sizeof(later), sizeof(later) + 1, &earlier), -EINVAL);
}

/* Of each algorithm: the limit at once, not one more, and what is left of it. */
TEST(test_try)
{
	static const enum sluice_algorithm all[] = {
		SLUICE_TOKEN_BUCKET,	SLUICE_LEAKY_BUCKET,	SLUICE_FIXED_WINDOW,
		SLUICE_SLIDING_WINDOW,	SLUICE_SLIDING_LOG,	SLUICE_FIRST_REQUEST,
		SLUICE_INTERVAL_BUCKET, SLUICE_WINDOW_COUNTERS,
	};

	for (size_t i = 0; i < COUNT(all); i++) {
		bool leaky = all[i] == SLUICE_LEAKY_BUCKET;
		struct sluice_limiter *l = make(
			(struct sluice_config){ .algorithm = all[i],
						.units = 10,
						.interval_ns = 86400 * SEC,
						.burst = all[i] == SLUICE_TOKEN_BUCKET ? 10 : 0 });
		u64 most = leaky ? 1 : 10;
		struct sluice_result r = { .size = sizeof(r) };

		assert_int_equal(sluice_try(l, 11, &r), -ERANGE);
		assert_true(!r.admitted && r.retry_after_ns == UINT64_MAX && r.remaining == most);
		for (u64 n = 0; n < most; n++) {
			assert_int_equal(sluice_try(l, 1, &r), 0);
			assert_true(r.admitted && r.remaining == most - n - 1);
		}
		assert_int_equal(sluice_try(l, 1, &r), -EAGAIN);
		assert_true(!r.admitted && r.retry_after_ns && r.retry_after_ns <= 86400 * SEC);
		assert_int_equal(sluice_wait(l, 1, mono() + SEC), -ETIMEDOUT);
		sluice_refund(l, 1);
		assert_int_equal(sluice_try(l, 1, NULL), 0);
		assert_int_equal(sluice_waiting(l), 0);
		sluice_limiter_free(l);
	}
}

TEST(test_count_all)
{
	struct sluice_limiter *l = make((struct sluice_config){ .algorithm = SLUICE_SLIDING_LOG,
								.units = 2,
								.interval_ns = 10 * SEC,
								.flags = SLUICE_COUNT_ALL });
	struct sluice_result r = { .size = sizeof(r) };
	u64 refused;

	assert_int_equal(sluice_try(l, 2, NULL), 0);
	usleep(300000);
	refused = mono();
	assert_int_equal(sluice_try(l, 1, &r), -EAGAIN);
	/* One of the first two, and the one refused now: the next fits when the former is over. */
	assert_in_range(r.retry_after_ns, 1, 97 * SEC / 10);
	usleep(300000);
	assert_int_equal(sluice_try(l, 1, &r), -EAGAIN);
	/* Both are refused ones: the next fits when the first of these is over. */
	assert_in_range(r.retry_after_ns + (mono() - refused), 10 * SEC, 11 * SEC);
	sluice_limiter_free(l);
}

/* ------------------------------------------------------------------ the queue */

struct thread {
	pthread_t id;
	struct sluice_limiter *l;
	u64 units, deadline_ns;
	int rc;
	u64 done_ns;
	u32 order;
};

static u32 next_order;

static void *run_wait(void *arg)
{
	struct thread *t = arg;

	t->rc = sluice_wait(t->l, t->units, t->deadline_ns);
	t->done_ns = mono();
	t->order = __atomic_fetch_add(&next_order, 1, __ATOMIC_SEQ_CST);
	return NULL;
}

static void start(struct thread *t, struct sluice_limiter *l, u64 units, u64 deadline_ns)
{
	unsigned int before = sluice_waiting(l);

	*t = (struct thread){ .l = l, .units = units, .deadline_ns = deadline_ns };
	pthread_create(&t->id, NULL, run_wait, t);
	while (sluice_waiting(l) == before)
		usleep(1000);
}

/* Large before small: first come, first served; one that gives up lets the next ones through. */
TEST(test_queue)
{
	struct sluice_limiter *l =
		make((struct sluice_config){ .units = 20, .interval_ns = SEC, .burst = 20 });
	struct thread t[4];
	u64 begun = mono();

	next_order = 0;
	assert_int_equal(sluice_try(l, 20, NULL), 0);
	start(&t[0], l, 5, UINT64_MAX);
	start(&t[1], l, 20, begun + SEC / 2);
	/* Half a second from one to the next: each notes its order itself, once it runs. */
	start(&t[2], l, 10, UINT64_MAX);
	start(&t[3], l, 10, UINT64_MAX);
	/* A try does not pass the queue. */
	assert_int_equal(sluice_try(l, 1, NULL), -EAGAIN);
	for (u32 i = 0; i < 4; i++)
		pthread_join(t[i].id, NULL);
	assert_int_equal(t[1].rc, -ETIMEDOUT);
	assert_true(!t[0].rc && !t[2].rc && !t[3].rc);
	assert_true(t[0].done_ns >= begun + 250 * MS);
	/* It gave up when it was first and could not get 20 by then: not at its deadline. */
	assert_true(t[0].order < 2 && t[1].order < 2);
	assert_true(t[2].order < t[3].order);
	assert_true(t[3].done_ns >= begun + 1250 * MS);
	assert_int_equal(sluice_waiting(l), 0);
	sluice_limiter_free(l);
}

/* Ten each 100 ms: thirty more than the burst take 300 ms. */
TEST(test_interval_below_a_second)
{
	struct sluice_limiter *l =
		make((struct sluice_config){ .units = 10, .interval_ns = 100 * MS, .burst = 10 });
	u64 begun = mono();

	for (u32 i = 0; i < 4; i++)
		assert_int_equal(sluice_wait(l, 10, UINT64_MAX), 0);
	assert_true(mono() >= begun + 300 * MS);
	assert_true(mono() < begun + 3000 * MS);
	sluice_limiter_free(l);
}

TEST(test_deadline_in_the_queue)
{
	struct sluice_limiter *l =
		make((struct sluice_config){ .units = 1, .interval_ns = 600 * SEC });
	struct thread first, second;
	u64 begun = mono();

	assert_int_equal(sluice_try(l, 1, NULL), 0);
	start(&first, l, 1, UINT64_MAX);
	start(&second, l, 1, begun + 200 * MS);
	pthread_join(second.id, NULL);
	assert_int_equal(second.rc, -ETIMEDOUT);
	assert_true(second.done_ns >= begun + 200 * MS);
	/* Refunded units wake the first. */
	sluice_refund(l, 1);
	pthread_join(first.id, NULL);
	assert_int_equal(first.rc, 0);
	sluice_limiter_free(l);
}

/* The first is cancelled: the second is first then, and gets the units, also those it was served
 * with. */
TEST(test_cancel)
{
	for (int round = 0; round < 200; round++) {
		struct sluice_limiter *l = make((struct sluice_config){
			.units = 1, .interval_ns = 86400 * SEC, .burst = 2 });
		struct thread first, second;
		void *result;

		assert_int_equal(sluice_try(l, 2, NULL), 0);
		start(&first, l, 2, UINT64_MAX);
		start(&second, l, 1, UINT64_MAX);
		/* Cancelled before it is served, or as it is: either way 2 units are there for the
		 * others. */
		if (round % 2) {
			pthread_cancel(first.id);
			sluice_refund(l, 2);
		} else {
			sluice_refund(l, 2);
			pthread_cancel(first.id);
		}
		pthread_join(first.id, &result);
		if (result != PTHREAD_CANCELED)
			sluice_refund(l, 2);
		pthread_join(second.id, NULL);
		assert_int_equal(second.rc, 0);
		assert_int_equal(sluice_waiting(l), 0);
		assert_int_equal(sluice_try(l, 1, NULL), 0);
		assert_int_equal(sluice_try(l, 1, NULL), -EAGAIN);
		sluice_limiter_free(l);
	}
}

static void on_signal(int number)
{
}

/* A signal handler ends the wait of its thread alone, also one with SA_RESTART; no unit is lost. */
TEST(test_signal)
{
	struct sigaction action = { .sa_handler = on_signal, .sa_flags = SA_RESTART };
	struct sluice_limiter *l =
		make((struct sluice_config){ .units = 1, .interval_ns = 86400 * SEC });
	struct thread t[3];

	sigaction(SIGUSR1, &action, NULL);
	assert_int_equal(sluice_try(l, 1, NULL), 0);
	for (u32 i = 0; i < 3; i++)
		start(&t[i], l, 1, UINT64_MAX);
	/* The signal wakes the thread that waits for its units, and then one that waits behind
	 * it. */
	for (u32 i = 0; i < 2; i++) {
		while (sluice_waiting(l) == 3 - i) {
			pthread_kill(t[i].id, SIGUSR1);
			usleep(1000);
		}
		pthread_join(t[i].id, NULL);
		assert_int_equal(t[i].rc, -EINTR);
	}
	sluice_refund(l, 1);
	pthread_join(t[2].id, NULL);
	assert_int_equal(t[2].rc, 0);
	assert_int_equal(sluice_try(l, 1, NULL), -EAGAIN);
	sluice_limiter_free(l);
}

static bool stop;

static void *run_try(void *arg)
{
	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED))
		sluice_try(arg, 1, NULL);
	return NULL;
}

/* A child has the bucket, none of the parent's queue, and no lock that another thread held. */
TEST(test_fork)
{
	struct sluice_limiter *l = make((struct sluice_config){
		.units = 1, .interval_ns = 86400 * SEC, .algorithm = SLUICE_SLIDING_LOG });
	struct thread waits;
	pthread_t tries;

	assert_int_equal(sluice_try(l, 1, NULL), 0);
	start(&waits, l, 1, UINT64_MAX);
	pthread_create(&tries, NULL, run_try, l);
	for (int round = 0; round < 100; round++) {
		int status = 0;
		pid_t pid = fork();

		assert_true(pid >= 0);
		if (!pid) {
			alarm(20);
			if (sluice_waiting(l) || sluice_try(l, 1, NULL) != -EAGAIN)
				_exit(1);
			sluice_refund(l, 1);
			_exit(sluice_acquire(l, 1) ? 2 : 0);
		}
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(status, 0);
	}
	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
	pthread_join(tries, NULL);
	assert_int_equal(sluice_waiting(l), 1);
	sluice_refund(l, 1);
	pthread_join(waits.id, NULL);
	assert_int_equal(waits.rc, 0);
	sluice_limiter_free(l);
}

TEST_MAIN
