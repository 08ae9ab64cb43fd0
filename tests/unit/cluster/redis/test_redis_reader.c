// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * test_redis_reader.c - which bytes are a reply, with any hiredis: 0.14 reads RESP2, 1.0
 * and later also RESP3, and have other bounds.
 */
#include "cluster/redis/redis_private.h"

#include "lib/test.h"

/*
 * RESP3, which was not requested, and of which hiredis reads the types of its release: an error,
 * alone or in a valid reply.
 */
TEST(test_resp3)
{
	static const char *const good[] = { ":1\r\n", "$-1\r\n", "+OK\r\n", "-ERR\r\n", "*0\r\n" };
	static const char *const bad[] = { ITEMS(
		",1.5\r\n", ",inf\r\n", ",nan\r\n", "#t\r\n", "#f\r\n", "#x\r\n",
		"%1\r\n+a\r\n:1\r\n", "%0\r\n", "%-1\r\n", "%200000\r\n", "%99999999999\r\n",
		"~1\r\n:1\r\n", "~0\r\n", ">1\r\n+a\r\n", ">0\r\n", ">300000\r\n",
		"|1\r\n+a\r\n:1\r\n:2\r\n", "(3492890328409238509324850943850943825024385\r\n",
		"(x\r\n", "=7\r\ntxt:abc\r\n", "=1\r\na\r\n", "!5\r\nERR x\r\n",
		"$?\r\n;1\r\nx\r\n", "*?\r\n:1\r\n.\r\n", "_\r\n") };
	const u32 goods = COUNT(good), bads = COUNT(bad);
	char text[256];

	for (u32 i = 0; i < bads * goods; i++) {
		for (u32 nested = 0; nested < 3; nested++) {
			struct redis_conn conn = { 0 };
			redisReader *reader = redis_reader_new(&conn);
			void *reply = NULL;

			snprintf(text, sizeof(text), "%s%s%s", nested ? "*2\r\n" : "",
				 nested == 2 ? good[i % goods] : "", bad[i / goods]);
			assert_int_equal(redisReaderFeed(reader, text, strlen(text)), REDIS_OK);
			if (redisReaderGetReply(reader, &reply) != REDIS_ERR)
				fail_msg("taken for a reply: %s", text);
			redisReaderFree(reader);
		}
	}
}

/* Parts in parts, by hiredis or by us: freeing them must not need more stack than there is. */
TEST(test_nested)
{
	for (u32 depth = 1; depth < 1000000; depth *= 3) {
		struct redis_conn conn = { 0 };
		redisReader *reader = redis_reader_new(&conn);
		redisReply *reply = NULL;

		for (u32 i = 0; i < depth; i++)
			redisReaderFeed(reader, "*1\r\n", 4);
		redisReaderFeed(reader, ":1\r\n", 4);
		if (depth < 8) {
			assert_int_equal(redisReaderGetReply(reader, (void **)&reply), REDIS_OK);
			freeReplyObject(reply);
		} else {
			assert_int_equal(redisReaderGetReply(reader, (void **)&reply), REDIS_ERR);
		}
		redisReaderFree(reader);
	}
}

TEST_MAIN
