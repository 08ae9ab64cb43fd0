// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The state under pressure: more users than there is room for, invented ones, a full log,
 * classes that come and go, and several threads on the same keys.
 */
#include <pthread.h>
#include <stdlib.h>

#include "lib/decide_rig.h"
#include "counters/counters_table.h"

#define INVENTED 1000000
#define OVER 1000

static bool ask_number(const char *key, u64 number)
{
	char text[48];

	snprintf(text, sizeof(text), "%s=u%llu", key, number);
	return allowed(text);
}

static const char *const algorithm_texts[] = {
	"fixed-window",
	"sliding-window",
	"token-bucket, burst: 10",
	"sliding-log",
	"fixed-window, window: first-request",
};

/* A thousand over their limit, then a million invented keys: none gets a fresh budget. */
TEST(test_flood)
{
	for (u32 i = 0; i < COUNT(algorithm_texts); i++) {
		struct counters_stats before, after;
		char text[256];
		u64 invented = 0;

		snprintf(text, sizeof(text),
			 "- {key: user, limits: ['10 requests/d'], algorithm: %s}\n",
			 algorithm_texts[i]);
		rig_open(text, 20000);
		for (u64 user = 0; user < OVER; user++)
			for (u32 k = 0; k < 10; k++)
				assert_true(ask_number("user", user));
		counters_stats(rig_store, &before);
		for (u64 user = 0; user < INVENTED / 5; user++)
			invented += ask_number("user", OVER + user);
		for (u64 user = 0; user < OVER; user++)
			assert_false(ask_number("user", user));
		counters_stats(rig_store, &after);
		assert_true(after.bytes == before.bytes);
		/* They are new users to the table, and pass. */
		assert_int_equal(invented, INVENTED / 5);
		assert_true(after.evicted > INVENTED / 10 ||
			    !strcmp(algorithm_texts[i], "sliding-log"));
		rig_end();
	}
}

/* A table of nothing but offenders: on_full decides about new users. */
TEST(test_full)
{
	for (u32 closed = 0; closed < 2; closed++) {
		u32 full = 0;

		rig_open("- {key: user, limits: ['2 requests/d']}\n"
			 "- {key: watch, limits: ['2 requests/d'], shadow_mode: true}\n"
			 "- {key: neighbour, limits: ['2 requests/d']}\n",
			 100);
		counters_on_full(rig_store, closed);
		assert_true(allowed("neighbour=al"));
		assert_true(allowed("neighbour=al"));
		for (u64 user = 0; user < 400; user++) {
			ask_number("user", user);
			ask_number("user", user);
		}
		for (u64 user = 1000; user < 1100; user++) {
			bool passed = ask_number("user", user);

			if (!rig_answer.status[0].full) {
				assert_true(passed);
				continue;
			}
			full++;
			assert_int_equal(rig_answer.code, closed ? RESPONSE_CLOSED : RESPONSE_OK);
			assert_true(passed == !closed);
			assert_true(!closed || rig_answer.retry_after_ns > 0);
		}
		assert_true(full > 80);
		/* A rule in shadow closes nothing; a refusal comes before. */
		for (u64 user = 0; user < 100; user++)
			assert_true(ask_number("watch", user));
		for (u64 user = 1000; user < 1100; user++) {
			char text[48];

			snprintf(text, sizeof(text), "user=u%llu;neighbour=al", user);
			assert_false(allowed(text));
			assert_int_equal(rig_answer.code, RESPONSE_OVER_LIMIT);
		}
		rig_end();
	}
}

/* The pool of a log is full: users in it are limited as before, on_full decides about others. */
TEST(test_log_full)
{
	struct sl_err err;
	struct counters_stats stats;
	u64 some = 0;

	rig_load("- {key: user, limits: ['20 requests/m'], algorithm: sliding-log}\n"
		 "- {key: once, limits: ['1 requests/m'], algorithm: sliding-log}\n");
	assert_int_equal(counters_open(NULL, 1000, 100 * 16, &rig_store, &err), 0);
	rig_now = (struct sl_now){ .mono_ns = 1000 * SEC, .utc_ns = RIG_UTC };
	for (u32 i = 0; i < 20; i++)
		assert_true(allowed("user=bob"));
	for (u32 i = 0; i < 15; i++)
		assert_true(allowed("user=al"));
	/* Invented users make room for each other, and give nobody more. */
	for (u64 user = 0; user < 2000; user++) {
		assert_true(ask_number("user", user));
		assert_false(rig_answer.status[0].full);
	}
	assert_false(allowed("user=bob"));
	assert_int_equal(allowed_of("user=al", 20), 5);
	for (u64 user = 0; user < 200; user++) {
		assert_true(ask_number("once", user));
		some += rig_answer.status[0].full;
	}
	assert_int_equal(some, 200 - 80);
	assert_false(allowed("user=bob"));
	assert_false(rig_answer.status[0].full);
	counters_stats(rig_store, &stats);
	assert_int_equal(stats.log_used, 100 * 16);
	/* All units are refunded. */
	rig_pass(60 * SEC);
	counters_sweep_all(rig_store, rig_now);
	counters_stats(rig_store, &stats);
	assert_int_equal(stats.log_used, 0);
	assert_int_equal(stats.entries[SL_ALGO_SLIDING_LOG], 0);
	rig_end();
}

