// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * test_redis_faults.c - the Redis client with a faulty server: lost connections, servers
 * that stand still, send garbage, are no master; the breaker and recovery.
 */
#include "redis_rig.h"

/* ------------------------------------------------------------------ lost connections */

/* Closed in the middle of a pipeline: replies received count, the outcome of the rest is
 * unknown. */
static bool response_three(struct fake_conn *conn, const redisReply *command)
{
	u32 *left = conn->fake->arg;

	if (!command_is(command, "GET") || !*left)
		return false;
	if (--*left)
		return false;
	fake_conn_free(conn);
	return true;
}

RIG_TEST(test_hang_up)
{
	struct sent sent[8], after;
	u32 left = 0, ok = 0, down = 0;

	rig.fake->response = response_three;
	rig.fake->arg = &left;
	assert_int_equal(send_get(&rig, &after, 3000), REPLY_OK);
	left = 4;
	for (u32 i = 0; i < 8; i++)
		send_command(rig.redis, &sent[i], 3000, "GET", "x");
	run_until(rig.base, sent[7].count == 1);
	for (u32 i = 0; i < 8; i++) {
		assert_int_equal(sent[i].count, 1);
		ok += sent[i].outcome == REPLY_OK;
		down += sent[i].outcome == REPLY_DOWN;
	}
	/* Replies of the fake just before it closed may or may not have been sent. */
	assert_in_range(ok, 0, 3);
	assert_int_equal(ok + down, 8);
	assert_false(redis_up(rig.redis, 0));
	run_until(rig.base, redis_up(rig.redis, 0));
	assert_int_equal(send_get(&rig, &after, 3000), REPLY_OK);
	assert_int_equal(rig.fake->accepted, 2);
}

/*
 * Connections that end without an error count as one failure each; however many commands
 * fail, one attempt at a time is made, less and less often.
 */
RIG_TEST(test_no_storm)
{
	struct redis_stats stats;
	struct sent sent;
	u32 commands = 0;
	u64 end;

	rig.fake->mute = true;
	fake_stop(rig.fake);
	for (end = now_ms() + 1000; now_ms() < end; commands++)
		assert_int_equal(send_get(&rig, &sent, 100), REPLY_DOWN);
	assert_true(commands > 100);
	redis_stats(rig.redis, &stats);
	assert_int_equal(stats.connects, 0);
	assert_in_range(stats.refused, commands, commands + 8);
	/* It accepts and sends nothing: one probe waits, and no other is made. */
	fake_listen(rig.fake);
	for (end = now_ms() + 1500; now_ms() < end; commands++)
		assert_int_equal(send_get(&rig, &sent, 100), REPLY_DOWN);
	assert_in_range(rig.fake->accepted, 1, 1);
	assert_int_equal(rig.fake->commands, 1);
	rig.fake->mute = false;
	run_until(rig.base, redis_up(rig.redis, 0));
	assert_int_equal(send_get(&rig, &sent, 3000), REPLY_OK);
	assert_in_range(rig.fake->accepted, 1, 2);
}

/* ------------------------------------------------------------------ slow */

/* Five late replies in a row: no more commands but probes, over the same connection. */
RIG_TEST(test_slow)
{
	struct redis_stats stats;
	struct sent sent[6], after;
	u32 before;

	assert_int_equal(send_get(&rig, &after, 3000), REPLY_OK);
	rig.fake->mute = true;
	for (u32 i = 0; i < 4; i++)
		assert_int_equal(send_get(&rig, &sent[i], 10), REPLY_LATE);
	assert_true(redis_up(rig.redis, 0));
	assert_int_equal(send_get(&rig, &sent[4], 10), REPLY_LATE);
	assert_false(redis_up(rig.redis, 0));
	redis_stats(rig.redis, &stats);
	assert_int_equal(stats.breakers_open, 1);
	before = rig.fake->commands;
	assert_int_equal(send_get(&rig, &sent[5], 10), REPLY_DOWN);
	assert_in_range(sent[5].took_ms, 0, 9);
	/* It replies again before the second is over: late replies come, and a probe in time. */
	rig.fake->mute = false;
	for (u32 i = 0; i < 5; i++)
		fake_say(LIST_FIRST(&rig.fake->conns), "$4\r\nlate\r\n");
	run_until(rig.base, redis_up(rig.redis, 0));
	for (u32 i = 0; i < 5; i++) {
		assert_int_equal(sent[i].late_count, 1);
		assert_int_equal(sent[i].late, REPLY_OK);
		assert_string_equal(sent[i].text, "late");
	}
	assert_int_equal(send_get(&rig, &after, 3000), REPLY_OK);
	assert_int_equal(rig.fake->accepted, 1);
	assert_in_range(rig.fake->commands - before, 2, 4);
}

