// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * redis_greet.c - the first commands of a connection, sent at once: AUTH, SELECT, CLIENT SETNAME,
 * ROLE, PING, as needed. The connection gets commands after the reply to PING, the last: a server
 * that is loading its data, or has another password, is detected before a caller's command fails.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/redis/redis_private.h"

static void refuse(struct redis_conn *conn, const redisReply *reply)
{
	enum redis_error_class error_class = redis_error_class_of(reply->str);

	if (error_class != REDIS_ERROR_NONE)
		redis_server_report(redis_conn_server(conn), error_class, reply->str);
	redis_conn_end(conn, reply->str);
}

static void on_auth(void *arg, enum redis_outcome outcome, const redisReply *reply)
{
	struct redis_conn *conn = arg;

	/* A sentinel may have no password although its masters have one. */
	if (outcome == REPLY_ERROR && !redis_conn_server(conn)->sentinel) {
		redis_server_report(redis_conn_server(conn), REDIS_ERROR_PASSWORD, reply->str);
		redis_conn_end(conn, reply->str);
	}
}

static void on_select(void *arg, enum redis_outcome outcome, const redisReply *reply)
{
	if (outcome == REPLY_ERROR)
		refuse(arg, reply);
}

static void on_role(void *arg, enum redis_outcome outcome, const redisReply *reply)
{
	struct redis_conn *conn = arg;
	const redisReply *role;

	/* If ROLE is not permitted, a READONLY error will show a replica. */
	if (outcome != REPLY_OK)
		return;
	role = reply->type == REDIS_REPLY_ARRAY && reply->elements ? reply->element[0] : NULL;
	if (role && role->type == REDIS_REPLY_STRING && !strcmp(role->str, "master"))
		return;
	redis_server_report(redis_conn_server(conn), REDIS_ERROR_READONLY, NULL);
	redis_conn_end(conn, "not a master");
}

static void on_ping(void *arg, enum redis_outcome outcome, const redisReply *reply)
{
	struct redis_conn *conn = arg;
	enum redis_error_class error_class;

	if (outcome == REPLY_ERROR) {
		error_class = redis_error_class_of(reply->str);
		/* A server that refuses PING is available. */
		if (error_class != REDIS_ERROR_PERMISSION && error_class != REDIS_ERROR_NONE) {
			refuse(conn, reply);
			return;
		}
	}
	if (outcome == REPLY_OK || outcome == REPLY_ERROR)
		redis_conn_greeted(conn);
}

static int say(struct redis_conn *conn, int argc, const char *const *argv,
	       void (*done)(void *arg, enum redis_outcome outcome, const redisReply *reply))
{
	return redis_conn_report(conn, argc, argv,
				 (struct redis_handler){ .done = done, .arg = conn });
}

void redis_greet(struct redis_conn *conn)
{
	struct redis_server *server = redis_conn_server(conn);
	struct redis *redis = server->redis;
	const char *user = redis->def->user;
	char database[16];
	int r = 0;

	/* The password may have changed; the old one is kept if the file cannot be read. */
	redis_password_read(redis, NULL);
	snprintf(database, sizeof(database), "%u", server->database);
	/* A user without a password still authenticates: one with `nopass` accepts any password. */
	if (user)
		r = say(conn, 3,
			(const char *const[]){ "AUTH", user,
					       redis->password ? redis->password : "" },
			on_auth);
	else if (redis->password)
		r = say(conn, 2, (const char *const[]){ "AUTH", redis->password }, on_auth);
	if (!r && server->database)
		r = say(conn, 2, (const char *const[]){ "SELECT", database }, on_select);
	if (!r && *redis->name && !server->sentinel)
		r = say(conn, 3, (const char *const[]){ "CLIENT", "SETNAME", redis->name }, NULL);
	if (!r && server->role_requested)
		r = say(conn, 1, (const char *const[]){ "ROLE" }, on_role);
	if (!r)
		r = say(conn, 1, (const char *const[]){ "PING" }, on_ping);
	if (r < 0)
		redis_conn_end(conn, "out of memory");
}
