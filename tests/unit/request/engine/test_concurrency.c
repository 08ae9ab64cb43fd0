// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Requests in flight: units that are taken, released and lost, against a model that has the time of
 * each; together with rates, and while limits change.
 */
#include <pthread.h>

#include "lib/decide_rig.h"
#include "lib/rng.h"
#include "request/engine/report_ids.h"
#include "request/rules/permit.h"

#define FOR_NS (60 * SEC)
/* A request whose end is lost counts so long, at least and at most: a bucket is a 16th. */
#define LEAST_NS FOR_NS
#define MOST_NS (FOR_NS + FOR_NS / 16 + 1000)

static struct report_ids *ended; /* NULL: repeated ends are not known */

static struct ledger ledger(void)
{
	return (struct ledger){ .counters = rig_store, .ended = ended };
}

static int end_all(void **state)
{
	report_ids_free(ended);
	ended = NULL;
	return rig_teardown(state);
}

static u32 end(const struct permit *permit)
{
	struct ledger of = ledger();

	return decide_release(&of, permit, rig_now);
}

/* A request begins; false: it is refused. */
static bool begin(const char *text, struct permit *ret)
{
	bool ok = allowed(text);

	*ret = rig_answer.permit;
	return ok;
}

/* Units of the enforced limit `name` that are left. */
static u64 left(const char *text, const char *name)
{
	peek_hits(text, 1);
	for (u32 i = 0; i < rig_answer.policy_count; i++)
		if (!strcmp(rig_answer.policy[i].limit->name, name))
			return rig_answer.policy[i].r;
	fail_msg("%s meets no limit %s", text, name);
	return 0;
}

TEST_WITH(test_all_or_none, NULL, end_all)
{
	struct permit permit[4];

	rig_start("domain: {name: api, concurrency: 3}\ndescriptors:\n"
		  "- {key: user, limits: ['4 requests/m'], concurrency: 2}\n");
	assert_true(begin("user=bob", &permit[0]));
	assert_int_equal(permit[0].count, 2);
	assert_true(begin("user=bob", &permit[1]));
	/* Refused by the user's concurrency: charged to no rate, and to the domain no unit. */
	assert_false(begin("user=bob", &permit[2]));
	assert_int_equal(permit[2].count, 0);
	assert_true(rig_answer.retry_after_ns == SEC);
	assert_int_equal(left("user=bob", "user"), 2);
	assert_int_equal(left("user=bob", "domain-concurrency"), 1);
	/* By that of all. */
	assert_true(begin("user=al", &permit[2]));
	assert_false(allowed("user=eve"));
	assert_int_equal(left("user=eve", "user"), 4);
	/* By the rate: no unit is taken. */
	assert_int_equal(end(&permit[0]) + end(&permit[1]) + end(&permit[2]), 6);
	for (u32 i = 0; i < 2; i++) {
		assert_true(begin("user=bob", &permit[0]));
		assert_int_equal(end(&permit[0]), 2);
	}
	assert_false(begin("user=bob", &permit[0]));
	assert_int_equal(left("user=bob", "user-concurrency"), 2);
	assert_int_equal(left("user=bob", "domain-concurrency"), 3);
}

/* One unit for a request, whatever its hits; none for a peek, 0 hits, a report. */
TEST_WITH(test_hits, NULL, end_all)
{
	rig_start("- {key: user, concurrency: 3}\n");
	assert_true(allowed_hits("user=bob", 50));
	assert_int_equal(left("user=bob", "user-concurrency"), 2);
	assert_true(allowed("user=bob;user=bob"));
	assert_int_equal(left("user=bob", "user-concurrency"), 1);
	assert_true(allowed_hits("user=bob", 0));
	assert_int_equal(rig_answer.permit.count, 0);
	report("user=bob", 5, 0);
	report("user=bob", -5, 0);
	assert_int_equal(left("user=bob", "user-concurrency"), 1);
}

/* Nor for a request whose end nothing reports, or that is itself the end of another. */
TEST_WITH(test_without_an_end, NULL, end_all)
{
	struct request_descriptor descriptor[REQUEST_DESCRIPTORS_MAX];
	struct request request = rig_request(descriptor, "user=bob");

	rig_start("- {key: user, concurrency: 1}\n");
	for (u32 i = 0; i < 6; i++) {
		request.ends_unknown = i < 3;
		request.release.count = i >= 3;
		assert_int_equal(rig_decide(&request), RESPONSE_OK);
		assert_int_equal(rig_answer.permit.count, 0);
	}
	assert_true(allowed("user=bob"));
	assert_false(allowed("user=bob"));
}