/* The same for the first connection: one command waits for the accepted connection's greeting. */
RIG_TEST(test_never_greeted)
{
	struct sent sent[7];

	rig.fake->mute = true;
	for (u32 i = 0; i < 5; i++) {
		assert_true(redis_up(rig.redis, 0));
		assert_int_equal(send_get(&rig, &sent[i], 20), REPLY_DOWN);
		assert_in_range(sent[i].took_ms, 19, 1000);
	}
	assert_false(redis_up(rig.redis, 0));
	assert_int_equal(send_get(&rig, &sent[5], 1000), REPLY_DOWN);
	assert_in_range(sent[5].took_ms, 0, 500);
	/* The connection was kept: when it replies after all, it is used. */
	assert_int_equal(rig.fake->accepted, 1);
	rig.fake->mute = false;
	for (u32 i = rig.fake->commands; i > 0; i--)
		fake_say(LIST_FIRST(&rig.fake->conns), i > 1 ? "+OK\r\n" : "+PONG\r\n");
	run_until(rig.base, redis_up(rig.redis, 0));
	assert_int_equal(rig.fake->accepted, 1);
	assert_int_equal(send_get(&rig, &sent[6], 3000), REPLY_OK);
}

/* One in time among them: they are not in a row. And unhurried commands do not count. */
RIG_TEST(test_slow_now_and_then)
{
	const char *const get[] = { "GET", "x" };
	static struct sent late[16];
	struct sent sent;

	for (u32 i = 0; i < 16; i++) {
		assert_int_equal(send_get(&rig, &sent, 3000), REPLY_OK);
		rig.fake->mute = true;
		send_like(rig.redis, &late[i], (struct redis_command){ .unhurried = i >= 4 }, 5, 2,
			  get);
		run_until(rig.base, late[i].count == 1);
		assert_int_equal(late[i].outcome, REPLY_LATE);
		run_ms(rig.base, 2);
		rig.fake->mute = false;
		fake_say(LIST_FIRST(&rig.fake->conns), "+OK\r\n");
	}
	assert_true(redis_up(rig.redis, 0));
}

/* ------------------------------------------------------------------ nonsense */

static bool response_text(struct fake_conn *conn, const redisReply *command)
{
	if (!command_is(command, "GET"))
		return false;
	evbuffer_add_printf(bufferevent_get_output(conn->bev), "%s", (const char *)conn->fake->arg);
	return true;
}

/* Each ends the connection, none the client; the next connection works. */
RIG_TEST(test_nonsense)
{
	static const char *const nonsense[] = { ITEMS(
		"hello\r\n", "*2\r\n$1\r\nx\r\n!\r\n", "$-2\r\n", "*99999999999\r\n", "*300000\r\n",
		"*200000\r\n*200000\r\n", ":12x\r\n", "$99999999999999999999\r\n",
		">2\r\n+a\r\n+b\r\n",
		"*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n:1\r\n",
		"+OK\r\n+and more\r\n", "\r\n\r\n", "HTTP/1.1 400 Bad Request\r\n\r\n") };
	struct sent sent;
	u32 refused = 0;

	rig.fake->response = response_text;
	for (u32 i = 0; i < COUNT(nonsense); i++) {
		u32 accepted;

		rig.fake->arg = (void *)"+OK\r\n";
		assert_int_equal(send_get(&rig, &sent, 3000), REPLY_OK);
		accepted = rig.fake->accepted;
		rig.fake->arg = (void *)nonsense[i];
		send_get(&rig, &sent, 3000);
		refused += sent.outcome == REPLY_DOWN;
		run_until(rig.base, rig.fake->accepted > accepted);
		run_until(rig.base, redis_up(rig.redis, 0));
	}
	/* All but the one whose first reply was good, and the ":12x" that hiredis may accept as
	 * 12. */
	assert_in_range(refused, COUNT(nonsense) - 2, COUNT(nonsense) - 1);
}

/* Up to 16 MiB and no more, whether it ends or not; and one in small pieces is one. */
RIG_TEST(test_long_reply)
{
	struct sent sent;
	struct evbuffer *output;
	static char block[1 << 20];

	assert_int_equal(send_get(&rig, &sent, 3000), REPLY_OK);
	rig.fake->mute = true;
	send_command(rig.redis, &sent, 3000, "GET", "x");
	run_ms(rig.base, 5);
	for (const char *c = "$10\r\n0123456789\r\n"; *c; c++) {
		fake_say(LIST_FIRST(&rig.fake->conns), "%c", *c);
		run_ms(rig.base, 1);
	}
	run_until(rig.base, sent.count == 1);
	assert_string_equal(sent.text, "0123456789");
	send_command(rig.redis, &sent, 9000, "GET", "x");
	output = bufferevent_get_output(LIST_FIRST(&rig.fake->conns)->bev);
	evbuffer_add_printf(output, "$%u\r\n", 64U << 20);
	for (u32 i = 0; i < 20; i++)
		evbuffer_add(output, block, sizeof(block));
	run_until(rig.base, sent.count == 1);
	assert_int_equal(sent.outcome, REPLY_DOWN);
}

