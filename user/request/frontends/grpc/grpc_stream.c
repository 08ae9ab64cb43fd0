// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * grpc_stream.c - one request of the gRPC frontend: headers, one message in, one out, trailers.
 *
 * A stream's memory is one block that the worker reuses, with room for the message, its decoded
 * form and the response; larger ones allocate more blocks, up to a bound that grows with what the
 * client has sent, so that two bytes on the wire never hold a hundred here for long.
 */
#include <stdlib.h>
#include <string.h>

#include "request/frontends/grpc/grpc_private.h"
#include "request/engine/observe.h"

#define GRPC_PREFIX 5
#define GRPC_UNUSED_MAX 256	      /* streams that a worker keeps */
#define GRPC_ARENA_EXTRA (128 * 1024) /* beyond twice the message */

static const struct grpc_method methods[] = {
	{ "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit", API_GRPC, MAY_CHECK,
	  grpc_should_rate_limit },
	{ "/kuadrant.service.ratelimit.v1.RateLimitService/CheckRateLimit", API_GRPC, MAY_CHECK,
	  grpc_check_rate_limit },
	{ "/kuadrant.service.ratelimit.v1.RateLimitService/Report", API_GRPC, MAY_REPORT,
	  grpc_report },
	{ "/grpc.health.v1.Health/Check", API_OTHER, 0, grpc_health_check },
	{ "/grpc.health.v1.Health/Watch", API_OTHER, 0, grpc_health_watch },
};

/* The method of a path; NULL: not implemented. */
static const struct grpc_method *grpc_method_find(const char *path, size_t len)
{
	for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++)
		if (strlen(methods[i].path) == len && !memcmp(methods[i].path, path, len))
			return &methods[i];
	return NULL;
}

/* ------------------------------------------------------------------ memory */

void *grpc_stream_alloc(struct grpc_stream *stream, size_t size)
{
	struct grpc_block *block;
	void *at;

	if (size > GRPC_ARENA_EXTRA + 2 * GRPC_MESSAGE_MAX) {
		stream->too_much = true;
		return NULL;
	}
	size = (size + 15) & ~(size_t)15;
	if (size <= sizeof(stream->arena) - stream->arena_used) {
		at = stream->arena + stream->arena_used;
		stream->arena_used += size;
		return at;
	}
	if (size + 16 > stream->arena_left) {
		stream->too_much = true;
		return NULL;
	}
	block = malloc(sizeof(*block) + 8 + size);
	if (!block)
		return NULL;
	stream->arena_left -= size + 16;
	block->next = stream->block;
	stream->block = block;
	return block->bytes + 8;
}

struct grpc_mark grpc_stream_mark(const struct grpc_stream *stream)
{
	return (struct grpc_mark){ stream->arena_left, stream->arena_used, stream->block };
}

void grpc_stream_release(struct grpc_stream *stream, struct grpc_mark mark)
{
	struct grpc_block *block;

	while ((block = stream->block) != mark.block) {
		stream->block = block->next;
		free(block);
	}
	stream->arena_left = mark.left;
	stream->arena_used = mark.used;
}

static void *allocator_alloc(void *stream, size_t size)
{
	return grpc_stream_alloc(stream, size);
}

static void allocator_free(void *stream, void *at)
{
}

struct grpc_stream *grpc_stream_new(struct grpc_conn *conn, s32 id)
{
	struct grpc_worker *of = conn->of;
	struct grpc_stream *stream = of->unused;

	if (stream) {
		of->unused = TAILQ_NEXT(stream, link);
		of->unused_count--;
	} else {
		stream = malloc(sizeof(*stream));
		if (!stream)
			return NULL;
	}
	memset(stream, 0, offsetof(struct grpc_stream, arena));
	stream->conn = conn;
	stream->id = id;
	stream->since_ms = of->now_ms;
	stream->http_status = 200;
	stream->arena_left = GRPC_ARENA_EXTRA;
	stream->allocator = (ProtobufCAllocator){ allocator_alloc, allocator_free, stream };
	TAILQ_INSERT_TAIL(&conn->streams, stream, link);
	conn->stream_count++;
	return stream;
}

void grpc_stream_replied(struct grpc_stream *stream)
{
	stream->conn->asking_count -= stream->whole && !stream->replied;
	stream->replied = true;
}

