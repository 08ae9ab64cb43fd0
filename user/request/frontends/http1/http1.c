// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * http1.c - connections of HTTP/1.1; see http1.h and http1_private.h.
 *
 * A connection is in one state at a time, and each state has a list in the order of entry, so the
 * one timer of a worker finds expired connections at the heads of lists: no timer is set or moved
 * for a request. The table below bounds each state, however slowly the client sends or reads; a
 * request's time begins with its first byte and is not extended by more.
 *
 * A client that closes its side while its response is delayed counts as gone, and leaves the
 * queue. A client that half-closes after a complete request still gets an immediate response.
 */
#include <errno.h>
#include <event2/buffer.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "request/frontends/http1/http1_private.h"
#include "request/engine/report_ids.h"
#include "request/server/listen.h"

#define TICK_MS 250
#define INPUT_MAX (64 * 1024) /* read ahead of the request being served */
#define TURN_MAX 8	      /* requests of a connection before others have their turn */
#define LINGER_MS 1000
#define DRAIN_MS 500 /* if draining: for the rest of a request, or one on its way */
#define FINISH_MS 30 /* the same, when no connection is accepted any more */
#define FINISH_TICK_MS 10

static const u64 state_ms[CONN_STATE_COUNT] = {
	[CONN_IDLE] = 75000,	  [CONN_READING] = 10000,
	[CONN_ANSWERING] = ~0ULL, /* the handler's: bounded by the caller's wait */
	[CONN_WRITING] = 20000,	  [CONN_LINGERING] = LINGER_MS,
};

/* The connection state (for eviction) of each state here. */
static const enum connection_state delays_for[CONN_STATE_COUNT] = {
	[CONN_IDLE] = CONNECTION_IDLE,	    [CONN_READING] = CONNECTION_PENDING,
	[CONN_ANSWERING] = CONNECTION_BUSY, [CONN_WRITING] = CONNECTION_PENDING,
	[CONN_LINGERING] = CONNECTION_IDLE,
};

static void conn_serve(struct http1_conn *conn);
static void conn_free(struct http1_conn *conn);

static struct http1_worker *frontend_of(const struct worker *worker)
{
	return worker->frontend[LISTEN_HTTP];
}

/* ------------------------------------------------------------------ states and ends */

static void conn_enter(struct http1_conn *conn, enum conn_state state)
{
	TAILQ_REMOVE(&conn->of->list[conn->state], conn, link);
	conn->state = state;
	conn->since_ms = conn->of->now_ms;
	TAILQ_INSERT_TAIL(&conn->of->list[state], conn, link);
	connection_set(conn->peer.connection, delays_for[state]);
}

static size_t unread(const struct http1_conn *conn)
{
	return evbuffer_get_length(conn->in) + conn->fresh.len;
}

/*
 * Reads while there is room for more input. Not by the bufferevent's high watermark: above it
 * libevent calls back again and again until the bytes are read (2.1.12).
 */
static void conn_flow(struct http1_conn *conn)
{
	bool full = unread(conn) >= INPUT_MAX;

	if (full == conn->paused)
		return;
	conn->paused = full;
	connection_read(conn->readable, conn->bev, !full);
}

/* The end of a callback: what was received but not used is copied. */
static void keep_input(struct http1_conn *conn)
{
	if (conn->fresh.len && evbuffer_add(conn->in, conn->fresh.at, conn->fresh.len) < 0) {
		conn_free(conn);
		return;
	}
	conn->fresh.len = 0;
	conn_flow(conn);
}

/* After a poll: activated at once, one client's requests would keep the loop from polling. */
static void serve_later(struct http1_conn *conn)
{
	static const struct timeval at_once;
	struct http1_worker *of = conn->of;

	if (conn->has_turn)
		return;
	conn->has_turn = true;
	TAILQ_INSERT_TAIL(&of->turns, conn, turn);
	if (!of->turn_count++)
		event_add(of->turn, &at_once);
}

static void end_turn(struct http1_conn *conn)
{
	if (!conn->has_turn)
		return;
	conn->has_turn = false;
	TAILQ_REMOVE(&conn->of->turns, conn, turn);
	conn->of->turn_count--;
}

static void exchange_end(struct http1_conn *conn)
{
	struct exchange *exchange = conn->exchange;
	struct http1_request *request = &exchange->request;

	if (request->delayed)
		request_cancel(request->delayed);
	request->delayed = NULL;
	if (request->frontend_free)
		request->frontend_free(request->frontend);
	conn->exchange = NULL;
	exchange_free(conn->of, exchange);
}

