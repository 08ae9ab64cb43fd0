// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Connections of the gRPC frontend: delayed responses, health, draining, and the bounds on
 * abuse. */
#include "grpc_wire.h"
#include "proto/health.pb-c.h"

/* ------------------------------------------------------------------ delayed responses */

static void response_held(u32 at)
{
	request_done_fn done = rig.held[at].done;

	rig.held[at].done = NULL;
	rig.response.count = rig.held[at].request->count;
	done(rig.held[at].request, &rig.response, rig.held[at].arg);
}

TEST_WITH(test_held, rig_begin, rig_end)
{
	const struct wire *wire = wire_user("bob");
	struct rig_stream *stream[4];

	rig_connect(true);
	rig.hold = true;
	for (int i = 0; i < 4; i++)
		stream[i] = grpc_call(SHOULD, wire);
	assert_int_equal(rig.held_count, 4);
	assert_false(stream[0]->closed);
	/* Responses in another order; one request is cancelled by its client. */
	response_held(2);
	rig_pump();
	assert_true(stream[2]->closed);
	assert_false(stream[0]->closed);
	nghttp2_submit_rst_stream(rig.client, 0, 1, NGHTTP2_CANCEL);
	rig_pump();
	assert_int_equal(rig.cancelled, 1);
	assert_null(rig.held[0].done);
	response_held(1);
	rig_pump();
	is_answered(stream[1]);
	/* The connection is closed: the last one is cancelled, too. */
	rig_close();
	rig_pump();
	assert_int_equal(rig.cancelled, 2);
	assert_int_equal(rig.connections, 0);
}

/* Our lack of memory is no verdict: a client that reads RESOURCE_EXHAUSTED as 429 would refuse. */
TEST_WITH(test_no_memory, rig_begin, rig_end)
{
	struct rig_stream *stream;
	struct grpc_stream *served;

	rig_connect(true);
	rig.hold = true;
	stream = grpc_call(SHOULD, wire_user("bob"));
	served = rig.held[0].arg;
	grpc_stream_no_memory(served);
	grpc_conn_settle(served->conn);
	rig_pump();
	is_failed(stream, GRPC_UNAVAILABLE);
	assert_string_equal(stream->message, "out of memory");
	assert_int_equal(rig.undecided[UNDECIDED_MEMORY], 1);
}

/* Exchanges the connection of the rig, and what its streams have, for another one. */
static void exchange(int *fd, nghttp2_session **client, struct rig_stream **stream)
{
	int other_fd = rig.fd;
	nghttp2_session *other_client = rig.client;
	struct rig_stream *other_stream = rig.stream;

	rig.fd = *fd;
	rig.client = *client;
	rig.stream = *stream;
	*fd = other_fd;
	*client = other_client;
	*stream = other_stream;
}

/* A request without its end. */
static s32 half_request(const struct wire *wire)
{
	s32 id = rig_request(SHOULD, wire->at, wire->len, NULL, NULL);

	rig.stream[id].out_open = true;
	rig.stream[id].out_len -= 3;
	rig_pump();
	return id;
}

static void other_half(s32 id)
{
	rig.stream[id].out_open = false;
	rig.stream[id].out_len += 3;
	nghttp2_session_resume_data(rig.client, id);
	rig_pump();
	is_answered(&rig.stream[id]);
}

/*
 * The memory of a stream that has ended serves another connection, whose stream has the number of
 * one that is still open here: each gets its own bytes.
 */
TEST_WITH(test_same_number, rig_begin, rig_end)
{
	struct rig_stream *other_stream = calloc(8, sizeof(*other_stream));
	nghttp2_session *other_client = NULL;
	int other_fd = -1;
	s32 first, second;

	rig_connect(true);
	first = half_request(wire_user("bob"));
	is_answered(grpc_call(SHOULD, wire_user("al")));
	exchange(&other_fd, &other_client, &other_stream);
	rig_connect(true);
	second = half_request(wire_user("eve"));
	assert_int_equal(first, second);
	exchange(&other_fd, &other_client, &other_stream);
	other_half(first);
	assert_string_equal(rig.text, "api user=bob;");
	rig_close();
	exchange(&other_fd, &other_client, &other_stream);
	other_half(second);
	assert_string_equal(rig.text, "api user=eve;");
	rig_close();
	free(rig.stream[second].owned);
	exchange(&other_fd, &other_client, &other_stream);
	free(other_stream);
	rig_pump();
}

/* ------------------------------------------------------------------ health, draining */