void grpc_stream_free(struct grpc_stream *stream)
{
	struct grpc_conn *conn = stream->conn;
	struct grpc_worker *of = conn->of;

	if (stream->delayed)
		request_cancel(stream->delayed);
	grpc_stream_replied(stream);
	conn->watching_count -= stream->out_more;
	if (conn->headed == stream)
		conn->headed = NULL;
	TAILQ_REMOVE(&conn->streams, stream, link);
	conn->stream_count--;
	conn->since_ms = of->now_ms;
	grpc_stream_release(stream, (struct grpc_mark){ .block = NULL });
	if (of->unused_count >= GRPC_UNUSED_MAX) {
		free(stream);
		return;
	}
	TAILQ_NEXT(stream, link) = of->unused;
	of->unused = stream;
	of->unused_count++;
}

/* ------------------------------------------------------------------ in */

static bool begins(struct bytes bytes, const char *text)
{
	return bytes.len >= strlen(text) && !strncasecmp(bytes.at, text, strlen(text));
}

/* "100m": at most eight digits and a unit. */
static bool timeout_parse(struct bytes text, u64 *ret_ns)
{
	static const struct {
		char unit;
		u64 ns;
	} units[] = {
		{ 'H', 3600000000000ULL }, { 'M', 60000000000ULL }, { 'S', 1000000000ULL },
		{ 'm', 1000000ULL },	   { 'u', 1000ULL },	    { 'n', 1ULL },
	};
	u64 n = 0;

	if (text.len < 2 || text.len > 9)
		return false;
	for (size_t i = 0; i + 1 < text.len; i++) {
		if (text.at[i] < '0' || text.at[i] > '9')
			return false;
		n = n * 10 + text.at[i] - '0';
	}
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
		if (units[i].unit == text.at[text.len - 1]) {
			*ret_ns = n > UINT64_MAX / units[i].ns ? UINT64_MAX : n * units[i].ns;
			return true;
		}
	return false;
}

static void take_token(struct grpc_stream *stream, struct bytes value)
{
	char *at;

	if (value.len > GRPC_TOKEN_MAX)
		return;
	at = grpc_stream_alloc(stream, value.len);
	if (!at)
		return;
	memcpy(at, value.at, value.len);
	stream->token = (struct bytes){ at, value.len };
}

/* As over HTTP/1.1: X-Sluice-Token is the caller's own; Authorization may be a third party's. */
static void take_authorization(struct grpc_stream *stream, struct bytes value)
{
	static const char scheme[] = "Bearer ";
	const size_t len = sizeof(scheme) - 1;

	if (begins(value, scheme) && !stream->token.len)
		take_token(stream, (struct bytes){ value.at + len, value.len - len });
}

/* "application/grpc", also with "+proto" or parameters; not "application/grpc-web", another
 * protocol. */
static bool is_grpc(struct bytes value)
{
	static const char type[] = "application/grpc";
	const size_t len = sizeof(type) - 1;

	return begins(value, type) && (value.len == len || strchr("+; ", value.at[len]));
}

void grpc_stream_header(struct grpc_stream *stream, struct bytes name, struct bytes value)
{
	/* HTTP/2's own count of a header list. */
	stream->header_bytes += name.len + value.len + 32;
	if (stream->header_bytes > GRPC_HEADERS_MAX) {
		stream->http_status = 431;
		return;
	}
	if (bytes_equal(name, ":path"))
		stream->method = grpc_method_find(value.at, value.len);
	else if (bytes_equal(name, ":method"))
		stream->is_post = bytes_equal(value, "POST");
	else if (bytes_equal(name, "content-type"))
		stream->is_grpc = is_grpc(value);
	else if (bytes_equal(name, "grpc-timeout"))
		stream->has_timeout = timeout_parse(value, &stream->timeout_ns);
	else if (bytes_equal(name, "x-sluice-token"))
		take_token(stream, value);
	else if (bytes_equal(name, "authorization"))
		take_authorization(stream, value);
}

static void refuse(struct grpc_stream *stream, int http_status)
{
	static const struct {
		int status;
		const char *text;
	} statuses[] = {
		{ 405, "405" },
		{ 415, "415" },
		{ 431, "431" },
	};
	nghttp2_nv header = { (u8 *)":status", NULL, 7, 3, NGHTTP2_NV_FLAG_NO_COPY_NAME };

	for (size_t i = 0; i < sizeof(statuses) / sizeof(statuses[0]); i++)
		if (statuses[i].status == http_status)
			header.value = (u8 *)statuses[i].text;
	grpc_stream_replied(stream);
	observe_request(stream->conn->of->worker->engine, API_OTHER, http_status);
	if (nghttp2_submit_response(stream->conn->session, stream->id, &header, 1, NULL))
		stream->conn->dead = true;
}

