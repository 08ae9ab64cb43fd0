// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * test_redis.c - the Redis client against servers in this process: replies, deadlines, late
 * replies, lost connections, scripts, greetings, the breaker.
 */
#include <errno.h>

#include "redis_rig.h"

static u64 redis_answered(const struct redis *redis)
{
	struct redis_stats stats;

	redis_stats(redis, &stats);
	return stats.replies;
}

/* ------------------------------------------------------------------ answers */

static bool response_echo(struct fake_conn *conn, const redisReply *command)
{
	if (!command_is(command, "ECHO"))
		return false;
	fake_say(conn, "$%zu\r\n%s\r\n", command->element[1]->len, command->element[1]->str);
	return true;
}

/* In their order, over one connection, however many there are. */
RIG_TEST(test_pipeline)
{
	static struct sent sent[1000];
	struct redis_stats stats;
	char text[16];
	u32 done = 0;

	rig.fake->response = response_echo;
	assert_int_equal(rig.fake->accepted, 0);
	assert_true(redis_up(rig.redis, 0));
	for (u32 i = 0; i < 1000; i++) {
		snprintf(text, sizeof(text), "n%u", i);
		send_command(rig.redis, &sent[i], 3000, "ECHO", text);
	}
	run_until(rig.base, sent[999].count == 1);
	for (u32 i = 0; i < 1000; i++) {
		snprintf(text, sizeof(text), "n%u", i);
		done += sent[i].count == 1 && sent[i].outcome == REPLY_OK &&
			!strcmp(sent[i].text, text) && !sent[i].late_count;
	}
	assert_int_equal(done, 1000);
	assert_int_equal(rig.fake->accepted, 1);
	redis_stats(rig.redis, &stats);
	assert_int_equal(stats.commands, 1000);
	assert_int_equal(stats.replies, 1000);
	assert_int_equal(stats.count, 1000);
	assert_int_equal(stats.errors + stats.late + stats.refused, 0);
	assert_int_equal(stats.connects, 1);
	assert_int_equal(stats.servers, 1);
	assert_int_equal(stats.up, 1);
	assert_int_equal(stats.breakers_open, 0);
}

/* No server: reported as such, not from within redis_send(), and again at once while it is down. */
RIG_TEST(test_no_server)
{
	struct sent sent, again;
	struct redis_stats stats;

	fake_stop(rig.fake);
	send_command(rig.redis, &sent, 3000, "GET", "x");
	run_until(rig.base, sent.count == 1);
	assert_int_equal(sent.outcome, REPLY_DOWN);
	assert_false(redis_up(rig.redis, 0));
	send_command(rig.redis, &again, 3000, "GET", "x");
	run_until(rig.base, again.count == 1);
	assert_int_equal(again.outcome, REPLY_DOWN);
	redis_stats(rig.redis, &stats);
	assert_int_equal(stats.breakers_open, 1);
	assert_int_equal(stats.up, 0);
	/* The server comes up: found without a command. */
	fake_listen(rig.fake);
	run_until(rig.base, redis_up(rig.redis, 0));
	send_command(rig.redis, &again, 3000, "GET", "x");
	run_until(rig.base, again.count == 1);
	assert_int_equal(again.outcome, REPLY_OK);
	assert_int_equal(rig.fake->accepted, 1);
}

/* A pending command gets its callback when the client is freed, once. */
RIG_TEST(test_end)
{
	struct sent sent[3], late;

	rig.fake->mute = true;
	send_command(rig.redis, &sent[0], 3000, "GET", "x");
	redis_free(rig.redis);
	assert_int_equal(sent[0].count, 1);
	assert_int_equal(sent[0].outcome, REPLY_DOWN);
	rig.fake->mute = false;
	rig_client(&rig);
	send_command(rig.redis, &sent[0], 3000, "GET", "x");
	run_until(rig.base, sent[0].count == 1);
	rig.fake->mute = true;
	send_command(rig.redis, &late, 1, "GET", "x");
	send_command(rig.redis, &sent[1], 3000, "GET", "x");
	run_until(rig.base, late.count == 1);
	assert_int_equal(late.outcome, REPLY_LATE);
	send_command(rig.redis, &sent[2], 3000, "GET", "x");
	redis_free(rig.redis);
	assert_int_equal(sent[0].count, 1);
	assert_int_equal(sent[1].outcome, REPLY_DOWN);
	assert_int_equal(sent[2].outcome, REPLY_DOWN);
	assert_int_equal(sent[1].count + sent[2].count, 2);
	assert_int_equal(late.late_count, 1);
	assert_int_equal(late.late, REPLY_DOWN);
	rig.redis = NULL;
}

