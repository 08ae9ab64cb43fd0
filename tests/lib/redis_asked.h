/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* redis_asked.h - a Redis client that sends nothing: a test replies by the handler, `asked`. */
#ifndef TESTS_LIB_REDIS_ASKED_H
#define TESTS_LIB_REDIS_ASKED_H

#include "cluster/redis/redis.h"

static struct redis_handler asked;

int redis_send(struct redis *redis, const struct redis_command *command,
	       struct redis_handler handler)
{
	asked = handler;
	return 0;
}

u32 redis_slot_of(const struct redis *redis, const char *key, size_t len)
{
	return 0;
}

bool redis_up(const struct redis *redis, u32 place)
{
	return true;
}

bool redis_is_single(const struct redis *redis)
{
	return true;
}

void redis_script_init(struct redis_script *script, const char *text)
{
	script->text = text;
}

#endif
