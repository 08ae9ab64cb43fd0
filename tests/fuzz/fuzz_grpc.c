// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Any bytes as a connection of gRPC. The first byte says in what pieces the rest comes, and what
 * it is: all of the connection, what follows the preface of HTTP/2, or the message of a request
 * to one of the methods.
 */
#include <nghttp2/nghttp2.h>

#include "frontend_feed.h"
#include "request/frontends/grpc/grpc.h"

#define PREFACE "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0"

static const char *const paths[] = {
	"/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit",
	"/kuadrant.service.ratelimit.v1.RateLimitService/CheckRateLimit",
	"/kuadrant.service.ratelimit.v1.RateLimitService/Report",
	"/grpc.health.v1.Health/Check",
};

static size_t put_frame(u8 *to, u8 type, u8 flags, const void *payload, size_t size)
{
	u8 head[9] = { size >> 16, size >> 8, size, type, flags, 0, 0, 0, type == 4 ? 0 : 1 };

	memcpy(to, head, sizeof(head));
	memcpy(to + sizeof(head), payload, size);
	return sizeof(head) + size;
}

/* clang-format off */
#define NV(name, value) \
	{ (u8 *)(name), (u8 *)(value), strlen(name), strlen(value), NGHTTP2_NV_FLAG_NONE }
/* clang-format on */

/* HEADERS and one DATA frame with the message, behind the preface. */
static size_t put_request(u8 *to, const char *path, const u8 *message, size_t size)
{
	const nghttp2_nv headers[] = {
		NV(":method", "POST"),
		NV(":scheme", "http"),
		NV(":path", path),
		NV(":authority", "limiter"),
		NV("content-type", "application/grpc"),
		NV("te", "trailers"),
	};
	static u8 data[20000];
	u8 block[512];
	nghttp2_hd_deflater *deflater;
	size_t len = sizeof(PREFACE) - 1;
	ssize_t packed;

	memcpy(to, PREFACE, len);
	assert(!nghttp2_hd_deflate_new(&deflater, 4096));
	packed = nghttp2_hd_deflate_hd(deflater, block, sizeof(block), headers, 6);
	nghttp2_hd_deflate_del(deflater);
	assert(packed > 0);
	len += put_frame(to + len, 1, 4, block, packed);
	data[0] = 0;
	data[1] = size >> 24;
	data[2] = size >> 16;
	data[3] = size >> 8;
	data[4] = size;
	memcpy(data + 5, message, size);
	return len + put_frame(to + len, 0, 1, data, size + 5);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static u8 request[32 * 1024];
	u8 kind;
	int fd;

	if (!size || size > 16000)
		return 0;
	feed_begin(&frontend_grpc);
	kind = data[0] >> 5;
	fd = feed_connect();
	if (kind >= 4) {
		size_t len = put_request(request, paths[kind - 4], data + 1, size - 1);

		feed_send(fd, request, len, data[0] & 0x1f);
	} else {
		if (kind)
			feed_send(fd, PREFACE, sizeof(PREFACE) - 1, 0);
		feed_send(fd, data + 1, size - 1, data[0] & 0x1f);
	}
	feed_close(fd);
	return 0;
}
