/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * redis_rig.h - for tests of the Redis client: servers in this process, on loopback and on the
 * client's own loop, with replies that the test states; and commands that record their replies.
 *
 *     struct fake *fake = fake_new(base);  fake->answer = ...;
 *     struct sent sent[3];  send_command(redis, &sent[0], 5 /ms/, "GET", "x");
 *     run_until(base, sent[0].count == 1);
 */
#ifndef SLUICE_TEST_REDIS_RIG_H
#define SLUICE_TEST_REDIS_RIG_H
#include <arpa/inet.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/listener.h>
#include <sys/queue.h>
#include <time.h>
#include <unistd.h>

#include "lib/test.h"
#include "cluster/redis/redis.h"

struct fake;
struct fake_conn {
	LIST_ENTRY(fake_conn) link;
	struct fake *fake;
	struct bufferevent *bev;
	redisReader *reader;
	bool named, asking;
};

struct fake {
	struct event_base *base;
	struct evconnlistener *listener;
	LIST_HEAD(, fake_conn) conns;
	u16 port;
	u32 accepted, commands, pings;
	bool mute; /* reads and sends nothing */
	/* true: the command is handled; false: the rig replies PONG to PING, OK to all else */
	bool (*response)(struct fake_conn *conn, const redisReply *command);
	void *arg;
};

static inline u64 now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (u64)now.tv_sec * 1000 + (u64)now.tv_nsec / 1000000;
}

