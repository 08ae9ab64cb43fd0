/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * h2_client.h - the gRPC frontend under a client of nghttp2's in one process: a socket pair, no
 * threads, and responses that the test states in place of ask().
 *
 *     rig_begin(); id = rig_request(PATH, message...); rig_pump(); rig.stream[id]...; rig_end();
 */
#ifndef SLUICE_TESTS_H2_CLIENT_H
#define SLUICE_TESTS_H2_CLIENT_H

#include <sys/socket.h>
#include <unistd.h>

#include <event2/buffer.h>

#include "lib/test.h"
#include "request/frontends/grpc/grpc.h"
#include "request/frontends/grpc/grpc_private.h"
#include "request/engine/observe.h"

#define RIG_STREAMS 4096
#define SHOULD "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit"
#define CHECK "/kuadrant.service.ratelimit.v1.RateLimitService/CheckRateLimit"
#define REPORT "/kuadrant.service.ratelimit.v1.RateLimitService/Report"

struct rig_stream {
	bool closed;
	u32 error;		      /* of RST_STREAM */
	int http_status, grpc_status; /* -1: none received */
	char message[128];
	u8 body[8192];
	size_t body_len;
	/* What is sent */
	void *owned;
	const void *out;
	size_t out_len, out_sent;
	bool out_open; /* the request does not end there */
};

struct rig {
	struct http_def def;
	struct http_tier tier;
	struct worker worker;
	struct listen_def listener;
	struct peer_info peer;
	int fd; /* the client's; -1: closed */
	nghttp2_session *client;
	bool goaway;
	u32 goaway_error;
	struct rig_stream *stream; /* by id */
	/* The last request of ask(), and its result */
	u32 asked, cancelled;
	struct request request;
	struct request_descriptor descriptor[REQUEST_DESCRIPTORS_MAX];
	char text[1024]; /* "domain key=value key=value; ..." of the last call */
	struct response response;
	u32 rights;
	bool bad_token, hold;
	char token[64];
	struct {
		const struct request *request;
		request_done_fn done;
		void *arg;
	} held[RIG_STREAMS];
	u32 held_count;
	int requests, last_code, undecided[UNDECIDED_COUNT];
	int connections;
};

static struct rig rig;

/* ------------------------------------------------------------- the surroundings of the frontend */

static inline void rig_note(const struct request *request)
{
	size_t used = snprintf(rig.text, sizeof(rig.text), "%.*s", (int)request->domain.len,
			       request->domain.at);

	for (u32 i = 0; i < request->count; i++) {
		for (u32 k = 0; k < request->descriptor[i].count; k++) {
			const struct request_entry *entry = &request->descriptor[i].entry[k];

			if (used < sizeof(rig.text) - 1 && entry->value.len < 100)
				used += snprintf(rig.text + used, sizeof(rig.text) - used,
						 " %.*s=%.*s", (int)entry->key.len, entry->key.at,
						 (int)entry->value.len, entry->value.at);
		}
		if (used < sizeof(rig.text) - 1)
			used += snprintf(rig.text + used, sizeof(rig.text) - used, ";");
	}
	if (request->beyond)
		snprintf(rig.text + used, sizeof(rig.text) - used, " beyond: %s", request->beyond);
	rig.request = *request;
	if (request->count)
		memcpy(rig.descriptor, request->descriptor,
		       request->count * sizeof(rig.descriptor[0]));
}

struct delayed *request_submit(struct engine_thread *thread, const struct request *request,
			       request_done_fn done, void *arg)
{
	rig.asked++;
	rig_note(request);
	if (rig.hold) {
		u32 at = rig.held_count++;

		assert_true(at < RIG_STREAMS - 1);
		rig.held[at].request = request;
		rig.held[at].done = done;
		rig.held[at].arg = arg;
		return (struct delayed *)&rig.held[at];
	}
	rig.response.count = request->count;
	done(request, &rig.response, arg);
	return NULL;
}

void request_cancel(struct delayed *delayed)
{
	rig.cancelled++;
	((typeof(&rig.held[0]))delayed)->done = NULL;
}

