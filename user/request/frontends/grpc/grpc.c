// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * grpc.c - gRPC for Envoy and other clients of its rate limit protocol: connections.
 *
 * HTTP/2 is nghttp2's, on the worker's loop. There is no gRPC library, since a unary call needs
 * only a five-byte prefix and two trailers of gRPC. nghttp2 directs reading and writing; a
 * response is written in one call if the socket accepts it, else (and with TLS) through the
 * bufferevent.
 *
 * Bounded (grpc_private.h): the open streams, requests without a response and unread responses of
 * a connection, and the time for each; a client that does not read is not read from. One timer per
 * worker checks all connections each second.
 *
 * Draining: first a GOAWAY without a last stream, so that no request in flight is lost; shortly
 * after it a GOAWAY with one; the connection ends after its last stream.
 */
#include <errno.h>
#include <event2/buffer.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "request/frontends/grpc/grpc.h"
#include "request/frontends/grpc/grpc_private.h"

#define GRPC_TICK_MS 1000
#define GRPC_DRAIN_TICK_MS 50 /* between the two GOAWAYs: about a round trip */

static u64 grpc_now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
	return (u64)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void conn_free(struct grpc_conn *conn)
{
	struct worker *worker = conn->of->worker;
	struct grpc_stream *stream;

	while ((stream = TAILQ_FIRST(&conn->streams)))
		grpc_stream_free(stream);
	LIST_REMOVE(conn, link);
	nghttp2_session_del(conn->session);
	if (conn->readable)
		event_free(conn->readable);
	worker_connection_end(worker, &conn->peer);
	bufferevent_free(conn->bev);
	free(conn);
}

/* ------------------------------------------------------------------ bytes out */

static size_t backlog(const struct grpc_conn *conn)
{
	return evbuffer_get_length(bufferevent_get_output(conn->bev));
}

static void send_bytes(struct grpc_conn *conn, const u8 *data, size_t len)
{
	ssize_t sent = 0;

	if (!conn->peer.tls && !backlog(conn)) {
		sent = send(conn->fd, data, len, MSG_NOSIGNAL | MSG_DONTWAIT);
		if (sent < 0 && errno != EAGAIN && errno != EINTR)
			conn->dead = true;
		if (sent < 0)
			sent = 0;
	}
	if (!conn->dead && (size_t)sent < len &&
	    bufferevent_write(conn->bev, data + sent, len - sent) < 0)
		conn->dead = true;
}

/* Writes all pending frames of nghttp2, with as few writes as there are full buffers. */
static void send_frames(struct grpc_conn *conn)
{
	static __thread u8 buffer[32 * 1024]; /* the responses of a read's requests */
	size_t used = 0;

	while (!conn->dead && backlog(conn) < GRPC_BACKLOG_MAX) {
		const u8 *data;
		ssize_t len = nghttp2_session_mem_send(conn->session, &data);

		if (len < 0)
			conn->dead = true;
		if (len <= 0)
			break;
		if (used + len > sizeof(buffer)) {
			send_bytes(conn, buffer, used);
			used = 0;
		}
		if ((size_t)len > sizeof(buffer)) {
			send_bytes(conn, data, len);
		} else {
			memcpy(buffer + used, data, len);
			used += len;
		}
	}
	if (used && !conn->dead)
		send_bytes(conn, buffer, used);
}

/* A connection with health watches only is idle, since they need no right. */
static void place_set(struct grpc_conn *conn)
{
	bool pending = backlog(conn) || conn->stream_count > conn->watching_count;

	connection_set(conn->peer.connection, conn->asking_count ? CONNECTION_BUSY
					      : pending		 ? CONNECTION_PENDING
								 : CONNECTION_IDLE);
}

/* Reads from the client, or stops. */
static void listen_to(struct grpc_conn *conn, bool on)
{
	if (on == conn->reading)
		return;
	conn->reading = on;
	connection_read(conn->readable, conn->bev, on);
}

void grpc_conn_settle(struct grpc_conn *conn)
{
	if (conn->busy)
		return;
	if (!conn->dead && !conn->closing) {
		conn->busy = true;
		send_frames(conn);
		conn->busy = false;
	}
	if (!conn->closing && !nghttp2_session_want_read(conn->session) &&
	    !nghttp2_session_want_write(conn->session))
		conn->closing = true;
	if (conn->drained && !conn->stream_count)
		conn->closing = true;
	if (conn->dead || (conn->closing && !backlog(conn))) {
		conn_free(conn);
		return;
	}
	place_set(conn);
	if (!backlog(conn)) {
		conn->stuck_ms = 0;
	} else if (!conn->stuck_ms) {
		conn->stuck_ms = conn->of->now_ms;
	}
	listen_to(conn, !conn->closing && backlog(conn) < GRPC_BACKLOG_MAX);
}