/* A request refused by one limit charges nothing to the others, and keeps no chunk. */
TEST(test_closed_charges_nothing)
{
	struct sl_err err;
	struct counters_stats stats;

	rig_load("- {key: user, limits: ['1 requests/m'], algorithm: sliding-log}\n"
		 "- {key: path, limits: ['5 requests/m']}\n");
	assert_int_equal(counters_open(NULL, 10000, 4 * 16, &rig_store, &err), 0);
	counters_on_full(rig_store, true);
	rig_now = (struct sl_now){ .mono_ns = 1000 * SEC, .utc_ns = RIG_UTC };
	for (u64 user = 0; user < 3; user++)
		assert_true(ask_number("user", user));
	assert_false(allowed("path=/;user=a;user=b"));
	assert_int_equal(rig_answer.code, RESPONSE_CLOSED);
	counters_stats(rig_store, &stats);
	assert_int_equal(stats.log_used, 3 * 16);
	assert_true(allowed("path=/"));
	assert_int_equal(rig_answer.status[0].remaining, 4);
	assert_true(allowed("user=a"));
	rig_end();
}

/* 100000 rates one after the other: numbers of classes come free, and no user is lost. */
TEST(test_classes_come_and_go)
{
	struct request_descriptor descriptor[REQUEST_DESCRIPTORS_MAX];
	struct request request;

	rig_open("- {key: user, limits: ['3 requests/d']}\n", 1000);
	request = rig_request(descriptor, "some=body");
	request.api = API_GRPC;
	descriptor[0].limit_unit = REQUEST_UNIT_DAY;
	assert_int_equal(allowed_of("user=bob", 9), 3);
	for (u32 i = 0; i < 100000; i++) {
		descriptor[0].limit_requests = 200000 + i;
		assert_int_equal(rig_decide(&request), RESPONSE_OK);
		assert_int_equal(rig_answer.status[0].full, false);
		assert_int_equal(rig_answer.status[0].remaining, 200000 + i - (i + 1));
		if (i % 10000 == 0)
			counters_sweep_all(rig_store, rig_now);
	}
	assert_false(allowed("user=bob"));
	rig_end();
}

/* A caller has so many rates in its requests: on_full decides about more, and nothing is known of
 * them. */
TEST(test_classes_of_a_caller)
{
	struct request_descriptor descriptor[REQUEST_DESCRIPTORS_MAX];
	struct request request;

	rig_open("- {key: user, limits: ['3 requests/d']}\n", 1000);
	request = rig_request(descriptor, "some=body");
	request.api = API_GRPC;
	request.caller = 1;
	descriptor[0].limit_unit = REQUEST_UNIT_DAY;
	for (u32 i = 0; i < COUNTERS_CLASSES_CALLER + 9; i++) {
		bool full = i >= COUNTERS_CLASSES_CALLER;

		descriptor[0].limit_requests = 200000 + i;
		assert_int_equal(rig_decide(&request), RESPONSE_OK);
		assert_int_equal(rig_answer.status[0].full, full);
		assert_true(rig_answer.status[0].remaining == (full ? ~0ULL : 200000 - 1));
		assert_int_equal(rig_answer.status[0].requests, full ? 0 : 200000 + i);
	}
	assert_true(allowed("user=bob"));
	rig_end();
}

/* While requests come the sweep asks to be called soon; on an empty table it rests; it never rests
 * on a live user. */
