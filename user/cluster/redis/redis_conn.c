// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * redis_conn.c - one connection to one server: connect, write, read, end.
 *
 * Replies come in the order of the commands, so a reply belongs to the head of `sent`. The
 * connection ends on a reply without a command, bytes that are not RESP, a reply larger than
 * redis_reader.c accepts, and a command without a reply for a second: later replies would be
 * matched wrongly, or be late as well.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent_ssl.h>
#include <event2/event_struct.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "cluster/redis/redis_private.h"
#include "lib/servers.h"

#define CONNECT_NS (2 * SL_NS_PER_SEC) /* resolved, connected, TLS, greeted */
#define STALL_NS SL_NS_PER_SEC
#define LIBEVENT_READ 4096 /* bytes */
#define READS 32	   /* in one turn, beyond that */
#define TEXT_MAX 4096	   /* bytes, without the contents of bulk strings */

struct redis_server *redis_conn_server(struct redis_conn *conn)
{
	return (struct redis_server *)((char *)conn - offsetof(struct redis_server, conn));
}

static struct redis *redis_of(struct redis_conn *conn)
{
	return redis_conn_server(conn)->redis;
}

static struct redis_timers *timers_of(struct redis_conn *conn)
{
	return &redis_of(conn)->timers;
}

/* ------------------------------------------------------------------ the end */

/* Frees its socket and reader; the caller ends the pending commands. */
static void take_down(struct redis_conn *conn, struct redis_queue *ret)
{
	conn->life++;
	conn->state = CONN_NONE;
	redis_timer_unset(timers_of(conn), &conn->timer);
	redis_lookup_cancel(conn->lookup);
	conn->lookup = NULL;
	if (conn->flush)
		event_del(conn->flush);
	if (conn->bev)
		bufferevent_free(conn->bev);
	conn->bev = NULL;
	if (conn->reader)
		redisReaderFree(conn->reader);
	conn->reader = NULL;
	memset(conn->script, 0, sizeof(conn->script));
	redis_queue_move(ret, &conn->held);
	redis_queue_move(ret, &conn->sent);
}

void redis_conn_close(struct redis_conn *conn)
{
	struct redis_queue pending = TAILQ_HEAD_INITIALIZER(pending);

	take_down(conn, &pending);
	if (conn->flush)
		event_free(conn->flush);
	conn->flush = NULL;
	redis_fail_all(&pending);
}

void redis_conn_end(struct redis_conn *conn, const char *why)
{
	struct redis_queue pending = TAILQ_HEAD_INITIALIZER(pending);

	if (conn->state == CONN_NONE)
		return;
	take_down(conn, &pending);
	redis_server_lost(redis_conn_server(conn), why);
	redis_fail_all(&pending);
}

/* When the connection counts as stalled if this command has no reply. */
static u64 stalls_at(const struct redis_pending *pending)
{
	return pending->sent_ns + STALL_NS + (pending->unhurried ? pending->deadline_ns : 0);
}

static void on_timer(struct redis_timer *timer)
{
	struct redis_conn *conn = (void *)((char *)timer - offsetof(struct redis_conn, timer));
	struct redis_pending *oldest = TAILQ_FIRST(&conn->sent);

	if (conn->failed || conn->state != CONN_READY) {
		redis_conn_end(conn, conn->failed ? conn->failed : "not connected within 2 s");
		return;
	}
	if (!oldest)
		return;
	if (stalls_at(oldest) <= clock_mono_ns())
		redis_conn_end(conn, "no reply for 1 s");
	else
		redis_timer_set(timers_of(conn), timer, stalls_at(oldest));
}

void redis_conn_fail_soon(struct redis_conn *conn, const char *why)
{
	conn->failed = why;
	redis_timer_set(timers_of(conn), &conn->timer, clock_mono_ns());
}

/* ------------------------------------------------------------------ writing */

