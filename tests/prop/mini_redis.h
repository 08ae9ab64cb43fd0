/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * mini_redis.h - charge.lua without a server: the script under liblua5.1, the commands that it
 * uses over lists in memory, and a TIME that a test sets.
 *
 * A command or an option that the script should not use ends the test; so does a value of
 * another kind than the command is for. test_cluster_store_redis.c runs the same asks against a
 * server.
 */
#ifndef SLUICE_TESTS_MINI_REDIS_H
#define SLUICE_TESTS_MINI_REDIS_H

#include <hiredis/hiredis.h>
#include <lua5.1/lauxlib.h>
#include <lua5.1/lua.h>
#include <lua5.1/lualib.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sluice/types.h"

struct mini_item {
	char *name, *value;	/* of a sorted set no value, but a score */
	double score;
};

struct mini_key {
	char *name;
	bool sorted;
	u64 expires_ms;
	struct mini_item *item;
	u32 count;
};

struct mini {
	lua_State *lua;
	int script;		/* in the registry */
	u64 now_us;
	struct mini_key *key;
	u32 keys;
	u64 calls;
};

/* ------------------------------------------------------------------ keys */

static void mini_key_drop(struct mini *mini, struct mini_key *key)
{
	for (u32 i = 0; i < key->count; i++) {
		free(key->item[i].name);
		free(key->item[i].value);
	}
	free(key->item);
	free(key->name);
	*key = mini->key[--mini->keys];
}

static struct mini_key *mini_find(struct mini *mini, const char *name, bool sorted)
{
	for (u32 i = 0; i < mini->keys; i++) {
		struct mini_key *key = &mini->key[i];

		if (strcmp(key->name, name))
			continue;
		if (key->expires_ms && mini->now_us / 1000 > key->expires_ms) {
			mini_key_drop(mini, key);
			return NULL;
		}
		if (key->sorted != sorted)
			luaL_error(mini->lua, "WRONGTYPE of %s", name);
		return key;
	}
	return NULL;
}

static struct mini_key *mini_make(struct mini *mini, const char *name, bool sorted)
{
	struct mini_key *key = mini_find(mini, name, sorted);

	if (key)
		return key;
	mini->key = realloc(mini->key, (mini->keys + 1) * sizeof(*mini->key));
	mini->key[mini->keys] = (struct mini_key){ .name = strdup(name), .sorted = sorted };
	return &mini->key[mini->keys++];
}

static struct mini_item *mini_item(const struct mini_key *key, const char *name)
{
	for (u32 i = 0; key && i < key->count; i++)
		if (!strcmp(key->item[i].name, name))
			return &key->item[i];
	return NULL;
}

static void mini_set(struct mini_key *key, const char *name, const char *value)
{
	struct mini_item *item = mini_item(key, name);

	if (!item) {
		key->item = realloc(key->item, (key->count + 1) * sizeof(*key->item));
		item = &key->item[key->count++];
		*item = (struct mini_item){ .name = strdup(name) };
	}
	free(item->value);
	item->value = strdup(value);
}

/* In the order of a sorted set: by score, then by name. */
static int mini_item_order(const void *a, const void *b)
{
	const struct mini_item *x = a, *y = b;

	if (x->score != y->score)
		return x->score < y->score ? -1 : 1;
	return strcmp(x->name, y->name);
}

static void mini_item_drop(struct mini *mini, struct mini_key *key, const char *name)
{
	struct mini_item *item = mini_item(key, name);

	if (!item)
		return;
	free(item->name);
	free(item->value);
	memmove(item, item + 1, (key->item + --key->count - item) * sizeof(*item));
	if (!key->count)
		mini_key_drop(mini, key);
}

/* ------------------------------------------------------------------ commands */

/* An argument as Redis takes it from a script: a number in so many digits that none is lost. */
static const char *mini_arg(lua_State *lua, int at)
{
	static char text[64][32];
	static u32 next;
	char *to = text[next++ % 64];

	if (lua_type(lua, at) == LUA_TSTRING)
		return lua_tostring(lua, at);
	if (lua_type(lua, at) != LUA_TNUMBER)
		luaL_error(lua, "argument %d is neither a string nor a number", at);
	snprintf(to, sizeof(text[0]), "%.17g", lua_tonumber(lua, at));
	return to;
}