/* Until it holds, 5 s at most. */
#define run_until(base, condition)                                                                 \
	do {                                                                                       \
		u64 give_up_ = now_ms() + 5000;                                                    \
		while (!(condition)) {                                                             \
			struct timeval ms_ = { .tv_usec = 1000 };                                  \
			if (now_ms() > give_up_)                                                   \
				fail_msg("%s:%d: never: %s", __FILE__, __LINE__, #condition);      \
			event_base_loopexit(base, &ms_);                                           \
			event_base_dispatch(base);                                                 \
		}                                                                                  \
	} while (0)

static inline void run_ms(struct event_base *base, u32 ms)
{
	u64 end = now_ms() + ms;

	while (now_ms() < end) {
		struct timeval tick = { .tv_usec = 1000 };

		event_base_loopexit(base, &tick);
		event_base_dispatch(base);
	}
}

/* ------------------------------------------------------------------ a server */

static inline void fake_say(struct fake_conn *conn, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	evbuffer_add_vprintf(bufferevent_get_output(conn->bev), format, ap);
	va_end(ap);
}

static inline void fake_conn_free(struct fake_conn *conn)
{
	LIST_REMOVE(conn, link);
	bufferevent_free(conn->bev);
	redisReaderFree(conn->reader);
	free(conn);
}

static inline bool command_is(const redisReply *command, const char *name)
{
	return command->elements && !strcasecmp(command->element[0]->str, name);
}

static inline void fake_take(struct fake_conn *conn, const redisReply *command)
{
	struct fake *fake = conn->fake;

	fake->commands++;
	if (command_is(command, "PING"))
		fake->pings++;
	if (fake->mute || (fake->response && fake->response(conn, command)))
		return;
	fake_say(conn, command_is(command, "PING") ? "+PONG\r\n" : "+OK\r\n");
}

static inline void fake_on_read(struct bufferevent *bev, void *arg)
{
	struct fake_conn *conn = arg;
	struct evbuffer *input = bufferevent_get_input(bev);
	size_t len = evbuffer_get_length(input);
	struct fake *fake = conn->fake;
	redisReply *command;

	redisReaderFeed(conn->reader, (char *)evbuffer_pullup(input, -1), len);
	evbuffer_drain(input, len);
	for (;;) {
		struct fake_conn *each;

		command = NULL;
		assert_int_equal(redisReaderGetReply(conn->reader, (void **)&command), REDIS_OK);
		if (!command)
			return;
		fake_take(conn, command);
		freeReplyObject(command);
		/* The handler may have closed the connection. */
		LIST_FOREACH(each, &fake->conns, link)
			if (each == conn)
				break;
		if (!each)
			return;
	}
}

static inline void fake_on_event(struct bufferevent *bev, short what, void *arg)
{
	fake_conn_free(arg);
}

static inline void fake_on_accept(struct evconnlistener *listener, evutil_socket_t fd,
				  struct sockaddr *addr, int len, void *arg)
{
	struct fake_conn *conn = calloc(1, sizeof(*conn));
	struct fake *fake = arg;

	fake->accepted++;
	conn->fake = fake;
	conn->reader = redisReaderCreate();
	conn->bev = bufferevent_socket_new(fake->base, fd, BEV_OPT_CLOSE_ON_FREE);
	LIST_INSERT_HEAD(&fake->conns, conn, link);
	bufferevent_setcb(conn->bev, fake_on_read, NULL, fake_on_event, conn);
	bufferevent_enable(conn->bev, EV_READ | EV_WRITE);
}

/* Listens (again) on its port; 0: any. */
static inline void fake_listen(struct fake *fake)
{
	struct sockaddr_in addr = { .sin_family = AF_INET,
				    .sin_port = htons(fake->port),
				    .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(addr);

	fake->listener = evconnlistener_new_bind(fake->base, fake_on_accept, fake,
						 LEV_OPT_CLOSE_ON_FREE | LEV_OPT_REUSEABLE, -1,
						 (struct sockaddr *)&addr, sizeof(addr));
	assert_non_null(fake->listener);
	getsockname(evconnlistener_get_fd(fake->listener), (struct sockaddr *)&addr, &len);
	fake->port = ntohs(addr.sin_port);
}

static inline struct fake *fake_new(struct event_base *base)
{
	struct fake *fake = calloc(1, sizeof(*fake));

	fake->base = base;
	LIST_INIT(&fake->conns);
	fake_listen(fake);
	return fake;
}

static inline void fake_hang_up(struct fake *fake)
{
	while (LIST_FIRST(&fake->conns))
		fake_conn_free(LIST_FIRST(&fake->conns));
}

/* Closes its connections and refuses new ones. */
static inline void fake_stop(struct fake *fake)
{
	fake_hang_up(fake);
	if (fake->listener)
		evconnlistener_free(fake->listener);
	fake->listener = NULL;
}

static inline void fake_free(struct fake *fake)
{
	fake_stop(fake);
	free(fake);
}

/* ------------------------------------------------------------------ a client */

struct rig {
	struct event_base *base;
	struct fake *fake;
	struct redis_url url;
	struct redis_def def;
	struct redis *redis;
};

static inline void rig_client(struct rig *rig)
{
	struct sl_err err = { 0 };

	if (redis_new(rig->base, &rig->def, &rig->redis, &err) < 0)
		fail_msg("%s", err.message);
}

/* One server and a client without a connection. */
static inline void rig_begin(struct rig *rig)
{
	memset(rig, 0, sizeof(*rig));
	rig->base = event_base_new();
	rig->fake = fake_new(rig->base);
	rig->url = (struct redis_url){ .text = "redis://127.0.0.1",
				       .host = "127.0.0.1",
				       .port = rig->fake->port };
	rig->def = (struct redis_def){
		.url = &rig->url, .url_count = 1, .prefix = "sluice:", .master = "mymaster"
	};
	rig_client(rig);
}

static inline void rig_end(struct rig *rig)
{
	redis_free(rig->redis);
	fake_free(rig->fake);
	event_base_free(rig->base);
}

/* The rig of the test that runs; what may be answered only when it ends is static there. */
static struct rig rig;

static inline int rig_set_up(void **state)
{
	rig_begin(&rig);
	return 0;
}

static inline int rig_tear_down(void **state)
{
	rig_end(&rig);
	return 0;
}

#define RIG_TEST(test) TEST_WITH(test, rig_set_up, rig_tear_down)

struct sent {
	u32 count, late_count; /* calls of done(), of late() */
	enum redis_outcome outcome, late;
	char text[128]; /* of a string, status or error */
	long long integer;
	u64 at_ms, took_ms;
};

static inline void sent_keep(struct sent *sent, const redisReply *reply)
{
	if (reply && reply->str)
		snprintf(sent->text, sizeof(sent->text), "%s", reply->str);
	if (reply)
		sent->integer = reply->integer;
}

static inline void sent_done(void *arg, enum redis_outcome outcome, const redisReply *reply)
{
	struct sent *sent = arg;

	sent->count++;
	sent->outcome = outcome;
	sent->took_ms = now_ms() - sent->at_ms;
	sent_keep(sent, reply);
	assert_true((reply != NULL) == (outcome == REPLY_OK || outcome == REPLY_ERROR));
}

static inline void sent_late(void *arg, enum redis_outcome outcome, const redisReply *reply)
{
	struct sent *sent = arg;

	assert_int_equal(sent->count, 1);
	assert_int_equal(sent->outcome, REPLY_LATE);
	sent->late_count++;
	sent->late = outcome;
	sent_keep(sent, reply);
}

/* `like`: script, slot, unhurried, durable. */
static inline int send_like(struct redis *redis, struct sent *sent, struct redis_command like,
			    u32 deadline_ms, int argc, const char *const *argv)
{
	const struct redis_handler handler = { .done = sent_done, .late = sent_late, .arg = sent };
	int r;

	*sent = (struct sent){ .at_ms = now_ms() };
	like.argc = argc;
	like.argv = argv;
	like.deadline_ns = deadline_ms * 1000000ULL;
	r = redis_send(redis, &like, handler);
	assert_int_equal(sent->count, 0);
	return r;
}

#define send_command(redis, sent, deadline_ms, ...)                                                \
	assert_int_equal(send_like(redis, sent, (struct redis_command){ 0 }, deadline_ms,          \
				   sizeof((const char *const[]){ __VA_ARGS__ }) / sizeof(char *),  \
				   (const char *const[]){ __VA_ARGS__ }),                          \
			 0)

/* One command, until its reply. */
static inline enum redis_outcome send_get(struct rig *rig, struct sent *sent, u32 deadline_ms)
{
	send_command(rig->redis, sent, deadline_ms, "GET", "x");
	run_until(rig->base, sent->count == 1);
	return sent->outcome;
}

#endif
