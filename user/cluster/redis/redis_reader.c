// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * redis_reader.c - hiredis' reader with the bounds that it lacks: on the elements of one reply
 * (hiredis allocates room for "*99999999", which is ten bytes), and, since 1.0, on nesting (a
 * reply is freed by recursion). redis_conn.c bounds the bytes of a reply.
 *
 * The client does not request RESP3 (HELLO 3), so types of RESP3 only are refused: by hiredis 0.14,
 * which cannot read them, and by this file with later versions. Callers never get an unknown type.
 */
#include "cluster/redis/redis_private.h"

#define OBJECTS_MAX (256U * 1024)
#define NESTED_MAX 8

static redisReplyObjectFunctions plain; /* hiredis' own */

static bool room_for(const redisReadTask *task, size_t parts)
{
	struct redis_conn *conn = task->privdata;

	conn->object_count++;
	return parts <= OBJECTS_MAX && conn->object_count + parts <= OBJECTS_MAX;
}

static void *make_string(const redisReadTask *task, char *str, size_t len)
{
	bool resp2 = task->type == REDIS_REPLY_STRING || task->type == REDIS_REPLY_STATUS ||
		     task->type == REDIS_REPLY_ERROR;

	return resp2 && room_for(task, 0) ? plain.createString(task, str, len) : NULL;
}

#if HIREDIS_MAJOR >= 1
typedef size_t array_len;
#else
typedef int array_len; /* checked by hiredis: not below 0 */
#endif

static bool too_deep(const redisReadTask *task)
{
	u32 depth = 0;

	while (task && depth < NESTED_MAX) {
		task = task->parent;
		depth++;
	}
	return task;
}

/* hiredis allocates the elements before the first has come. Maps and sets use this, too. */
static void *make_array(const redisReadTask *task, array_len elements)
{
	return task->type == REDIS_REPLY_ARRAY && !too_deep(task) &&
			       room_for(task, (size_t)elements)
		       ? plain.createArray(task, elements)
		       : NULL;
}

static void *make_integer(const redisReadTask *task, long long value)
{
	return room_for(task, 0) ? plain.createInteger(task, value) : NULL;
}

static void *make_nil(const redisReadTask *task)
{
	bool resp2 = task->type == REDIS_REPLY_STRING || task->type == REDIS_REPLY_ARRAY;

	return resp2 && room_for(task, 0) ? plain.createNil(task) : NULL;
}

#if HIREDIS_MAJOR >= 1
static void *make_no_double(const redisReadTask *task, double value, char *str, size_t len)
{
	return NULL;
}

static void *make_no_bool(const redisReadTask *task, int value)
{
	return NULL;
}
#endif

redisReader *redis_reader_new(struct redis_conn *conn)
{
	static redisReplyObjectFunctions bounded = {
		.createString = make_string,
		.createArray = make_array,
		.createInteger = make_integer,
		.createNil = make_nil,
#if HIREDIS_MAJOR >= 1
		.createDouble = make_no_double,
		.createBool = make_no_bool,
#endif
		.freeObject = freeReplyObject,
	};
	redisReader *reader = redisReaderCreate();

	if (!reader)
		return NULL;
	/* The value is the same in all threads; any may be the first to store it. */
	__atomic_store_n(&plain.createString, reader->fn->createString, __ATOMIC_RELAXED);
	__atomic_store_n(&plain.createArray, reader->fn->createArray, __ATOMIC_RELAXED);
	__atomic_store_n(&plain.createInteger, reader->fn->createInteger, __ATOMIC_RELAXED);
	__atomic_store_n(&plain.createNil, reader->fn->createNil, __ATOMIC_RELAXED);
	reader->fn = &bounded;
	reader->privdata = conn;
	return reader;
}