u32 caller_rights(const struct http_tier *tier, const struct peer_info *peer, struct bytes token,
		  struct bytes domain, bool *ret_bad_token)
{
	snprintf(rig.token, sizeof(rig.token), "%.*s", (int)token.len, token.at);
	*ret_bad_token = rig.bad_token;
	return rig.rights;
}

void observe_request(struct engine_thread *thread, enum request_api api, int code)
{
	rig.requests++;
	rig.last_code = code;
}

void undecided_note(struct engine_thread *thread, enum request_api api,
		    enum undecided_reason reason, const char *detail)
{
	assert_int_equal(api, API_GRPC);
	rig.undecided[reason]++;
}

void worker_connection_end(struct worker *worker, const struct peer_info *peer)
{
	rig.connections--;
}

/* ------------------------------------------------------------------ the client */

static inline int rig_on_header(nghttp2_session *session, const nghttp2_frame *frame,
				const u8 *name, size_t name_len, const u8 *value, size_t value_len,
				u8 flags, void *arg)
{
	struct rig_stream *stream = &rig.stream[frame->hd.stream_id];

	if (!strcmp((const char *)name, ":status"))
		stream->http_status = atoi((const char *)value);
	if (!strcmp((const char *)name, "grpc-status"))
		stream->grpc_status = atoi((const char *)value);
	if (!strcmp((const char *)name, "grpc-message"))
		snprintf(stream->message, sizeof(stream->message), "%s", (const char *)value);
	return 0;
}

static inline int rig_on_data(nghttp2_session *session, u8 flags, s32 id, const u8 *data,
			      size_t len, void *arg)
{
	struct rig_stream *stream = &rig.stream[id];

	assert_true(stream->body_len + len <= sizeof(stream->body));
	memcpy(stream->body + stream->body_len, data, len);
	stream->body_len += len;
	return 0;
}

static inline int rig_on_close(nghttp2_session *session, s32 id, u32 error, void *arg)
{
	rig.stream[id].closed = true;
	rig.stream[id].error = error;
	return 0;
}

static inline int rig_on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *arg)
{
	if (frame->hd.type == NGHTTP2_GOAWAY) {
		rig.goaway = true;
		rig.goaway_error = frame->goaway.error_code;
	}
	return 0;
}

static inline ssize_t rig_on_wanted(nghttp2_session *session, s32 id, u8 *buf, size_t size,
				    u32 *flags, nghttp2_data_source *source, void *arg)
{
	struct rig_stream *stream = &rig.stream[id];
	size_t left = stream->out_len - stream->out_sent;

	if (!left && stream->out_open)
		return NGHTTP2_ERR_DEFERRED;
	if (size > left)
		size = left;
	memcpy(buf, (const char *)stream->out + stream->out_sent, size);
	stream->out_sent += size;
	if (size == left && !stream->out_open)
		*flags |= NGHTTP2_DATA_FLAG_EOF;
	return size;
}

static inline void rig_connect(bool preface)
{
	nghttp2_session_callbacks *callbacks;
	struct bufferevent *bev;
	int pair[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair), 0);
	rig.fd = pair[0];
	bev = bufferevent_socket_new(rig.worker.base, pair[1], BEV_OPT_CLOSE_ON_FREE);
	assert_non_null(bev);
	rig.connections++;
	frontend_grpc.accept(&rig.worker, bev, &rig.peer);
	if (!preface)
		return;
	nghttp2_session_callbacks_new(&callbacks);
	nghttp2_session_callbacks_set_on_header_callback(callbacks, rig_on_header);
	nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, rig_on_data);
	nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, rig_on_close);
	nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, rig_on_frame);
	nghttp2_session_client_new(&rig.client, callbacks, NULL);
	nghttp2_session_callbacks_del(callbacks);
	nghttp2_submit_settings(rig.client, 0, NULL, 0);
}

