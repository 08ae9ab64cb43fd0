/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * load_frontends.h - the client side of each frontend, for load.c; one file includes it once.
 *
 * One descriptor of one entry, one connection, one request at a time. HTTP is the part that sluiced
 * uses; gRPC is nghttp2's client and protobuf-c; SPOE is what HAProxy sends, by spop.h.
 */
#ifndef SLUICE_TESTS_LOAD_FRONTENDS_H
#define SLUICE_TESTS_LOAD_FRONTENDS_H

#include <errno.h>
#include <nghttp2/nghttp2.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "request/frontends/spoe/spop.h"
#include "proto/rls.pb-c.h"

#define STATUSES 8

struct frontend;

struct way {
	const struct frontend *frontend;
	const char *domain, *label;
	char key[64], value[64];
	int fd;
	bool asked;
	u64 due_us, sent_us;
	u8 out[1024], in[16384]; /* a request; what was read and is not consumed yet */
	size_t out_len, in_len;
	nghttp2_session *session;
	char answer[24];  /* of gRPC, once it has come */
	u8 message[4096]; /* with its prefix */
	size_t message_len;
	u32 *took_us;
	size_t count;
	struct {
		char name[24];
		u32 count;
	} status[STATUSES];
};

struct frontend {
	const char *name;
	u16 port;
	void (*open)(struct way *way); /* connected, and not yet non-blocking */
	void (*ask)(struct way *way);
	const char *(*take)(struct way *way); /* NULL: the response is not complete yet */
};

static void __attribute__((format(printf, 1, 2), noreturn)) die(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	fputs("load: ", stderr);
	vfprintf(stderr, format, args);
	fprintf(stderr, ": %s\n", strerror(errno));
	exit(2);
}

static void send_all(struct way *way, const void *bytes, size_t len)
{
	if (send(way->fd, bytes, len, MSG_NOSIGNAL) != (ssize_t)len)
		die("%s: send", way->label);
}

static void taken(struct way *way, size_t len)
{
	way->in_len -= len;
	memmove(way->in, way->in + len, way->in_len);
}

/* ------------------------------------------------------------------ HTTP/1.1 */

static void http_ask(struct way *way)
{
	send_all(way, way->out, way->out_len);
}

static void http_post(struct way *way, const char *path)
{
	char body[512];
	int len = snprintf(body, sizeof(body),
			   "{\"domain\":\"%s\",\"descriptors\":[{\"entries\":"
			   "[{\"key\":\"%s\",\"value\":\"%s\"}]}]}",
			   way->domain, way->key, way->value);

	way->out_len =
		(size_t)snprintf((char *)way->out, sizeof(way->out),
				 "POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n"
				 "Content-Type: application/json\r\n\r\n%s",
				 path, len, body);
}

static void http_get(struct way *way, const char *path)
{
	way->out_len =
		(size_t)snprintf((char *)way->out, sizeof(way->out),
				 "GET %s?domain=%s&d=%s=%s HTTP/1.1\r\nHost: localhost\r\n\r\n",
				 path, way->domain, way->key, way->value);
}

static void check_open(struct way *way)
{
	http_post(way, "/v1/check");
}

static void json_open(struct way *way)
{
	http_post(way, "/json");
}

static void auth_open(struct way *way)
{
	http_get(way, "/forward-auth");
}

static void nginx_open(struct way *way)
{
	http_get(way, "/nginx/check");
}

static const char *http_take(struct way *way)
{
	static char status[4];
	char *text = (char *)way->in, *end, *length;
	size_t size;

	way->in[way->in_len] = 0;
	end = strstr(text, "\r\n\r\n");
	if (!end)
		return NULL;
	length = strcasestr(text, "\r\nContent-Length:");
	size = (size_t)(end + 4 - text) +
	       (length && length < end ? strtoul(length + 17, NULL, 10) : 0);
	if (size > way->in_len)
		return NULL;
	snprintf(status, sizeof(status), "%.3s", text + 9);
	taken(way, size);
	return status;
}

/* ------------------------------------------------------------------ gRPC */

