// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What decisions report to the main thread: which user, whose refusal, and what is not reported. */
#include <pthread.h>

#include "lib/test.h"
#include "request/mitigation/aggregate.h"

static char *user_rules[] = { "api/user" };

static struct rule rule[] = {
	{ .domain = "api",
	  .path = "user",
	  .index = 0,
	  .id = 11,
	  .limit_count = 2,
	  .limit = (struct rule_limit[]){ { .terms.rates.rate[0] = { 10, 60 * SL_NS_PER_SEC, 0 } },
					  { .terms.rates.rate[0] = { 500, 3600 * SL_NS_PER_SEC,
								     0 } } } },
	{ .domain = "api", .path = "path", .index = 1, .id = 22, .push = { .after = 20 } },
	{ .domain = "api", .path = "user/path", .index = 2, .id = 33 },
};
static struct rule *rules[] = { &rule[0], &rule[1], &rule[2] };
static const struct ruleset set = { .rule = rules, .rule_count = 3 };

struct drained {
	struct user_note user[64];
	struct refusal_note refused[64], allowed;
	u32 users, refusals, many, samples;
	u64 stands_for;
};

static void on_user(const struct user_note *note, void *arg)
{
	struct drained *drained = arg;

	drained->many++;
	if (drained->users < 64)
		drained->user[drained->users++] = *note;
}

static void on_refusal(const struct refusal_note *note, void *arg)
{
	struct drained *drained = arg;

	if (drained->refusals < 64)
		drained->refused[drained->refusals++] = *note;
}