RIG_TEST(test_sizes)
{
	const char *argv[REDIS_ARGS_MAX + 1];
	size_t huge[] = { 3, REDIS_COMMAND_MAX + 1 };
	struct redis_script script;
	struct sent sent;
	char *text = calloc(1, REDIS_COMMAND_MAX + 2);
	const struct redis_command command = { .argc = 2,
					       .len = huge,
					       .argv = (const char *const[]){ "SET", text } };

	for (u32 i = 0; i <= REDIS_ARGS_MAX; i++)
		argv[i] = "x";
	redis_script_init(&script, "return 1");
	assert_string_equal(script.sha, "e0e1f9fabfc9d4800c877a703b823ac0578ff8db");
	assert_int_equal(send_like(rig.redis, &sent, (struct redis_command){ 0 }, 9,
				   REDIS_ARGS_MAX + 1, argv),
			 -E2BIG);
	assert_int_equal(send_like(rig.redis, &sent, (struct redis_command){ .script = &script }, 9,
				   REDIS_ARGS_MAX - 1, argv),
			 -E2BIG);
	assert_int_equal(send_like(rig.redis, &sent, (struct redis_command){ 0 }, 9, 0, argv),
			 -E2BIG);
	assert_int_equal(redis_send(rig.redis, &command, (struct redis_handler){ 0 }), -E2BIG);
	/* And the largest accepted reply. */
	assert_int_equal(send_like(rig.redis, &sent, (struct redis_command){ 0 }, 3000,
				   REDIS_ARGS_MAX, argv),
			 0);
	run_until(rig.base, sent.count == 1);
	assert_int_equal(sent.outcome, REPLY_OK);
	free(text);
}

/* So many and no more, and room again when they have replies. */
RIG_TEST(test_full)
{
	const char *const argv[] = { "GET", "x" };
	const struct redis_command command = { .argc = 2, .argv = argv, .deadline_ns = ~0ULL >> 2 };
	struct redis_stats stats;
	struct sent sent;
	u32 count = 0;

	while (redis_send(rig.redis, &command, (struct redis_handler){ 0 }) == 0)
		assert_true(++count <= REDIS_PENDING_MAX);
	assert_int_equal(count, REDIS_PENDING_MAX);
	do {
		redis_stats(rig.redis, &stats);
		run_ms(rig.base, 1);
	} while (stats.replies < count);
	send_command(rig.redis, &sent, 3000, "GET", "x");
	run_until(rig.base, sent.count == 1);
	assert_int_equal(sent.outcome, REPLY_OK);
}

/* ------------------------------------------------------------------ deadlines */

static bool response_held(struct fake_conn *conn, const redisReply *command)
{
	struct fake_conn **held = conn->fake->arg;

	if (!command_is(command, "HOLD"))
		return false;
	*held = conn;
	return true;
}

/* Late is reported at the deadline; the outcome later, once; the next command gets its own
 * reply. */
RIG_TEST(test_late)
{
	struct fake_conn *held = NULL;
	struct sent sent, next;
	struct redis_stats stats;

	rig.fake->response = response_held;
	rig.fake->arg = &held;
	send_command(rig.redis, &sent, 3000, "GET", "x");
	run_until(rig.base, sent.count == 1);
	send_command(rig.redis, &sent, 20, "HOLD");
	run_until(rig.base, sent.count == 1);
	assert_int_equal(sent.outcome, REPLY_LATE);
	assert_in_range(sent.took_ms, 19, 500);
	assert_int_equal(sent.late_count, 0);
	assert_true(redis_up(rig.redis, 0));
	fake_say(held, "-ERR late\r\n");
	send_command(rig.redis, &next, 3000, "GET", "x");
	run_until(rig.base, next.count == 1);
	assert_int_equal(next.outcome, REPLY_OK);
	assert_string_equal(next.text, "OK");
	assert_int_equal(sent.late_count, 1);
	assert_int_equal(sent.late, REPLY_ERROR);
	assert_string_equal(sent.text, "ERR late");
	redis_stats(rig.redis, &stats);
	assert_int_equal(stats.late, 1);
}

