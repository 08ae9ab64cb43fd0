// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * test_redis_cluster.c - the client against a Redis Cluster in this process: routing, MOVED, ASK,
 * TRYAGAIN, a master that stops, slots without a server, invalid maps.
 */
#include "redis_rig.h"

#include "cluster/redis/redis_private.h"
#include "cluster/redis/redis_slots.h"

#define FAKES 4

/* The cluster's own map: which server has which slot. Fake 3 has none at first. */
struct world {
	struct event_base *base;
	struct fake *fake[FAKES];
	u8 owner[REDIS_SLOTS]; /* FAKES: no server */
	u32 migrating, to;     /* that slot is being moved; its keys are at `to` already */
	u32 try_again;	       /* so many times */
	u32 gets[FAKES], maps;
	bool clusterdown, loop;
	const char *map[FAKES]; /* sent instead of the map */
	struct redis_url url[FAKES];
	struct redis_def def;
	struct redis *redis;
};

static u32 number_of(const struct world *world, const struct fake *fake)
{
	for (u32 i = 0; i < FAKES; i++)
		if (world->fake[i] == fake)
			return i;
	fail();
	return 0;
}

static void say_map(struct fake_conn *conn, const struct world *world)
{
	struct evbuffer *ranges = evbuffer_new();
	u32 count = 0;

	for (u32 first = 0, last; first < REDIS_SLOTS; first = last + 1) {
		for (last = first; last + 1 < REDIS_SLOTS; last++)
			if (world->owner[last + 1] != world->owner[first])
				break;
		if (world->owner[first] >= FAKES)
			continue;
		evbuffer_add_printf(ranges, "*3\r\n:%u\r\n:%u\r\n*2\r\n$9\r\n127.0.0.1\r\n:%u\r\n",
				    first, last, world->fake[world->owner[first]]->port);
		count++;
	}
	fake_say(conn, "*%u\r\n", count);
	evbuffer_add_buffer(bufferevent_get_output(conn->bev), ranges);
	evbuffer_free(ranges);
}

static void response_get(struct fake_conn *conn, struct world *world, const redisReply *key)
{
	u32 me = number_of(world, conn->fake), slot = redis_slot(key->str, key->len);
	u32 owner = world->owner[slot];
	bool asking = conn->asking;

	conn->asking = false;
	world->gets[me]++;
	if (world->clusterdown)
		fake_say(conn, "-CLUSTERDOWN The cluster is down\r\n");
	else if (world->loop)
		fake_say(conn, "-MOVED %u 127.0.0.1:%u\r\n", slot, world->fake[!me]->port);
	else if (slot == world->migrating && owner == me && world->try_again) {
		world->try_again--;
		fake_say(conn, "-TRYAGAIN Multiple keys request during rehashing of slot\r\n");
	} else if (slot == world->migrating && owner == me)
		fake_say(conn, "-ASK %u 127.0.0.1:%u\r\n", slot, world->fake[world->to]->port);
	else if (owner == me || (asking && slot == world->migrating && world->to == me))
		fake_say(conn, ":%u\r\n", me);
	else if (owner < FAKES)
		fake_say(conn, "-MOVED %u 127.0.0.1:%u\r\n", slot, world->fake[owner]->port);
	else
		fake_say(conn, "-CLUSTERDOWN Hash slot not served\r\n");
}

static bool response(struct fake_conn *conn, const redisReply *command)
{
	struct world *world = conn->fake->arg;
	u32 me = number_of(world, conn->fake);

	if (command_is(command, "GET")) {
		response_get(conn, world, command->element[1]);
		return true;
	}
	if (command_is(command, "ASKING"))
		conn->asking = true;
	if (!command_is(command, "CLUSTER"))
		return false;
	world->maps++;
	if (world->map[me])
		fake_say(conn, "%s", world->map[me]);
	else
		say_map(conn, world);
	return true;
}

