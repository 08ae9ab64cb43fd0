// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The shared store, twice:
 *
 *   - what one node is told by shared_memory.c is what the same calls would be told by the local
 *     store's own steps (spec.h, request_log.h), for each algorithm, verdict by verdict;
 *   - what any number of nodes are told by shared_redis.c and charge.lua (under liblua5.1, with a
 *     clock that is set) is what they are told by shared_memory.c, number by number;
 *   - an answer that is none is taken for none; leases at even demand.
 *
 * It is over 500 lines because redis.c has a stand-in here, and only one program can link that.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "cluster/redis.h"
#include "cluster/shared_model.h"
#include "http/request_log.h"
#include "lua/charge.h"
#include "prop/mini_redis.h"
#include "prop/shared_asks.h"

#define START_US 1790000000000000ULL	/* September 2026 */
#define CHUNKS 65536

static const struct spec_def defs[] = {
	{ .count = 10, .period_ns = SL_NS_PER_SEC, .algo = HTTP_TOKEN_BUCKET },
	{ .count = 7, .period_ns = 60 * SL_NS_PER_SEC, .burst = 20, .algo = HTTP_TOKEN_BUCKET },
	{ .count = 1000000, .period_ns = SL_NS_PER_SEC, .algo = HTTP_TOKEN_BUCKET },
	{ .count = 500, .period_ns = 3600 * SL_NS_PER_SEC, .burst = 500, .algo = HTTP_TOKEN_BUCKET },
	{ .count = 3, .period_ns = SL_NS_PER_SEC, .algo = HTTP_LEAKY_BUCKET },
	{ .count = 10, .period_ns = SL_NS_PER_SEC, .algo = HTTP_FIXED_WINDOW },
	{ .count = 100, .period_ns = 60 * SL_NS_PER_SEC, .algo = HTTP_FIXED_WINDOW },
	{ .count = 1, .period_ns = 86400 * SL_NS_PER_SEC, .algo = HTTP_FIXED_WINDOW },
	{ .count = 10, .period_ns = SL_NS_PER_SEC, .algo = HTTP_SLIDING_WINDOW },
	{ .count = 1000, .period_ns = 3600 * SL_NS_PER_SEC, .algo = HTTP_SLIDING_WINDOW },
	{ .count = 8000000, .period_ns = 86400 * SL_NS_PER_SEC, .algo = HTTP_SLIDING_WINDOW },
	{ .count = 10, .period_ns = SL_NS_PER_SEC, .algo = HTTP_SLIDING_LOG },
	{ .count = 300, .period_ns = 60 * SL_NS_PER_SEC, .algo = HTTP_SLIDING_LOG },
	{ .count = 10, .period_ns = SL_NS_PER_SEC, .algo = HTTP_FIRST_REQUEST },
	{ .count = 100, .period_ns = 60 * SL_NS_PER_SEC, .algo = HTTP_FIRST_REQUEST },
};

/* ------------------------------------------------------------------ one node: the local steps */

struct local {
	struct spec spec;
	struct request_logs logs;
	u32 logs_used;
	u64 word;
};

static void local_open(struct local *l, const struct spec_def *def)
{
	*l = (struct local){ .logs_used = 1 };
	assert_int_equal(spec_make_def(def, &l->spec, NULL), 0);
	l->logs.chunk = calloc(CHUNKS, sizeof(struct request_chunk));
	assert_non_null(l->logs.chunk);
	l->logs.chunks = CHUNKS;
	l->logs.used = &l->logs_used;
}

static u64 log_add(struct local *l, struct sl_now now, u64 n)
{
	u32 chunk = 0;

	if (request_log_needs(&l->logs, l->word, n))
		assert_true((chunk = request_chunk_get(&l->logs)));
	return request_log_add(&l->logs, &l->spec, l->word, now, n, chunk);
}

