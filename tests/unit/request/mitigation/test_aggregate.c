// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What decisions tell the main thread: who is a user, whose refusal it is, and what is not told. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "request/mitigation/aggregate.h"

static char *user_rules[] = { "api/user" };

static struct rule rule[] = {
	{ .domain = "api", .path = "user", .index = 0, .id = 11, .limit_count = 2,
	  .limit = (struct rule_limit[]){ { .rate = { 10, 60 * SL_NS_PER_SEC, 0 } },
					  { .rate = { 500, 3600 * SL_NS_PER_SEC, 0 } } } },
	{ .domain = "api", .path = "path", .index = 1, .id = 22, .push = { .after = 20 } },
	{ .domain = "api", .path = "user/path", .index = 2, .id = 33 },
};
static struct rule *rules[] = { &rule[0], &rule[1], &rule[2] };
static const struct ruleset set = { .rule = rules, .rule_count = 3 };

struct told {
	struct user_note user[64];
	struct refusal_note refused[64];
	u32 users, refusals, many;
};

static void told_user(const struct user_note *note, void *arg)
{
	struct told *told = arg;

	told->many++;
	if (told->users < 64)
		told->user[told->users++] = *note;
}

static void told_refused(const struct refusal_note *note, void *arg)
{
	struct told *told = arg;

	if (told->refusals < 64)
		told->refused[told->refusals++] = *note;
}

static struct aggregate *make(bool with_users)
{
	struct http_def def = {
		.push_down = { .prefix = { 32, 64 } },
		.budget = { .limit = "per-source", .user = user_rules, .user_count = with_users },
	};
	struct aggregate *aggregate;

	assert_int_equal(aggregate_new(2, &aggregate), 0);
	aggregate_configure(aggregate, &def, &set);
	return aggregate;
}

static struct told drain(struct aggregate *aggregate)
{
	struct told told = { .users = 0 };
	struct aggregate_sink sink = { told_user, told_refused, &told };

	aggregate_drain(aggregate, &sink);
	return told;
}

static struct bytes text(const char *s)
{
	return (struct bytes){ s, strlen(s) };
}

static struct request_descriptor one(const char *key, const char *value)
{
	return (struct request_descriptor){ .entry = { { text(key), text(value) } }, .count = 1,
					 .hits = 1 };
}

static struct request request_of(struct request_descriptor *descriptor, u32 count)
{
	return (struct request){ .domain = text("api"), .descriptor = descriptor, .count = count,
			      .source = { .addr = { 0xc0000201ULL << 32, 0 }, .family = SL_V4,
					  .len = 32 },
			      .has_source = true, .rights = MAY_CHECK | MAY_PUSH };
}

static void test_allowed_user(void **state)
{
	struct aggregate *aggregate = make(true);
	struct request_descriptor d[2] = { one("user", "bob"), one("path", "/x") };
	struct request request = request_of(d, 2);
	struct response response = { .count = 2, .status = { { .rule = &rule[0] }, { .rule = &rule[1] } } };
	struct told told;

	aggregate_note(aggregate, 1, &request, &response);
	d[0] = one("user", "eve");
	aggregate_note(aggregate, 0, &request, &response);
	told = drain(aggregate);
	assert_int_equal(told.users, 2);
	assert_int_equal(told.refusals, 0);
	assert_true(told.user[0].allowed && told.user[0].first && told.user[0].user);
	assert_true(told.user[0].user != told.user[1].user);
	/* 500 an hour is less than 10 a minute. */
	assert_int_equal(told.user[0].rate_mrps, 138);
	assert_int_equal(told.user[0].group.len, 32);
	assert_int_equal(drain(aggregate).users, 0);
	aggregate_free(aggregate);
}

static void test_whose_refusal(void **state)
{
	struct aggregate *aggregate = make(true);
	struct request_descriptor d[3] = {one("user", "bob"), one("path", "/x"),
					  one("user", "bob")};
	struct request request = request_of(d, 3);
	struct response response = { .code = RESPONSE_OVER_LIMIT, .count = 3,
				 .status = { { .rule = &rule[0] }, { .rule = &rule[1] },
					     { .rule = &rule[2] } } };
	struct told told;

	d[2].entry[1] = (struct request_entry){ text("path"), text("/x") };
	d[2].count = 2;
	/* Everybody's path is over: nobody's fault. */
	response.status[1].over = true;
	aggregate_note(aggregate, 0, &request, &response);
	told = drain(aggregate);
	assert_int_equal(told.users, 1);
	assert_false(told.user[0].allowed || told.user[0].own_refusal);
	assert_int_equal(told.refusals, 1);
	assert_true(told.refused[0].rule_id == 22 && told.refused[0].rule_index == 1);
	assert_memory_equal(told.refused[0].value, "/x", 2);
	/* His own path is. */
	response.status[1].over = false;
	response.status[2].over = true;
	aggregate_note(aggregate, 0, &request, &response);
	assert_true(drain(aggregate).user[0].own_refusal);
	/* Another user's is not his, and a rule that only watches refuses nobody. */
	d[2].entry[0].value = text("eve");
	aggregate_note(aggregate, 0, &request, &response);
	d[2].entry[0].value = text("bob");
	response.status[2].shadow = true;
	aggregate_note(aggregate, 0, &request, &response);
	told = drain(aggregate);
	assert_int_equal(told.users, 2);
	assert_false(told.user[0].own_refusal || told.user[1].own_refusal);
	assert_int_equal(told.refusals, 1);
	aggregate_free(aggregate);
}