/* ------------------------------------------------------------------ bytes in */

/* Responds with HTTP/1.1 to a client of another protocol. */
static void say_what_this_is(struct grpc_conn *conn)
{
	static const char text[] = "HTTP/1.1 400 Bad Request\r\n"
				   "Content-Type: text/plain\r\n"
				   "Connection: close\r\n\r\n"
				   "This listener is for gRPC (HTTP/2 with prior knowledge).\n";

	send_bytes(conn, (const u8 *)text, sizeof(text) - 1);
	conn->closing = true;
}

static void take_input(struct grpc_conn *conn, const u8 *data, size_t size)
{
	conn->of->now_ms = grpc_now_ms();
	conn->busy = true;
	while (size && !conn->dead && !conn->closing) {
		ssize_t len = nghttp2_session_mem_recv(conn->session, data, size);

		if (len == NGHTTP2_ERR_BAD_CLIENT_MAGIC) {
			say_what_this_is(conn);
		} else if (len < 0) {
			conn->dead = true;
		} else {
			data += len;
			size -= len;
		}
	}
	conn->busy = false;
}

static void on_decrypted(struct bufferevent *bev, void *arg)
{
	struct grpc_conn *conn = arg;
	struct evbuffer *in = bufferevent_get_input(bev);
	struct evbuffer_iovec piece;

	while (evbuffer_peek(in, -1, NULL, &piece, 1) > 0) {
		take_input(conn, piece.iov_base, piece.iov_len);
		evbuffer_drain(in, piece.iov_len);
	}
	grpc_conn_settle(conn);
}

/*
 * A bufferevent queries the number of readable bytes before each read, and reads 4 KiB at once: the
 * requests of forty streams. nghttp2 copies what it keeps, so a read goes into the worker's memory.
 */
static void on_readable(evutil_socket_t fd, short what, void *arg)
{
	struct grpc_conn *conn = arg;
	ssize_t n = recv(fd, conn->of->received, sizeof(conn->of->received), MSG_DONTWAIT);

	if (n > 0)
		take_input(conn, conn->of->received, n);
	else if (!n || (errno != EAGAIN && errno != EINTR))
		conn->dead = true;
	grpc_conn_settle(conn);
}

static void on_written(struct bufferevent *bev, void *arg)
{
	struct grpc_conn *conn = arg;

	/* libevent calls this also if no output was pending. */
	if (!conn->stuck_ms)
		return;
	conn->stuck_ms = 0;
	grpc_conn_settle(conn);
}

static void on_end(struct bufferevent *bev, short what, void *arg)
{
	struct grpc_conn *conn = arg;

	if (!(what & (BEV_EVENT_EOF | BEV_EVENT_ERROR | BEV_EVENT_TIMEOUT)))
		return;
	conn->dead = true;
	grpc_conn_settle(conn);
}

/* ------------------------------------------------------------------ times */

/* False if the connection has to end. */
static bool conn_in_time(struct grpc_conn *conn, u64 now_ms)
{
	struct grpc_stream *stream, *next;

	if (!conn->greeted && now_ms - conn->since_ms > GRPC_PREFACE_MS)
		return false;
	if (conn->stuck_ms && now_ms - conn->stuck_ms > GRPC_WRITE_MS)
		return false;
	for (stream = TAILQ_FIRST(&conn->streams); stream; stream = next) {
		next = TAILQ_NEXT(stream, link);
		if (!stream->whole && now_ms - stream->since_ms > GRPC_REQUEST_MS)
			nghttp2_submit_rst_stream(conn->session, NGHTTP2_FLAG_NONE, stream->id,
						  NGHTTP2_CANCEL);
	}
	if (!conn->stream_count && !conn->drain_ms && now_ms - conn->since_ms > GRPC_IDLE_MS)
		nghttp2_session_terminate_session(conn->session, NGHTTP2_NO_ERROR);
	return true;
}

static void conn_drain(struct grpc_conn *conn, u64 now_ms)
{
	if (!conn->drain_ms) {
		conn->drain_ms = now_ms;
		nghttp2_submit_shutdown_notice(conn->session);
		grpc_health_drain(conn);
	} else if (!conn->drained) {
		conn->drained = true;
		nghttp2_submit_goaway(conn->session, NGHTTP2_FLAG_NONE,
				      nghttp2_session_get_last_proc_stream_id(conn->session),
				      NGHTTP2_NO_ERROR, NULL, 0);
	}
}

