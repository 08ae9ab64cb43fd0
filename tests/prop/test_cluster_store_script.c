// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * charge.lua without a server (under liblua5.1, with a clock that is set): the replies of it to any number
 * of nodes, through cluster_store_redis.c, are those of cluster_store_memory.c,
 * number by number; and an invalid reply is recognized. test_cluster_store_redis.c uses a
 * real server.
 */
#include "lib/test.h"
#include "cluster/redis/redis.h"
#include "lib/cluster_store_memory.h"
#include "lua/charge.h"
#include "prop/cluster_store_requests.h"
#include "prop/mini_redis.h"

/* In the place of redis.c: a server that replies when the test calls it. */
struct redis {
	struct mini *mini;
	struct redis_handler handler;
	redisReply *reply;
};

int redis_send(struct redis *redis, const struct redis_command *command,
	       struct redis_handler handler)
{
	assert_null(redis->reply);
	assert_string_equal(command->script->text, charge_lua);
	redis->reply = mini_eval(redis->mini, command->argc, command->argv, command->len);
	redis->handler = handler;
	return 0;
}

static void redis_answer(struct redis *redis)
{
	redisReply *reply = redis->reply;

	redis->reply = NULL;
	redis->handler.done(redis->handler.arg,
			    reply->type == REDIS_REPLY_ERROR ? REPLY_ERROR : REPLY_OK, reply);
	mini_reply_free(reply);
}

u32 redis_slot_of(const struct redis *redis, const char *key, size_t len)
{
	return 0;
}

bool redis_up(const struct redis *redis, u32 slot)
{
	return true;
}

void redis_script_init(struct redis_script *script, const char *text)
{
	script->text = text;
}

#define NODES 4

struct both {
	struct cluster_store_memory *memory;
	struct cluster_store *model[NODES], *script[NODES];
	struct redis redis;
	u64 now_us;
	u64 asks, passed, granted, excess, lapsed;
};

static void both_open(struct both *both)
{
	static const char *const name[NODES] = {
		"a", "b.example", "c", "node-of-a-very-long-name.in-some.data-centre.example",
	};

	*both = (struct both){ .now_us = START_US + rng_below(SL_NS_PER_SEC) };
	assert_int_equal(cluster_store_memory_new(&both->memory), 0);
	both->redis.mini = mini_new(charge_lua);
	assert_non_null(both->redis.mini);
	for (u32 i = 0; i < NODES; i++) {
		assert_int_equal(cluster_store_memory_node(both->memory, name[i], &both->model[i]),
				 0);
		assert_int_equal(cluster_store_redis_new(&both->redis, "sluice:", name[i],
							 &both->script[i]), 0);
	}
}

static void both_close(struct both *both)
{
	for (u32 i = 0; i < NODES; i++)
		both->script[i]->ops->free(both->script[i]);
	cluster_store_memory_free(both->memory);
	mini_free(both->redis.mini);
}

/* Sends to both stores, and compares the whole replies. */
static bool both_ask(struct both *both, u32 node, struct cluster_store_bucket *bucket, u32 count)
{
	struct cluster_store_bucket again[CLUSTER_STORE_BUCKETS_MAX];
	struct response response, other;
	bool alike = true;

	memcpy(again, bucket, count * sizeof(*bucket));
	cluster_store_memory_set_time(both->memory, both->now_us);
	both->redis.mini->now_us = both->now_us;
	send_ask(both->model[node], &response, bucket, count);
	cluster_store_memory_run(both->memory);
	send_ask(both->script[node], &other, again, count);
	redis_answer(&both->redis);
	assert_true(response.done && other.done);
	assert_int_equal(response.outcome, CLUSTER_STORE_DONE);
	assert_int_equal(other.outcome, CLUSTER_STORE_DONE);
	assert_int_equal(other.request.now_us, both->now_us);
	for (u32 i = 0; i < count; i++)
		alike &= same(&bucket[i], &again[i]);
	if (!alike || response.request.passed != other.request.passed) {
		for (u32 i = 0; i < count; i++) {
			say("model ", &bucket[i]);
			say("script", &again[i]);
		}
		fail_msg("request %llu at %llu: model %d, script %d", both->asks, both->now_us,
			 response.request.passed, other.request.passed);
	}
	both->asks++;
	both->passed += response.request.passed;
	return response.request.passed;
}

/* Mostly far less than a window; sometimes a long rest, or a clock that is set back. */
static s64 step_us(void)
{
	switch (rng_below(40)) {
	case 0:
		return rng_below(5000000);
	case 1:
		return 1000000;
	case 2:
		return rng_below(20) ? 0 : -(s64)rng_below(3000000);
	case 3:
		return 0;
	default:
		return rng_below(20000);
	}
}