static void world_begin(struct world *world)
{
	struct sl_err err = { 0 };

	memset(world, 0, sizeof(*world));
	world->base = event_base_new();
	world->migrating = REDIS_SLOTS;
	for (u32 i = 0; i < FAKES; i++) {
		world->fake[i] = fake_new(world->base);
		world->fake[i]->response = response;
		world->fake[i]->arg = world;
		world->url[i] =
			(struct redis_url){ .host = "127.0.0.1", .port = world->fake[i]->port };
	}
	for (u32 slot = 0; slot < REDIS_SLOTS; slot++)
		world->owner[slot] = (u8)(slot * 3 / REDIS_SLOTS);
	world->def = (struct redis_def){
		.url = world->url, .url_count = 3, .prefix = "sluice:", .mode = REDIS_MODE_CLUSTER
	};
	if (redis_new(world->base, &world->def, &world->redis, &err) < 0)
		fail_msg("%s", err.message);
}

static void world_end(struct world *world)
{
	redis_free(world->redis);
	for (u32 i = 0; i < FAKES; i++)
		fake_free(world->fake[i]);
	event_base_free(world->base);
}

/* Of the test that runs. */
static struct world world;

static int world_set_up(void **state)
{
	world_begin(&world);
	return 0;
}

static int world_tear_down(void **state)
{
	world_end(&world);
	return 0;
}

#define WORLD_TEST(test) TEST_WITH(test, world_set_up, world_tear_down)

/* A key in a slot of fake i's third. */
static const char *const key_of[3] = { "bar", "c", "foo" };

static void get(struct world *world, struct sent *sent, const char *key, u32 deadline_ms)
{
	static const char *argv[2] = { "GET" };
	const struct redis_command like = { .slot = redis_slot_of(world->redis, key, strlen(key)) };

	argv[1] = key;
	assert_int_equal(send_like(world->redis, sent, like, deadline_ms, 2, argv), 0);
}

/* The same until its outcome. */
static enum redis_outcome get_until(struct world *world, struct sent *sent, const char *key,
				    u32 deadline_ms)
{
	get(world, sent, key, deadline_ms);
	run_until(world->base, sent->count == 1);
	return sent->outcome;
}

/* The fake that replied. */
static long long got(struct world *world, const char *key)
{
	struct sent sent;

	assert_int_equal(get_until(world, &sent, key, 3000), REPLY_OK);
	return sent.integer;
}

static struct redis_stats stats_of(struct world *world)
{
	struct redis_stats stats;

	redis_stats(world->redis, &stats);
	return stats;
}

/* ------------------------------------------------------------------ without faults */

WORLD_TEST(test_map)
{
	struct sent sent[300];
	char key[16];

	/* Before the map is known commands wait for it. */
	for (u32 i = 0; i < 300; i++) {
		snprintf(key, sizeof(key), "key%u", i);
		get(&world, &sent[i], key, 3000);
	}
	for (u32 i = 0; i < 300; i++) {
		snprintf(key, sizeof(key), "key%u", i);
		run_until(world.base, sent[i].count == 1);
		assert_int_equal(sent[i].outcome, REPLY_OK);
		assert_int_equal(sent[i].integer, world.owner[redis_slot(key, strlen(key))]);
	}
	for (u32 i = 0; i < 3; i++) {
		assert_int_equal(got(&world, key_of[i]), i);
		assert_int_equal(world.fake[i]->accepted, 1);
	}
	assert_int_equal(world.fake[3]->accepted, 0);
	assert_int_equal(world.maps, 1);
	assert_int_equal(stats_of(&world).redirects, 0);
	assert_int_equal(stats_of(&world).reloads, 1);
	assert_int_equal(stats_of(&world).servers, 3);
}

/* One server that refuses, one with garbage, one without any slot; the last of the urls is good. */
TEST(test_seeds)
{
	static const char *const nonsense[] = {
		"-ERR This instance has cluster support disabled\r\n",
		"+OK\r\n",
		"*0\r\n",
		"$-1\r\n",
		"*1\r\n*3\r\n:0\r\n:99999\r\n*2\r\n$1\r\na\r\n:1\r\n",
		"*1\r\n*3\r\n:0\r\n:1\r\n*2\r\n$1\r\na\r\n:1000000\r\n",
	};

	for (size_t i = 0; i < COUNT(nonsense); i++) {
		struct world world;

		world_begin(&world);
		for (u32 slot = 0; slot < REDIS_SLOTS; slot++)
			world.owner[slot] = 2;
		fake_stop(world.fake[0]);
		world.map[1] = nonsense[i];
		assert_int_equal(got(&world, "foo"), 2);
		world_end(&world);
	}
}

