// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * grpc_health.c - grpc.health.v1: serving, from the first connection until draining.
 *
 * Check responds once; Watch responds now and again when draining begins. The empty service is
 * the server; the others are those that the frontend serves.
 */
#include <string.h>

#include "request/rules/request_text.h"
#include "request/frontends/grpc/grpc_private.h"
#include "proto/health.pb-c.h"

static const char *const services[] = {
	/* "ratelimit" is the name of envoyproxy/ratelimit. */
	"",
	"ratelimit",
	"envoy.service.ratelimit.v3.RateLimitService",
	"kuadrant.service.ratelimit.v1.RateLimitService",
	"grpc.health.v1.Health",
};

static bool service_known(ProtobufCBinaryData service)
{
	struct bytes name = { (const char *)service.data, service.len };

	for (size_t i = 0; i < sizeof(services) / sizeof(services[0]); i++)
		if (bytes_equal(name, services[i]))
			return true;
	return false;
}

static Health__Serving now(const struct grpc_stream *stream)
{
	return stream->conn->of->draining ? HEALTH__SERVING__NOT_SERVING : HEALTH__SERVING__SERVING;
}

static void run(struct grpc_stream *stream, struct bytes message, bool watch)
{
	const Health__Request *request =
		health__request__unpack(&stream->allocator, message.len, (const u8 *)message.at);
	Health__Response response = HEALTH__RESPONSE__INIT;

	if (!request) {
		grpc_stream_fail(stream, GRPC_INVALID_ARGUMENT, "not a HealthCheckRequest");
		return;
	}
	response.status = now(stream);
	if (!service_known(request->service)) {
		if (!watch) {
			grpc_stream_fail(stream, GRPC_NOT_FOUND, "unknown service");
			return;
		}
		response.status = HEALTH__SERVING__SERVICE_UNKNOWN;
	} else {
		stream->watching = watch;
	}
	grpc_stream_reply(stream, &response.base, watch && !stream->conn->of->draining);
}

void grpc_health_check(struct grpc_stream *stream, struct bytes message)
{
	run(stream, message, false);
}

void grpc_health_watch(struct grpc_stream *stream, struct bytes message)
{
	run(stream, message, true);
}

void grpc_health_drain(struct grpc_conn *conn)
{
	Health__Response response = HEALTH__RESPONSE__INIT;
	struct grpc_stream *stream;

	TAILQ_FOREACH(stream, &conn->streams, link)
		if (stream->out_more) {
			response.status = stream->watching ? HEALTH__SERVING__NOT_SERVING
							   : HEALTH__SERVING__SERVICE_UNKNOWN;
			grpc_stream_reply(stream, &response.base, false);
		}
}