static bool local_log(struct local *l, struct sl_now now, const struct shared_bucket *b,
		      u64 *ret_wait_ns)
{
	u64 count, room = l->spec.capacity;

	l->word = request_log_expire(&l->logs, &l->spec, l->word, now);
	count = request_log_count(l->word);
	if (b->kind == SHARED_BACK) {
		if (b->cost)
			l->word = request_log_remove(&l->logs, l->word, b->cost);
		return true;
	}
	room -= b->cost && b->kind == SHARED_TAKE ? b->hold : 0;
	if (b->kind == SHARED_TAKE && count + b->cost > room) {
		*ret_wait_ns = ~0ULL;
		if (b->cost <= room)
			*ret_wait_ns = request_log_wait(&l->logs, &l->spec, l->word, now,
							count + b->cost - room);
		return false;
	}
	if (b->cost)
		l->word = log_add(l, now, b->cost);
	return true;
}

static bool local_ask(struct local *l, struct sl_now now, const struct shared_bucket *b,
		      u32 hold_permille, u64 *ret_wait_ns)
{
	struct spec_view view;
	struct sl_result res;

	*ret_wait_ns = 0;
	if (l->spec.algo == HTTP_SLIDING_LOG)
		return local_log(l, now, b, ret_wait_ns);
	spec_view_init(&view, &l->spec, 0, hold_permille);
	if (b->kind == SHARED_FORCE) {
		l->word = spec_force(&view, l->word, now, b->cost);
		return true;
	}
	if (b->kind == SHARED_BACK) {
		l->word = spec_refund(&view, l->word, now, b->cost);
		return true;
	}
	res = spec_take(&view, l->word, now, b->cost);
	*ret_wait_ns = res.wait_ns;
	if (res.verdict == SL_OVER)
		return false;
	l->word = res.word;
	return true;
}

/* ------------------------------------------------------------------ the shared store */

struct answer {
	struct shared_ask ask;
	bool done;
};

static void done(struct shared_ask *ask, enum shared_outcome outcome)
{
	assert_int_equal(outcome, SHARED_DONE);
	((struct answer *)ask->arg)->done = true;
}

static bool shared_ask(struct shared_memory *memory, struct shared *node,
		       struct shared_bucket *bucket, u32 count)
{
	struct answer answer = {
		.ask = { .bucket = bucket, .count = count, .deadline_ns = SL_NS_PER_SEC,
			 .done = done, .arg = &answer },
	};

	assert_int_equal(node->ops->ask(node, &answer.ask), 0);
	assert_false(answer.done);
	shared_memory_run(memory);
	assert_true(answer.done);
	return answer.ask.passed;
}

/* Mostly what matters at the limit: short steps, and now and then one over an edge. */
static u64 some_us(const struct spec *spec)
{
	u64 period_us = spec->period_ns / 1000, interval = period_us / spec->requests + 1;

	switch (rng_below(8)) {
	case 0:
		return rng_below(2 * period_us);
	case 1:
		return period_us;
	case 2:
		return rng_below(3) * interval;
	default:
		return rng_below(2 * interval);
	}
}

/* The word that is made of an answer says the same as the word that the calls made. */
static void mirror_agrees(const struct local *l, const struct shared_state *state,
			  struct sl_now now)
{
	struct spec_view view;
	struct shared_state again;
	u64 word, charged, more = rng_below(3);

	if (l->spec.algo == HTTP_SLIDING_LOG) {
		assert_int_equal(shared_word(&l->spec, state, 0, now), 0);
		assert_int_equal(state->used, request_log_count(l->word));
		return;
	}
	spec_view_init(&view, &l->spec, 0, 0);
	word = shared_word(&l->spec, state, 0, now);
	/* A bucket's state is cut to whole nanoseconds. */
	assert_in_range(spec_remaining(&view, word, now), spec_remaining(&view, l->word, now),
			spec_remaining(&view, l->word, now) + (l->spec.algo <= HTTP_LEAKY_BUCKET));
	assert_in_range(spec_reset_ns(&view, word, now) + 1, spec_reset_ns(&view, l->word, now),
			spec_reset_ns(&view, l->word, now) + 1000);
	again = shared_state_of(&l->spec, word, now);
	assert_int_equal(again.used, state->used);
	if (l->spec.algo == HTTP_SLIDING_WINDOW)
		assert_int_equal(again.before, state->before);
	if (again.used)
		assert_int_equal(again.window, state->window);
	/* With more charged it is as if it had been charged there. */
	word = shared_word(&l->spec, state, more, now);
	charged = spec_force(&view, l->word, now, more);
	assert_in_range(spec_remaining(&view, word, now), spec_remaining(&view, charged, now),
			spec_remaining(&view, charged, now) + (l->spec.algo <= HTTP_LEAKY_BUCKET));
}