WORLD_TEST(test_no_server)
{
	struct sent sent;

	for (u32 i = 0; i < 3; i++)
		fake_stop(world.fake[i]);
	assert_int_equal(get_until(&world, &sent, "foo", 3000), REPLY_DOWN);
	assert_false(redis_up(world.redis, redis_slot("foo", 3)));
	/* They start, and are found without a command. */
	for (u32 i = 0; i < 3; i++)
		fake_listen(world.fake[i]);
	run_until(world.base, redis_up(world.redis, redis_slot("foo", 3)));
	assert_int_equal(got(&world, "foo"), 2);
}

/* Servers that never reply: the deadline holds from the first command on, and all can be freed. */
TEST(test_silent_server)
{
	struct world world;
	struct sent sent;

	world_begin(&world);
	for (u32 i = 0; i < 3; i++)
		world.fake[i]->mute = true;
	assert_int_equal(get_until(&world, &sent, "foo", 20), REPLY_DOWN);
	assert_in_range(sent.took_ms, 20, 1000);
	/* After five late commands none waits for a map any more. */
	for (u32 i = 0; i < 4; i++) {
		assert_true(redis_up(world.redis, redis_slot("foo", 3)));
		get_until(&world, &sent, "foo", 20);
	}
	assert_false(redis_up(world.redis, redis_slot("foo", 3)));
	assert_int_equal(get_until(&world, &sent, "foo", 1000), REPLY_DOWN);
	assert_in_range(sent.took_ms, 0, 500);
	get(&world, &sent, "foo", 20);
	world_end(&world);
	assert_int_equal(sent.count, 1);
}

/* ------------------------------------------------------------------ slots that move */

WORLD_TEST(test_moved)
{
	u32 slot = redis_slot("foo", 3);

	assert_int_equal(got(&world, "foo"), 2);
	world.owner[slot] = 1;
	assert_int_equal(got(&world, "foo"), 1);
	assert_int_equal(stats_of(&world).redirects, 1);
	/* Known from then on, and the map is read again. */
	assert_int_equal(got(&world, "foo"), 1);
	assert_int_equal(stats_of(&world).redirects, 1);
	run_until(world.base, stats_of(&world).reloads == 2);
	assert_int_equal(got(&world, "foo"), 1);
	/* To a server that was in no map. */
	world.owner[slot] = 3;
	assert_int_equal(got(&world, "foo"), 3);
	assert_int_equal(stats_of(&world).servers, 4);
	/* Other slots were not affected. */
	assert_int_equal(got(&world, "bar"), 0);
	assert_int_equal(stats_of(&world).redirects, 2);
}

WORLD_TEST(test_ask)
{
	assert_int_equal(got(&world, "foo"), 2);
	world.migrating = redis_slot("foo", 3);
	world.to = 3;
	for (u32 i = 0; i < 5; i++)
		assert_int_equal(got(&world, "foo"), 3);
	/* The old server is tried each time: the slot is still its own. */
	assert_int_equal(world.gets[2], 6);
	assert_int_equal(stats_of(&world).redirects, 5);
	assert_int_equal(stats_of(&world).reloads, 1);
	/* One more connection was enough, though its server is in no map. */
	run_ms(world.base, 1500);
	assert_int_equal(got(&world, "foo"), 3);
	assert_int_equal(world.fake[3]->accepted, 1);
	/* The slot is the new server's now. */
	world.owner[world.migrating] = 3;
	world.migrating = REDIS_SLOTS;
	assert_int_equal(got(&world, "foo"), 3);
}