static Health__Serving health(const struct rig_stream *stream)
{
	Health__Response *got;
	Health__Serving ret;

	assert_true(stream->body_len >= 5);
	got = health__response__unpack(NULL, stream->body_len - 5, stream->body + 5);
	assert_non_null(got);
	ret = got->status;
	health__response__free_unpacked(got, NULL);
	return ret;
}

TEST_WITH(test_health, rig_begin, rig_end)
{
	static struct wire none, known, unknown;
	struct rig_stream *watch, *stranger;

	none.len = known.len = unknown.len = 0;
	wire_bytes(&known, 1, "envoy.service.ratelimit.v3.RateLimitService", 43);
	wire_bytes(&unknown, 1, "other", 5);
	rig_connect(true);
	assert_int_equal(health(grpc_call("/grpc.health.v1.Health/Check", &none)),
			 HEALTH__SERVING__SERVING);
	assert_int_equal(health(grpc_call("/grpc.health.v1.Health/Check", &known)),
			 HEALTH__SERVING__SERVING);
	is_failed(grpc_call("/grpc.health.v1.Health/Check", &unknown), GRPC_NOT_FOUND);
	watch = grpc_call("/grpc.health.v1.Health/Watch", &none);
	stranger = grpc_call("/grpc.health.v1.Health/Watch", &unknown);
	assert_int_equal(health(watch), HEALTH__SERVING__SERVING);
	assert_int_equal(health(stranger), HEALTH__SERVING__SERVICE_UNKNOWN);
	assert_false(watch->closed || stranger->closed);
	watch->body_len = 0;
	frontend_grpc.finish(&rig.worker);
	rig_pump();
	assert_int_equal(health(watch), HEALTH__SERVING__NOT_SERVING);
	assert_true(watch->closed && stranger->closed);
	assert_int_equal(watch->grpc_status, 0);
	assert_true(rig.goaway);
}

TEST_WITH(test_drain, rig_begin, rig_end)
{
	const struct wire *wire = wire_user("bob");
	struct rig_stream *held, *late;

	rig_connect(true);
	rig.hold = true;
	held = grpc_call(SHOULD, wire);
	frontend_grpc.finish(&rig.worker);
	/* A request on its way when the end was announced is served. */
	late = &rig.stream[rig_request(SHOULD, wire->at, wire->len, NULL, NULL)];
	rig_pump();
	assert_true(rig.goaway);
	assert_int_equal(rig.goaway_error, NGHTTP2_NO_ERROR);
	assert_int_equal(rig.held_count, 2);
	response_held(0);
	response_held(1);
	rig_pump();
	is_answered(held);
	is_answered(late);
	/* Nothing is left: the connection ends with the next look. */
	for (int i = 0; i < 100 && rig.connections; i++) {
		usleep(10000);
		rig_pump();
	}
	assert_int_equal(rig.connections, 0);
}

/* ------------------------------------------------------------------ abuse */

static struct grpc_worker *frontend(void)
{
	return rig.worker.frontend[LISTEN_GRPC];
}

static struct grpc_conn *server(void)
{
	return LIST_FIRST(&frontend()->conns);
}

static void tick(void)
{
	event_active(frontend()->tick, EV_TIMEOUT, 1);
	rig_pump();
}

static size_t say(const char *text, size_t len, char *ret, size_t size)
{
	size_t got = 0;
	ssize_t n;

	rig_connect(false);
	assert_int_equal(send(rig.fd, text, len, MSG_NOSIGNAL), len);
	for (int i = 0; i < 3; i++)
		event_base_loop(rig.worker.base, EVLOOP_NONBLOCK);
	while ((n = read(rig.fd, ret + got, size - 1 - got)) > 0)
		got += n;
	ret[got] = 0;
	assert_int_equal(rig.connections, 0);
	rig_close();
	return got;
}

TEST_WITH(test_other_protocols, rig_begin, rig_end)
{
	char got[4096], noise[600] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

	say("GET / HTTP/1.1\r\nHost: a\r\n\r\n", 27, got, sizeof(got));
	assert_non_null(strstr(got, "HTTP/1.1 400 Bad Request\r\n"));
	assert_non_null(strstr(got, "gRPC"));
	say("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03 hello TLS", 21, got, sizeof(got));
	/* The preface, then an invalid frame. */
	memset(noise + 24, 0xff, sizeof(noise) - 24);
	say(noise, sizeof(noise), got, sizeof(got));
}

