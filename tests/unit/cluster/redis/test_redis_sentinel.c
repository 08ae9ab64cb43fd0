// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * test_redis_sentinel.c - the Redis client that finds its master by sentinels: some of them down,
 * ignorant or sending garbage, and masters that change roles.
 */
#include "redis_rig.h"

struct sentinel {
	u16 port; /* of the master that it names; 0: it knows none */
	u32 asked;
	const char *text; /* instead */
};

static bool response_sentinel(struct fake_conn *conn, const redisReply *command)
{
	struct sentinel *sentinel = conn->fake->arg;
	char port[8];

	if (!command_is(command, "SENTINEL"))
		return false;
	assert_string_equal(command->element[1]->str, "get-master-addr-by-name");
	assert_string_equal(command->element[2]->str, "mymaster");
	sentinel->asked++;
	snprintf(port, sizeof(port), "%u", sentinel->port);
	if (sentinel->text)
		fake_say(conn, "%s", sentinel->text);
	else if (sentinel->port)
		fake_say(conn, "*2\r\n$9\r\n127.0.0.1\r\n$%zu\r\n%s\r\n", strlen(port), port);
	else
		fake_say(conn, "*-1\r\n");
	return true;
}

static bool response_role(struct fake_conn *conn, const redisReply *command)
{
	const char *role = conn->fake->arg;

	if (command_is(command, "ROLE"))
		fake_say(conn, "*3\r\n$%zu\r\n%s\r\n:0\r\n*0\r\n", strlen(role), role);
	else if (command_is(command, "GET") && strcmp(role, "master"))
		fake_say(conn, "-READONLY You can't write against a read only replica.\r\n");
	else
		return false;
	return true;
}

/*
 * Three sentinels, one down and one that knows no master; two servers that change roles. The
 * caller's commands go to the master, from the first on, and to the other after the change.
 */
TEST(test_sentinel)
{
	struct sentinel knows[3] = { 0 };
	struct fake *sentinels[3], *servers[2];
	struct redis_url url[3];
	struct redis_stats stats;
	struct sent sent;
	struct rig rig;

	rig_begin(&rig);
	redis_free(rig.redis);
	for (u32 i = 0; i < 3; i++) {
		sentinels[i] = fake_new(rig.base);
		sentinels[i]->response = response_sentinel;
		sentinels[i]->arg = &knows[i];
		url[i] = (struct redis_url){ .text = "redis://127.0.0.1",
					     .host = "127.0.0.1",
					     .port = sentinels[i]->port,
					     .database = 3 };
	}
	for (u32 i = 0; i < 2; i++) {
		servers[i] = fake_new(rig.base);
		servers[i]->response = response_role;
		servers[i]->arg = i ? "slave" : "master";
	}
	fake_stop(sentinels[0]);
	knows[2].port = servers[0]->port;
	rig.def.url = url;
	rig.def.url_count = 3;
	rig.def.mode = REDIS_MODE_SENTINEL;
	rig_client(&rig);
	assert_true(redis_up(rig.redis, 0));
	assert_int_equal(send_get(&rig, &sent, 3000), REPLY_OK);
	assert_int_equal(knows[1].asked, 1);
	assert_int_equal(knows[2].asked, 1);
	redis_stats(rig.redis, &stats);
	assert_int_equal(stats.servers, 1);
	assert_int_equal(stats.up, 1);
	/* The roles change; the sentinel reports it a little later than the old master. */
	servers[0]->arg = "slave";
	assert_int_equal(send_get(&rig, &sent, 3000), REPLY_ERROR);
	assert_false(redis_up(rig.redis, 0));
	run_ms(rig.base, 150);
	servers[1]->arg = "master";
	knows[2].port = servers[1]->port;
	run_until(rig.base, servers[1]->accepted && redis_up(rig.redis, 0));
	assert_int_equal(send_get(&rig, &sent, 3000), REPLY_OK);
	redis_stats(rig.redis, &stats);
	assert_int_equal(stats.servers, 1);
	/* An invalid address from a sentinel changes nothing. */
	knows[2].text = "*2\r\n$5\r\n1\n2 3\r\n$5\r\n99999\r\n";
	fake_hang_up(servers[1]);
	run_until(rig.base, !redis_up(rig.redis, 0));
	run_until(rig.base, redis_up(rig.redis, 0));
	assert_int_equal(send_get(&rig, &sent, 3000), REPLY_OK);
	redis_free(rig.redis);
	for (u32 i = 0; i < 3; i++)
		fake_free(sentinels[i]);
	for (u32 i = 0; i < 2; i++)
		fake_free(servers[i]);
	rig.redis = NULL;
	rig_end(&rig);
}

/* None of them knows a master, then one does. Commands that waited get an error. */
TEST(test_sentinel_unknown)
{
	struct sentinel knows = { 0 };
	struct fake *server;
	struct sent sent;
	struct rig rig;

	rig_begin(&rig);
	redis_free(rig.redis);
	server = fake_new(rig.base);
	server->response = response_role;
	server->arg = "master";
	rig.fake->response = response_sentinel;
	rig.fake->arg = &knows;
	rig.def.mode = REDIS_MODE_SENTINEL;
	rig_client(&rig);
	assert_int_equal(send_get(&rig, &sent, 3000), REPLY_DOWN);
	assert_false(redis_up(rig.redis, 0));
	knows.port = server->port;
	run_until(rig.base, redis_up(rig.redis, 0));
	assert_int_equal(send_get(&rig, &sent, 3000), REPLY_OK);
	assert_in_range(knows.asked, 2, 20);
	redis_free(rig.redis);
	fake_free(server);
	rig.redis = NULL;
	rig_end(&rig);
}

TEST_MAIN