TEST(test_nodes)
{
	struct both both;

	both_open(&both);
	for (u32 i = 0; i < 60000; i++) {
		struct cluster_store_bucket bucket[4];
		u32 count = rng_below(3) ? 1 : 1 + rng_below(4), first = rng_below(KEYS);
		bool at_once = rng_below(2);

		both.now_us += at_once ? step_us() : 0;
		for (u32 k = 0; k < count; k++)
			bucket[k] = some_bucket(both.now_us, first + k * 5);
		both.now_us += at_once ? 0 : step_us();
		both_ask(&both, rng_below(NODES), bucket, count);
		for (u32 k = 0; k < count; k++) {
			both.granted += bucket[k].granted;
			both.excess += bucket[k].excess;
		}
		if (!rng_below(5000)) {
			cluster_store_memory_lose(both.memory);
			mini_lose(both.redis.mini);
		}
	}
	fprintf(stderr, "# %llu asks, %llu passed, %llu granted, %llu excess\n", both.asks,
		both.passed, both.granted, both.excess);
	assert_in_range(both.passed, 10000, 50000);
	assert_true(both.granted > 1000 && both.excess > 1000);
	both_close(&both);
}

/* Leases are refunded at their end, and not a us before. */
TEST(test_lease_end)
{
	struct cluster_store_bucket lease = {
		.key = 1, .tag = 1, .cost = 1, .want = 3, .lease_us = 50000,
		.def = { .count = 100, .period_ns = 600 * SL_NS_PER_SEC, .burst = 100, .scale = 1,
			 .ceiling_percent = 100, .algo = SL_ALGO_TOKEN_BUCKET },
	};
	struct both both;

	both_open(&both);
	for (u64 early = 0; early < 2; early++) {
		struct cluster_store_bucket first = lease, next = lease;
		u64 used;

		first.key = next.key = first.tag = next.tag = 1 + early;
		next.cost = next.want = next.lease_us = 0;
		assert_true(both_ask(&both, 0, &first, 1));
		assert_int_equal(first.granted, 3);
		both_ask(&both, 1, &next, 1);
		used = next.state.used;
		both.now_us += first.lease_us - early;
		both_ask(&both, 1, &next, 1);
		if (early)
			assert_true(used - next.state.used < SL_NS_PER_SEC);
		else
			assert_true(used - next.state.used > 3 * SL_NS_PER_SEC);
	}
	both_close(&both);
}

/* ------------------------------------------------------------------ invalid replies */

/* The reply changed by `spoil` is invalid, and no request has passed. */
static enum cluster_store_outcome spoilt(struct both *both, const struct spec_def *def,
					 void (*spoil)(redisReply *reply), bool *ret_passed)
{
	struct cluster_store_bucket b = { .key = 1, .tag = 1, .def = *def, .cost = 1, .want = 3 };
	struct redis *redis = &both->redis;
	struct response response;
	redisReply whole;

	redis->mini->now_us = both->now_us += 1000000;
	send_ask(both->script[0], &response, &b, 1);
	whole = *redis->reply;
	spoil(redis->reply);
	redis->handler.done(redis->handler.arg, REPLY_OK, redis->reply);
	*redis->reply = whole;
	mini_reply_free(redis->reply);
	redis->reply = NULL;
	assert_int_equal(response.done, 1);
	*ret_passed = response.request.passed;
	assert_in_range(b.granted, 0, b.want);
	return response.outcome;
}

static void as_text(redisReply *reply)
{
	reply->type = REDIS_REPLY_STRING;
}

static void as_nothing(redisReply *reply)
{
	reply->elements = 0;
}

static void cut_short(redisReply *reply)
{
	reply->elements--;
}

static void below_zero(redisReply *reply)
{
	reply->element[3]->integer = -1;
}

static void no_number(redisReply *reply)
{
	reply->element[4]->type = REDIS_REPLY_NIL;
}

static void huge(redisReply *reply)
{
	for (u32 i = 1; i < reply->elements; i++)
		reply->element[i]->integer = i == 2 ? 5 : INT64_MAX - (i * 7919);
}

TEST(test_nonsense)
{
	static void (*const spoils[])(redisReply *) = { as_text, as_nothing, cut_short, below_zero,
							 no_number };
	struct both both;
	bool passed;

	both_open(&both);
	for (u32 i = 0; i < KEYS; i++) {
		struct spec_def def = def_of(i);

		for (u32 k = 0; k < COUNT(spoils); k++) {
			assert_int_equal(spoilt(&both, &def, spoils[k], &passed),
					 CLUSTER_STORE_DOWN);
			assert_false(passed);
		}
		spoilt(&both, &def, huge, &passed);
	}
	both_close(&both);
}

int main(void)
{
	rng_start("shared");
	return test_run(NULL, NULL);
}