TEST_WITH(test_times, rig_begin, rig_end)
{
	const struct wire *wire = wire_user("bob");
	struct rig_stream *slow;
	s32 id;

	/* A client that does not begin. */
	rig_connect(false);
	tick();
	assert_int_equal(rig.connections, 1);
	server()->since_ms -= GRPC_PREFACE_MS + 1000;
	tick();
	assert_int_equal(rig.connections, 0);
	rig_close();

	/* A client that begins a request and does not end it; the one beside it is served. */
	rig_connect(true);
	id = rig_raw(SHOULD, "\0\0", 2, NULL, NULL);
	slow = &rig.stream[id];
	slow->out_open = true;
	rig_pump();
	TAILQ_FIRST(&server()->streams)->since_ms -= GRPC_REQUEST_MS + 1000;
	is_answered(grpc_call(SHOULD, wire));
	assert_false(slow->closed);
	tick();
	assert_true(slow->closed);
	assert_int_equal(slow->error, NGHTTP2_CANCEL);
	is_answered(grpc_call(SHOULD, wire));

	/* A client that is idle for ten minutes. */
	server()->since_ms -= GRPC_IDLE_MS - 10000;
	tick();
	assert_false(rig.goaway);
	server()->since_ms -= 20000;
	tick();
	assert_true(rig.goaway);
	assert_int_equal(rig.connections, 0);
}

TEST_WITH(test_resets, rig_begin, rig_end)
{
	const struct wire *wire = wire_user("bob");

	/* A client that cancels now and then is no attacker. */
	rig_connect(true);
	rig.hold = true;
	for (int i = 0; i < 500; i++) {
		s32 id = rig_request(SHOULD, wire->at, wire->len, NULL, NULL);

		if (i % 50 == 0)
			rig_pump();
		nghttp2_submit_rst_stream(rig.client, 0, id, NGHTTP2_CANCEL);
	}
	rig_pump();
	assert_false(rig.goaway);
	assert_int_equal(server()->stream_count, 0);
	assert_int_equal(rig.cancelled, rig.held_count);
	for (int i = 0; i < 1500 && !rig.goaway; i++) {
		s32 id = rig_request(SHOULD, wire->at, wire->len, NULL, NULL);

		rig_pump();
		nghttp2_submit_rst_stream(rig.client, 0, id, NGHTTP2_CANCEL);
	}
	rig_pump();
	assert_true(rig.goaway);
	assert_int_equal(rig.connections, 0);
	assert_int_equal(rig.cancelled, rig.held_count);
}

TEST_WITH(test_pings, rig_begin, rig_end)
{
	const struct wire *wire = wire_user("bob");

	/* Two beside each request, as some clients measure their way. */
	rig_connect(true);
	for (int i = 0; i < 1500; i++) {
		nghttp2_submit_ping(rig.client, 0, NULL);
		nghttp2_submit_ping(rig.client, 0, NULL);
		is_answered(grpc_call(SHOULD, wire));
	}
	assert_false(rig.goaway);
	for (int i = 0; i < 10000 && !rig.goaway; i++) {
		nghttp2_submit_ping(rig.client, 0, NULL);
		if (i % 100 == 0)
			rig_pump();
	}
	rig_pump();
	assert_true(rig.goaway);
	assert_int_equal(rig.goaway_error, NGHTTP2_ENHANCE_YOUR_CALM);
	assert_int_equal(rig.connections, 0);
}

/* So many streams at once, and no more; those that come later are served as others end. */
TEST_WITH(test_streams, rig_begin, rig_end)
{
	const struct wire *wire = wire_user("bob");

	rig_connect(true);
	rig_pump();
	rig.hold = true;
	for (int i = 0; i < GRPC_STREAMS_MAX + 100; i++)
		rig_request(SHOULD, wire->at, wire->len, NULL, NULL);
	rig_pump();
	assert_int_equal(rig.held_count, GRPC_STREAMS_MAX);
	for (int i = 0; i < GRPC_STREAMS_MAX; i++)
		response_held(i);
	rig_pump();
	assert_int_equal(rig.held_count, GRPC_STREAMS_MAX + 100);
}

/* Requests without a response: one window of them for all streams. */
TEST_WITH(test_window, rig_begin, rig_end)
{
	static u8 body[GRPC_MESSAGE_MAX + 5] = { 0, 0, 0x10, 0, 0 };
	u32 got = 0;
	struct grpc_stream *stream;

	rig_connect(true);
	rig_pump();
	for (int i = 0; i < 5; i++) {
		s32 id = rig_raw(SHOULD, body, sizeof(body) - 1, NULL, NULL);

		rig.stream[id].out_open = true;
	}
	rig_pump();
	TAILQ_FOREACH(stream, &server()->streams, link)
		got += stream->received;
	assert_true(got > GRPC_WINDOW - 100000 && got <= GRPC_WINDOW);
	/* Their deadlines have passed: the window is there again. */
	TAILQ_FOREACH(stream, &server()->streams, link)
		stream->since_ms -= GRPC_REQUEST_MS + 1000;
	tick();
	assert_int_equal(server()->stream_count, 0);
	is_answered(grpc_call(SHOULD, wire_user("bob")));
}