WORLD_TEST(test_try_again)
{
	struct sent sent;

	assert_int_equal(got(&world, "foo"), 2);
	world.migrating = redis_slot("foo", 3);
	world.to = 1;
	world.try_again = 20;
	assert_int_equal(got(&world, "foo"), 1);
	assert_int_equal(world.try_again, 0);
	/* Until the deadline, not longer. */
	world.try_again = 1000000;
	assert_int_equal(get_until(&world, &sent, "foo", 30), REPLY_LATE);
	run_until(world.base, sent.late_count == 1);
}

/* Two that redirect to each other: an error after some tries. */
WORLD_TEST(test_loop)
{
	struct sent sent;

	assert_int_equal(got(&world, "bar"), 0);
	world.loop = true;
	world.gets[0] = world.gets[1] = 0;
	assert_int_equal(get_until(&world, &sent, "bar", 3000), REPLY_ERROR);
	assert_true(!strncmp(sent.text, "MOVED ", 6));
	assert_in_range(world.gets[0] + world.gets[1], 2, REDIS_TRIES_MAX);
}

/* ------------------------------------------------------------------ servers that stop */

WORLD_TEST(test_failover)
{
	u32 slot = redis_slot("foo", 3);
	struct sent sent;

	assert_int_equal(got(&world, "foo"), 2);
	fake_stop(world.fake[2]);
	run_until(world.base, !redis_up(world.redis, slot));
	assert_int_equal(get_until(&world, &sent, "foo", 3000), REPLY_DOWN);
	assert_in_range(sent.took_ms, 0, 500);
	assert_int_equal(got(&world, "bar"), 0);
	assert_int_equal(got(&world, "c"), 1);
	/* Another server has its slots. */
	for (u32 i = 0; i < REDIS_SLOTS; i++)
		if (world.owner[i] == 2)
			world.owner[i] = 3;
	run_until(world.base, redis_up(world.redis, slot));
	assert_int_equal(got(&world, "foo"), 3);
	/* The old server is not tried any more. */
	run_until(world.base, stats_of(&world).servers == 3 && stats_of(&world).breakers_open == 0);
}

/* It comes back itself. */
WORLD_TEST(test_restart)
{
	assert_int_equal(got(&world, "foo"), 2);
	fake_stop(world.fake[2]);
	run_until(world.base, !redis_up(world.redis, redis_slot("foo", 3)));
	fake_listen(world.fake[2]);
	run_until(world.base, redis_up(world.redis, redis_slot("foo", 3)));
	assert_int_equal(got(&world, "foo"), 2);
}

WORLD_TEST(test_unserved)
{
	u32 slot = redis_slot("foo", 3), maps;
	struct sent sent;

	world.owner[slot] = FAKES;
	assert_int_equal(got(&world, "bar"), 0);
	assert_false(redis_up(world.redis, slot));
	assert_int_equal(get_until(&world, &sent, "foo", 3000), REPLY_DOWN);
	assert_int_equal(world.gets[0] + world.gets[1] + world.gets[2], 1);
	assert_int_equal(got(&world, "c"), 1);
	/* Requested again, less and less often. */
	maps = world.maps;
	run_ms(world.base, 1000);
	assert_in_range(world.maps - maps, 1, 8);
	world.owner[slot] = 0;
	run_until(world.base, redis_up(world.redis, slot));
	assert_int_equal(got(&world, "foo"), 0);
}

WORLD_TEST(test_clusterdown)
{
	struct sent sent;

	assert_int_equal(got(&world, "foo"), 2);
	world.clusterdown = true;
	assert_int_equal(get_until(&world, &sent, "foo", 3000), REPLY_ERROR);
	run_until(world.base, world.maps == 2);
	world.clusterdown = false;
	assert_int_equal(got(&world, "foo"), 2);
}

/* A master without slots: its connection is closed. */
WORLD_TEST(test_master_without_slots)
{
	assert_int_equal(got(&world, "foo"), 2);
	for (u32 slot = 0; slot < REDIS_SLOTS; slot++)
		if (world.owner[slot] == 2)
			world.owner[slot] = 1;
	assert_int_equal(got(&world, "foo"), 1);
	run_until(world.base, stats_of(&world).servers == 2);
	run_until(world.base, LIST_EMPTY(&world.fake[2]->conns));
	assert_int_equal(got(&world, "foo"), 1);
}

TEST_MAIN