/* Each by its own deadline, in any order; 5 ms is about 5 ms. */
RIG_TEST(test_deadlines)
{
	static const u32 deadline_ms[] = { 60, 5, 40, 20, 90, 5, 70 };
	static struct sent sent[7];
	struct fake_conn *held;
	u64 quickest = ~0ULL;

	rig.fake->response = response_held;
	rig.fake->arg = &held;
	send_command(rig.redis, &sent[0], 3000, "GET", "x");
	run_until(rig.base, sent[0].count == 1);
	for (u32 i = 0; i < 7; i++)
		send_command(rig.redis, &sent[i], deadline_ms[i], "HOLD");
	run_until(rig.base, sent[4].count == 1);
	for (u32 i = 0; i < 7; i++) {
		assert_int_equal(sent[i].outcome, REPLY_LATE);
		assert_in_range(sent[i].took_ms, deadline_ms[i] - 1, deadline_ms[i] + 400);
	}
	/* A stall of the machine hides one; not each of ten (the fifth in a row opens the
	 * breaker). */
	for (u32 i = 0; i < 10 && quickest > 6; i++) {
		redis_free(rig.redis);
		rig_client(&rig);
		send_command(rig.redis, &sent[0], 3000, "GET", "x");
		run_until(rig.base, sent[0].count == 1);
		send_command(rig.redis, &sent[0], 5, "HOLD");
		run_until(rig.base, sent[0].count == 1);
		if (sent[0].took_ms < quickest)
			quickest = sent[0].took_ms;
	}
	assert_in_range(quickest, 4, 6);
}

/* A connection that has stood still for a second is closed; one with a blocking command is not. */
RIG_TEST(test_stall)
{
	const char *const hold[] = { "HOLD" };
	struct fake_conn *held = NULL;
	struct sent sent, patient;

	rig.fake->response = response_held;
	rig.fake->arg = &held;
	assert_int_equal(send_like(rig.redis, &patient, (struct redis_command){ .unhurried = true },
				   1500, 1, hold),
			 0);
	run_ms(rig.base, 1400);
	assert_int_equal(patient.count, 0);
	assert_int_equal(rig.fake->accepted, 1);
	fake_say(held, "+done\r\n");
	run_until(rig.base, patient.count == 1);
	assert_int_equal(patient.outcome, REPLY_OK);
	send_command(rig.redis, &sent, 10, "HOLD");
	run_until(rig.base, sent.count == 1);
	assert_int_equal(sent.outcome, REPLY_LATE);
	run_until(rig.base, sent.late_count == 1);
	assert_int_equal(sent.late, REPLY_DOWN);
	assert_in_range(now_ms() - sent.at_ms, 900, 2500);
	run_until(rig.base, redis_up(rig.redis, 0));
	assert_int_equal(rig.fake->accepted, 2);
}

/* ------------------------------------------------------------------ scripts */

struct script_server {
	bool has;
	u32 loads, runs, unknown;
	u32 forget; /* after so many runs */
};

static bool response_script(struct fake_conn *conn, const redisReply *command)
{
	struct script_server *server = conn->fake->arg;

	if (command_is(command, "SCRIPT")) {
		assert_string_equal(command->element[2]->str, "return 7");
		server->loads++;
		server->has = true;
		fake_say(conn, "$3\r\nsha\r\n");
	} else if (command_is(command, "EVALSHA")) {
		assert_int_equal(command->elements, 4);
		if (server->has) {
			server->runs++;
			fake_say(conn, ":%s\r\n", command->element[3]->str);
		} else {
			server->unknown++;
			fake_say(conn, "-NOSCRIPT No matching script. Please use EVAL.\r\n");
		}
		if (server->forget && server->runs == server->forget)
			server->has = false;
	} else {
		return false;
	}
	return true;
}

/* Not loaded, and forgotten in between: unnoticed by the caller, and its text is sent once each
 * time. */