static inline int rig_begin(void **state)
{
	struct rig_stream *stream = calloc(2 * RIG_STREAMS, sizeof(*stream));

	memset(&rig, 0, sizeof(rig));
	rig.stream = stream;
	for (int i = 0; i < 2 * RIG_STREAMS; i++)
		stream[i].grpc_status = stream[i].http_status = -1;
	rig.tier = (struct http_tier){ .def = &rig.def, .worker = &rig.worker, .worker_count = 1 };
	rig.worker = (struct worker){ .tier = &rig.tier, .base = event_base_new() };
	rig.peer = (struct peer_info){ .local = true, .listener = &rig.listener };
	rig.rights = MAY_CHECK | MAY_REPORT;
	rig.fd = -1;
	assert_int_equal(frontend_grpc.start(&rig.worker), 0);
	return 0;
}

static inline void rig_close(void)
{
	if (rig.fd >= 0)
		close(rig.fd);
	rig.fd = -1;
	nghttp2_session_del(rig.client);
	rig.client = NULL;
}

static inline int rig_end(void **state)
{
	rig_close();
	frontend_grpc.stop(&rig.worker);
	assert_int_equal(rig.connections, 0);
	event_base_free(rig.worker.base);
	for (int i = 0; i < 2 * RIG_STREAMS; i++)
		free(rig.stream[i].owned);
	free(rig.stream);
	return 0;
}

/* Both sides send until neither has more to send. */
static inline void rig_pump(void)
{
	for (int quiet = 0; quiet < 3; quiet++) {
		u8 buf[65536];
		const u8 *data;
		ssize_t n;

		while (rig.client && (n = nghttp2_session_mem_send(rig.client, &data)) > 0) {
			quiet = 0;
			while (n > 0) {
				ssize_t sent = send(rig.fd, data, n, MSG_NOSIGNAL);

				if (sent > 0) {
					data += sent;
					n -= sent;
				} else {
					if (errno != EAGAIN)
						break;
					event_base_loop(rig.worker.base, EVLOOP_NONBLOCK);
				}
			}
		}
		event_base_loop(rig.worker.base, EVLOOP_NONBLOCK);
		while (rig.fd >= 0 && rig.client && (n = read(rig.fd, buf, sizeof(buf))) > 0) {
			quiet = 0;
			if (nghttp2_session_mem_recv(rig.client, buf, n) < 0)
				break;
		}
	}
}

/* clang-format off */
#define RIG_NV(name, value) \
	{ (u8 *)(name), (u8 *)(value), strlen(name), strlen(value), 0 }
/* clang-format on */

/* A request with these bytes as its body; `extra` is a header more, or NULL. */
static inline s32 rig_raw(const char *path, const void *body, size_t len, const char *extra,
			  const char *value)
{
	nghttp2_nv headers[] = {
		RIG_NV(":method", "POST"),
		RIG_NV(":scheme", "http"),
		RIG_NV(":path", path),
		RIG_NV(":authority", "limiter"),
		RIG_NV("content-type", "application/grpc"),
		RIG_NV("te", "trailers"),
		RIG_NV(extra ? extra : "x", value ? value : "y"),
	};
	nghttp2_data_provider provider = { .read_callback = rig_on_wanted };
	s32 id = nghttp2_session_get_next_stream_id(rig.client);

	assert_true(id < 2 * RIG_STREAMS);
	rig.stream[id].out = body;
	rig.stream[id].out_len = len;
	assert_int_equal(nghttp2_submit_request(rig.client, NULL, headers, extra ? 7 : 6,
						body ? &provider : NULL, NULL),
			 id);
	return id;
}

/* The same, a message with its prefix. */
static inline s32 rig_request(const char *path, const void *message, size_t len, const char *extra,
			      const char *value)
{
	u8 *at = malloc(len + 5);
	s32 id;

	assert_non_null(at);
	at[0] = 0;
	at[1] = len >> 24;
	at[2] = len >> 16;
	at[3] = len >> 8;
	at[4] = len;
	memcpy(at + 5, message, len);
	id = rig_raw(path, at, len + 5, extra, value);
	rig.stream[id].owned = at;
	return id;
}

#endif