static void grpc_flush(struct way *way)
{
	const u8 *bytes;
	ssize_t len;

	while ((len = nghttp2_session_mem_send(way->session, &bytes)) > 0)
		send_all(way, bytes, (size_t)len);
	if (len < 0)
		die("%s: nghttp2: %s", way->label, nghttp2_strerror((int)len));
}

static int grpc_header(nghttp2_session *session, const nghttp2_frame *frame, const u8 *name,
		       size_t name_len, const u8 *value, size_t value_len, u8 flags, void *arg)
{
	struct way *way = arg;

	if (strcmp((const char *)name, "grpc-status") || !strcmp((const char *)value, "0"))
		return 0;
	if (!strcmp((const char *)value, "14"))
		strcpy(way->answer, "UNAVAILABLE");
	else
		snprintf(way->answer, sizeof(way->answer), "status-%.4s", (const char *)value);
	return 0;
}

static int grpc_data(nghttp2_session *session, u8 flags, s32 id, const u8 *data, size_t len,
		     void *arg)
{
	struct way *way = arg;

	if (len > sizeof(way->message) - way->message_len)
		die("%s: a long answer", way->label);
	memcpy(way->message + way->message_len, data, len);
	way->message_len += len;
	return 0;
}

static const char *grpc_code(const struct way *way)
{
	Rls__Response *response =
		way->message_len < 5
			? NULL
			: rls__response__unpack(NULL, way->message_len - 5, way->message + 5);
	int code = response ? (int)response->overall_code : -1;

	if (response)
		rls__response__free_unpacked(response, NULL);
	return code == RLS__CODE__OK	       ? "OK"
	       : code == RLS__CODE__OVER_LIMIT ? "OVER_LIMIT"
					       : "broken";
}

static int grpc_close(nghttp2_session *session, s32 id, u32 error, void *arg)
{
	struct way *way = arg;

	if (error)
		snprintf(way->answer, sizeof(way->answer), "reset-%u", error);
	else if (!way->answer[0])
		strcpy(way->answer, grpc_code(way));
	way->asked = false;
	return 0;
}

static ssize_t grpc_wanted(nghttp2_session *session, s32 id, u8 *to, size_t size, u32 *flags,
			   nghttp2_data_source *source, void *arg)
{
	struct way *way = arg;

	memcpy(to, way->out, way->out_len);
	*flags |= NGHTTP2_DATA_FLAG_EOF;
	return (ssize_t)way->out_len;
}

static void grpc_open(struct way *way)
{
	Rls__Entry entry = RLS__ENTRY__INIT, *entries = &entry;
	Rls__Descriptor descriptor = RLS__DESCRIPTOR__INIT, *descriptors = &descriptor;
	Rls__Request request = RLS__REQUEST__INIT;
	nghttp2_session_callbacks *callbacks;

	entry.key = (ProtobufCBinaryData){ strlen(way->key), (u8 *)way->key };
	entry.value = (ProtobufCBinaryData){ strlen(way->value), (u8 *)way->value };
	descriptor.n_entries = 1;
	descriptor.entries = &entries;
	request.domain = (ProtobufCBinaryData){ strlen(way->domain), (u8 *)way->domain };
	request.n_descriptors = 1;
	request.descriptors = &descriptors;
	way->out_len = 5 + rls__request__pack(&request, way->out + 5);
	way->out[4] = (u8)(way->out_len - 5); /* it is short */
	nghttp2_session_callbacks_new(&callbacks);
	nghttp2_session_callbacks_set_on_header_callback(callbacks, grpc_header);
	nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, grpc_data);
	nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, grpc_close);
	if (nghttp2_session_client_new(&way->session, callbacks, way))
		die("nghttp2");
	nghttp2_session_callbacks_del(callbacks);
	nghttp2_submit_settings(way->session, 0, NULL, 0);
	grpc_flush(way);
}

/* clang-format off */
#define HEADER(name, value) { (u8 *)(name), (u8 *)(value), sizeof(name) - 1, sizeof(value) - 1, 0 }
/* clang-format on */