void redis_conn_write(struct redis_conn *conn, struct redis_pending *pending)
{
	/* Its caller already got REPLY_LATE, so the command is not sent. */
	if (pending->late) {
		redis_fail_later(pending);
		return;
	}
	pending->server = redis_conn_server(conn);
	pending->sent = true;
	pending->sent_ns = clock_mono_ns();
	pending->number = ++conn->numbers;
	redis_queue_add(&conn->sent, pending);
	if (bufferevent_write(conn->bev, pending->text, pending->len) < 0) {
		redis_conn_fail_soon(conn, "out of memory");
		return;
	}
	if (pending->durable)
		redis_conn_request_wait(conn, pending);
	if (conn->state == CONN_READY && !conn->timer.timer.position)
		redis_timer_set(timers_of(conn), &conn->timer, stalls_at(pending));
}

/* ------------------------------------------------------------------ reading */

/* Applies an error to the server's state; true: the connection must be closed. */
static bool apply_error(struct redis_conn *conn, const struct redis_pending *pending,
			const char *error_text)
{
	struct redis_server *server = redis_conn_server(conn);
	enum redis_error_class error_class = redis_error_class_of(error_text);

	if (error_class == REDIS_ERROR_NONE) {
		if (!pending->late)
			redis_server_good(server);
		return false;
	}
	redis_server_report(server, error_class, error_text);
	redis_server_bad(server, pending->deadline_ns);
	/* A new connection resolves the address, checks the role and authenticates again. */
	return error_class == REDIS_ERROR_READONLY || error_class == REDIS_ERROR_MASTERDOWN ||
	       (error_class == REDIS_ERROR_PASSWORD && !strncmp(error_text, "NOAUTH", 6));
}

/* Whether the command is sent to another server, or again, instead of ending with this error. */
static bool send_elsewhere(struct redis_conn *conn, struct redis_pending *pending,
			   const char *error_text)
{
	static const char *const asking[] = { "ASKING" };
	struct redis *redis = redis_of(conn);
	struct redis_server *to = NULL;
	enum redis_verdict verdict = REDIS_GIVE;

	if (pending->script && !strncmp(error_text, "NOSCRIPT", 8))
		return redis_conn_load_script(conn, pending);
	if (redis->topology->error)
		verdict = redis->topology->error(redis, pending, error_text, &to);
	if (verdict == REDIS_GIVE || pending->late)
		return false;
	/* Retried until its deadline, because the migration of a slot may take long. */
	if (verdict == REDIS_AGAIN) {
		redis_queue_remove(pending);
		redis_send_again(pending);
		return true;
	}
	if (!to || ++pending->tries >= REDIS_TRIES_MAX)
		return false;
	redis_queue_remove(pending);
	redis_count(&redis->stats.redirects, 1);
	if (verdict == REDIS_ASKING)
		redis_query_server(to, 1, asking, (struct redis_handler){ 0 });
	redis_server_send(to, pending);
	return true;
}

/* Frees *reply unless it is kept. */
static void take_reply(struct redis_conn *conn, redisReply *reply)
{
	struct redis_pending *pending = TAILQ_FIRST(&conn->sent);
	bool error = reply->type == REDIS_REPLY_ERROR, end = false;
	u64 life = conn->life;

	if (pending->own) {
		redis_finish(pending, error ? REPLY_ERROR : REPLY_OK, reply);
		freeReplyObject(reply);
		return;
	}
	if (error && send_elsewhere(conn, pending, reply->str)) {
		freeReplyObject(reply);
		return;
	}
	redis_queue_remove(pending);
	if (!error && pending->durable) {
		pending->reply = reply;
		redis_queue_add(&conn->held, pending);
		return;
	}
	if (error)
		end = apply_error(conn, pending, reply->str);
	else if (!pending->late)
		redis_server_good(redis_conn_server(conn));
	redis_finish(pending, error ? REPLY_ERROR : REPLY_OK, reply);
	freeReplyObject(reply);
	if (end && conn->life == life)
		redis_conn_end(conn, "write failed");
}

/*
 * Whenever more of a line arrives, hiredis searches for its end from the beginning: 16 MiB in small
 * pieces would occupy this thread for seconds.
 */