static void conn_free(struct http1_conn *conn)
{
	struct worker *worker = conn->of->worker;

	if (conn->exchange)
		exchange_end(conn);
	end_turn(conn);
	TAILQ_REMOVE(&conn->of->list[conn->state], conn, link);
	if (conn->readable) {
		event_free(conn->readable);
		evbuffer_free(conn->in);
	}
	worker_connection_end(worker, &conn->peer);
	bufferevent_free(conn->bev);
	free(conn);
}

static void drop_input(struct http1_conn *conn)
{
	evbuffer_drain(conn->in, evbuffer_get_length(conn->in));
	conn->fresh.len = 0;
}

/*
 * The last reply is written. Closing with unread bytes would make the kernel send a reset that
 * can overtake the reply: in that case reading continues for a moment.
 */
static void conn_close(struct http1_conn *conn)
{
	bool more = unread(conn) > 0 || (conn->exchange && conn->exchange->refusal);

	if (conn->broken || conn->eof || !more || conn->peer.tls) {
		conn_free(conn);
		return;
	}
	if (conn->exchange)
		exchange_end(conn);
	drop_input(conn);
	conn_flow(conn);
	shutdown(conn->fd, SHUT_WR);
	conn_enter(conn, CONN_LINGERING);
}

bool conn_keeps(const struct http1_conn *conn)
{
	return !conn->exchange->refusal && !conn->eof && !conn->of->draining &&
	       !conn->parser.upgrade && http_should_keep_alive(&conn->parser);
}

/* Called after a reply was passed to the socket. False: the connection was freed. */
static bool conn_next(struct http1_conn *conn)
{
	if (conn->broken) {
		conn_free(conn);
		return false;
	}
	if (evbuffer_get_length(bufferevent_get_output(conn->bev))) {
		conn_enter(conn, CONN_WRITING);
		return true;
	}
	if (!conn->keep) {
		conn_close(conn);
		return false;
	}
	exchange_end(conn);
	conn_enter(conn, CONN_IDLE);
	return true;
}

void conn_replied(struct http1_conn *conn)
{
	/* Inside its handler: conn_serve() continues after it returns. */
	if (conn->exchange->running)
		return;
	conn->exchange->request.delayed = NULL;
	if (conn_next(conn) && conn->state == CONN_IDLE && unread(conn))
		serve_later(conn);
}

/* ------------------------------------------------------------------ requests */

/* A refusal is sent without the rest of the request; later input cannot be parsed. */
static void run(struct http1_conn *conn)
{
	struct exchange *exchange = conn->exchange;

	conn_enter(conn, CONN_ANSWERING);
	exchange->running = true;
	if (exchange->refusal && !exchange->request.beyond && exchange->route)
		http1_reply_undecided(&exchange->request, exchange->refusal, exchange->detail);
	else if (exchange->refusal && !exchange->request.beyond)
		http1_reply_problem(&exchange->request, exchange->refusal, exchange->detail);
	else
		routes_run(&exchange->request);
	exchange->running = false;
	if (exchange->replied)
		exchange->request.delayed = NULL;
}

/* The first piece of the input: what was kept comes before what was just received. */
static struct bytes next_piece(struct http1_conn *conn)
{
	struct evbuffer_iovec piece;

	if (evbuffer_get_length(conn->in) && evbuffer_peek(conn->in, -1, NULL, &piece, 1) > 0)
		return (struct bytes){ piece.iov_base, piece.iov_len };
	return conn->fresh;
}

static void use_piece(struct http1_conn *conn, size_t len)
{
	if (evbuffer_get_length(conn->in)) {
		evbuffer_drain(conn->in, len);
		return;
	}
	conn->fresh.at += len;
	conn->fresh.len -= len;
}

/* Parses more input. True if a request is complete or refused. */
static bool read_request(struct http1_conn *conn)
{
	struct bytes piece;
	bool whole = false;

	while (!whole && (piece = next_piece(conn)).len) {
		if (!conn->exchange) {
			conn->exchange = exchange_new(conn->of);
			if (!conn->exchange) {
				conn->broken = true;
				return false;
			}
			exchange_begin(conn);
			conn_enter(conn, CONN_READING);
		}
		use_piece(conn, exchange_parse(conn, piece.at, piece.len, &whole));
	}
	return whole;
}

/*
 * One request at a time: the next is parsed once the reply to this one is accepted. A client that
 * pipelines many lets other connections run in between.
 */