RIG_TEST(test_script)
{
	struct script_server server = { .forget = 150 };
	static struct sent sent[300];
	struct redis_script script;
	struct redis_stats stats;
	char text[16];
	u32 good = 0;

	rig.fake->response = response_script;
	rig.fake->arg = &server;
	redis_script_init(&script, "return 7");
	for (u32 i = 0; i < 300; i++) {
		const char *const argv[] = { "0", text };

		snprintf(text, sizeof(text), "%u", i);
		assert_int_equal(send_like(rig.redis, &sent[i],
					   (struct redis_command){ .script = &script }, 3000, 2,
					   argv),
				 0);
	}
	run_until(rig.base, redis_answered(rig.redis) == 300);
	for (u32 i = 0; i < 300; i++)
		good += sent[i].count == 1 && sent[i].outcome == REPLY_OK && sent[i].integer == i;
	assert_int_equal(good, 300);
	assert_int_equal(server.loads, 2);
	redis_stats(rig.redis, &stats);
	assert_int_equal(stats.commands, 300);
	assert_int_equal(stats.replies, 300);
	assert_int_equal(stats.errors, 0);
	assert_in_range(server.unknown, 2, 600);
}

static bool response_noscript(struct fake_conn *conn, const redisReply *command)
{
	u32 *runs = conn->fake->arg;

	if (command_is(command, "SCRIPT")) {
		fake_say(conn, "-NOPERM this user has no permissions\r\n");
		return true;
	}
	if (!command_is(command, "EVALSHA"))
		return false;
	++*runs;
	fake_say(conn, "-NOSCRIPT No matching script. Please use EVAL.\r\n");
	return true;
}

/* A script that cannot be loaded is an error in the end, not a loop. */
RIG_TEST(test_script_refused)
{
	const char *const argv[] = { "0", "1" };
	struct redis_script script;
	struct sent sent;
	u32 runs = 0;

	rig.fake->response = response_noscript;
	rig.fake->arg = &runs;
	redis_script_init(&script, "return 7");
	send_like(rig.redis, &sent, (struct redis_command){ .script = &script }, 3000, 2, argv);
	run_until(rig.base, sent.count == 1);
	assert_int_equal(sent.outcome, REPLY_ERROR);
	assert_memory_equal(sent.text, "NOSCRIPT", 8);
	assert_in_range(runs, 2, 10);
}

/* ------------------------------------------------------------------ replicas */

struct wait_server {
	u32 delays, replicas;
	char argument[2][16];
};

static bool response_wait(struct fake_conn *conn, const redisReply *command)
{
	struct wait_server *server = conn->fake->arg;

	if (!command_is(command, "WAIT"))
		return false;
	server->delays++;
	for (u32 i = 0; i < 2; i++)
		snprintf(server->argument[i], sizeof(server->argument[i]), "%s",
			 command->element[i + 1]->str);
	fake_say(conn, ":%u\r\n", server->replicas);
	return true;
}

/* One WAIT for all commands of a turn of the loop; enough replicas or not; others are not
 * delayed. */
RIG_TEST(test_durable)
{
	const struct redis_command durable = { .durable = true };
	const char *const argv[] = { "INCR", "x" };
	struct wait_server server = { .replicas = 2 };
	struct sent sent[20], plain;

	redis_free(rig.redis);
	rig.def.wait = 2;
	rig_client(&rig);
	rig.fake->response = response_wait;
	rig.fake->arg = &server;
	send_command(rig.redis, &plain, 3000, "GET", "x");
	run_until(rig.base, plain.count == 1);
	assert_int_equal(server.delays, 0);
	for (u32 i = 0; i < 20; i++)
		send_like(rig.redis, &sent[i], durable, 300, 2, argv);
	run_until(rig.base, sent[19].count == 1);
	assert_int_equal(server.delays, 1);
	assert_string_equal(server.argument[0], "2");
	assert_string_equal(server.argument[1], "225");
	for (u32 i = 0; i < 20; i++)
		assert_int_equal(sent[i].outcome, REPLY_OK);
	assert_string_equal(sent[7].text, "OK");
	server.replicas = 1;
	send_like(rig.redis, &sent[0], durable, 300, 2, argv);
	send_command(rig.redis, &plain, 300, "GET", "x");
	run_until(rig.base, sent[0].count == 1);
	assert_int_equal(sent[0].outcome, REPLY_ERROR);
	assert_string_equal(sent[0].text, "NOREPLICAS 1 of 2 have it");
	run_until(rig.base, plain.count == 1);
	assert_int_equal(plain.outcome, REPLY_OK);
	assert_int_equal(server.delays, 2);
}

TEST_MAIN