TEST(test_sweep_rests)
{
	struct counters_stats stats;

	rig_open("- {key: user, limits: ['3 requests/m']}\n", 1000);
	assert_false(counters_sweep(rig_store, rig_now));
	assert_true(rig_store->sweep_rests);
	assert_int_equal(allowed_of("user=bob", 9), 3);
	assert_true(counters_sweep(rig_store, rig_now));
	for (u32 i = 0; i < 5; i++) {
		counters_sweep(rig_store, rig_now);
		assert_false(rig_store->sweep_rests);
	}
	counters_stats(rig_store, &stats);
	assert_int_equal(stats.entries[SL_ALGO_FIXED_WINDOW], 1);
	assert_false(allowed("user=bob"));
	rig_pass(120 * SEC);
	for (u32 i = 0; i < 5; i++)
		counters_sweep(rig_store, rig_now);
	assert_true(rig_store->sweep_rests);
	assert_false(counters_sweep(rig_store, rig_now));
	counters_stats(rig_store, &stats);
	assert_int_equal(stats.entries[SL_ALGO_FIXED_WINDOW], 0);
	/* And wakes up for the next. */
	assert_true(allowed("user=eve"));
	assert_true(counters_sweep(rig_store, rig_now));
	counters_stats(rig_store, &stats);
	assert_int_equal(stats.entries[SL_ALGO_FIXED_WINDOW], 1);
	rig_end();
}

/* ------------------------------------------------------------------ threads */

#define THREADS 4
#define CALLS 20000

struct thread {
	pthread_t thread;
	u32 index;
	u64 passed[3];
};

/* Descriptors in different orders, on shared keys, and a key of the thread's own. */
static void *run_thread(void *arg)
{
	static const char *const texts[3] = {
		"a=1;b=1;c=1",
		"c=1;a=1",
		"b=1;a=1;b=2",
	};
	struct thread *t = arg;
	struct request_descriptor descriptor[REQUEST_DESCRIPTORS_MAX];
	struct response response;

	for (u32 i = 0; i < CALLS; i++) {
		u32 which = (i + t->index) % 3;
		struct request request = rig_request(descriptor, texts[which]);

		decide(&(struct ledger){ .counters = rig_store }, rig_rules, &request, rig_now,
		       &response, NULL);
		t->passed[which] += response.code == RESPONSE_OK;
		if (i % 256 == t->index)
			counters_sweep(rig_store, rig_now);
	}
	return NULL;
}

static u64 left_of(const char *text, u64 limit)
{
	u64 left = 0;

	while (left <= limit && allowed(text))
		left++;
	return left;
}

/* All or none in total: each limit lacks exactly the passed requests. */
TEST(test_threads)
{
	for (u32 i = 0; i < COUNT(algorithm_texts); i++) {
		struct thread thread[THREADS] = { 0 };
		u64 passed[3] = { 0 };
		char text[512];

		/* The first has its burst in its text; the others' limit is their rate. */
		snprintf(text, sizeof(text),
			 "- {key: a, limits: ['9000 requests/d'], algorithm: %1$s}\n"
			 "- {key: b, limits: ['7000 requests/d'], algorithm: %1$s}\n"
			 "- {key: c, limits: ['5000 requests/d'], algorithm: %1$s}\n",
			 strstr(algorithm_texts[i], "burst") ? "token-bucket, burst: 5000"
							     : algorithm_texts[i]);
		rig_open(text, 1000);
		for (u32 k = 0; k < THREADS; k++) {
			thread[k].index = k;
			assert_int_equal(
				pthread_create(&thread[k].thread, NULL, run_thread, &thread[k]), 0);
		}
		for (u32 k = 0; k < THREADS; k++) {
			pthread_join(thread[k].thread, NULL);
			for (u32 n = 0; n < 3; n++)
				passed[n] += thread[k].passed[n];
		}
		if (strstr(algorithm_texts[i], "burst")) {
			assert_int_equal(left_of("a=1", 9000) + passed[0] + passed[1] + passed[2],
					 5000);
			assert_int_equal(left_of("b=1", 9000) + passed[0] + passed[2], 5000);
			assert_int_equal(left_of("c=1", 9000) + passed[0] + passed[1], 5000);
		} else {
			assert_int_equal(left_of("a=1", 9000) + passed[0] + passed[1] + passed[2],
					 9000);
			assert_int_equal(left_of("b=1", 9000) + passed[0] + passed[2], 7000);
			assert_int_equal(left_of("c=1", 9000) + passed[0] + passed[1], 5000);
		}
		assert_true(passed[0] && passed[1] && passed[2]);
		rig_end();
	}
}

TEST_MAIN
