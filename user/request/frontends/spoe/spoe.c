// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * spoe.c - HAProxy's agent: connections of SPOP 2.0, one frame after the other.
 *
 *     HELLO -> NOTIFY -> request_submit() -> ACK, in the order of the responses -> DISCONNECT
 *
 * spop.c has the bytes, spoe_frame.c the meaning of a frame, spoe_request.c that of a NOTIFY. The
 * memory of a peer is bounded here: a frame, delayed responses, unread output, and time for each.
 */
#include <errno.h>
#include <event2/buffer.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "request/engine/observe.h"
#include "request/frontends/spoe/spoe.h"
#include "request/frontends/spoe/spoe_conn.h"

#define SEC SL_NS_PER_SEC
#define HELLO_NS (5 * SEC)
#define FRAME_NS (10 * SEC)	/* from a frame's first byte to its last */
#define IDLE_NS (600 * SEC)	/* HAProxy's `timeout idle` should be less */
#define CLOSING_NS (1 * SEC)	/* for the peer to read a DISCONNECT */
#define WRITE_S 10		/* without any output accepted */
#define HELLO_MAX 4096		/* bytes, before anything is agreed on */
#define OUTPUT_MAX (256 * 1024) /* above it reading stops */
#define DELAYED_MAX 1024	/* delayed responses of a connection */
#define CLOSING_BYTES_MAX (1024 * 1024)
#define DRAIN_QUIET_NS (SEC / 40) /* of silence before a DISCONNECT; HAProxy may wait for a CPU */
#define DRAIN_NS (SEC / 10)	  /* then also during traffic */
#define DRAIN_TICK_US 2000

/* ------------------------------------------------------------------ the end of a connection */

void spoe_delayed_free(struct spoe_delayed *held)
{
	*held->link = held->next;
	if (held->next)
		held->next->link = held->link;
	held->conn->held_count--;
	free(held);
}

static void cancel_all(struct spoe_conn *conn)
{
	while (conn->held) {
		request_cancel(conn->held->delayed);
		spoe_delayed_free(conn->held);
	}
}

static void conn_free(struct spoe_conn *conn)
{
	struct worker *worker = conn->owner->worker;

	cancel_all(conn);
	*conn->link = conn->next;
	if (conn->next)
		conn->next->link = conn->link;
	worker_connection_end(worker, &conn->peer);
	bufferevent_free(conn->bev);
	free(conn);
}

/* Stops processing: pending output is still written, then the peer disconnects. */
void spoe_conn_close(struct spoe_conn *conn)
{
	cancel_all(conn);
	conn->state = SPOE_CLOSING;
	conn->deadline_ns = clock_mono_ns() + CLOSING_NS;
	connection_set(conn->peer.connection, CONNECTION_IDLE);
	conn->paused = false;
	if (!conn->eof)
		bufferevent_enable(conn->bev, EV_READ);
}

void spoe_conn_send(struct spoe_conn *conn, struct spop_writer *writer)
{
	bufferevent_write(conn->bev, writer->start, spop_frame_end(writer));
}

void spoe_disconnect(struct spoe_conn *conn, enum spop_status status)
{
	u8 memory[SPOP_FRAME_MIN];
	struct spop_writer writer =
		spop_frame_begin(memory, sizeof(memory), SPOP_AGENT_DISCONNECT, 0, 0);

	if (status != SPOP_NORMAL)
		observe_request(conn->owner->worker->engine, API_SPOE, 1);
	/* A timeout is the end of a connection that is in no use. */
	if (status != SPOP_NORMAL && status != SPOP_TIMEOUT)
		undecided_note(conn->owner->worker->engine, API_SPOE, UNDECIDED_UNREADABLE,
			       spop_status_text(status));
	spop_put_pair_number(&writer, "status-code", status);
	spop_put_pair_string(&writer, "message", spop_status_text(status));
	spoe_conn_send(conn, &writer);
	spoe_conn_close(conn);
}

/* ------------------------------------------------------------------ input and output */

void spoe_resume(struct spoe_conn *conn)
{
	if (!conn->paused)
		return;
	conn->paused = false;
	bufferevent_enable(conn->bev, EV_READ);
	/* Later: this may run within a decision. */
	bufferevent_trigger(conn->bev, EV_READ,
			    BEV_TRIG_IGNORE_WATERMARKS | BEV_TRIG_DEFER_CALLBACKS);
}