/* For any domain: a message is only kept if the caller has a right at all. */
static void check_rights(struct grpc_stream *stream)
{
	const struct grpc_conn *conn = stream->conn;
	bool bad_token;
	u32 rights = caller_rights(conn->of->worker->tier, &conn->peer, stream->token,
				   (struct bytes){ NULL, 0 }, &bad_token);

	if (bad_token)
		grpc_stream_fail(stream, GRPC_UNAUTHENTICATED, "unknown token");
	else if (!(rights & stream->method->right))
		grpc_stream_fail(stream, GRPC_PERMISSION_DENIED,
				 "permission denied: the caller may not call this method");
}

void grpc_stream_headed(struct grpc_stream *stream)
{
	if (stream->http_status == 200 && !stream->is_post)
		stream->http_status = 405;
	else if (stream->http_status == 200 && !stream->is_grpc)
		stream->http_status = 415;
	if (stream->http_status != 200)
		refuse(stream, stream->http_status);
	else if (!stream->method)
		grpc_stream_fail(stream, GRPC_UNIMPLEMENTED, "unknown method");
	else if (stream->method->right)
		check_rights(stream);
}

/* The five bytes before a message: whether it is compressed, and how long it is. */
static void body_begin(struct grpc_stream *stream)
{
	const u8 *prefix = stream->prefix;
	u32 len = (u32)prefix[1] << 24 | prefix[2] << 16 | prefix[3] << 8 | prefix[4];

	if (prefix[0] & 1) {
		grpc_stream_fail(stream, GRPC_UNIMPLEMENTED,
				 "compressed messages are not supported");
		return;
	}
	if (len > GRPC_MESSAGE_MAX) {
		if (!grpc_refuse_beyond(stream, "a message of more than 1 MiB"))
			grpc_stream_fail(stream, GRPC_RESOURCE_EXHAUSTED,
					 "a message of more than 1 MiB");
		return;
	}
	stream->arena_left += 2 * len;
	stream->body_want = len;
	stream->body = grpc_stream_alloc(stream, len);
	if (!stream->body)
		grpc_stream_no_memory(stream);
}

void grpc_stream_body(struct grpc_stream *stream, const void *data, size_t len)
{
	size_t part;

	if (stream->prefix_len < GRPC_PREFIX) {
		part = GRPC_PREFIX - stream->prefix_len;
		if (part > len)
			part = len;
		memcpy(stream->prefix + stream->prefix_len, data, part);
		stream->prefix_len += part;
		data = (const char *)data + part;
		len -= part;
		if (stream->prefix_len < GRPC_PREFIX)
			return;
		body_begin(stream);
		if (stream->replied)
			return;
	}
	if (len > stream->body_want - stream->body_len) {
		grpc_stream_fail(stream, GRPC_INVALID_ARGUMENT,
				 "more than one message in a unary call");
		return;
	}
	memcpy(stream->body + stream->body_len, data, len);
	stream->body_len += len;
}

void grpc_stream_run(struct grpc_stream *stream)
{
	if (stream->prefix_len < GRPC_PREFIX || stream->body_len < stream->body_want)
		grpc_stream_fail(stream, GRPC_INVALID_ARGUMENT, "message missing or truncated");
	else
		stream->method->run(stream, (struct bytes){ stream->body, stream->body_len });
}

/* ------------------------------------------------------------------ out */

/* clang-format off */
#define NAME_VALUE(name, value) \
	{ (u8 *)(name), (u8 *)(value), sizeof(name) - 1, sizeof(value) - 1, \
	  NGHTTP2_NV_FLAG_NO_COPY_NAME | NGHTTP2_NV_FLAG_NO_COPY_VALUE }
/* clang-format on */

/* nghttp2 requests the next bytes of the response; the trailers follow the last. */
static ssize_t on_wanted(nghttp2_session *session, s32 id, u8 *buf, size_t size, u32 *flags,
			 nghttp2_data_source *source, void *arg)
{
	static const nghttp2_nv ok[] = { NAME_VALUE("grpc-status", "0") };
	struct grpc_stream *stream = source->ptr;
	u32 left = stream->out_len - stream->out_sent;

	if (!left && stream->out_more)
		return NGHTTP2_ERR_DEFERRED;
	if (size > left)
		size = left;
	memcpy(buf, stream->out + stream->out_sent, size);
	stream->out_sent += size;
	if (size == left && !stream->out_more) {
		*flags |= NGHTTP2_DATA_FLAG_EOF | NGHTTP2_DATA_FLAG_NO_END_STREAM;
		if (nghttp2_submit_trailer(session, id, ok, 1))
			return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
	}
	return size;
}