static void conn_serve(struct http1_conn *conn)
{
	for (u32 served = 0; conn->state == CONN_IDLE || conn->state == CONN_READING; served++) {
		if (served == TURN_MAX) {
			serve_later(conn);
			break;
		}
		if (!read_request(conn)) {
			if (!conn->broken)
				break;
			conn_free(conn);
			return;
		}
		run(conn);
		if (!conn->exchange->replied)
			break; /* delayed */
		if (!conn_next(conn))
			return;
	}
	keep_input(conn);
}

static void take_input(struct http1_conn *conn)
{
	if (conn->state == CONN_LINGERING)
		drop_input(conn);
	else if (conn->state == CONN_IDLE || conn->state == CONN_READING)
		conn_serve(conn);
	else
		keep_input(conn);
}

static void on_decrypted(struct bufferevent *bev, void *arg)
{
	take_input(arg);
}

static void on_event(struct bufferevent *bev, short what, void *arg);

/*
 * A bufferevent queries the number of readable bytes before each read: one system call of four
 * per request. Here a read goes into the worker's own memory, from which requests are parsed: a
 * connection has input of its own only between callbacks.
 */
static void on_readable(evutil_socket_t fd, short what, void *arg)
{
	struct http1_conn *conn = arg;
	ssize_t n;

	n = recv(fd, conn->of->received, sizeof(conn->of->received), MSG_DONTWAIT);
	if (n > 0)
		conn->fresh = (struct bytes){ conn->of->received, (size_t)n };
	if (n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR)))
		take_input(conn);
	else
		on_event(conn->bev, BEV_EVENT_READING | (n ? BEV_EVENT_ERROR : BEV_EVENT_EOF),
			 conn);
}

static void on_turn(evutil_socket_t fd, short what, void *arg)
{
	static const struct timeval at_once;
	struct http1_worker *of = arg;
	struct http1_conn *conn;

	/* Those that get another turn meanwhile wait for it. */
	for (u32 left = of->turn_count; left && (conn = TAILQ_FIRST(&of->turns)); left--) {
		end_turn(conn);
		take_input(conn);
	}
	if (of->turn_count)
		event_add(of->turn, &at_once);
}

/* The whole reply was accepted by the socket. */
static void on_written(struct bufferevent *bev, void *arg)
{
	struct http1_conn *conn = arg;

	if (conn->state == CONN_WRITING && conn_next(conn))
		conn_serve(conn);
}

static void on_event(struct bufferevent *bev, short what, void *arg)
{
	struct http1_conn *conn = arg;

	if ((what & BEV_EVENT_EOF) && conn->state == CONN_WRITING) {
		conn->eof = true;
		conn->keep = false;
		connection_read(conn->readable, conn->bev, false);
		return;
	}
	conn_free(conn);
}

/* ------------------------------------------------------------------ the worker's timer */

static u64 clock_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
	return (u64)now.tv_sec * 1000 + (u64)now.tv_nsec / 1000000;
}

static void look_at_clock(struct http1_worker *of)
{
	time_t now = time(NULL);
	struct tm tm;

	of->now_ms = clock_ms();
	gmtime_r(&now, &tm);
	strftime(of->date, sizeof(of->date), "%a, %d %b %Y %H:%M:%S GMT", &tm);
}

static void time_is_up(struct http1_conn *conn)
{
	if (conn->state != CONN_READING) {
		conn_free(conn);
		return;
	}
	conn->exchange->refusal = 408;
	conn->exchange->detail = conn->of->draining
					 ? "sluiced exits, and the request was not complete"
					 : "the request was not complete within 10 s";
	run(conn);
	conn_next(conn);
}

static u64 allowed_ms(const struct http1_worker *of, enum conn_state state)
{
	bool sooner = of->draining && state != CONN_ANSWERING && of->grace_ms < state_ms[state];

	return sooner ? of->grace_ms : state_ms[state];
}

static void on_tick(evutil_socket_t fd, short what, void *arg)
{
	struct http1_worker *of = arg;
	bool any = false;

	look_at_clock(of);
	for (int state = 0; state < CONN_STATE_COUNT; state++) {
		u64 allowed = allowed_ms(of, state);
		struct http1_conn *conn;

		while ((conn = TAILQ_FIRST(&of->list[state]))) {
			any = true;
			if (of->now_ms - conn->since_ms <= allowed)
				break;
			time_is_up(conn);
		}
	}
	if (!any)
		event_del(of->tick);
}

/* The timer runs while there are connections. */
static void tick_start(struct http1_worker *of)
{
	static const struct timeval period = { .tv_usec = TICK_MS * 1000 };

	if (event_pending(of->tick, EV_TIMEOUT, NULL))
		return;
	look_at_clock(of);
	event_add(of->tick, &period);
}