static void on_tick(evutil_socket_t fd, short what, void *arg)
{
	struct grpc_worker *of = arg;
	struct grpc_conn *conn, *next;

	of->now_ms = grpc_now_ms();
	for (conn = LIST_FIRST(&of->conns); conn; conn = next) {
		next = LIST_NEXT(conn, link);
		if (!conn_in_time(conn, of->now_ms))
			conn->dead = true;
		else if (of->draining)
			conn_drain(conn, of->now_ms);
		grpc_conn_settle(conn);
	}
	if (LIST_EMPTY(&of->conns) && !of->draining)
		event_del(of->tick);
}

static void tick_each(struct grpc_worker *of, u64 ms)
{
	struct timeval each = { .tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000 };

	event_add(of->tick, &each);
}

/* ------------------------------------------------------------------ the frontend */

static bool open_input(struct grpc_conn *conn, struct bufferevent *bev, bool tls)
{
	if (tls)
		return true;
	/* A bufferevent reads unless disabled. */
	bufferevent_disable(bev, EV_READ);
	conn->readable = event_new(conn->of->worker->base, bufferevent_getfd(bev),
				   EV_READ | EV_PERSIST, on_readable, conn);
	return conn->readable;
}

static void grpc_accept(struct worker *worker, struct bufferevent *bev,
			const struct peer_info *peer)
{
	struct grpc_worker *of = worker->frontend[LISTEN_GRPC];
	struct grpc_conn *conn = calloc(1, sizeof(*conn));

	if (conn)
		conn->of = of;
	if (!conn || !open_input(conn, bev, peer->tls) || grpc_session_new(conn)) {
		if (conn && conn->readable)
			event_free(conn->readable);
		free(conn);
		worker_connection_end(worker, peer);
		bufferevent_free(bev);
		return;
	}
	of->now_ms = grpc_now_ms();
	/* The timer runs while there are connections. */
	if (!event_pending(of->tick, EV_TIMEOUT, NULL))
		tick_each(of, GRPC_TICK_MS);
	conn->bev = bev;
	conn->fd = bufferevent_getfd(bev);
	conn->peer = *peer;
	conn->since_ms = conn->frames_ms = of->now_ms;
	conn->frames = GRPC_IDLE_FRAMES;
	TAILQ_INIT(&conn->streams);
	LIST_INSERT_HEAD(&of->conns, conn, link);
	connection_set(conn->peer.connection, CONNECTION_IDLE);
	bufferevent_setcb(bev, on_decrypted, on_written, on_end, conn);
	bufferevent_setwatermark(bev, EV_WRITE, GRPC_BACKLOG_MAX / 4, 0);
	/* SETTINGS are sent after the client's preface, since it may use another protocol. */
	bufferevent_enable(bev, EV_WRITE);
	listen_to(conn, true);
}

static void grpc_finish(struct worker *worker)
{
	struct grpc_worker *of = worker->frontend[LISTEN_GRPC];

	of->draining = true;
	on_tick(-1, 0, of);
	tick_each(of, GRPC_DRAIN_TICK_MS);
}

static void grpc_stop(struct worker *worker)
{
	struct grpc_worker *of = worker->frontend[LISTEN_GRPC];
	struct grpc_stream *stream;

	if (!of)
		return;
	while (!LIST_EMPTY(&of->conns))
		conn_free(LIST_FIRST(&of->conns));
	while ((stream = of->unused)) {
		of->unused = TAILQ_NEXT(stream, link);
		free(stream);
	}
	if (of->tick)
		event_free(of->tick);
	grpc_memory_end(&of->memory);
	nghttp2_session_callbacks_del(of->callbacks);
	nghttp2_option_del(of->option);
	free(of);
	worker->frontend[LISTEN_GRPC] = NULL;
}

static int grpc_start(struct worker *worker)
{
	struct grpc_worker *of = calloc(1, sizeof(*of));

	if (!of)
		return -ENOMEM;
	worker->frontend[LISTEN_GRPC] = of;
	of->worker = worker;
	LIST_INIT(&of->conns);
	of->tick = event_new(worker->base, -1, EV_PERSIST, on_tick, of);
	if (!of->tick || grpc_session_prepare(of)) {
		grpc_stop(worker);
		return -ENOMEM;
	}
	return 0;
}

const struct frontend frontend_grpc = {
	.kind = LISTEN_GRPC,
	.alpn = "\x02h2",
	.name = "grpc",
	.accept = grpc_accept,
	.finish = grpc_finish,
	.start = grpc_start,
	.stop = grpc_stop,
};