static void test_what_is_not_told(void **state)
{
	struct aggregate *aggregate = make(true);
	struct request_descriptor d[1] = { one("user", "192.0.2.1") };
	struct request request = request_of(d, 1);
	struct response response = { .count = 1, .status = { { .rule = &rule[0] } } };
	struct told told;

	/* The source itself is no user; the request is counted. */
	aggregate_note(aggregate, 0, &request, &response);
	told = drain(aggregate);
	assert_int_equal(told.users, 1);
	assert_true(told.user[0].user == 0 && told.user[0].first);
	d[0] = one("user", "bob");
	/* From callers without the right, looks, refunds, without a source, and what is no verdict. */
	request.rights = MAY_CHECK;
	aggregate_note(aggregate, 0, &request, &response);
	request.rights = MAY_CHECK | MAY_PUSH;
	request.peek = true;
	aggregate_note(aggregate, 0, &request, &response);
	request.peek = false;
	request.has_source = false;
	aggregate_note(aggregate, 0, &request, &response);
	request.has_source = true;
	response.code = RESPONSE_CLOSED;
	aggregate_note(aggregate, 0, &request, &response);
	assert_int_equal(drain(aggregate).users, 0);
	/* Who may not push is refused as anybody, and it is said that he may not. */
	response.code = RESPONSE_OVER_LIMIT;
	response.status[0].over = true;
	request.rights = MAY_CHECK;
	aggregate_note(aggregate, 0, &request, &response);
	told = drain(aggregate);
	assert_int_equal(told.users, 0);
	assert_int_equal(told.refusals, 1);
	assert_false(told.refused[0].may_push);
	aggregate_free(aggregate);
}

/* Without source_budget.user, users are the values of rules with push_down. */
static void test_users_of_push_rules(void **state)
{
	struct aggregate *aggregate = make(false);
	struct request_descriptor d[2] = { one("user", "bob"), one("path", "/x") };
	struct request request = request_of(d, 2);
	struct response response = { .count = 2, .status = { { .rule = &rule[0] }, { .rule = &rule[1] } } };
	struct told told;

	aggregate_note(aggregate, 0, &request, &response);
	told = drain(aggregate);
	assert_int_equal(told.users, 1);
	request.source = (struct sl_prefix){ .addr = { 0x20010db800000001ULL, 5 }, .family = SL_V6,
					  .len = 128 };
	aggregate_note(aggregate, 0, &request, &response);
	told = drain(aggregate);
	assert_int_equal(told.user[0].group.len, 64);
	assert_true(told.user[0].group.addr.lo == 0 && told.user[0].address.addr.lo == 5);
	aggregate_free(aggregate);
}

struct writer {
	struct aggregate *aggregate;
	u32 worker;
};

#define CALLS 20000

static void *write_many(void *arg)
{
	struct writer *writer = arg;
	struct request_descriptor d[1] = { one("user", "bob") };
	struct request request = request_of(d, 1);
	struct response response = { .count = 1, .status = { { .rule = &rule[0] } } };

	for (u32 i = 0; i < CALLS; i++)
		aggregate_note(writer->aggregate, writer->worker, &request, &response);
	return NULL;
}

/* Nothing is made up, nothing is lost but what is counted. */
static void test_two_workers(void **state)
{
	struct aggregate *aggregate = make(true);
	struct writer writer[2] = { { aggregate, 0 }, { aggregate, 1 } };
	struct told told = { .users = 0 };
	struct aggregate_sink sink = { told_user, told_refused, &told };
	pthread_t thread[2];

	for (u32 i = 0; i < 2; i++)
		pthread_create(&thread[i], NULL, write_many, &writer[i]);
	for (u32 i = 0; i < 100; i++)
		aggregate_drain(aggregate, &sink);
	for (u32 i = 0; i < 2; i++)
		pthread_join(thread[i], NULL);
	aggregate_drain(aggregate, &sink);
	assert_true(told.many + aggregate_lost(aggregate) == 2 * CALLS);
	assert_true(told.many >= 4096);
	aggregate_free(aggregate);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_allowed_user),
		cmocka_unit_test(test_whose_refusal),
		cmocka_unit_test(test_what_is_not_told),
		cmocka_unit_test(test_users_of_push_rules),
		cmocka_unit_test(test_two_workers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
