// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Any bytes as what a Redis Cluster says of its slots: as a reply, a map whose every slot is at a
 * master of it, at a host and a port that can be connected to; as an error, a place to go; or
 * refused.
 */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "user/cluster/redis/redis_reader.c"
#include "user/cluster/redis/redis_slots.c"

static struct redis_slot_map map;

static void look_at(const struct redis_endpoint *endpoint)
{
	assert(endpoint->port && *endpoint->host && strlen(endpoint->host) <= REDIS_HOST_MAX);
	for (const char *c = endpoint->host; *c; c++)
		assert(*c > ' ' && *c <= '~');
}

static void as_reply(const uint8_t *data, size_t size)
{
	struct redis_conn conn = { 0 };
	redisReader *reader = redis_reader_new(&conn);
	u32 served = 0;
	void *reply = NULL;

	redisReaderFeed(reader, (const char *)data, size);
	if (redisReaderGetReply(reader, &reply) == REDIS_OK && reply &&
	    !redis_slots_read(reply, "seed", &map)) {
		for (u32 slot = 0; slot < REDIS_SLOTS; slot++) {
			assert(map.owner[slot] <= map.masters);
			served += map.owner[slot] != 0;
		}
		assert(served == map.served);
		for (u32 i = 0; i < map.masters; i++)
			look_at(&map.master[i]);
	}
	if (reply)
		freeReplyObject(reply);
	redisReaderFree(reader);
}

static void as_error(const uint8_t *data, size_t size)
{
	struct redis_redirect to;
	char *words = strndup((const char *)data, size);

	if (!redis_redirect_read(words, "seed", &to)) {
		assert(to.slot < REDIS_SLOTS);
		look_at(&to.to);
	}
	free(words);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	assert(redis_slot((const char *)data, size) < REDIS_SLOTS);
	as_reply(data, size);
	as_error(data, size);
	return 0;
}
