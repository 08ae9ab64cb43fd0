// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * test_redis_ring_live.c - the client on a ring of servers in this process: a server that stops
 * keeps its share for a while, then the others have it; after its return it has it again.
 */
#define OUT_NS 300000000ULL
#define RETRY_NS 600000000ULL
#include "cluster/redis/redis_ring.c" /* with other times */

#include "redis_rig.h"

#define FAKES 3
#define KEYS 600

struct lab {
	struct event_base *base;
	struct fake *fake[FAKES];
	struct redis_url url[FAKES];
	struct redis_def def;
	struct redis *redis;
};

/* Each replies its number. */
static bool response(struct fake_conn *conn, const redisReply *command)
{
	struct lab *lab = conn->fake->arg;

	if (!command_is(command, "GET"))
		return false;
	for (u32 i = 0; i < FAKES; i++)
		if (lab->fake[i] == conn->fake)
			fake_say(conn, ":%u\r\n", i);
	return true;
}

static void lab_begin(struct lab *lab)
{
	struct sl_err err = { 0 };

	memset(lab, 0, sizeof(*lab));
	lab->base = event_base_new();
	for (u32 i = 0; i < FAKES; i++) {
		lab->fake[i] = fake_new(lab->base);
		lab->fake[i]->response = response;
		lab->fake[i]->arg = lab;
		lab->url[i] = (struct redis_url){ .host = "127.0.0.1", .port = lab->fake[i]->port };
	}
	lab->def = (struct redis_def){
		.url = lab->url, .url_count = FAKES, .prefix = "sluice:", .mode = REDIS_MODE_RING
	};
	if (redis_new(lab->base, &lab->def, &lab->redis, &err) < 0)
		fail_msg("%s", err.message);
}

static void lab_end(struct lab *lab)
{
	redis_free(lab->redis);
	for (u32 i = 0; i < FAKES; i++)
		fake_free(lab->fake[i]);
	event_base_free(lab->base);
}

static void get(struct lab *lab, struct sent *sent, u32 number)
{
	char key[40];
	const char *argv[2] = { "GET", key };
	struct redis_command like = { 0 };

	snprintf(key, sizeof(key), "sluice:{%016x}0", number);
	like.slot = redis_slot_of(lab->redis, key, strlen(key));
	assert_int_equal(send_like(lab->redis, sent, like, 3000, 2, argv), 0);
}

/* Which server replies for each key; FAKES: none. */
static void request_all(struct lab *lab, u32 *ret)
{
	static struct sent sent[KEYS];

	for (u32 i = 0; i < KEYS; i++)
		get(lab, &sent[i], i);
	for (u32 i = 0; i < KEYS; i++) {
		run_until(lab->base, sent[i].count == 1);
		ret[i] = sent[i].outcome == REPLY_OK ? (u32)sent[i].integer : FAKES;
	}
}

static bool out(const struct lab *lab, u32 number)
{
	return ((struct redis_ring *)lab->redis->topology_state)->ring->out[number];
}

TEST(test_lost_and_back)
{
	static u32 before[KEYS], now[KEYS];
	u32 count[FAKES + 1] = { 0 };
	struct lab lab;
	u64 went_ms;

	lab_begin(&lab);
	request_all(&lab, before);
	for (u32 i = 0; i < KEYS; i++)
		count[before[i]]++;
	assert_int_equal(count[FAKES], 0);
	for (u32 i = 0; i < FAKES; i++)
		assert_in_range(count[i], KEYS / FAKES / 2, KEYS / FAKES * 3 / 2);

	/* At first its keys, and no others, have no server. */
	fake_stop(lab.fake[1]);
	went_ms = now_ms();
	run_until(lab.base, !redis_up(lab.redis, 1));
	request_all(&lab, now);
	for (u32 i = 0; i < KEYS; i++)
		assert_int_equal(now[i], before[i] == 1 ? FAKES : before[i]);

	/* Then the others have them. */
	run_until(lab.base, out(&lab, 1));
	assert_in_range(now_ms() - went_ms, 300, 5000);
	request_all(&lab, now);
	for (u32 i = 0; i < KEYS; i++) {
		if (before[i] == 1)
			assert_true(now[i] == 0 || now[i] == 2);
		else
			assert_int_equal(now[i], before[i]);
	}

	/* It is back: not at once. */
	fake_listen(lab.fake[1]);
	went_ms = now_ms();
	run_until(lab.base, redis_up(lab.redis, 1));
	assert_true(out(&lab, 1));
	run_until(lab.base, !out(&lab, 1));
	assert_in_range(now_ms() - went_ms, 600, 8000);
	request_all(&lab, now);
	assert_memory_equal(now, before, sizeof(now));
	lab_end(&lab);
}

/* A restart moves nothing. */
TEST(test_short_break)
{
	struct lab lab;
	struct sent sent;

	lab_begin(&lab);
	get(&lab, &sent, 1);
	run_until(lab.base, sent.count == 1);
	for (u32 i = 0; i < FAKES; i++) {
		fake_stop(lab.fake[i]);
		run_until(lab.base, !redis_up(lab.redis, i));
		fake_listen(lab.fake[i]);
		run_until(lab.base, redis_up(lab.redis, i) || out(&lab, i));
		/* Unless this machine stood still meanwhile. */
		if (out(&lab, i))
			continue;
		run_ms(lab.base, 350);
		assert_false(out(&lab, i));
	}
	lab_end(&lab);
}

TEST(test_twice)
{
	struct sl_err err = { 0 };
	struct redis *redis;
	struct lab lab;

	lab_begin(&lab);
	lab.url[2] = lab.url[0];
	assert_int_equal(redis_new(lab.base, &lab.def, &redis, &err), -EINVAL);
	assert_non_null(strstr(err.message, "twice"));
	lab.url[2].port = lab.fake[2]->port;
	lab_end(&lab);
}

TEST_MAIN