static void one_node(const struct spec_def *of)
{
	struct spec_def def = *of;
	struct shared_memory *memory;
	struct shared *node;
	struct local local;
	u64 now_us = START_US + rng_below(SL_NS_PER_SEC), passed = 0, refused = 0;

	def.scale = 1;
	def.ceiling_percent = 100;
	local_open(&local, &def);
	assert_int_equal(shared_memory_new(&memory), 0);
	assert_int_equal(shared_memory_node(memory, "a", &node), 0);
	for (u32 i = 0; i < 20000; i++) {
		u32 hold_permille = rng_below(4) ? 0 : 200;
		struct shared_bucket b = {
			.key = 1, .tag = 2, .def = def,
			.kind = rng_below(10) ? SHARED_TAKE : SHARED_BACK,
			.cost = some_cost(local.spec.capacity),
			.hold = local.spec.capacity * hold_permille / 1000,
		};
		struct sl_now now;
		bool ok, local_ok;
		u64 wait_ns;

		now_us += some_us(&local.spec);
		now = (struct sl_now){ (now_us - START_US) * 1000 + SL_NS_PER_SEC, now_us * 1000 };
		shared_memory_set_time(memory, now_us);
		local_ok = local_ask(&local, now, &b, hold_permille, &wait_ns);
		ok = shared_ask(memory, node, &b, 1);
		/* The store's clock has microseconds: its waits are rounded up to one. */
		if (ok != local_ok || b.wait_ns - wait_ns >= 1000 || ok == b.over)
			fail_msg("%s: at %u: shared %d after %llu ns, local %d after %llu ns; kind %u cost %llu",
				 http_algo_name(def.algo), i, ok, b.wait_ns, local_ok, wait_ns,
				 b.kind, b.cost);
		ok ? passed++ : refused++;
		mirror_agrees(&local, &b.state, now);
	}
	if (passed < 1000 || refused < 1000)
		fail_msg("%s: %llu passed, %llu refused", http_algo_name(def.algo), passed, refused);
	shared_memory_free(memory);
	free(local.logs.chunk);
}

static void test_one_node(void **state)
{
	for (u32 i = 0; i < COUNT(defs); i++)
		one_node(&defs[i]);
}

/* ------------------------------------------------------------------ many nodes: the script */

/* In the place of redis.c: a server that answers what was sent when it is asked to. */
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

u32 redis_place(const struct redis *redis, const char *key, size_t len)
{
	return 0;
}

bool redis_up(const struct redis *redis, u32 place)
{
	return true;
}

void redis_script_init(struct redis_script *script, const char *text)
{
	script->text = text;
}

#define NODES 4

struct both {
	struct shared_memory *memory;
	struct shared *model[NODES], *script[NODES];
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
	assert_int_equal(shared_memory_new(&both->memory), 0);
	both->redis.mini = mini_new(charge_lua);
	assert_non_null(both->redis.mini);
	for (u32 i = 0; i < NODES; i++) {
		assert_int_equal(shared_memory_node(both->memory, name[i], &both->model[i]), 0);
		assert_int_equal(shared_redis_new(&both->redis, "sluice:", name[i],
						  &both->script[i]), 0);
	}
}

