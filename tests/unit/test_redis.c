// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * test_redis.c - the Redis client against servers in this process: answers, deadlines, late
 * answers, lost connections, scripts, greetings, the breaker.
 */
#include "redis_rig.h"

/* ------------------------------------------------------------------ answers */

static bool answer_echo(struct fake_conn *conn, const redisReply *command)
{
	if (!command_is(command, "ECHO"))
		return false;
	fake_say(conn, "$%zu\r\n%s\r\n", command->element[1]->len, command->element[1]->str);
	return true;
}

/* In their order, over one connection, however many there are. */
static void test_pipeline(void **state)
{
	static struct sent sent[1000];
	struct redis_stats stats;
	struct rig rig;
	char text[16];
	u32 done = 0;

	rig_begin(&rig);
	rig.fake->answer = answer_echo;
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
	rig_end(&rig);
}

/* Nobody is there: told so, not from within redis_send(), and again at once while it is away. */
static void test_nobody(void **state)
{
	struct sent sent, again;
	struct redis_stats stats;
	struct rig rig;

	rig_begin(&rig);
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
	/* It comes: found without anybody asking. */
	fake_listen(rig.fake);
	run_until(rig.base, redis_up(rig.redis, 0));
	send_command(rig.redis, &again, 3000, "GET", "x");
	run_until(rig.base, again.count == 1);
	assert_int_equal(again.outcome, REPLY_OK);
	assert_int_equal(rig.fake->accepted, 1);
	rig_end(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pipeline),
		cmocka_unit_test(test_nobody),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
