// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * test_redis_greeting.c - how the Redis client connects: names and Unix sockets, AUTH
 * and SELECT, passwords that are wrong, changed or missing.
 */
#include <errno.h>

#include "redis_rig.h"

/* ------------------------------------------------------------------ greetings */

struct greeter {
	const char *password, *reply; /* to AUTH, to all else; NULL: fine */
	char said[512];
};

static bool response_greeting(struct fake_conn *conn, const redisReply *command)
{
	struct greeter *greeter = conn->fake->arg;
	size_t used = strlen(greeter->said);

	for (size_t i = 0; i < command->elements && used < sizeof(greeter->said); i++)
		used += (size_t)snprintf(greeter->said + used, sizeof(greeter->said) - used, "%s%s",
					 command->element[i]->str,
					 i + 1 < command->elements ? " " : "; ");
	if (command_is(command, "AUTH")) {
		const char *given = command->element[command->elements - 1]->str;

		fake_say(
			conn,
			!greeter->password || !strcmp(given, greeter->password)
				? "+OK\r\n"
				: "-WRONGPASS invalid username-password pair or user is disabled.\r\n");
		return true;
	}
	if (!greeter->reply)
		return false;
	fake_say(conn, "%s", greeter->reply);
	return true;
}

static void write_file(const char *path, const char *text)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

/* AUTH, SELECT, SETNAME, PING; a changed password file is read again; a missing one keeps the old
 * password. */
RIG_TEST(test_greeting)
{
	char path[] = "/tmp/sluice-redis-XXXXXX";
	struct greeter greeter = { .password = "secret one" };
	struct sent sent;

	close(mkstemp(path));
	write_file(path, "secret one\nsecond line\n");
	redis_free(rig.redis);
	rig.def.user = "sluice";
	rig.def.password_file = path;
	rig.url.database = 7;
	rig.fake->response = response_greeting;
	rig.fake->arg = &greeter;
	rig_client(&rig);
	redis_name(rig.redis, "a");
	assert_int_equal(send_get(&rig, &sent, 3000), REPLY_OK);
	assert_string_equal(greeter.said, "AUTH sluice secret one; SELECT 7; "
					  "CLIENT SETNAME sluice-a; PING; GET x; ");
	write_file(path, "new");
	greeter.password = "new";
	fake_hang_up(rig.fake);
	run_until(rig.base, !redis_up(rig.redis, 0));
	run_until(rig.base, redis_up(rig.redis, 0));
	unlink(path);
	fake_hang_up(rig.fake);
	run_until(rig.base, !redis_up(rig.redis, 0));
	run_until(rig.base, redis_up(rig.redis, 0));
	assert_int_equal(send_get(&rig, &sent, 3000), REPLY_OK);
	assert_int_equal(rig.fake->accepted, 3);
}

/* The configured user and no other, also without a password here. */
RIG_TEST(test_user_alone)
{
	struct greeter greeter = { .password = NULL };
	struct sent sent;

	redis_free(rig.redis);
	rig.def.user = "free";
	rig.fake->response = response_greeting;
	rig.fake->arg = &greeter;
	rig_client(&rig);
	assert_int_equal(send_get(&rig, &sent, 3000), REPLY_OK);
	assert_string_equal(greeter.said, "AUTH free ; PING; GET x; ");
}

/* Wrong; then corrected in Redis: found without a restart. No command was sent before. */
RIG_TEST(test_password_wrong)
{
	char path[] = "/tmp/sluice-redis-XXXXXX";
	struct greeter greeter = { .password = "other",
				   .reply = "-NOAUTH Authentication required.\r\n" };
	struct redis_server_state server;
	struct sent sent;

	close(mkstemp(path));
	write_file(path, "secret\n");
	redis_free(rig.redis);
	rig.def.password_file = path;
	rig.fake->response = response_greeting;
	rig.fake->arg = &greeter;
	rig_client(&rig);
	assert_int_equal(send_get(&rig, &sent, 3000), REPLY_DOWN);
	assert_string_equal(greeter.said, "AUTH secret; PING; ");
	assert_int_equal(redis_server_states(rig.redis, &server, 1), 1);
	assert_true(server.breaker_open && !server.up);
	assert_non_null(strstr(server.error, "password"));
	greeter.password = "secret";
	greeter.reply = NULL;
	run_until(rig.base, redis_up(rig.redis, 0));
	assert_int_equal(send_get(&rig, &sent, 3000), REPLY_OK);
	redis_server_states(rig.redis, &server, 1);
	assert_string_equal(server.error, "");
	unlink(path);
}

RIG_TEST(test_password_missing)
{
	struct redis *redis;
	struct sl_err err;
	char path[] = "/tmp/sluice-redis-XXXXXX";

	rig.def.password_file = "/nonexistent/sluice";
	assert_int_equal(redis_new(rig.base, &rig.def, &redis, &err), -ENOENT);
	assert_non_null(strstr(err.message, "cluster.redis.password_file: /nonexistent/sluice"));
	close(mkstemp(path));
	rig.def.password_file = path;
	assert_true(redis_new(rig.base, &rig.def, &redis, &err) < 0);
	assert_non_null(strstr(err.message, "is empty"));
	unlink(path);
	rig.def.password_file = NULL;
	rig.url.tls = true;
	rig.def.ca = "/nonexistent/ca";
	assert_true(redis_new(rig.base, &rig.def, &redis, &err) < 0);
	assert_non_null(strstr(err.message, "cluster.redis.tls: ca /nonexistent/ca"));
}

/* ------------------------------------------------------------------ names, Unix sockets */

RIG_TEST(test_names)
{
	struct sent sent;

	redis_free(rig.redis);
	rig.url.host = "localhost";
	rig_client(&rig);
	/* ::1 may be the first of its addresses, and has no listener: the next is used. */
	while (send_get(&rig, &sent, 3000) != REPLY_OK)
		run_until(rig.base, redis_up(rig.redis, 0));
	redis_free(rig.redis);
	rig.url.host = "no-such-name.invalid";
	rig_client(&rig);
	assert_int_equal(send_get(&rig, &sent, 3000), REPLY_DOWN);
	/* The client is freed while a look-up is under way. */
	redis_free(rig.redis);
	rig_client(&rig);
	redis_warm(rig.redis);
	redis_free(rig.redis);
	rig.url.host = "/nonexistent/redis.sock";
	rig.url.unix_socket = true;
	rig_client(&rig);
	assert_int_equal(send_get(&rig, &sent, 3000), REPLY_DOWN);
}

TEST_MAIN