/* The length of the first frame in the input; false: incomplete, or the connection ended here. */
static bool frame_length(struct spoe_conn *conn, struct evbuffer *input, size_t *ret)
{
	u8 byte[4];

	if (evbuffer_copyout(input, byte, sizeof(byte)) < (ssize_t)sizeof(byte))
		return false;
	*ret = (size_t)byte[0] << 24 | byte[1] << 16 | byte[2] << 8 | byte[3];
	if (*ret > conn->frame_max) {
		spoe_disconnect(conn, SPOP_TOO_BIG);
		return false;
	}
	return evbuffer_get_length(input) >= 4 + *ret;
}

/* Whether reading has to pause. */
static bool is_full(const struct spoe_conn *conn)
{
	return conn->held_count >= DELAYED_MAX ||
	       evbuffer_get_length(bufferevent_get_output(conn->bev)) > OUTPUT_MAX;
}

/* Input during closing is ignored, but unread bytes would make close() send a reset. */
static void throw_away(struct spoe_conn *conn)
{
	struct evbuffer *input = bufferevent_get_input(conn->bev);

	conn->thrown_away += evbuffer_get_length(input);
	evbuffer_drain(input, evbuffer_get_length(input));
	if (conn->thrown_away > CLOSING_BYTES_MAX)
		conn_free(conn);
}

/* The deadline of the next frame: soon if one has begun, of HELLO from accept on. */
static void set_deadline(struct spoe_conn *conn, bool any)
{
	bool in_frame = !conn->paused && evbuffer_get_length(bufferevent_get_input(conn->bev));
	u64 now = clock_mono_ns();

	if (any)
		conn->last_frame_ns = now;
	if (conn->state == SPOE_HELLO)
		return;
	if (!in_frame || any || !conn->in_frame)
		conn->deadline_ns = now + (in_frame ? FRAME_NS : IDLE_NS);
	conn->in_frame = in_frame;
}

/* A connection with delayed responses waits for the daemon, else it waits for the client. */
static void place_set(struct spoe_conn *conn)
{
	bool pending = conn->in_frame || evbuffer_get_length(bufferevent_get_output(conn->bev));

	connection_set(conn->peer.connection, conn->held_count ? CONNECTION_BUSY
					      : pending	       ? CONNECTION_PENDING
							       : CONNECTION_IDLE);
}

static void on_read(struct bufferevent *bev, void *arg)
{
	struct spoe_conn *conn = arg;
	struct evbuffer *input = bufferevent_get_input(bev);
	bool any = false;
	size_t size;

	while (conn->state != SPOE_CLOSING && !is_full(conn) && frame_length(conn, input, &size)) {
		spoe_take_frame(conn, evbuffer_pullup(input, 4 + size) + 4, size);
		evbuffer_drain(input, 4 + size);
		any = true;
	}
	if (conn->state == SPOE_CLOSING) {
		throw_away(conn);
		return;
	}
	conn->paused = is_full(conn);
	if (conn->paused)
		bufferevent_disable(bev, EV_READ);
	set_deadline(conn, any);
	if (any)
		connection_set(conn->peer.connection, CONNECTION_BUSY);
	place_set(conn);
}

/* All output was written. */
static void on_written(struct bufferevent *bev, void *arg)
{
	struct spoe_conn *conn = arg;

	place_set(conn);
	if (conn->state == SPOE_CLOSING && conn->eof)
		conn_free(conn);
	else if (conn->state == SPOE_CLOSING)
		shutdown(bufferevent_getfd(bev), SHUT_WR);
	else if (!is_full(conn))
		spoe_resume(conn);
}

static void on_event(struct bufferevent *bev, short what, void *arg)
{
	struct spoe_conn *conn = arg;

	/* A half-closed client may still read the responses that are ready. */
	if (what & BEV_EVENT_EOF && !conn->eof &&
	    evbuffer_get_length(bufferevent_get_output(bev))) {
		conn->eof = true;
		spoe_conn_close(conn);
		return;
	}
	conn_free(conn);
}

/* ------------------------------------------------------------------ a worker's connections */