/* Room for a message behind the unsent output, with its prefix; NULL: no memory. */
static u8 *add_out(struct grpc_stream *stream, u32 len)
{
	u32 before = stream->out_len - stream->out_sent;
	u8 *out, *at;

	/* Rules bound a response, so any request leaves enough memory for one. */
	stream->arena_left += before + GRPC_PREFIX + len + 32;
	out = grpc_stream_alloc(stream, before + GRPC_PREFIX + len);
	if (!out)
		return NULL;
	at = out + before;
	if (before)
		memcpy(out, stream->out + stream->out_sent, before);
	at[0] = 0;
	at[1] = len >> 24;
	at[2] = len >> 16;
	at[3] = len >> 8;
	at[4] = len;
	stream->out = (const char *)out;
	stream->out_len = before + GRPC_PREFIX + len;
	stream->out_sent = 0;
	return at + GRPC_PREFIX;
}

/* Envoy lets a request pass for which it gets an error. Reports and health decide nothing. */
static void note_undecided(const struct grpc_stream *stream, enum undecided_reason reason,
			   const char *message)
{
	if (!stream->method || stream->method->right == MAY_CHECK)
		undecided_note(stream->conn->of->worker->engine, API_GRPC, reason, message);
}

void grpc_stream_no_memory(struct grpc_stream *stream)
{
	if (stream->replied)
		return;
	note_undecided(stream, UNDECIDED_MEMORY, "out of memory");
	grpc_stream_fail(stream, GRPC_UNAVAILABLE, "out of memory");
}

/* Sends what add_out() was given. */
static void send_out(struct grpc_stream *stream, bool more)
{
	static const nghttp2_nv headers[] = {
		NAME_VALUE(":status", "200"),
		NAME_VALUE("content-type", "application/grpc"),
	};
	struct grpc_conn *conn = stream->conn;
	nghttp2_data_provider provider = { .source.ptr = stream, .read_callback = on_wanted };

	conn->watching_count += more - stream->out_more;
	stream->out_more = more;
	if (stream->replied) {
		nghttp2_session_resume_data(conn->session, stream->id);
		return;
	}
	grpc_stream_replied(stream);
	observe_request(conn->of->worker->engine, stream->method->api, GRPC_OK);
	if (nghttp2_submit_response(conn->session, stream->id, headers, 2, &provider))
		conn->dead = true;
}

void grpc_stream_reply(struct grpc_stream *stream, const ProtobufCMessage *message, bool more)
{
	u8 *at = add_out(stream, protobuf_c_message_get_packed_size(message));

	if (!at) {
		grpc_stream_no_memory(stream);
		return;
	}
	protobuf_c_message_pack(message, at);
	send_out(stream, more);
}

void grpc_stream_reply_packed(struct grpc_stream *stream, struct bytes message)
{
	u8 *at = add_out(stream, message.len);

	if (!at) {
		grpc_stream_no_memory(stream);
		return;
	}
	memcpy(at, message.at, message.len);
	send_out(stream, false);
}

static void note_status(const struct grpc_stream *stream, enum grpc_status status,
			const char *message)
{
	if (!stream->method)
		note_undecided(stream, UNDECIDED_PATH, message);
	else if (status == GRPC_UNAUTHENTICATED || status == GRPC_PERMISSION_DENIED)
		note_undecided(stream, UNDECIDED_CALLER, message);
	else if (status == GRPC_INVALID_ARGUMENT || status == GRPC_UNIMPLEMENTED)
		note_undecided(stream, UNDECIDED_UNREADABLE, message);
}

void grpc_stream_fail(struct grpc_stream *stream, enum grpc_status status, const char *message)
{
	struct grpc_conn *conn = stream->conn;
	char number[] = { '0' + status / 10, '0' + status % 10 };
	nghttp2_nv headers[] = {
		NAME_VALUE(":status", "200"),
		NAME_VALUE("content-type", "application/grpc"),
		NAME_VALUE("grpc-accept-encoding", "identity"),
		{ (u8 *)"grpc-status", (u8 *)number + (status < 10), 11, 1 + (status >= 10),
		  NGHTTP2_NV_FLAG_NO_COPY_NAME },
		{ (u8 *)"grpc-message", (u8 *)message, 12, strlen(message),
		  NGHTTP2_NV_FLAG_NO_COPY_NAME | NGHTTP2_NV_FLAG_NO_COPY_VALUE },
	};

	grpc_stream_replied(stream);
	note_status(stream, status, message);
	observe_request(conn->of->worker->engine, stream->method ? stream->method->api : API_OTHER,
			status);
	if (nghttp2_submit_response(conn->session, stream->id, headers,
				    sizeof(headers) / sizeof(headers[0]), NULL))
		conn->dead = true;
}