static void grpc_ask(struct way *way)
{
	static const nghttp2_nv headers[] = {
		HEADER(":method", "POST"),
		HEADER(":scheme", "http"),
		HEADER(":path", "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit"),
		HEADER(":authority", "lab"),
		HEADER("content-type", "application/grpc"),
		HEADER("te", "trailers"),
	};
	nghttp2_data_provider body = { .read_callback = grpc_wanted };

	way->answer[0] = 0;
	way->message_len = 0;
	if (nghttp2_submit_request(way->session, NULL, headers,
				   sizeof(headers) / sizeof(headers[0]), &body, NULL) < 0)
		die("%s: nghttp2", way->label);
	grpc_flush(way);
}

static const char *grpc_take(struct way *way)
{
	if (nghttp2_session_mem_recv(way->session, way->in, way->in_len) < 0)
		die("%s: nghttp2", way->label);
	way->in_len = 0;
	grpc_flush(way);
	return way->asked ? NULL : way->answer;
}

/* ------------------------------------------------------------------ SPOE */

/* The next frame; it is valid until the next taken(). */
static bool spoe_frame(struct way *way, struct spop_frame *ret, size_t *ret_len)
{
	size_t len = way->in_len < 4 ? 0
				     : 4 + ((size_t)way->in[0] << 24 | way->in[1] << 16 |
					    way->in[2] << 8 | way->in[3]);

	if (!len || way->in_len < len)
		return false;
	if (!spop_get_frame(way->in + 4, len - 4, ret))
		die("%s: no frame", way->label);
	*ret_len = len;
	return true;
}

static void spoe_open(struct way *way)
{
	struct spop_writer writer =
		spop_frame_begin(way->out, sizeof(way->out), SPOP_HAPROXY_HELLO, 0, 0);
	struct spop_frame frame;
	size_t len;
	ssize_t n;

	spop_put_pair_string(&writer, "supported-versions", "2.0");
	spop_put_pair_number(&writer, "max-frame-size", 16380);
	spop_put_pair_string(&writer, "capabilities", "");
	send_all(way, way->out, spop_frame_end(&writer));
	while (!spoe_frame(way, &frame, &len)) {
		n = recv(way->fd, way->in + way->in_len, sizeof(way->in) - way->in_len, 0);
		if (n <= 0)
			die("%s: no hello", way->label);
		way->in_len += (size_t)n;
	}
	if (frame.type != SPOP_AGENT_HELLO)
		die("%s: a frame %u for a hello", way->label, frame.type);
	taken(way, len);
}

static void spoe_ask(struct way *way)
{
	struct spop_writer writer = spop_frame_begin(way->out, sizeof(way->out), SPOP_NOTIFY, 1, 1);

	spop_put_text(&writer, (struct bytes){ "check", 5 });
	spop_put_u8(&writer, 2);
	spop_put_pair_string(&writer, "domain", way->domain);
	spop_put_pair_string(&writer, way->key, way->value);
	send_all(way, way->out, spop_frame_end(&writer));
}

static const char *spoe_take(struct way *way)
{
	const char *said = "none";
	struct spop_frame frame;
	size_t len;

	if (!spoe_frame(way, &frame, &len))
		return NULL;
	if (frame.type != SPOP_ACK)
		said = "no-ack";
	while (frame.type == SPOP_ACK && frame.payload.at < frame.payload.end) {
		struct spop_value value = { 0 };
		struct bytes name;
		u8 action, count, scope;

		if (!spop_get_u8(&frame.payload, &action) || !spop_get_u8(&frame.payload, &count) ||
		    !spop_get_u8(&frame.payload, &scope) || !spop_get_text(&frame.payload, &name) ||
		    (action == SPOP_SET_VAR && !spop_get_value(&frame.payload, &value)))
			die("%s: a broken ACK", way->label);
		if (name.len == 7 && !memcmp(name.at, "limited", 7))
			said = value.number ? "limited" : "free";
		else if (!strcmp(said, "none"))
			said = "others";
	}
	taken(way, len);
	return said;
}

static const struct frontend fronts[] = {
	{ "check", 8180, check_open, http_ask, http_take },
	{ "auth", 8180, auth_open, http_ask, http_take },
	{ "nginx", 8180, nginx_open, http_ask, http_take },
	{ "json", 8180, json_open, http_ask, http_take },
	{ "grpc", 8181, grpc_open, grpc_ask, grpc_take },
	{ "spoe", 8182, spoe_open, spoe_ask, spoe_take },
};

#endif
