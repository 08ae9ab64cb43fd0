// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * redis_reader.c - hiredis' reader with a bound on the parts of one reply, which it lacks: "*99999999"
 * is ten bytes and has it allocate room for as many parts. (How deep parts are nested it bounds
 * itself, at 7; how many bytes a reply has, redis_conn.c.)
 */
#include "cluster/redis_private.h"

#define OBJECTS_MAX (256U * 1024)

static redisReplyObjectFunctions plain;		/* hiredis' own */

static bool room_for(const redisReadTask *task, size_t parts)
{
	struct redis_conn *conn = task->privdata;

	conn->object_count++;
	return parts <= OBJECTS_MAX && conn->object_count + parts <= OBJECTS_MAX;
}

static void *make_string(const redisReadTask *task, char *str, size_t len)
{
	return room_for(task, 0) ? plain.createString(task, str, len) : NULL;
}

/* Its parts are allocated before the first of them has come. */
static void *make_array(const redisReadTask *task, int elements)
{
	return elements >= 0 && room_for(task, (size_t)elements) ?
	       plain.createArray(task, elements) : NULL;
}

static void *make_integer(const redisReadTask *task, long long value)
{
	return room_for(task, 0) ? plain.createInteger(task, value) : NULL;
}

static void *make_nil(const redisReadTask *task)
{
	return room_for(task, 0) ? plain.createNil(task) : NULL;
}

redisReader *redis_reader_new(struct redis_conn *conn)
{
	static redisReplyObjectFunctions bounded = {
		.createString = make_string,
		.createArray = make_array,
		.createInteger = make_integer,
		.createNil = make_nil,
		.freeObject = freeReplyObject,
	};
	redisReader *reader = redisReaderCreate();

	if (!reader)
		return NULL;
	/* The same for all; any thread may be the first. */
	__atomic_store_n(&plain.createString, reader->fn->createString, __ATOMIC_RELAXED);
	__atomic_store_n(&plain.createArray, reader->fn->createArray, __ATOMIC_RELAXED);
	__atomic_store_n(&plain.createInteger, reader->fn->createInteger, __ATOMIC_RELAXED);
	__atomic_store_n(&plain.createNil, reader->fn->createNil, __ATOMIC_RELAXED);
	reader->fn = &bounded;
	reader->privdata = conn;
	return reader;
}
