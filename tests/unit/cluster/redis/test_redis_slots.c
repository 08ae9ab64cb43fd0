// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Slots of keys; servers' replies on slots, right and wrong. */
#include "cluster/redis/redis_slots.h"

#include "lib/test.h"

static u32 slot(const char *key)
{
	return redis_slot(key, strlen(key));
}

TEST(test_crc)
{
	/* The published check value of CRC-16/XMODEM, and the value of a redis-server. */
	assert_int_equal(redis_crc16("123456789", 9), 0x31c3);
	assert_int_equal(redis_crc16("", 0), 0);
	assert_int_equal(slot("foo"), 12182);
	assert_int_equal(slot("somekey"), 11058);
	assert_int_equal(slot("bar"), 5061);
}

TEST(test_tag)
{
	static const struct {
		const char *key, *tag;
	} of[] = {
		{ "sluice:{0123}abc", "0123" }, { "{user1000}.following", "user1000" },
		{ "foo{}{bar}", "foo{}{bar}" }, { "foo{{bar}}zap", "{bar" },
		{ "foo{bar}{zap}", "bar" },	{ "foo{bar", "foo{bar" },
		{ "foo}bar{", "foo}bar{" },	{ "", "" },
	};

	for (size_t i = 0; i < COUNT(of); i++) {
		const char *tag;
		size_t len;

		redis_tag(of[i].key, strlen(of[i].key), &tag, &len);
		assert_int_equal(len, strlen(of[i].tag));
		assert_memory_equal(tag, of[i].tag, len);
		assert_int_equal(slot(of[i].key), redis_crc16(tag, len) % 16384);
	}
	/* Bytes, not text. */
	assert_int_equal(redis_slot("a\0{b}\0", 6), slot("b"));
}

/* ------------------------------------------------------------------ the map */

/* From Redis' own protocol, as it comes. */
static int map_of(const char *text, struct redis_slot_map *ret)
{
	redisReader *reader = redisReaderCreate();
	void *reply = NULL;
	int r;

	assert_int_equal(redisReaderFeed(reader, text, strlen(text)), REDIS_OK);
	assert_int_equal(redisReaderGetReply(reader, &reply), REDIS_OK);
	assert_non_null(reply);
	memset(ret, 0x55, sizeof(*ret));
	r = redis_slots_read(reply, "seed.example", ret);
	freeReplyObject(reply);
	redisReaderFree(reader);
	return r;
}

#define RANGE(first, last, master) "*3\r\n:" #first "\r\n:" #last "\r\n" master
#define MASTER(len, host, port) "*3\r\n$" #len "\r\n" host "\r\n:" #port "\r\n$2\r\nid\r\n"

TEST(test_map)
{
	struct redis_slot_map *map = malloc(sizeof(*map));

	assert_int_equal(map_of("*3\r\n" RANGE(0, 5460, MASTER(8, "10.0.0.1", 7000))
					RANGE(10923, 16383, MASTER(3, "::1", 7001))
						RANGE(5461, 10921, MASTER(8, "10.0.0.1", 7000)),
				map),
			 0);
	assert_int_equal(map->masters, 2);
	assert_int_equal(map->served, 16383);
	assert_int_equal(map->owner[0], 1);
	assert_int_equal(map->owner[5461], 1);
	assert_int_equal(map->owner[10922], 0);
	assert_int_equal(map->owner[16383], 2);
	assert_string_equal(map->master[0].host, "10.0.0.1");
	assert_int_equal(map->master[0].port, 7000);
	assert_string_equal(map->master[1].host, "::1");

	/* An empty address: that of the server itself. A name without address: no server. Nothing
	 * at all. */
	assert_int_equal(map_of("*3\r\n" RANGE(0, 1, MASTER(0, "", 7000))
					RANGE(2, 2, "*2\r\n$-1\r\n:7001\r\n")
						RANGE(3, 9, MASTER(1, "?", 7002)),
				map),
			 0);
	assert_int_equal(map->masters, 2);
	assert_int_equal(map->served, 3);
	assert_string_equal(map->master[0].host, "seed.example");
	assert_string_equal(map->master[1].host, "seed.example");
	assert_int_equal(map_of("*0\r\n", map), 0);
	assert_int_equal(map->served, 0);

	/* Replicas and members added by newer versions are ignored. */
	assert_int_equal(map_of("*1\r\n*4\r\n:0\r\n:16383\r\n*4\r\n$1\r\na\r\n:1\r\n$2\r\nid\r\n"
				"*2\r\n$8\r\nhostname\r\n$1\r\nx\r\n:7\r\n",
				map),
			 0);
	assert_int_equal(map->served, 16384);
	free(map);
}

