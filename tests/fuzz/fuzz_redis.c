// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Any bytes as what Redis says, to a client that has a few commands under way: plain ones, scripts,
 * durable ones; one server, sentinels, a Redis Cluster, a ring. The first byte says which, in what
 * pieces the bytes come, and whether the greeting is answered as it should be before.
 *
 * Whatever comes, each command is answered once, and nothing is left when the client is gone.
 */
#include <assert.h>
#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/listener.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "cluster/redis/redis_private.h"
#include "request/engine/observe.h"

#define COMMANDS 6
#define TURNS 64

static struct {
	struct event_base *base;
	struct sockaddr_un addr;
	struct bufferevent *conn[8];
	u32 conns;
	const uint8_t *data;
	size_t size, step;
	bool greet;
} server;

/* What a reply names is asked for nowhere, and connected to nowhere. */
int redis_lookup_start(struct event_base *base, const char *host, u16 port,
		       void (*done)(void *arg, const struct addrinfo *list, const char *error),
		       void *arg, struct redis_lookup **ret)
{
	return -ENOMEM;
}

void redis_lookup_cancel(struct redis_lookup *lookup)
{
}

int connect(int fd, const struct sockaddr *addr, socklen_t len)
{
	if (addr->sa_family == AF_UNIX)
		return (int)syscall(SYS_connect, fd, addr, len);
	errno = ECONNREFUSED;
	return -1;
}

static void on_event(struct bufferevent *bev, short what, void *arg)
{
	bufferevent_disable(bev, EV_READ | EV_WRITE);
}

/* What is still to be said is said on the latest connection. */
static void on_accept(struct evconnlistener *listener, evutil_socket_t fd, struct sockaddr *addr,
		      int len, void *arg)
{
	struct bufferevent *bev;

	if (server.conns == sizeof(server.conn) / sizeof(server.conn[0])) {
		close(fd);
		return;
	}
	bev = bufferevent_socket_new(server.base, fd, BEV_OPT_CLOSE_ON_FREE);
	server.conn[server.conns++] = bev;
	bufferevent_setcb(bev, NULL, NULL, on_event, NULL);
	bufferevent_enable(bev, EV_READ | EV_WRITE);
	if (server.greet)
		bufferevent_write(bev, "+PONG\r\n", 7);
}

static void on_done(void *arg, enum redis_outcome outcome, const redisReply *reply)
{
	u32 *count = arg;

	assert((outcome == REPLY_OK || outcome == REPLY_ERROR) == (reply != NULL));
	++*count;
}

static void on_late(void *arg, enum redis_outcome outcome, const redisReply *reply)
{
	assert(outcome != REPLY_LATE);
}

static void remove_socket(void)
{
	unlink(server.addr.sun_path);
}

static void begin(void)
{
	server.base = event_base_new();
	server.addr.sun_family = AF_UNIX;
	snprintf(server.addr.sun_path, sizeof(server.addr.sun_path), "/tmp/sluice-fuzz-redis-%d",
		 (int)getpid());
	remove_socket();
	atexit(remove_socket);
	if (!evconnlistener_new_bind(server.base, on_accept, NULL, LEV_OPT_CLOSE_ON_FREE, 16,
				     (struct sockaddr *)&server.addr, sizeof(server.addr)))
		abort();
}

static void say(void)
{
	size_t len = server.step && server.step < server.size ? server.step : server.size;

	if (!server.conns || !len)
		return;
	bufferevent_write(server.conn[server.conns - 1], server.data, len);
	server.data += len;
	server.size -= len;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const argv[] = { "GET", "{x}y" };
	static struct redis_script script;
	struct redis_url url = { .text = "unix",
				 .host = server.addr.sun_path,
				 .unix_socket = true };
	struct redis_def def = {
		.url = &url, .url_count = 1, .master = "mymaster", .prefix = "sluice:", .wait = 1
	};
	u32 answered[COMMANDS] = { 0 };
	struct redis *redis;
	struct sl_err err;

	if (size < 2 || size > 1 << 16)
		return 0;
	if (!server.base)
		begin();
	redis_script_init(&script, "return 1");
	def.mode = data[0] & 3;
	server.greet = data[0] & 4;
	server.step = data[0] >> 3;
	server.data = data + 1;
	server.size = size - 1;
	if (redis_new(server.base, &def, &redis, &err) < 0)
		abort();
	for (u32 i = 0; i < COMMANDS; i++) {
		const struct redis_command command = { .slot = redis_slot_of(redis, "{x}y", 4),
						       .argc = 2,
						       .argv = argv,
						       .script = i % 3 == 1 ? &script : NULL,
						       .durable = i % 3 == 2,
						       .deadline_ns = i == 5 ? 1 : 0 };
		const struct redis_handler handler = { .done = on_done,
						       .late = on_late,
						       .arg = &answered[i] };

		if (redis_send(redis, &command, handler) < 0)
			abort();
	}
	for (u32 turn = 0; turn < TURNS && (server.size || turn < 16); turn++) {
		event_base_loop(server.base, EVLOOP_NONBLOCK);
		if (turn > 2)
			say();
	}
	redis_free(redis);
	for (u32 i = 0; i < COMMANDS; i++)
		assert(answered[i] == 1);
	while (server.conns)
		bufferevent_free(server.conn[--server.conns]);
	return 0;
}