static int mini_push_range(lua_State *lua, struct mini_key *key, long from, long to, bool scores)
{
	long count = key ? key->count : 0;
	char text[32];
	int n = 0;

	lua_newtable(lua);
	if (key)
		qsort(key->item, key->count, sizeof(*key->item), mini_item_order);
	from += from < 0 ? count : 0;
	to += to < 0 ? count : 0;
	for (long i = from < 0 ? 0 : from; i <= to && i < count; i++) {
		const struct mini_item *item = &key->item[i];

		lua_pushstring(lua, item->name);
		lua_rawseti(lua, -2, ++n);
		if (!scores)
			continue;
		snprintf(text, sizeof(text), "%.17g", item->score);
		lua_pushstring(lua, text);
		lua_rawseti(lua, -2, ++n);
	}
	return 1;
}

static int mini_sorted(struct mini *mini, const char *command, int argc)
{
	lua_State *lua = mini->lua;
	const char *name = mini_arg(lua, 2);
	struct mini_key *key = mini_find(mini, name, true);

	if (!strcmp(command, "ZADD") && argc == 4) {
		key = mini_make(mini, name, true);
		mini_set(key, mini_arg(lua, 4), "");
		mini_item(key, mini_arg(lua, 4))->score = atof(mini_arg(lua, 3));
		return 0;
	}
	if (!strcmp(command, "ZREM")) {
		for (int i = 3; i <= argc && (key = mini_find(mini, name, true)); i++)
			mini_item_drop(mini, key, mini_arg(lua, i));
		return 0;
	}
	if (!strcmp(command, "ZRANGEBYSCORE") && argc == 4) {
		double least = atof(mini_arg(lua, 3)), most = atof(mini_arg(lua, 4));
		long from = 0, to = -1;

		if (key)
			qsort(key->item, key->count, sizeof(*key->item), mini_item_order);
		for (u32 i = 0; key && i < key->count; i++) {
			from += key->item[i].score < least;
			to += key->item[i].score <= most;
		}
		return mini_push_range(lua, from <= to ? key : NULL, from, to < 0 ? 0 : to, false);
	}
	if (!strcmp(command, "ZRANGE") && argc >= 4)
		return mini_push_range(lua, key, atol(mini_arg(lua, 3)), atol(mini_arg(lua, 4)),
				       argc > 4);
	return luaL_error(lua, "%s", command);
}

static int mini_read_hash(struct mini *mini, const char *command, int argc)
{
	lua_State *lua = mini->lua;
	struct mini_key *key = mini_find(mini, mini_arg(lua, 2), false);
	int n = 0;

	lua_newtable(lua);
	if (!strcmp(command, "HGETALL")) {
		for (u32 i = 0; key && i < key->count; i++) {
			lua_pushstring(lua, key->item[i].name);
			lua_rawseti(lua, -2, ++n);
			lua_pushstring(lua, key->item[i].value);
			lua_rawseti(lua, -2, ++n);
		}
		return 1;
	}
	for (int i = 3; i <= argc; i++) {
		const struct mini_item *item = mini_item(key, mini_arg(lua, i));

		if (item)
			lua_pushstring(lua, item->value);
		else
			lua_pushboolean(lua, 0);
		lua_rawseti(lua, -2, i - 2);
	}
	return 1;
}

static int mini_write_hash(struct mini *mini, const char *command, int argc)
{
	lua_State *lua = mini->lua;
	const char *name = mini_arg(lua, 2);
	struct mini_key *key;
	char text[32];

	if (!strcmp(command, "HSET") && argc >= 4 && argc % 2 == 0) {
		key = mini_make(mini, name, false);
		for (int i = 3; i < argc; i += 2)
			mini_set(key, mini_arg(lua, i), mini_arg(lua, i + 1));
		return 0;
	}
	if (!strcmp(command, "HDEL")) {
		for (int i = 3; i <= argc && (key = mini_find(mini, name, false)); i++)
			mini_item_drop(mini, key, mini_arg(lua, i));
		return 0;
	}
	if (!strcmp(command, "HINCRBY") && argc == 4) {
		const struct mini_item *item;

		key = mini_make(mini, name, false);
		item = mini_item(key, mini_arg(lua, 3));
		snprintf(text, sizeof(text), "%lld",
			 (item ? atoll(item->value) : 0) + atoll(mini_arg(lua, 4)));
		mini_set(key, mini_arg(lua, 3), text);
		return 0;
	}
	return luaL_error(lua, "%s", command);
}