/* ------------------------------------------------------------------ the frontend */

static bool open_input(struct http1_conn *conn, struct worker *worker, struct bufferevent *bev,
		       bool tls)
{
	conn->in = tls ? bufferevent_get_input(bev) : evbuffer_new();
	if (tls || !conn->in)
		return conn->in;
	/* A bufferevent reads unless disabled. */
	bufferevent_disable(bev, EV_READ);
	conn->readable = event_new(worker->base, bufferevent_getfd(bev), EV_READ | EV_PERSIST,
				   on_readable, conn);
	if (!conn->readable)
		evbuffer_free(conn->in);
	return conn->readable;
}

static void http1_accept(struct worker *worker, struct bufferevent *bev,
			 const struct peer_info *peer)
{
	struct http1_worker *of = frontend_of(worker);
	struct http1_conn *conn = calloc(1, sizeof(*conn));

	if (!conn || !open_input(conn, worker, bev, peer->tls)) {
		free(conn);
		worker_connection_end(worker, peer);
		bufferevent_free(bev);
		return;
	}
	tick_start(of);
	conn->of = of;
	conn->bev = bev;
	conn->fd = bufferevent_getfd(bev);
	conn->peer = *peer;
	conn->state = CONN_IDLE;
	conn->since_ms = of->now_ms;
	TAILQ_INSERT_TAIL(&of->list[CONN_IDLE], conn, link);
	bufferevent_setcb(bev, on_decrypted, on_written, on_event, conn);
	bufferevent_enable(bev, EV_WRITE);
	connection_read(conn->readable, conn->bev, true);
	connection_set(conn->peer.connection, CONNECTION_IDLE);
}

static int http1_start(struct worker *worker)
{
	struct http1_worker *of = calloc(1, sizeof(*of));

	if (!of)
		return -ENOMEM;
	http_parser_set_max_header_size(HTTP1_HEAD_BYTES_MAX);
	worker->frontend[LISTEN_HTTP] = of;
	of->worker = worker;
	for (int state = 0; state < CONN_STATE_COUNT; state++)
		TAILQ_INIT(&of->list[state]);
	TAILQ_INIT(&of->turns);
	look_at_clock(of);
	of->tick = event_new(worker->base, -1, EV_PERSIST, on_tick, of);
	of->turn = evtimer_new(worker->base, on_turn, of);
	return of->tick && of->turn ? 0 : -ENOMEM;
}

/* Every reply ends its connection now; those that wait for their client end after `grace_ms`. */
static void drain_within(struct http1_worker *of, u64 grace_ms)
{
	struct http1_conn *conn;

	look_at_clock(of);
	of->draining = true;
	of->grace_ms = grace_ms;
	for (int state = 0; state < CONN_STATE_COUNT; state++)
		TAILQ_FOREACH(conn, &of->list[state], link)
			conn->since_ms = of->now_ms;
}

static void http1_drain(struct worker *worker)
{
	drain_within(frontend_of(worker), DRAIN_MS);
}

static void http1_finish(struct worker *worker)
{
	static const struct timeval often = { .tv_usec = FINISH_TICK_MS * 1000 };
	struct http1_worker *of = frontend_of(worker);

	drain_within(of, FINISH_MS);
	event_add(of->tick, &often);
}

void http1_serve(struct worker *worker, const struct http1_routes *routes)
{
	frontend_of(worker)->routes = routes;
}

static void http1_free(void *shared)
{
	report_ids_free(shared);
}

static void http1_stop(struct worker *worker)
{
	struct http1_worker *of = frontend_of(worker);
	struct http1_conn *conn;
	struct exchange *unused;

	if (!of)
		return;
	for (int state = 0; state < CONN_STATE_COUNT; state++)
		while ((conn = TAILQ_FIRST(&of->list[state])))
			conn_free(conn);
	of->unused_count = 0;
	while ((unused = of->unused)) {
		of->unused = unused->next;
		exchange_delete(unused);
	}
	if (of->tick)
		event_free(of->tick);
	if (of->turn)
		event_free(of->turn);
	free(of);
	worker->frontend[LISTEN_HTTP] = NULL;
}

const struct frontend frontend_http1 = {
	.kind = LISTEN_HTTP,
	.free = http1_free,
	.name = "listen",
	.accept = http1_accept,
	.drain = http1_drain,
	.finish = http1_finish,
	.start = http1_start,
	.stop = http1_stop,
};
