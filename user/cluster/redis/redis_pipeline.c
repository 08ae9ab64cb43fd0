// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * redis_pipeline.c - commands that a connection adds to the pipeline: SCRIPT LOAD for scripts that
 * the server does not have, and WAIT.
 *
 * Durable commands (redis.wait): one WAIT follows the commands written in one turn of the loop;
 * their replies are held until the reply to WAIT.
 */
#include <event2/event.h>
#include <string.h>

#include "cluster/redis/redis_private.h"

static void on_loaded(void *arg, enum redis_outcome outcome, const redisReply *reply)
{
	struct redis_conn *conn = arg;

	if (outcome == REPLY_ERROR)
		redis_server_report(redis_conn_server(conn), redis_error_class_of(reply->str),
				    reply->str);
}

/* Loads the script, unless it was loaded after this command, and sends the command again. */
bool redis_conn_load_script(struct redis_conn *conn, struct redis_pending *pending)
{
	const char *const load[] = { "SCRIPT", "LOAD", pending->script->text };
	size_t i = 0, count = sizeof(conn->script) / sizeof(conn->script[0]);

	if (pending->late || pending->tries + 1 >= REDIS_TRIES_MAX)
		return false;
	while (i < count - 1 && conn->script[i] && conn->script[i] != pending->script)
		i++;
	if (conn->script[i] != pending->script || conn->loaded[i] < pending->number) {
		struct redis_handler handler = { .done = on_loaded, .arg = conn };

		if (redis_conn_report(conn, 3, load, handler) < 0)
			return false;
		conn->script[i] = pending->script;
		conn->loaded[i] = conn->numbers;
	}
	redis_queue_remove(pending);
	pending->tries++;
	redis_conn_write(conn, pending);
	return true;
}

/* Applies to all held commands, whose replies came before that to WAIT. */
static void on_waited(void *arg, enum redis_outcome outcome, const redisReply *reply)
{
	struct redis_conn *conn = arg;
	struct redis_server *server = redis_conn_server(conn);
	struct redis_queue held = TAILQ_HEAD_INITIALIZER(held);
	struct redis_pending *pending;
	char error_text[80];
	redisReply few = { .type = REDIS_REPLY_ERROR, .str = error_text };

	if (outcome == REPLY_DOWN)
		return;
	if (outcome == REPLY_ERROR) {
		few = *reply;
		redis_server_report(server, redis_error_class_of(reply->str), reply->str);
	} else if (reply->type != REDIS_REPLY_INTEGER ||
		   reply->integer < (long long)server->redis->def->wait) {
		few.len = (size_t)snprintf(error_text, sizeof(error_text),
					   "NOREPLICAS %lld of %u have it",
					   reply->type == REDIS_REPLY_INTEGER ? reply->integer : 0,
					   server->redis->def->wait);
		redis_server_report(server, REDIS_ERROR_REPLICAS, error_text);
		outcome = REPLY_ERROR;
	}
	redis_queue_move(&held, &conn->held);
	while ((pending = TAILQ_FIRST(&held)))
		redis_finish(pending, outcome, outcome == REPLY_OK ? pending->reply : &few);
}

static void on_flush(evutil_socket_t fd, short what, void *arg)
{
	struct redis_conn *conn = arg;
	const struct redis_handler handler = { .done = on_waited, .arg = conn };
	/* Three quarters, so that its reply comes before the deadline and not just after it. */
	u64 ms = conn->durable_ns / 1000000 * 3 / 4;
	char replicas[16], timeout[16];
	const char *const wait[] = { "WAIT", replicas, timeout };

	conn->durable_ns = 0;
	if (conn->state != CONN_READY)
		return;
	snprintf(replicas, sizeof(replicas), "%u", redis_conn_server(conn)->redis->def->wait);
	snprintf(timeout, sizeof(timeout), "%u", ms < 1 ? 1 : ms > 500 ? 500 : (u32)ms);
	if (redis_conn_report(conn, 3, wait, handler) < 0)
		redis_conn_fail_soon(conn, "out of memory");
}

void redis_conn_request_wait(struct redis_conn *conn, const struct redis_pending *pending)
{
	if (!conn->flush)
		conn->flush =
			event_new(redis_conn_server(conn)->redis->base, -1, 0, on_flush, conn);
	if (!conn->flush) {
		redis_conn_fail_soon(conn, "out of memory");
		return;
	}
	if (conn->durable_ns < pending->deadline_ns)
		conn->durable_ns = pending->deadline_ns;
	event_active(conn->flush, 0, 0);
}