/* Ends that are lost come back in time, also while others begin and end all the time. */
TEST_WITH(test_lost, NULL, end_all)
{
	struct permit permit;

	rig_start("- {key: user, concurrency: 3}\n");
	assert_int_equal(allowed_of("user=bob", 2), 2); /* never end */
	for (u64 ns = 0; ns < LEAST_NS; ns += SEC / 2) {
		assert_true(begin("user=bob", &permit));
		assert_false(allowed("user=bob"));
		rig_pass(SEC / 2);
		assert_int_equal(end(&permit), 1);
	}
	rig_pass(MOST_NS - LEAST_NS);
	assert_int_equal(allowed_of("user=bob", 9), 3);
	/* Its end, too late, takes nothing from others. */
	rig_pass(MOST_NS);
	assert_true(begin("user=bob", &permit));
	rig_pass(MOST_NS);
	assert_int_equal(allowed_of("user=bob", 9), 3);
	assert_int_equal(end(&permit), 0);
	assert_false(allowed("user=bob"));
	/* A step of the wall clock ends none. */
	rig_now.utc_ns += 3600 * SEC;
	assert_false(allowed("user=bob"));
}

TEST_WITH(test_repeated, NULL, end_all)
{
	struct permit permit[3], other = { .count = 1 };

	rig_start("- {key: user, concurrency: 3}\n");
	ended = report_ids_new();
	for (u32 i = 0; i < 3; i++)
		assert_true(begin("user=bob", &permit[i]));
	assert_int_equal(end(&permit[0]), 1);
	assert_int_equal(end(&permit[0]), 0);
	assert_int_equal(left("user=bob", "user-concurrency"), 1);
	/* Nor does it where repetitions are forgotten, but for a request of the same time, and
	 * never below 0. */
	report_ids_free(ended);
	ended = NULL;
	rig_pass(FOR_NS / 2);
	assert_true(begin("user=bob", &permit[0]));
	assert_int_equal(end(&permit[1]), 1);
	assert_int_equal(end(&permit[2]), 1);
	assert_int_equal(end(&permit[2]), 0);
	assert_int_equal(end(&permit[0]), 1);
	assert_int_equal(end(&permit[0]), 0);
	assert_int_equal(allowed_of("user=bob", 9), 3);
	/* A key that is not in the table, and one of another kind. */
	other.at_ns = rig_now.mono_ns;
	other.key[0] = 12345;
	assert_int_equal(end(&other), 0);
}

TEST_WITH(test_live, NULL, end_all)
{
	struct permit permit[20];
	const char *rules[] = {
		"- {key: user, concurrency: 20}\n",
		"- {key: user, concurrency: 10}\n",
		"- {key: user, concurrency: 20 for 30s}\n",
	};

	rig_start(rules[0]);
	for (u32 i = 0; i < 15; i++)
		assert_true(begin("user=bob", &permit[i]));
	rig_load(rules[1]);
	for (u32 i = 0; i < 6; i++) {
		assert_false(allowed("user=bob"));
		assert_int_equal(end(&permit[i]), 1);
	}
	assert_int_equal(allowed_of("user=bob", 9), 1);
	rig_load(rules[0]);
	assert_int_equal(allowed_of("user=bob", 20), 10);
	/* Another time begins anew, and ends of before end nothing. */
	rig_load(rules[2]);
	rig_pass(4 * SEC);
	assert_int_equal(allowed_of("user=bob", 30), 20);
	assert_int_equal(end(&permit[10]), 0);
	assert_false(allowed("user=bob"));
}

/* In shadow nothing is refused; what would be is not counted, and its end releases nothing of
 * others. */
TEST_WITH(test_shadow, NULL, end_all)
{
	struct permit permit[4];

	rig_start(
		"- {key: user, concurrency: 2, shadow_mode: true}\n"
		"- {key: path, limits: [2 requests/m, {rate: concurrency 1, mode: shadow, name: small}]}\n");
	for (u32 i = 0; i < 4; i++) {
		assert_true(begin("user=bob", &permit[i]));
		assert_int_equal(rig_answer.status[0].shadow, i >= 2);
		assert_int_equal(permit[i].count, i < 2);
	}
	end(&permit[3]);
	assert_true(begin("user=bob", &permit[3]));
	assert_true(rig_answer.status[0].shadow);
	end(&permit[0]);
	assert_true(allowed("user=bob"));
	assert_false(rig_answer.status[0].shadow);
	/* A candidate: only what is admitted is in flight. */
	assert_true(begin("path=/", &permit[0]));
	assert_int_equal(permit[0].count, 1);
	assert_true(begin("path=/", &permit[1]));
	assert_true(rig_answer.status[0].candidate[0].over);
	assert_int_equal(permit[1].count, 0);
	end(&permit[0]);
	assert_false(begin("path=/", &permit[0]));
	assert_int_equal(permit[0].count, 0);
	peek_hits("path=/", 1);
	assert_int_equal(rig_answer.status[0].candidate[0].r, 1);
}

TEST_WITH(test_priorities, NULL, end_all)
{
	rig_start("- {key: backend, concurrency: 10, reserve: {critical: 20%}}\n"
		  "- {key: class, value: payment, priority: critical}\n");
	assert_int_equal(allowed_of("backend=a", 20), 8);
	assert_int_equal(allowed_of("backend=a;class=payment", 20), 2);
}

/* ------------------------------------------------------------------ against a model */

#define REQUESTS_MAX 4000

