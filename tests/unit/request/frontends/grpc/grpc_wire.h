/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * grpc_wire.h - requests byte by byte, and responses taken apart, for tests of the gRPC frontend.
 */
#ifndef SLUICE_TESTS_GRPC_WIRE_H
#define SLUICE_TESTS_GRPC_WIRE_H

#include "h2_client.h"
#include "proto/rls.pb-c.h"

/* A RateLimitRequest put together by its wire format: tests of it should not use its decoder. */
struct wire {
	u8 at[300000];
	size_t len;
};

static inline void wire_varint(struct wire *wire, u64 n)
{
	for (; n >= 128; n >>= 7)
		wire->at[wire->len++] = n | 128;
	wire->at[wire->len++] = n;
}

static inline void wire_bytes(struct wire *wire, u32 field, const void *bytes, size_t len)
{
	wire_varint(wire, field << 3 | 2);
	wire_varint(wire, len);
	memcpy(wire->at + wire->len, bytes, len);
	wire->len += len;
}

static inline void wire_number(struct wire *wire, u32 field, u64 n)
{
	wire_varint(wire, field << 3);
	wire_varint(wire, n);
}

static inline void wire_entry(struct wire *descriptor, const char *key, const void *value,
			      size_t len)
{
	static struct wire entry;

	entry.len = 0;
	wire_bytes(&entry, 1, key, strlen(key));
	wire_bytes(&entry, 2, value, len);
	wire_bytes(descriptor, 1, entry.at, entry.len);
}

/* domain "api", one descriptor user=VALUE */
static inline const struct wire *wire_user(const char *value)
{
	static struct wire wire, descriptor;

	wire.len = descriptor.len = 0;
	wire_bytes(&wire, 1, "api", 3);
	wire_entry(&descriptor, "user", value, strlen(value));
	wire_bytes(&wire, 2, descriptor.at, descriptor.len);
	return &wire;
}

static inline struct rig_stream *grpc_call(const char *path, const struct wire *wire)
{
	s32 id = rig_request(path, wire->at, wire->len, NULL, NULL);

	rig_pump();
	return &rig.stream[id];
}

static inline Rls__Response *response(const struct rig_stream *stream)
{
	Rls__Response *ret;

	assert_true(stream->closed);
	assert_int_equal(stream->error, NGHTTP2_NO_ERROR);
	assert_int_equal(stream->http_status, 200);
	assert_int_equal(stream->grpc_status, 0);
	assert_true(stream->body_len >= 5);
	assert_int_equal(stream->body[0], 0);
	assert_int_equal(stream->body[3] << 8 | stream->body[4], stream->body_len - 5);
	ret = rls__response__unpack(NULL, stream->body_len - 5, stream->body + 5);
	assert_non_null(ret);
	return ret;
}

static inline void is_answered(const struct rig_stream *stream)
{
	rls__response__free_unpacked(response(stream), NULL);
}

static inline void is_failed(const struct rig_stream *stream, int status)
{
	assert_true(stream->closed);
	assert_int_equal(stream->http_status, 200);
	assert_int_equal(stream->grpc_status, status);
	assert_int_equal(stream->body_len, 0);
	assert_true(stream->message[0]);
	assert_int_equal(rig.last_code, status);
}

#endif