static bool is_endless(const redisReader *reader)
{
	size_t left = reader->len - reader->pos;

	return left > TEXT_MAX && !memchr(reader->buf + reader->pos, '\n', TEXT_MAX);
}

static void read_replies(struct redis_conn *conn)
{
	u64 life = conn->life;
	redisReply *reply;

	while (conn->life == life) {
		reply = NULL;
		if (redisReaderGetReply(conn->reader, (void **)&reply) != REDIS_OK) {
			redis_conn_end(conn, "protocol error: not a RESP reply");
			return;
		}
		if (!reply)
			break;
		conn->object_count = 0;
		conn->bytes = conn->reader->len - conn->reader->pos;
		if (!TAILQ_FIRST(&conn->sent)) {
			freeReplyObject(reply);
			redis_conn_end(conn, "protocol error: a reply without a command");
			return;
		}
		take_reply(conn, reply);
	}
	if (conn->life != life)
		return;
	if (conn->bytes > REDIS_REPLY_MAX)
		redis_conn_end(conn, "protocol error: a reply larger than 16 MiB");
	else if (is_endless(conn->reader))
		redis_conn_end(conn, "protocol error: a line longer than 4096 bytes");
}

static void take_bytes(struct redis_conn *conn, const char *bytes, size_t len)
{
	if (redisReaderFeed(conn->reader, bytes, len) != REDIS_OK) {
		redis_conn_end(conn, "out of memory");
		return;
	}
	conn->bytes += len;
	read_replies(conn);
}

/*
 * libevent reads 4096 bytes in a turn of the loop. The rest is read at once, before timers due in
 * the same turn: if this process was stopped past a deadline, replies that came in time are not
 * late. (libevent detects the end of the connection, and handles all of TLS.)
 */
static void read_on(struct redis_conn *conn)
{
	int fd = bufferevent_getfd(conn->bev);
	u64 life = conn->life;
	char bytes[32768];

	for (u32 i = 0; i < READS && conn->life == life; i++) {
		ssize_t len = recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT);

		if (len <= 0)
			return;
		take_bytes(conn, bytes, (size_t)len);
	}
}

static void on_read(struct bufferevent *bev, void *arg)
{
	struct redis_conn *conn = arg;
	struct evbuffer *input = bufferevent_get_input(bev);
	bool more = evbuffer_get_length(input) >= LIBEVENT_READ && !redis_conn_server(conn)->tls;
	u64 life = conn->life;

	while (conn->life == life && evbuffer_get_length(input)) {
		char bytes[LIBEVENT_READ];
		int len = evbuffer_remove(input, bytes, sizeof(bytes));

		if (len <= 0)
			break;
		take_bytes(conn, bytes, (size_t)len);
	}
	if (more && conn->life == life)
		read_on(conn);
}

static void note_server(int fd)
{
	struct sockaddr_storage addr;
	socklen_t size = sizeof(addr);

	if (!getpeername(fd, (struct sockaddr *)&addr, &size))
		servers_note((struct sockaddr *)&addr);
}

static void on_event(struct bufferevent *bev, short what, void *arg)
{
	struct redis_conn *conn = arg;
	char why[200] = "";
	int error = EVUTIL_SOCKET_ERROR(), fd = bufferevent_getfd(bev), on = 1, idle = 30;

	if (what & BEV_EVENT_CONNECTED) {
		if (!redis_conn_server(conn)->unix_socket) {
			note_server(fd);
			setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
			setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
			setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof(idle));
		}
		conn->state = CONN_GREETING;
		redis_count(&redis_of(conn)->stats.connects, 1);
		redis_greet(conn);
		return;
	}
	if (redis_conn_server(conn)->tls)
		redis_tls_why(bufferevent_openssl_get_ssl(bev), bufferevent_get_openssl_error(bev),
			      why, sizeof(why));
	if (!*why)
		snprintf(why, sizeof(why), "%s",
			 what & BEV_EVENT_EOF ? "closed by the server"
			 : error	      ? strerror(error)
					      : "broken connection");
	redis_conn_end(conn, why);
}

/* ------------------------------------------------------------------ connecting */