/* Two bytes each on the wire: they may not become a hundred each here. */
TEST_WITH(test_blown_up, rig_begin, rig_end)
{
	static u8 many[GRPC_MESSAGE_MAX];
	static struct wire wire;
	s32 id;

	for (size_t i = 0; i < sizeof(many); i += 2)
		many[i] = 2 << 3 | 2;
	rig_connect(true);
	id = rig_request(SHOULD, many, sizeof(many), NULL, NULL);
	rig_pump();
	is_answered(&rig.stream[id]);
	assert_string_equal(rig.text, " beyond: too much in a message");
	rig.text[0] = 0;
	/* As entries of one descriptor. */
	wire.len = 0;
	wire_bytes(&wire, 1, "api", 3);
	for (size_t i = 0; i < 200000; i += 2)
		many[i] = 1 << 3 | 2;
	wire_bytes(&wire, 2, many, 200000);
	is_answered(grpc_call(SHOULD, &wire));
	assert_string_equal(rig.text, " beyond: too much in a message");
	assert_int_equal(rig.asked, 2);
}

TEST_WITH(test_headers, rig_begin, rig_end)
{
	const struct wire *wire = wire_user("bob");
	static char large[GRPC_HEADERS_MAX];
	struct rig_stream *stream;

	memset(large, 'x', sizeof(large) - 1);
	rig_connect(true);
	stream = &rig.stream[rig_request(SHOULD, wire->at, wire->len, "x-large", large)];
	rig_pump();
	assert_true(stream->closed);
	assert_int_equal(stream->http_status, 431);
	large[sizeof(large) / 2] = 0;
	stream = &rig.stream[rig_request(SHOULD, wire->at, wire->len, "x-large", large)];
	rig_pump();
	is_answered(stream);
	assert_int_equal(rig.asked, 1);
}

/* A client that sends and does not read is not read from either. */
TEST_WITH(test_does_not_read, rig_begin, rig_end)
{
	const struct wire *wire = wire_user("bob");
	const u8 *data;
	ssize_t n, sent = 0;
	u32 asked;

	rig_connect(true);
	rig_pump();
	for (int i = 0; i < RIG_STREAMS - 10; i++)
		rig_request(SHOULD, wire->at, wire->len, NULL, NULL);
	/* The client receives nothing, so it must not count open streams. */
	while ((n = nghttp2_session_mem_send(rig.client, &data)) > 0) {
		while (n > 0) {
			sent = send(rig.fd, data, n, MSG_NOSIGNAL);
			if (sent <= 0)
				break;
			data += sent;
			n -= sent;
		}
		event_base_loop(rig.worker.base, EVLOOP_NONBLOCK);
		if (n)
			break;
	}
	asked = rig.asked;
	assert_true(asked >= GRPC_STREAMS_MAX / 2 && asked <= 2 * GRPC_STREAMS_MAX);
	assert_true(evbuffer_get_length(bufferevent_get_output(server()->bev)) <
		    GRPC_BACKLOG_MAX + 65536);
	/* It reads after all: the rest is served. */
	for (int i = 0; i < 20 && rig.asked < RIG_STREAMS - 10; i++)
		rig_pump();
	assert_int_equal(rig.asked, RIG_STREAMS - 10);
}

static bool is_read_from(const struct grpc_conn *conn)
{
	return event_pending(conn->readable, EV_READ, NULL);
}

/* While too many bytes wait for the client, nothing is read from it; once it took them, it is
 * again. */
TEST_WITH(test_backlog, rig_begin, rig_end)
{
	static char bytes[GRPC_BACKLOG_MAX];
	struct evbuffer *out;

	rig_connect(true);
	rig_pump();
	out = bufferevent_get_output(server()->bev);
	assert_true(is_read_from(server()));
	assert_int_equal(bufferevent_write(server()->bev, bytes, sizeof(bytes) - 1), 0);
	grpc_conn_settle(server());
	assert_true(is_read_from(server()));
	assert_int_equal(bufferevent_write(server()->bev, bytes, 1), 0);
	grpc_conn_settle(server());
	assert_false(is_read_from(server()));
	for (int i = 0; i < 1000 && evbuffer_get_length(out); i++) {
		while (recv(rig.fd, bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
			;
		event_base_loop(rig.worker.base, EVLOOP_NONBLOCK);
	}
	assert_true(is_read_from(server()));
}

TEST_MAIN