static struct one {
	struct permit permit;
	u64 at_ns;
	bool ended;
} one[REQUESTS_MAX];

/*
 * Requests in flight by the times of all that began: those that surely count, and those that may,
 * while their bucket is not over.
 */
static void count_flight(u32 made, u64 now_ns, u32 *ret_least, u32 *ret_most)
{
	*ret_least = *ret_most = 0;
	for (u32 i = 0; i < made; i++) {
		if (one[i].ended)
			continue;
		*ret_least += now_ns - one[i].at_ns < LEAST_NS;
		*ret_most += now_ns - one[i].at_ns <= MOST_NS;
	}
}

TEST_WITH(test_model, NULL, end_all)
{
	u32 limit, made = 0, least, most;
	char rules[128];

	rng_start("test_concurrency");
	limit = 1 + rng_below(40);
	snprintf(rules, sizeof(rules), "- {key: user, concurrency: %u}\n", limit);
	rig_start(rules);
	while (made < REQUESTS_MAX) {
		rig_pass(rng_magnitude(1 + rng_below(33)));
		count_flight(made, rig_now.mono_ns, &least, &most);
		if (rng_below(2)) {
			bool ok = begin("user=bob", &one[made].permit);

			if (ok ? least >= limit : most < limit)
				fail_msg("limit %u, %u to %u in flight: %s", limit, least, most,
					 ok ? "begins" : "refused");
			one[made].at_ns = rig_now.mono_ns;
			one[made++].ended = !ok;
		} else if (made) {
			u32 i = made - 1 - rng_below(made < 60 ? made : 60);
			u64 age_ns = rig_now.mono_ns - one[i].at_ns;
			u32 released = one[i].ended || !rng_below(20) ? 2 : end(&one[i].permit);

			if (released == 2)
				continue; /* lost */
			one[i].ended = true;
			assert_true(released || age_ns >= LEAST_NS);
			assert_true(!released || age_ns <= MOST_NS);
		}
	}
}

/* ------------------------------------------------------------------ threads */

static u32 flying, most_flying;

static void *fly(void *arg)
{
	struct ledger of = ledger();
	struct decide_delay wait = { .key = 0 };

	for (u32 i = 0; i < 20000; i++) {
		struct request_descriptor descriptor[REQUEST_DESCRIPTORS_MAX];
		struct request request = rig_request(descriptor, "user=bob");
		struct response response;
		struct sl_now now = rig_now;
		u32 at_once;

		now.mono_ns += i * 1000; /* a decision takes about that */
		decide(&of, rig_rules, &request, now, &response, &wait);
		if (response.code != RESPONSE_OK)
			continue;
		at_once = __atomic_add_fetch(&flying, 1, __ATOMIC_SEQ_CST);
		if (at_once > __atomic_load_n(&most_flying, __ATOMIC_SEQ_CST))
			__atomic_store_n(&most_flying, at_once, __ATOMIC_SEQ_CST);
		__atomic_sub_fetch(&flying, 1, __ATOMIC_SEQ_CST);
		if (decide_release(&of, &response.permit, now) != 1)
			return "an end found nothing";
	}
	return NULL;
}

TEST_WITH(test_threads, NULL, end_all)
{
	pthread_t thread[4];
	void *wrong;

	rig_start("- {key: user, concurrency: 2}\n");
	ended = report_ids_new();
	for (int i = 0; i < 4; i++)
		pthread_create(&thread[i], NULL, fly, NULL);
	for (int i = 0; i < 4; i++) {
		pthread_join(thread[i], &wrong);
		if (wrong)
			fail_msg("%s", (const char *)wrong);
	}
	assert_in_range(most_flying, 1, 2);
	assert_int_equal(left("user=bob", "user-concurrency"), 2);
}

/* ------------------------------------------------------------------ permits as text */

TEST(test_text)
{
	static const char *const wrong[] = {
		"",
		"-",
		"0123456789abcdef",
		"0123456789abcdef0123456789abcdeg",
		"0123456789abcdef0123456789abcde",
	};
	struct permit permit = { .at_ns = 0x0123456789abcdefULL, .count = PERMIT_UNITS_MAX },
		      back = { .count = 7 };
	char text[PERMIT_TEXT_MAX + 32];

	assert_string_equal(permit_format(&(struct permit){ .at_ns = 5 }, text, sizeof(text)), "");
	for (u32 i = 0; i < PERMIT_UNITS_MAX; i++)
		permit.key[i] = ~0ULL / (i + 1);
	permit_format(&permit, text, PERMIT_TEXT_MAX);
	assert_true(permit_parse((struct bytes){ text, strlen(text) }, &back));
	assert_memory_equal(&permit, &back, sizeof(permit));
	back.count = 7;
	for (size_t i = 0; i < COUNT(wrong); i++)
		assert_false(permit_parse((struct bytes){ wrong[i], strlen(wrong[i]) }, &back));
	strcat(text, "0123456789abcdef");
	assert_false(permit_parse((struct bytes){ text, strlen(text) }, &back));
	assert_int_equal(back.count, 7);
}

TEST_MAIN
