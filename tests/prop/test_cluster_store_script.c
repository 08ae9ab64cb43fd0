// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The cluster store in a real redis-server whose time of day the test sets, over two clients, as
 * the user with the fewest rights that the documents name:
 *
 *   - random commands of any number of nodes get the replies of cluster_store_memory.c, number by
 * number;
 *   - of two requests at once for the last of a limit one passes, ten thousand times;
 *   - keys end when they are needed no more;
 *   - a bucket that cannot be charged leaves the others of its command as they were;
 *   - an invalid reply is recognized.
 */
#include "lib/test.h"
#include "lib/cluster_store_memory.h"
#include "prop/cluster_store_server.h"

/* Replies are changed on their way to it. */
static int send_spoilt(struct redis *redis, const struct redis_command *command,
		       struct redis_handler handler);
#define redis_send send_spoilt
#include "cluster/quota/cluster_store_redis.c"
#undef redis_send

#define RACES 10000
#define BATCH 50

/* ------------------------------------------------------------------ as the model */

struct both {
	struct cluster_store_memory *memory;
	struct cluster_store *model[NODES];
	u64 now_us;
	u64 asks, passed, granted, excess;
};

static void both_lose(struct both *both)
{
	command(1, (const char *[]){ "FLUSHALL" });
	cluster_store_memory_lose(both->memory);
}

static void both_open(struct both *both)
{
	open_clients();
	*both = (struct both){ .now_us = START_US + rng_below(SL_NS_PER_SEC) };
	assert_int_equal(cluster_store_memory_new(&both->memory), 0);
	for (u32 i = 0; i < NODES; i++)
		assert_int_equal(
			cluster_store_memory_node(both->memory, node_name[i], &both->model[i]), 0);
	/* Keys end by the clock alone, which may be set back. */
	command(3, (const char *[]){ "DEBUG", "SET-ACTIVE-EXPIRE", "0" });
	both_lose(both);
}

static void both_close(struct both *both)
{
	cluster_store_memory_free(both->memory);
	close_clients();
}

/* Sends to both stores, and compares the whole replies. */
static bool both_ask(struct both *both, u32 node, struct cluster_store_bucket *bucket, u32 count)
{
	struct cluster_store_bucket again[CLUSTER_STORE_BUCKETS_MAX];
	struct response response, other;
	bool alike = true;

	memcpy(again, bucket, count * sizeof(*bucket));
	cluster_store_memory_set_time(both->memory, both->now_us);
	*server.now_us = both->now_us;
	send_ask(both->model[node], &response, bucket, count);
	cluster_store_memory_run(both->memory);
	assert_true(response.done);
	assert_int_equal(response.outcome, CLUSTER_STORE_DONE);
	assert_int_equal(request(node, &other, again, count), CLUSTER_STORE_DONE);
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
		if (!rng_below(5000))
			both_lose(&both);
	}
	fprintf(stderr, "# %llu asks, %llu passed, %llu granted, %llu excess\n", both.asks,
		both.passed, both.granted, both.excess);
	assert_in_range(both.passed, 10000, 50000);
	assert_true(both.granted > 1000 && both.excess > 1000);
	both_close(&both);
}

/* Days of two zones, each node's by its own: they share a window. */
TEST(test_calendars)
{
	static const char *const zone[] = { "Europe/Berlin", "Atlantic/Azores" };
	struct cluster_store_bucket plain = some_bucket(START_US, 0);
	const struct calendar *calendar[2];
	struct response response;
	struct both both;
	u64 ignored;

	for (u32 i = 0; i < 2; i++)
		assert_int_equal(calendar_open(zone[i], CALENDAR_DAY, &calendar[i], NULL), 0);
	both_open(&both);
	for (u32 i = 0; i < 20000; i++) {
		struct cluster_store_bucket bucket = some_bucket(both.now_us, 3);
		u32 node = rng_below(NODES);
		const struct calendar *by = calendar[node % 2];

		bucket.def.calendar = by->id;
		bucket.def.period_ns = by->window_ns;
		bucket.refused = 0;
		if (bucket.window)
			bucket.window =
				calendar_window(by, both.now_us * 1000, &ignored, &ignored) -
				rng_below(3) + !rng_below(10);
		/* A reply of each second or so: a node knows Redis' time. */
		plain.kind = CLUSTER_STORE_CHARGE;
		plain.cost = 0;
		*server.now_us = both.now_us;
		assert_int_equal(request(node, &response, &plain, 1), CLUSTER_STORE_DONE);
		both.now_us += rng_below(10) ? step_us() : (s64)rng_below(5 * 3600 * 1000000ULL);
		both_ask(&both, node, &bucket, 1);
		both.granted += bucket.granted;
	}
	assert_in_range(both.passed, 5000, 19000);
	assert_true(both.granted > 100);
	both_close(&both);
}