static void on_allowed(const struct refusal_note *note, void *arg)
{
	struct drained *drained = arg;

	drained->allowed = *note;
	drained->samples++;
	drained->stands_for += note->stands_for;
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

static struct drained drain(struct aggregate *aggregate)
{
	struct drained drained = { .users = 0 };
	struct aggregate_sink sink = { on_user, on_refusal, on_allowed, &drained };

	aggregate_drain(aggregate, &sink);
	return drained;
}

static struct bytes text(const char *s)
{
	return (struct bytes){ s, strlen(s) };
}

static struct request_descriptor one(const char *key, const char *value)
{
	return (struct request_descriptor){ .entry = { { text(key), text(value) } },
					    .count = 1,
					    .hits = 1 };
}

static struct request request_of(struct request_descriptor *descriptor, u32 count)
{
	return (struct request){
		.domain = text("api"),
		.descriptor = descriptor,
		.count = count,
		.source = { .addr = { 0xc0000201ULL << 32, 0 }, .family = SL_V4, .len = 32 },
		.has_source = true,
		.rights = MAY_CHECK | MAY_PUSH
	};
}

TEST(test_allowed_user)
{
	struct aggregate *aggregate = make(true);
	struct request_descriptor d[2] = { one("user", "bob"), one("path", "/x") };
	struct request request = request_of(d, 2);
	struct response response = { .count = 2,
				     .status = { { .rule = &rule[0] }, { .rule = &rule[1] } } };
	struct drained drained;

	aggregate_note(aggregate, 1, &request, &response);
	d[0] = one("user", "eve");
	aggregate_note(aggregate, 0, &request, &response);
	drained = drain(aggregate);
	assert_int_equal(drained.users, 2);
	assert_int_equal(drained.refusals, 0);
	assert_true(drained.user[0].allowed && drained.user[0].first && drained.user[0].user);
	assert_true(drained.user[0].user != drained.user[1].user);
	/* 500 an hour is less than 10 a minute. */
	assert_int_equal(drained.user[0].rate_mrps, 138);
	assert_int_equal(drained.user[0].group.len, 32);
	assert_int_equal(drain(aggregate).users, 0);
	aggregate_free(aggregate);
}

/* Allowed requests are sampled; the samples stand for all of them. */
TEST(test_samples)
{
	struct aggregate *aggregate = make(false);
	struct request_descriptor d = one("user", "bob");
	struct request request = request_of(&d, 1);
	struct response response = { .count = 1, .status = { { .rule = &rule[0] } } };
	struct drained drained;
	u64 noted = 0, stood_for = 0;

	aggregate_note(aggregate, 0, &request, &response);
	drained = drain(aggregate);
	assert_int_equal(drained.samples, 1);
	assert_int_equal(drained.stands_for, 1);
	assert_int_equal(drained.allowed.rule_id, rule[0].id);
	assert_memory_equal(drained.allowed.value, "bob", 3);
	/* What was charged back, is no request, or met no rule, is none. */
	d.refund = true;
	aggregate_note(aggregate, 0, &request, &response);
	d.refund = false;
	d.hits = 0;
	aggregate_note(aggregate, 0, &request, &response);
	d.hits = 1;
	response.status[0].rule = NULL;
	aggregate_note(aggregate, 0, &request, &response);
	assert_int_equal(drain(aggregate).samples, 0);
	response.status[0].rule = &rule[0];
	for (int tick = 0; tick < 50; tick++) {
		for (int i = 0; i < 4000; i++) {
			aggregate_note(aggregate, 0, &request, &response);
			/* The other worker is not sampled less for that. */
			if (i < 4)
				aggregate_note(aggregate, 1, &request, &response);
			/* As at half a ring. */
			if (i % 2000 == 1999) {
				drained = drain(aggregate);
				noted += tick ? drained.samples : 0;
				stood_for += tick ? drained.stands_for : 0;
			}
		}
		aggregate_pace(aggregate, SL_NS_PER_SEC / 5);
	}
	/* 49 fifths of a second of 200 each, beside 4 each. */
	assert_in_range(noted, 49 * 150, 49 * 250);
	assert_in_range(stood_for, 49 * 4004 * 9 / 10, 49 * 4004 * 11 / 10);
	aggregate_free(aggregate);
}

TEST(test_refused_user)
{
	struct aggregate *aggregate = make(true);
	struct request_descriptor d[3] = { one("user", "bob"), one("path", "/x"),
					   one("user", "bob") };
	struct request request = request_of(d, 3);
	struct response response = {
		.code = RESPONSE_OVER_LIMIT,
		.count = 3,
		.status = { { .rule = &rule[0] }, { .rule = &rule[1] }, { .rule = &rule[2] } }
	};
	struct drained drained;

	d[2].entry[1] = (struct request_entry){ text("path"), text("/x") };
	d[2].count = 2;
	/* Everybody's path is over: no user's fault. */
	response.status[1].over = true;
	aggregate_note(aggregate, 0, &request, &response);
	drained = drain(aggregate);
	assert_int_equal(drained.users, 1);
	assert_false(drained.user[0].allowed || drained.user[0].own_refusal);
	assert_int_equal(drained.refusals, 1);
	assert_true(drained.refused[0].rule_id == 22 && drained.refused[0].rule_index == 1);
	assert_memory_equal(drained.refused[0].value, "/x", 2);
	/* The user's own path is. */
	response.status[1].over = false;
	response.status[2].over = true;
	aggregate_note(aggregate, 0, &request, &response);
	assert_true(drain(aggregate).user[0].own_refusal);
	/* Another user's is not counted for this one, and a rule in shadow refuses nobody. */
	d[2].entry[0].value = text("eve");
	aggregate_note(aggregate, 0, &request, &response);
	d[2].entry[0].value = text("bob");
	response.status[2].shadow = true;
	aggregate_note(aggregate, 0, &request, &response);
	drained = drain(aggregate);
	assert_int_equal(drained.users, 2);
	assert_false(drained.user[0].own_refusal || drained.user[1].own_refusal);
	assert_int_equal(drained.refusals, 1);
	aggregate_free(aggregate);
}

TEST(test_not_reported)
{
	struct aggregate *aggregate = make(true);
	struct request_descriptor d[1] = { one("user", "192.0.2.1") };
	struct request request = request_of(d, 1);
	struct response response = { .count = 1, .status = { { .rule = &rule[0] } } };
	struct drained drained;

	/* The source itself is no user; the request is counted. */
	aggregate_note(aggregate, 0, &request, &response);
	drained = drain(aggregate);
	assert_int_equal(drained.users, 1);
	assert_true(drained.user[0].user == 0 && drained.user[0].first);
	d[0] = one("user", "bob");
	/* From callers without the right, peeks, refunds, without a source, and without a
	 * verdict. */
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
	/* A caller without the right to push is refused like any, and marked as such. */
	response.code = RESPONSE_OVER_LIMIT;
	response.status[0].over = true;
	request.rights = MAY_CHECK;
	aggregate_note(aggregate, 0, &request, &response);
	drained = drain(aggregate);
	assert_int_equal(drained.users, 0);
	assert_int_equal(drained.refusals, 1);
	assert_false(drained.refused[0].may_push);
	aggregate_free(aggregate);
}

/* Without source_budget.user, users are the values of rules with push_down. */
TEST(test_users_of_push_rules)
{
	struct aggregate *aggregate = make(false);
	struct request_descriptor d[2] = { one("user", "bob"), one("path", "/x") };
	struct request request = request_of(d, 2);
	struct response response = { .count = 2,
				     .status = { { .rule = &rule[0] }, { .rule = &rule[1] } } };
	struct drained drained;

	aggregate_note(aggregate, 0, &request, &response);
	drained = drain(aggregate);
	assert_int_equal(drained.users, 1);
	request.source = (struct sl_prefix){ .addr = { 0x20010db800000001ULL, 5 },
					     .family = SL_V6,
					     .len = 128 };
	aggregate_note(aggregate, 0, &request, &response);
	drained = drain(aggregate);
	assert_int_equal(drained.user[0].group.len, 64);
	assert_true(drained.user[0].group.addr.lo == 0 && drained.user[0].address.addr.lo == 5);
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

/* Nothing is invented, every loss is counted. */
TEST(test_two_workers)
{
	struct aggregate *aggregate = make(true);
	struct writer writer[2] = { { aggregate, 0 }, { aggregate, 1 } };
	struct drained drained = { .users = 0 };
	struct aggregate_sink sink = { on_user, on_refusal, on_allowed, &drained };
	pthread_t thread[2];

	for (u32 i = 0; i < 2; i++)
		pthread_create(&thread[i], NULL, write_many, &writer[i]);
	for (u32 i = 0; i < 100; i++)
		aggregate_drain(aggregate, &sink);
	for (u32 i = 0; i < 2; i++)
		pthread_join(thread[i], NULL);
	aggregate_drain(aggregate, &sink);
	assert_true(drained.many + aggregate_lost(aggregate) == 2 * CALLS);
	assert_true(drained.many >= 4096);
	aggregate_free(aggregate);
}

TEST_MAIN
