// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Replies of defer.lua: those that make sense, and all others, which count as none. */
#include "cluster/quota/cluster_store_redis.h"
#include "cluster/quota/defer_store.h"
#include "lib/redis_asked.h"
#include "lib/test.h"

#define ITEMS_MAX 16

/* A reply of these; the first is most often its status. */
struct said {
	redisReply all, item[ITEMS_MAX];
	redisReply *list[ITEMS_MAX];
};

static redisReply text(char *bytes)
{
	return (redisReply){ .type = REDIS_REPLY_STRING, .str = bytes, .len = strlen(bytes) };
}

static redisReply integer(long long value)
{
	return (redisReply){ .type = REDIS_REPLY_INTEGER, .integer = value };
}

static const redisReply nil = { .type = REDIS_REPLY_NIL };

static void say(struct said *said, redisReply item)
{
	size_t at = said->all.elements++;

	said->item[at] = item;
	said->list[at] = &said->item[at];
	said->all.type = REDIS_REPLY_ARRAY;
	said->all.element = said->list;
}

static u32 done, ended;

static void on_done(struct defer_call *call)
{
	done++;
}

static void on_ended(struct defer_call *call)
{
	ended++;
}

static struct defer_call ask(enum redis_outcome outcome, const redisReply *reply)
{
	struct defer_queue queue = { "api/user", 100, 1000000, 3, 1000000 };
	struct defer_call call = { .done = on_done, .ended = on_ended };
	struct cluster_store *store = NULL;

	assert_int_equal(cluster_store_redis_new((struct redis *)&asked, "p:", "a", &store), 0);
	assert_int_equal(defer_store_look(store, &queue, 1000, &call), 0);
	done = ended = 0;
	asked.done(asked.arg, outcome, reply);
	assert_int_equal(done, 1);
	if (outcome != REPLY_LATE)
		assert_int_equal(ended, 1);
	store->ops->free(store);
	return call;
}

static enum defer_status status_of(const struct said *said)
{
	return ask(REPLY_OK, &said->all).status;
}

/* A poll's reply, of which one number is another. */
static void poll(struct said *said, u32 number, redisReply other)
{
	*said = (struct said){ 0 };
	say(said, text("ok"));
	for (u32 i = 0; i < DEFER_NUMBER_COUNT; i++)
		say(said, i == number ? other : integer(i + 1));
}

/* ------------------------------------------------------------------ */

TEST(test_replies)
{
	static char *const plain[] = { "released", "done", "dead", "cancelled", "full", "none" };
	struct said said = { 0 };
	struct defer_call call;

	say(&said, text("waiting"));
	say(&said, integer(7));
	call = ask(REPLY_OK, &said.all);
	assert_int_equal(call.status, DEFER_WAITING);
	assert_int_equal(call.number[0], 7);
	for (u32 i = 0; i < 6; i++) {
		said = (struct said){ 0 };
		say(&said, text(plain[i]));
		assert_int_equal(status_of(&said), DEFER_RELEASED + i);
	}
	poll(&said, DEFER_NEXT_US, integer(-1));
	call = ask(REPLY_OK, &said.all);
	assert_int_equal(call.status, DEFER_OK);
	assert_true(call.number[DEFER_NEXT_US] == ~0ULL);
	assert_int_equal(call.number[DEFER_SUM_DEAD], DEFER_SUM_DEAD + 1);
	poll(&said, DEFER_AOF, integer(-1));
	assert_int_equal(status_of(&said), DEFER_OK);
}

TEST(test_a_status_that_is_none)
{
	static char *const wrong[] = { "", "o", "okay", "OK", "failed", "waiting " };
	struct said said = { 0 };
	redisReply one = text("done");

	/* No array, an empty one, one without a status. */
	assert_int_equal(ask(REPLY_OK, &one).status, DEFER_FAILED);
	said.all.type = REDIS_REPLY_ARRAY;
	assert_int_equal(status_of(&said), DEFER_FAILED);
	say(&said, nil);
	assert_int_equal(status_of(&said), DEFER_FAILED);
	said = (struct said){ 0 };
	say(&said, integer(2));
	assert_int_equal(status_of(&said), DEFER_FAILED);
	for (u32 i = 0; i < 6; i++) {
		said = (struct said){ 0 };
		say(&said, text(wrong[i]));
		assert_int_equal(status_of(&said), DEFER_FAILED);
	}
}

TEST(test_numbers_that_are_none)
{
	struct said said = { 0 };

	/* A position that is missing, no number, or no position. */
	say(&said, text("waiting"));
	assert_int_equal(status_of(&said), DEFER_FAILED);
	say(&said, text("7"));
	assert_int_equal(status_of(&said), DEFER_FAILED);
	said.item[1] = integer(0);
	assert_int_equal(status_of(&said), DEFER_FAILED);
	said.item[1] = integer(-1);
	assert_int_equal(status_of(&said), DEFER_FAILED);
	said.item[1] = integer(1);
	say(&said, integer(1));
	assert_int_equal(status_of(&said), DEFER_FAILED);
	said = (struct said){ 0 };
	say(&said, text("released"));
	say(&said, nil);
	assert_int_equal(status_of(&said), DEFER_FAILED);
	/* More than any reply has. */
	said = (struct said){ 0 };
	say(&said, text("released"));
	for (u32 i = 0; i <= DEFER_NUMBER_COUNT; i++)
		say(&said, integer(1));
	assert_int_equal(status_of(&said), DEFER_FAILED);
	/* Of a poll: each of them, one too few, one too many. */
	for (u32 i = 0; i < DEFER_NUMBER_COUNT; i++) {
		poll(&said, i, nil);
		assert_int_equal(status_of(&said), DEFER_FAILED);
		poll(&said, i, integer(i == DEFER_NEXT_US || i == DEFER_AOF ? -2 : -1));
		assert_int_equal(status_of(&said), DEFER_FAILED);
	}
	poll(&said, 0, integer(0));
	said.all.elements--;
	assert_int_equal(status_of(&said), DEFER_FAILED);
	said.all.elements++;
	say(&said, integer(0));
	assert_int_equal(status_of(&said), DEFER_FAILED);
}

/* The outcome comes first; the late reply is read, once. */
TEST(test_late_and_failed)
{
	struct said said = { 0 };
	struct defer_call call;

	say(&said, text("done"));
	call = ask(REPLY_ERROR, &said.all);
	assert_int_equal(call.status, DEFER_FAILED);
	assert_false(call.late);
	call = ask(REPLY_LATE, NULL);
	assert_int_equal(call.status, DEFER_FAILED);
	assert_true(call.late);
	assert_int_equal(ended, 0);
	asked.late(&call, REPLY_OK, &said.all);
	assert_int_equal(ended, 1);
	assert_int_equal(call.status, DEFER_DONE);
}

TEST(test_tickets)
{
	const char *ticket = "00000000000000ff0123456789abcdef0123456789abcdef";
	char other[DEFER_TICKET_LEN + 1];
	u64 rule_id = 1;

	assert_true(defer_ticket_rule(ticket, DEFER_TICKET_LEN, &rule_id));
	assert_int_equal(rule_id, 255);
	assert_false(defer_ticket_rule(ticket, DEFER_TICKET_LEN - 1, &rule_id));
	for (u32 i = 0; i < 5; i++) {
		strcpy(other, ticket);
		other[i * 11] = "gA\0-{"[i];
		assert_false(defer_ticket_rule(other, DEFER_TICKET_LEN, &rule_id));
	}
}

TEST_MAIN