TEST(test_map_malformed)
{
	static const char *const bad[] = {
		"+OK\r\n",
		"$-1\r\n",
		"*-1\r\n",
		":1\r\n",
		"-ERR unknown\r\n",
		"*1\r\n$1\r\nx\r\n",
		"*1\r\n*0\r\n",
		"*1\r\n*2\r\n:0\r\n:1\r\n",
		"*1\r\n" RANGE(0, 16384, MASTER(1, "a", 1)),
		"*1\r\n" RANGE(-1, 1, MASTER(1, "a", 1)),
		"*1\r\n" RANGE(9, 1, MASTER(1, "a", 1)),
		"*1\r\n" RANGE(0, 1, MASTER(1, "a", 0)),
		"*1\r\n" RANGE(0, 1, MASTER(1, "a", -1)),
		"*1\r\n" RANGE(0, 1, MASTER(1, "a", 65536)),
		"*1\r\n" RANGE(0, 1, MASTER(1, "a", 4294967297)),
		"*1\r\n" RANGE(0, 1, MASTER(3, "a b", 1)),
		"*1\r\n" RANGE(0, 1, MASTER(2, "a\n", 1)),
		"*1\r\n" RANGE(0, 1, "*1\r\n$1\r\na\r\n"),
		"*1\r\n" RANGE(0, 1, "$1\r\na\r\n"),
		"*1\r\n" RANGE(0, 1, "*2\r\n:1\r\n:1\r\n"),
		"*1\r\n" RANGE(0, 1, "*2\r\n$1\r\na\r\n$1\r\n1\r\n"),
		"*1\r\n*3\r\n$1\r\n0\r\n:1\r\n" MASTER(1, "a", 1),
		"*2\r\n" RANGE(0, 5, MASTER(1, "a", 1)) RANGE(5, 9, MASTER(1, "b", 1)),
	};
	struct redis_slot_map *map = malloc(sizeof(*map));
	char text[800];

	for (size_t i = 0; i < COUNT(bad); i++)
		assert_int_equal(map_of(bad[i], map), -EBADMSG);
	/* A host of 256 bytes. */
	snprintf(text, sizeof(text), "*1\r\n*3\r\n:0\r\n:1\r\n*2\r\n$256\r\n%0256d\r\n:1\r\n", 7);
	assert_int_equal(map_of(text, map), -EBADMSG);
	snprintf(text, sizeof(text), "*1\r\n*3\r\n:0\r\n:1\r\n*2\r\n$255\r\n%0255d\r\n:1\r\n", 7);
	assert_int_equal(map_of(text, map), 0);
	free(map);
}

TEST(test_map_many_masters)
{
	struct redis_slot_map *map = malloc(sizeof(*map));
	char *text = malloc(100000);

	for (u32 masters = REDIS_MASTERS_MAX; masters <= REDIS_MASTERS_MAX + 1; masters++) {
		int len = sprintf(text, "*%u\r\n", masters);

		for (u32 i = 0; i < masters; i++)
			len += sprintf(text + len, "*3\r\n:%u\r\n:%u\r\n*2\r\n$1\r\na\r\n:%u\r\n",
				       i, i, i + 1);
		assert_int_equal(map_of(text, map), masters > REDIS_MASTERS_MAX ? -E2BIG : 0);
	}
	free(text);
	free(map);
}

/* ------------------------------------------------------------------ redirections */

TEST(test_redirect)
{
	struct redis_redirect to;

	assert_int_equal(redis_redirect_read("MOVED 3999 127.0.0.1:6381", "seed", &to), 0);
	assert_false(to.ask);
	assert_int_equal(to.slot, 3999);
	assert_string_equal(to.to.host, "127.0.0.1");
	assert_int_equal(to.to.port, 6381);
	assert_int_equal(redis_redirect_read("ASK 16383 fe80::1:6381", "seed", &to), 0);
	assert_true(to.ask);
	assert_int_equal(to.slot, 16383);
	assert_string_equal(to.to.host, "fe80::1");
	assert_int_equal(redis_redirect_read("ASK 0 [::1]:1", "seed", &to), 0);
	assert_string_equal(to.to.host, "::1");
	assert_int_equal(redis_redirect_read("MOVED 1 :6380", "seed", &to), 0);
	assert_string_equal(to.to.host, "seed");
	assert_int_equal(to.to.port, 6380);
}

TEST(test_redirect_malformed)
{
	static const char *const bad[] = { ITEMS(
		"", "MOVED", "MOVED ", "MOVED 1", "MOVED 1 ", "MOVED 1 a",
		"MOVED 1 a:", "MOVED 1 a:b", "MOVED 1 a:0", "MOVED 1 a:65536", "MOVED 1 a:1 x",
		"MOVED 16384 a:1", "MOVED -1 a:1", "MOVED x a:1", "MOVED 1  a:1",
		"MOVED 000001 a:1", "ASK 1 a\x01:1", "ASK 1 ?:1", "ASKING 1 a:1", "ERR MOVED 1 a:1",
		"MOVED 99999999999999999999 a:1", "MOVED 1 a:99999999999999999999") };
	char text[400];
	struct redis_redirect to;

	for (size_t i = 0; i < COUNT(bad); i++)
		assert_int_equal(redis_redirect_read(bad[i], "seed", &to), -EBADMSG);
	snprintf(text, sizeof(text), "MOVED 1 %0256d:1", 7);
	assert_int_equal(redis_redirect_read(text, "seed", &to), -EBADMSG);
}

TEST_MAIN