/* A node whose own clock is months off: Redis' reply to its first request sets it right. */
TEST(test_calendar_of_a_wrong_clock)
{
	struct cluster_store_bucket bucket = some_bucket(START_US, 3), again;
	const struct calendar *calendar;
	struct response response;

	assert_int_equal(calendar_open("UTC", CALENDAR_DAY, &calendar, NULL), 0);
	bucket = (struct cluster_store_bucket){ .key = 99, .tag = 7, .def = bucket.def, .cost = 1 };
	bucket.def.calendar = calendar->id;
	bucket.def.period_ns = calendar->window_ns;
	open_clients();
	*server.now_us = 1000000000000000ULL; /* 2001 */
	again = bucket;
	assert_int_equal(request(0, &response, &bucket, 1), CLUSTER_STORE_DOWN);
	assert_int_equal(request(0, &response, &again, 1), CLUSTER_STORE_DONE);
	assert_true(response.request.passed);
	assert_int_equal(again.state.used, 1);
	close_clients();
}

/* Leases are refunded at their end, and not a us before. */
TEST(test_lease_end)
{
	struct cluster_store_bucket lease = {
		.key = 1,
		.tag = 1,
		.cost = 1,
		.want = 3,
		.lease_us = 50000,
		.def = SPEC_DEF(TOKEN_BUCKET, 100, 600 * SL_NS_PER_SEC, .burst = 100),
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

/* ------------------------------------------------------------------ what only a server shows */

/* A limit of two in a day; one has been charged. The neighbour has the whole limit. */
static struct cluster_store_bucket last_one(u64 key, u8 algo)
{
	return (struct cluster_store_bucket){
		.key = key,
		.tag = key,
		.cost = 1,
		.def = { .count = 2,
			 .period_ns = 86400 * SL_NS_PER_SEC,
			 .scale = 1,
			 .burst = algo == SL_ALGO_TOKEN_BUCKET ? 2 : 0,
			 .ceiling_percent = 100,
			 .algo = algo },
	};
}

TEST(test_race)
{
	static const u8 algos[] = { SL_ALGO_TOKEN_BUCKET, SL_ALGO_FIXED_WINDOW,
				    SL_ALGO_SLIDING_WINDOW, SL_ALGO_SLIDING_LOG,
				    SL_ALGO_FIRST_REQUEST };
	static struct response response[BATCH][CLIENTS];
	static struct cluster_store_bucket bucket[BATCH][CLIENTS];
	u32 passed = 0, twice = 0, none = 0;

	open_clients();
	for (u32 race = 0; race < RACES; race += BATCH) {
		for (u32 i = 0; i < BATCH; i++) {
			bucket[i][0] = last_one(1000 + race + i, algos[(race + i) % COUNT(algos)]);
			send_ask(server.shared[i % 2], &response[i][0], &bucket[i][0], 1);
		}
		for (u32 i = 0; i < BATCH; i++)
			run_until(response[i][0].done);
		/* From both at once, in one turn of the loop: which is first is open. */
		for (u32 i = 0; i < BATCH; i++) {
			assert_true(response[i][0].request.passed);
			for (u32 c = 0; c < CLIENTS; c++) {
				bucket[i][c] =
					last_one(1000 + race + i, algos[(race + i) % COUNT(algos)]);
				send_ask(server.shared[c], &response[i][c], &bucket[i][c], 1);
			}
		}
		for (u32 i = 0; i < BATCH; i++) {
			run_until(response[i][0].done && response[i][1].done);
			assert_int_equal(response[i][0].outcome, CLUSTER_STORE_DONE);
			assert_int_equal(response[i][1].outcome, CLUSTER_STORE_DONE);
			twice += response[i][0].request.passed && response[i][1].request.passed;
			none += !response[i][0].request.passed && !response[i][1].request.passed;
			passed += response[i][0].request.passed + response[i][1].request.passed;
		}
	}
	assert_int_equal(twice, 0);
	assert_int_equal(none, 0);
	assert_int_equal(passed, RACES);
	bucket[0][0] = last_one(1, SL_ALGO_FIXED_WINDOW);
	bucket[0][0].cost = 2;
	assert_int_equal(request(0, &response[0][0], bucket[0], 1), CLUSTER_STORE_DONE);
	assert_true(response[0][0].request.passed);
	close_clients();
}

static long long pttl(const char *key)
{
	return command(2, (const char *const[]){ "PTTL", key });
}

static void charge(u64 key, u8 algo, u64 cost, u64 count, u64 period_s)
{
	struct cluster_store_bucket b = {
		.key = key,
		.tag = 0xabc,
		.cost = cost,
		.def = { .count = count,
			 .period_ns = period_s * SL_NS_PER_SEC,
			 .scale = 1,
			 .ceiling_percent = 100,
			 .algo = algo,
			 .burst = algo == SL_ALGO_TOKEN_BUCKET ? count : 0 },
	};
	struct response response;

	assert_int_equal(request(0, &response, &b, 1), CLUSTER_STORE_DONE);
	assert_true(response.request.passed);
}

#define KEY_OF(n, kind) "sluice:{0000000000000abc}" n kind

TEST(test_expiry)
{
	long long hour_ms = 3600000, left_ms = hour_ms - START_US / 1000 % hour_ms;

	*server.now_us = START_US;
	open_clients();
	/* 10 of 100 in an hour: six minutes. */
	charge(0x11, SL_ALGO_TOKEN_BUCKET, 10, 100, 3600);
	assert_in_range(pttl(KEY_OF("0000000000000011", "b")), 360000, 360001);
	/* To the window's end and two seconds; units that count in the next one to the end of
	 * that. */
	charge(0x12, SL_ALGO_FIXED_WINDOW, 10, 100, 3600);
	assert_in_range(pttl(KEY_OF("0000000000000012", "w")), left_ms, left_ms + 2001);
	charge(0x13, SL_ALGO_SLIDING_WINDOW, 1, 100, 3600);
	assert_in_range(pttl(KEY_OF("0000000000000013", "s")), left_ms, left_ms + 2001);
	charge(0x13, SL_ALGO_SLIDING_WINDOW, 1, 100, 3600);
	assert_in_range(pttl(KEY_OF("0000000000000013", "s")), left_ms + hour_ms * 99 / 100,
			left_ms + hour_ms + 1);
	charge(0x14, SL_ALGO_SLIDING_LOG, 10, 100, 3600);
	assert_in_range(pttl(KEY_OF("0000000000000014", "l")), hour_ms, hour_ms + 1);
	assert_in_range(pttl(KEY_OF("0000000000000014", "lz")), hour_ms, hour_ms + 1);
	charge(0x15, SL_ALGO_FIRST_REQUEST, 10, 100, 3600);
	assert_in_range(pttl(KEY_OF("0000000000000015", "f")), hour_ms, hour_ms + 2001);
	/* A peek and a refused cost leave no key behind. */
	charge(0x16, SL_ALGO_FIXED_WINDOW, 0, 100, 3600);
	assert_int_equal(pttl(KEY_OF("0000000000000016", "w")), -2);
	close_clients();
}

TEST(test_all_or_none_on_error)
{
	struct cluster_store_bucket b[2] = { last_one(0x21, SL_ALGO_FIXED_WINDOW),
					     last_one(0x22, SL_ALGO_SLIDING_WINDOW) };
	struct response response;

	open_clients();
	b[0].tag = b[1].tag = 0xabc;
	command(3, (const char *const[]){ "SET", KEY_OF("0000000000000022", "s"), "nonsense" });
	assert_int_equal(request(0, &response, b, 2), CLUSTER_STORE_DOWN);
	assert_false(response.request.passed);
	assert_int_equal(pttl(KEY_OF("0000000000000021", "w")), -2);
	/* Garbage in a hash is an error, too. */
	command(2, (const char *const[]){ "DEL", KEY_OF("0000000000000022", "s") });
	command(4, (const char *const[]){ "HSET", KEY_OF("0000000000000022", "s"), "n", "x" });
	assert_int_equal(request(0, &response, b, 2), CLUSTER_STORE_DOWN);
	assert_int_equal(pttl(KEY_OF("0000000000000021", "w")), -2);
	/* All or none: the second has none left, and the first stays whole. */
	command(2, (const char *const[]){ "DEL", KEY_OF("0000000000000022", "s") });
	b[1].cost = 2;
	assert_int_equal(request(0, &response, &b[1], 1), CLUSTER_STORE_DONE);
	assert_true(response.request.passed);
	b[1].cost = 1;
	assert_int_equal(request(1, &response, b, 2), CLUSTER_STORE_DONE);
	assert_false(response.request.passed);
	assert_true(b[1].over);
	assert_false(b[0].over);
	assert_int_equal(b[0].state.used, 0);
	b[0].cost = 2;
	assert_int_equal(request(1, &response, &b[0], 1), CLUSTER_STORE_DONE);
	assert_true(response.request.passed);
	close_clients();
}

/* ------------------------------------------------------------------ invalid replies */

static void (*spoil)(redisReply *reply);
static struct redis_handler store_handler;

static void on_spoilt(void *arg, enum redis_outcome outcome, const redisReply *reply)
{
	redisReply *changed = (redisReply *)reply, whole = *reply;

	assert_int_equal(outcome, REPLY_OK);
	spoil(changed);
	store_handler.done(arg, outcome, changed);
	*changed = whole;
}

static int send_spoilt(struct redis *redis, const struct redis_command *command,
		       struct redis_handler handler)
{
	store_handler = handler;
	if (spoil)
		handler.done = on_spoilt;
	return redis_send(redis, command, handler);
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
	static void (*const spoils[])(redisReply *) = { as_text,    as_nothing, cut_short,
							below_zero, no_number,	huge };
	struct response response;

	open_clients();
	for (u32 i = 0; i < KEYS; i++) {
		for (u32 k = 0; k < COUNT(spoils); k++) {
			struct cluster_store_bucket b = {
				.key = 1, .tag = 1, .def = def_of(i), .cost = 1, .want = 3
			};

			*server.now_us += 1000000;
			spoil = spoils[k];
			request(0, &response, &b, 1);
			spoil = NULL;
			assert_in_range(b.granted, 0, b.want);
			if (spoils[k] == huge)
				continue;
			assert_int_equal(response.outcome, CLUSTER_STORE_DOWN);
			assert_false(response.request.passed);
		}
	}
	close_clients();
}

int main(void)
{
	rng_start("shared");
	return test_run(start_server, stop_server);
}