static void connect_to(struct redis_conn *conn, const struct sockaddr *addr, socklen_t len)
{
	struct redis_server *server = redis_conn_server(conn);
	SSL *ssl = server->tls ? redis_tls_new(server->redis, server->host) : NULL;

	if (server->tls && ssl)
		conn->bev = bufferevent_openssl_socket_new(server->redis->base, -1, ssl,
							   BUFFEREVENT_SSL_CONNECTING,
							   BEV_OPT_CLOSE_ON_FREE);
	else if (!server->tls)
		conn->bev = bufferevent_socket_new(server->redis->base, -1, BEV_OPT_CLOSE_ON_FREE);
	if (!conn->bev)
		SSL_free(ssl);
	conn->reader = redis_reader_new(conn);
	if (!conn->bev || !conn->reader) {
		redis_conn_fail_soon(conn, "out of memory");
		return;
	}
	if (ssl)
		bufferevent_openssl_set_allow_dirty_shutdown(conn->bev, 1);
	conn->state = CONN_CONNECTING;
	bufferevent_setcb(conn->bev, on_read, NULL, on_event, conn);
	bufferevent_enable(conn->bev, EV_READ | EV_WRITE);
	if (bufferevent_socket_connect(conn->bev, addr, (int)len) < 0)
		redis_conn_fail_soon(conn, strerrordesc_np(errno));
}

static void on_found(void *arg, const struct addrinfo *list, const char *error)
{
	struct redis_conn *conn = arg;
	const struct addrinfo *ai = list;
	u32 count = 0, wanted;

	conn->lookup = NULL;
	if (!list) {
		redis_conn_end(conn, error);
		return;
	}
	for (const struct addrinfo *each = list; each; each = each->ai_next)
		count++;
	/* Each attempt takes the next address. */
	wanted = conn->attempts++ % count;
	while (wanted--)
		ai = ai->ai_next;
	connect_to(conn, ai->ai_addr, ai->ai_addrlen);
}

static void connect_unix(struct redis_conn *conn, const char *path)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };

	if (strlen(path) >= sizeof(addr.sun_path)) {
		redis_conn_fail_soon(conn, "the socket's path is too long");
		return;
	}
	strcpy(addr.sun_path, path);
	connect_to(conn, (struct sockaddr *)&addr, sizeof(addr));
}

static void connect_inet(struct redis_conn *conn, const char *host, u16 port)
{
	struct sockaddr_in v4 = { .sin_family = AF_INET, .sin_port = htons(port) };
	struct sockaddr_in6 v6 = { .sin6_family = AF_INET6, .sin6_port = htons(port) };

	if (inet_pton(AF_INET, host, &v4.sin_addr) == 1)
		connect_to(conn, (struct sockaddr *)&v4, sizeof(v4));
	else if (inet_pton(AF_INET6, host, &v6.sin6_addr) == 1)
		connect_to(conn, (struct sockaddr *)&v6, sizeof(v6));
	else if (redis_lookup_start(redis_of(conn)->base, host, port, on_found, conn,
				    &conn->lookup) < 0)
		redis_conn_fail_soon(conn, "cannot start a thread for the name lookup");
}

void redis_conn_init(struct redis_conn *conn)
{
	TAILQ_INIT(&conn->sent);
	TAILQ_INIT(&conn->held);
	conn->timer.fire = on_timer;
}

void redis_conn_open(struct redis_conn *conn)
{
	struct redis_server *server = redis_conn_server(conn);

	conn->state = CONN_RESOLVING;
	conn->failed = NULL;
	conn->object_count = 0;
	conn->bytes = 0;
	conn->durable_ns = 0;
	redis_timer_set(timers_of(conn), &conn->timer, clock_mono_ns() + CONNECT_NS);
	if (server->unix_socket)
		connect_unix(conn, server->host);
	else
		connect_inet(conn, server->host, server->port);
}

void redis_conn_greeted(struct redis_conn *conn)
{
	conn->state = CONN_READY;
	redis_timer_unset(timers_of(conn), &conn->timer);
	redis_server_ready(redis_conn_server(conn));
}