/* Nor is one line, which costs more the longer it is: a whole error, of some kilobytes, is
 * received. */
RIG_TEST(test_long_line)
{
	static const char *const begin[] = { "+", "-ERR ", ":", "$", "*", "*2\r\n:1\r\n+" };
	static char block[4096];
	struct evbuffer *output;
	struct sent sent;

	memset(block, '1', sizeof(block));
	assert_int_equal(send_get(&rig, &sent, 3000), REPLY_OK);
	rig.fake->mute = true;
	for (u32 i = 0; i < COUNT(begin); i++) {
		/* Not for lateness. */
		assert_int_equal(send_like(rig.redis, &sent,
					   (struct redis_command){ .unhurried = true }, 60000, 2,
					   (const char *const[]){ "GET", "x" }),
				 0);
		run_ms(rig.base, 5);
		output = bufferevent_get_output(LIST_FIRST(&rig.fake->conns)->bev);
		evbuffer_add_printf(output, "%s", begin[i]);
		for (u32 k = 0; k < 16; k++)
			evbuffer_add(output, block, sizeof(block));
		run_until(rig.base, sent.count == 1);
		assert_int_equal(sent.outcome, REPLY_DOWN);
		rig.fake->mute = false;
		run_until(rig.base, redis_up(rig.redis, 0));
		rig.fake->mute = true;
	}
	send_command(rig.redis, &sent, 3000, "GET", "x");
	run_ms(rig.base, 5);
	output = bufferevent_get_output(LIST_FIRST(&rig.fake->conns)->bev);
	evbuffer_add_printf(output, "-ERR ");
	evbuffer_add(output, block, 4000);
	run_ms(rig.base, 5);
	evbuffer_add_printf(output, "\r\n");
	run_until(rig.base, sent.count == 1);
	assert_int_equal(sent.outcome, REPLY_ERROR);
}

/* ------------------------------------------------------------------ errors of Redis */

/* Reported to the caller, by name, and counted by the breaker. */
TEST(test_error_classes)
{
	static const struct {
		const char *reply, *words;
	} error_class[] = {
		{ "-LOADING Redis is loading the dataset in memory\r\n", "loading" },
		{ "-OOM command not allowed when used memory > 'maxmemory'.\r\n", "maxmemory" },
		{ "-BUSY Redis is busy running a script.\r\n", "busy" },
		{ "-MISCONF Redis is configured to save RDB snapshots\r\n", "cannot save" },
		{ "-CLUSTERDOWN The cluster is down\r\n", "cluster is down" },
		{ "-NOPERM this user has no permissions\r\n", "ACL" },
	};
	struct redis_server_state server;
	struct sent sent;
	struct rig rig;

	for (u32 i = 0; i < COUNT(error_class); i++) {
		rig_begin(&rig);
		rig.fake->response = response_text;
		rig.fake->arg = (void *)error_class[i].reply;
		for (u32 n = 0; n < 5; n++) {
			assert_true(redis_up(rig.redis, 0));
			assert_int_equal(send_get(&rig, &sent, 3000), REPLY_ERROR);
			assert_memory_equal(sent.text, error_class[i].reply + 1, 5);
		}
		assert_false(redis_up(rig.redis, 0));
		redis_server_states(rig.redis, &server, 1);
		assert_non_null(strstr(server.error, error_class[i].words));
		rig_end(&rig);
	}
	/* An error of the command itself is not counted as the server's. */
	rig_begin(&rig);
	rig.fake->response = response_text;
	rig.fake->arg = (void *)"-ERR wrong number of arguments\r\n";
	for (u32 n = 0; n < 20; n++)
		assert_int_equal(send_get(&rig, &sent, 3000), REPLY_ERROR);
	assert_true(redis_up(rig.redis, 0));
	/* A replica: another connection at once (its name may now have another address). */
	rig.fake->arg = (void *)"-READONLY You can't write against a read only replica.\r\n";
	assert_int_equal(send_get(&rig, &sent, 3000), REPLY_ERROR);
	assert_false(redis_up(rig.redis, 0));
	run_until(rig.base, redis_up(rig.redis, 0));
	assert_int_equal(rig.fake->accepted, 2);
	rig_end(&rig);
}

TEST_MAIN
