// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* redis_single.c - one server: the first url has all keys. */
#include <errno.h>

#include "cluster/redis/redis_private.h"

static int single_open(struct redis *redis, struct sl_err *err)
{
	struct redis_server *server = redis_server_get(redis, &redis->def->url[0]);

	if (!server)
		return sl_err_set(err, ENOMEM, "out of memory");
	redis->topology_state = server;
	return 0;
}

static void single_close(struct redis *redis)
{
	redis->topology_state = NULL;
}

static void single_warm(struct redis *redis)
{
	redis_server_open(redis->topology_state);
}

static u32 single_server_of(const struct redis *redis, const char *key, size_t len)
{
	return 0;
}

static struct redis_server *single_server(const struct redis *redis, u32 slot)
{
	return redis->topology_state;
}

const struct redis_topology redis_single = {
	.open = single_open,
	.close = single_close,
	.warm = single_warm,
	.slot_of = single_server_of,
	.server = single_server,
};