static int mini_call(lua_State *lua)
{
	struct mini *mini = lua_touserdata(lua, lua_upvalueindex(1));
	const char *command = luaL_checkstring(lua, 1);
	int argc = lua_gettop(lua);
	char text[32];

	mini->calls++;
	if (!strcmp(command, "TIME")) {
		lua_newtable(lua);
		snprintf(text, sizeof(text), "%llu", mini->now_us / 1000000);
		lua_pushstring(lua, text);
		lua_rawseti(lua, -2, 1);
		snprintf(text, sizeof(text), "%llu", mini->now_us % 1000000);
		lua_pushstring(lua, text);
		lua_rawseti(lua, -2, 2);
		return 1;
	}
	if (argc < 2)
		return luaL_error(lua, "%s", command);
	if (*command == 'Z')
		return mini_sorted(mini, command, argc);
	if (!strcmp(command, "HMGET") || !strcmp(command, "HGETALL"))
		return mini_read_hash(mini, command, argc);
	if (*command == 'H')
		return mini_write_hash(mini, command, argc);
	if (!strcmp(command, "DEL") || !strcmp(command, "PEXPIREAT")) {
		const char *name = mini_arg(lua, 2);
		u64 at = *command == 'P' ? strtoull(mini_arg(lua, 3), NULL, 10) : 0;

		if (*command == 'P' && strchr(mini_arg(lua, 3), 'e'))
			return luaL_error(lua, "not an integer: %s", mini_arg(lua, 3));
		for (u32 i = 0; i < mini->keys; i++) {
			if (strcmp(mini->key[i].name, name))
				continue;
			mini->key[i].expires_ms = at;
			if (at <= mini->now_us / 1000)
				mini_key_drop(mini, &mini->key[i]);
			break;
		}
		return 0;
	}
	return luaL_error(lua, "%s", command);
}

/* ------------------------------------------------------------------ the script */

/* `text`: the script. NULL, with a message on stderr, where it is invalid. */
static struct mini *mini_new(const char *text)
{
	struct mini *mini = calloc(1, sizeof(*mini));

	mini->lua = luaL_newstate();
	luaL_openlibs(mini->lua);
	lua_newtable(mini->lua);
	lua_pushlightuserdata(mini->lua, mini);
	lua_pushcclosure(mini->lua, mini_call, 1);
	lua_setfield(mini->lua, -2, "call");
	lua_setglobal(mini->lua, "redis");
	if (luaL_loadstring(mini->lua, text)) {
		fprintf(stderr, "%s\n", lua_tostring(mini->lua, -1));
		return NULL;
	}
	mini->script = luaL_ref(mini->lua, LUA_REGISTRYINDEX);
	return mini;
}

static void mini_lose(struct mini *mini)
{
	while (mini->keys)
		mini_key_drop(mini, &mini->key[mini->keys - 1]);
}

static void mini_free(struct mini *mini)
{
	mini_lose(mini);
	free(mini->key);
	lua_close(mini->lua);
	free(mini);
}

static void mini_list(lua_State *lua, const char *name, int count, const char *const *text,
		      const size_t *len)
{
	lua_newtable(lua);
	for (int i = 0; i < count; i++) {
		lua_pushlstring(lua, text[i], len[i]);
		lua_rawseti(lua, -2, i + 1);
	}
	lua_setglobal(lua, name);
}

/* argv as after EVALSHA SHA. The reply is a list of integers, or an error; to be freed. */
static redisReply *mini_eval(struct mini *mini, int argc, const char *const *argv,
			     const size_t *len)
{
	redisReply *reply = calloc(1, sizeof(*reply));
	lua_State *lua = mini->lua;
	int keys = atoi(argv[0]);

	mini_list(lua, "KEYS", keys, argv + 1, len + 1);
	mini_list(lua, "ARGV", argc - 1 - keys, argv + 1 + keys, len + 1 + keys);
	lua_rawgeti(lua, LUA_REGISTRYINDEX, mini->script);
	if (lua_pcall(lua, 0, 1, 0) || !lua_istable(lua, -1)) {
		fprintf(stderr, "charge.lua: %s\n", lua_tostring(lua, -1));
		reply->type = REDIS_REPLY_ERROR;
		lua_pop(lua, 1);
		return reply;
	}
	reply->type = REDIS_REPLY_ARRAY;
	reply->elements = lua_objlen(lua, -1);
	reply->element = calloc(reply->elements + 1, sizeof(*reply->element));
	for (u32 i = 0; i < reply->elements; i++) {
		reply->element[i] = calloc(1, sizeof(redisReply));
		reply->element[i]->type = REDIS_REPLY_INTEGER;
		lua_rawgeti(lua, -1, i + 1);
		reply->element[i]->integer = (long long)lua_tonumber(lua, -1);
		lua_pop(lua, 1);
	}
	lua_pop(lua, 1);
	return reply;
}

static void mini_reply_free(redisReply *reply)
{
	for (u32 i = 0; i < reply->elements; i++)
		free(reply->element[i]);
	free(reply->element);
	free(reply);
}

#endif