static void look_after(struct spoe_conn *conn, u64 now)
{
	u64 draining_ns = conn->owner->drain_ns ? now - conn->owner->drain_ns : 0;

	if (now > conn->deadline_ns) {
		if (conn->state == SPOE_CLOSING)
			conn_free(conn);
		else
			spoe_disconnect(conn, conn->state == SPOE_OPEN && !conn->in_frame
						      ? SPOP_NORMAL
						      : SPOP_TIMEOUT);
		return;
	}
	if (!conn->owner->drain_ns || conn->state != SPOE_OPEN)
		return;
	bufferevent_disable(conn->bev, EV_WRITE);
	if (conn->held_count ||
	    (draining_ns <= DRAIN_NS && now - conn->last_frame_ns <= DRAIN_QUIET_NS))
		return;
	spoe_disconnect(conn, SPOP_NORMAL);
	bufferevent_enable(conn->bev, EV_WRITE);
}

static void on_tick(evutil_socket_t fd, short what, void *arg)
{
	struct spoe_worker *owner = arg;
	struct spoe_conn *conn, *next;
	u64 now = clock_mono_ns();

	for (conn = owner->first; conn; conn = next) {
		next = conn->next;
		look_after(conn, now);
	}
	if (!owner->first && !owner->drain_ns)
		event_del(owner->tick);
}

/* The timer runs while there are connections. */
static void tick_start(struct spoe_worker *owner)
{
	static const struct timeval second = { .tv_sec = 1 };

	if (!event_pending(owner->tick, EV_TIMEOUT, NULL))
		event_add(owner->tick, &second);
}

static void spoe_accept(struct worker *worker, struct bufferevent *bev,
			const struct peer_info *peer)
{
	static const struct timeval write_timeout = { .tv_sec = WRITE_S };
	struct spoe_worker *owner = worker->frontend[LISTEN_SPOE];
	struct spoe_conn *conn = calloc(1, sizeof(*conn));

	if (!conn) {
		worker_connection_end(worker, peer);
		bufferevent_free(bev);
		return;
	}
	conn->owner = owner;
	conn->bev = bev;
	conn->peer = *peer;
	conn->frame_max = HELLO_MAX;
	conn->last_frame_ns = clock_mono_ns();
	conn->deadline_ns = conn->last_frame_ns + HELLO_NS;
	conn->next = owner->first;
	conn->link = &owner->first;
	if (conn->next)
		conn->next->link = &conn->next;
	owner->first = conn;
	tick_start(owner);
	connection_set(conn->peer.connection, CONNECTION_IDLE);
	bufferevent_setcb(bev, on_read, on_written, on_event, conn);
	bufferevent_set_timeouts(bev, NULL, &write_timeout);
	bufferevent_enable(bev, EV_READ | EV_WRITE);
}

static void spoe_stop(struct worker *worker)
{
	struct spoe_worker *owner = worker->frontend[LISTEN_SPOE];

	if (!owner)
		return;
	while (owner->first)
		conn_free(owner->first);
	if (owner->tick)
		event_free(owner->tick);
	free(owner);
	worker->frontend[LISTEN_SPOE] = NULL;
}

static int spoe_start(struct worker *worker)
{
	struct spoe_worker *owner = calloc(1, sizeof(*owner));

	if (!owner)
		return -ENOMEM;
	owner->worker = worker;
	worker->frontend[LISTEN_SPOE] = owner;
	owner->tick = event_new(worker->base, -1, EV_PERSIST, on_tick, owner);
	if (!owner->tick) {
		spoe_stop(worker);
		return -ENOMEM;
	}
	return 0;
}

/*
 * A NOTIFY that crosses the DISCONNECT is lost, and HAProxy's rule for errors applies to it. So
 * ACKs are kept back until no more NOTIFY comes, since HAProxy waits for them, and are then sent
 * with the DISCONNECT, in one write.
 */
static void spoe_finish(struct worker *worker)
{
	static const struct timeval often = { .tv_usec = DRAIN_TICK_US };
	struct spoe_worker *owner = worker->frontend[LISTEN_SPOE];

	owner->drain_ns = clock_mono_ns();
	on_tick(-1, 0, owner);
	event_add(owner->tick, &often);
}

const struct frontend frontend_spoe = {
	.kind = LISTEN_SPOE,
	.name = "spoe",
	.accept = spoe_accept,
	.finish = spoe_finish,
	.start = spoe_start,
	.stop = spoe_stop,
};