static void both_close(struct both *both)
{
	for (u32 i = 0; i < NODES; i++)
		both->script[i]->ops->free(both->script[i]);
	shared_memory_free(both->memory);
	mini_free(both->redis.mini);
}

static struct shared_ask ask_of(struct shared_bucket *bucket, u32 count, struct answer *answer)
{
	return (struct shared_ask){ .bucket = bucket, .count = count, .deadline_ns = SL_NS_PER_SEC,
				    .done = done, .arg = answer };
}

/* Asks both stores, and compares all they say. */
static bool both_ask(struct both *both, u32 node, struct shared_bucket *bucket, u32 count)
{
	struct shared_bucket again[SHARED_BUCKETS_MAX];
	struct answer answer = { 0 }, other = { 0 };
	bool alike = true;

	memcpy(again, bucket, count * sizeof(*bucket));
	shared_memory_set_time(both->memory, both->now_us);
	both->redis.mini->now_us = both->now_us;
	answer.ask = ask_of(bucket, count, &answer);
	other.ask = ask_of(again, count, &other);
	assert_int_equal(both->model[node]->ops->ask(both->model[node], &answer.ask), 0);
	shared_memory_run(both->memory);
	assert_int_equal(both->script[node]->ops->ask(both->script[node], &other.ask), 0);
	redis_answer(&both->redis);
	assert_true(answer.done && other.done);
	assert_int_equal(other.ask.now_us, both->now_us);
	for (u32 i = 0; i < count; i++)
		alike &= same(&bucket[i], &again[i]);
	if (!alike || answer.ask.passed != other.ask.passed) {
		for (u32 i = 0; i < count; i++) {
			say("model ", &bucket[i]);
			say("script", &again[i]);
		}
		fail_msg("ask %llu at %llu: model %d, script %d", both->asks, both->now_us,
			 answer.ask.passed, other.ask.passed);
	}
	both->asks++;
	both->passed += answer.ask.passed;
	return answer.ask.passed;
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

static void test_nodes(void **state)
{
	struct both both;

	both_open(&both);
	for (u32 i = 0; i < 60000; i++) {
		struct shared_bucket bucket[4];
		u32 count = rng_below(3) ? 1 : 1 + rng_below(4), first = rng_below(KEYS);

		for (u32 k = 0; k < count; k++)
			bucket[k] = some_bucket(both.now_us, first + k * 5);
		both.now_us += step_us();
		both_ask(&both, rng_below(NODES), bucket, count);
		for (u32 k = 0; k < count; k++) {
			both.granted += bucket[k].granted;
			both.excess += bucket[k].excess;
		}
		if (!rng_below(5000)) {
			shared_memory_lose(both.memory);
			mini_lose(both.redis.mini);
		}
	}
	fprintf(stderr, "# %llu asks, %llu passed, %llu granted, %llu excess\n", both.asks,
		both.passed, both.granted, both.excess);
	assert_in_range(both.passed, 10000, 50000);
	assert_true(both.granted > 1000 && both.excess > 1000);
	both_close(&both);
}

/* ------------------------------------------------------------------ answers that are none */

static void keep_outcome(struct shared_ask *ask, enum shared_outcome outcome)
{
	*(enum shared_outcome *)ask->arg = outcome;
}

/* What `spoil` has made of the answer is no answer, and nothing has passed. */
static enum shared_outcome spoilt(struct both *both, const struct spec_def *def,
				  void (*spoil)(redisReply *reply), bool *ret_passed)
{
	enum shared_outcome outcome = SHARED_LATE;
	struct shared_bucket b = { .key = 1, .tag = 1, .def = *def, .cost = 1, .want = 3 };
	struct shared_ask ask = { .bucket = &b, .count = 1, .deadline_ns = SL_NS_PER_SEC,
				  .done = keep_outcome, .arg = &outcome };
	struct redis *redis = &both->redis;
	redisReply whole;

	redis->mini->now_us = both->now_us += 1000000;
	assert_int_equal(both->script[0]->ops->ask(both->script[0], &ask), 0);
	whole = *redis->reply;
	spoil(redis->reply);
	redis->handler.done(redis->handler.arg, REPLY_OK, redis->reply);
	*redis->reply = whole;
	mini_reply_free(redis->reply);
	redis->reply = NULL;
	*ret_passed = ask.passed;
	assert_in_range(b.granted, 0, b.want);
	return outcome;
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

static void test_nonsense(void **state)
{
	static void (*const spoils[])(redisReply *) = { as_text, as_nothing, cut_short, below_zero,
							 no_number };
	struct both both;
	bool passed;

	both_open(&both);
	for (u32 i = 0; i < KEYS; i++) {
		struct spec_def def = def_of(i);

		for (u32 k = 0; k < COUNT(spoils); k++) {
			assert_int_equal(spoilt(&both, &def, spoils[k], &passed), SHARED_DOWN);
			assert_false(passed);
		}
		spoilt(&both, &def, huge, &passed);
	}
	both_close(&both);
}

/* ------------------------------------------------------------------ leases */

/*
 * Nodes with the same demand on one limit, each of which asks for far more than it gets: all of the
 * limit is given away and no more, and what is out is a tenth of it at most, at any time.
 */
static void even_demand(u32 nodes, u8 algo, u64 capacity)
{
	struct shared_bucket b = { .key = 1, .tag = 1 };
	struct shared_memory *memory;
	struct shared *node[16];
	u64 credit[16] = { 0 }, spent[16] = { 0 }, out = 0, most_out = 0, admitted = 0, asks = 0;
	u32 refused = 0;
	char name[16];

	b.def = (struct spec_def){ .count = capacity, .period_ns = 86400 * SL_NS_PER_SEC,
				   .burst = algo == HTTP_TOKEN_BUCKET ? capacity : 0, .scale = 1,
				   .ceiling_percent = 100, .algo = algo };
	assert_int_equal(shared_memory_new(&memory), 0);
	shared_memory_set_time(memory, START_US);
	for (u32 i = 0; i < nodes; i++) {
		snprintf(name, sizeof(name), "n%u", i);
		assert_int_equal(shared_memory_node(memory, name, &node[i]), 0);
	}
	for (u32 turn = 0; refused < nodes; turn++) {
		u32 i = turn % nodes;

		refused = i ? refused : 0;
		if (credit[i]) {
			credit[i]--;
			spent[i]++;
			out--;
			admitted++;
			continue;
		}
		b.cost = 1;
		b.want = capacity;
		b.spent = spent[i];
		b.lease_us = 3600000000ULL;
		spent[i] = 0;
		asks++;
		if (!shared_ask(memory, node[i], &b, 1)) {
			refused++;
			continue;
		}
		admitted++;
		credit[i] += b.granted;
		out += b.granted;
		if (out > most_out)
			most_out = out;
	}
	fprintf(stderr, "# %s %llu, %u nodes: %llu admitted, %llu asks, at most %llu out, %llu at the end\n",
		http_algo_name(algo), capacity, nodes, admitted, asks, most_out, out);
	assert_true(admitted + out == capacity && most_out <= capacity / 10);
	assert_true(asks < (capacity < 1000 ? admitted / 2 : admitted / 15));
	shared_memory_free(memory);
}

static void test_even_demand(void **state)
{
	static const u8 algos[] = { HTTP_TOKEN_BUCKET, HTTP_FIXED_WINDOW, HTTP_SLIDING_WINDOW,
				    HTTP_SLIDING_LOG, HTTP_FIRST_REQUEST };

	for (u32 i = 0; i < COUNT(algos); i++) {
		even_demand(1, algos[i], 1000);
		even_demand(3, algos[i], 100);
		even_demand(3, algos[i], 10000);
		even_demand(16, algos[i], 20000);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_node),
		cmocka_unit_test(test_nodes),
		cmocka_unit_test(test_nonsense),
		cmocka_unit_test(test_even_demand),
	};

	rng_start("shared");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
