// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * rls_json.c - POST /json: RateLimitRequest in, RateLimitResponse out, in protojson, as
 * envoyproxy/ratelimit has it; GET /healthcheck.
 *
 * Members that are 0 are written, too: protojson may omit them, and its readers accept both.
 * 64-bit integers would be strings, but responses have none; a Duration is text ("2s"). closed is
 * OVER_LIMIT, since the protocol has no other refusal; error is 503.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "request/frontends/http1/check.h"
#include "request/rules/permit.h"
#include "request/server/response.h"
#include "lib/out.h"

#define U32_MAX 0xffffffffULL
/* Per status, and for the whole; names of rules have no fixed length, so it may grow. */
#define BODY_SIZE (REQUEST_DESCRIPTORS_MAX * 256 + 4 * RESPONSE_TEXT_MAX)

/* Whole seconds, as envoyproxy/ratelimit's: "2s" */
static void out_duration(struct out *out, u64 ns)
{
	out_char(out, '"');
	out_u64(out, ns / SL_NS_PER_SEC + !!(ns % SL_NS_PER_SEC));
	out_text(out, "s\"");
}

static void out_status(struct out *out, const struct response_status *status)
{
	bool over = status->over && !status->shadow;
	const char *unit = request_units[request_unit_of(response_unit_ns(status))].capitals;

	out_text(out, over ? "{\"code\":\"OVER_LIMIT\"" : "{\"code\":\"OK\"");
	if (status->unlimited) {
		out_text(out, ",\"limitRemaining\":4294967295");
	} else if (status->window_ns) {
		/* current_limit can only express N per one unit. */
		if (unit && status->requests <= U32_MAX) {
			out_text(out, ",\"currentLimit\":{\"requestsPerUnit\":");
			out_u64(out, status->requests);
			out_text(out, ",\"unit\":\"");
			out_text(out, unit);
			out_char(out, '"');
			if (status->limit && status->limit->name) {
				out_text(out, ",\"name\":\"");
				out_json(out, status->limit->name);
				out_char(out, '"');
			}
			out_char(out, '}');
		}
		out_text(out, ",\"limitRemaining\":");
		out_u64(out, status->remaining < U32_MAX ? status->remaining : U32_MAX);
		if (status->reset_ns != ~0ULL) {
			out_text(out, ",\"durationUntilReset\":");
			out_duration(out, status->reset_ns);
		}
	}
	out_char(out, '}');
}

/* Headers as JSON: their jitter is drawn once, so they are written once. */
#define HEADERS_SIZE (4 * RESPONSE_TEXT_MAX + 512)

struct header_list {
	struct http1_request *request;
	struct out out;
};

/* As members, from which Envoy would set the client's headers, and as headers of this reply. */
static void add_header(struct bytes name, struct bytes value, void *arg)
{
	struct header_list *list = arg;

	http1_reply_header_bytes(list->request, name, value);
	out_text(&list->out, list->out.len ? ",{\"key\":\"" : "{\"key\":\"");
	out_bytes(&list->out, name.at, name.len);
	out_text(&list->out, "\",\"value\":\"");
	out_json(&list->out, value.at);
	out_text(&list->out, "\"}");
}

/*
 * `metadata` of rules for the next filter, {"metadata": {...}}: the first value of a member wins,
 * maps are merged. NULL if no rule has any, or without memory. The caller frees it.
 */
static char *metadata_text(const struct response *response)
{
	json_t *merged = NULL, *one;
	char *text = NULL;
	u32 i;

	for (i = response->count; i-- > 0;) {
		const struct response_status *status = &response->status[i];

		if (!status->rule || status->over || !json_object_size(status->rule->metadata))
			continue;
		one = json_deep_copy(status->rule->metadata);
		if (!merged)
			merged = json_object();
		json_object_update_recursive(merged, one);
		json_decref(one);
	}
	if (merged)
		text = json_dumps(merged, JSON_COMPACT);
	json_decref(merged);
	return text;
}

/* Returns the comma for the next member. */
static const char *out_metadata_text(struct out *out, const char *comma, const char *name,
				     const char *text)
{
	out_text(out, comma);
	out_char(out, '"');
	out_text(out, name);
	out_text(out, "\":\"");
	out_json(out, text);
	out_char(out, '"');
	return ",";
}

static void write_body(struct out *out, const struct response *response, const char *headers,
		       const char *metadata)
{
	char shadow[RESPONSE_TEXT_MAX], permit[PERMIT_TEXT_MAX];
	const char *comma = "";
	u32 i;

	out_text(out, "{\"overallCode\":");
	out_text(out, response->code == RESPONSE_OK ? "\"OK\"" : "\"OVER_LIMIT\"");
	out_text(out, ",\"statuses\":[");
	for (i = 0; i < response->count; i++) {
		if (i)
			out_char(out, ',');
		out_status(out, &response->status[i]);
	}
	out_text(out, "],\"responseHeadersToAdd\":[");
	out_text(out, headers);
	out_char(out, ']');
	response_shadow(response, shadow, sizeof(shadow));
	permit_format(&response->permit, permit, sizeof(permit));
	if (metadata || shadow[0] || permit[0])
		out_text(out, ",\"dynamicMetadata\":{");
	if (metadata) {
		out_text(out, "\"metadata\":");
		out_text(out, metadata);
		comma = ",";
	}
	if (shadow[0])
		comma = out_metadata_text(out, comma, "shadow", shadow);
	if (permit[0])
		out_metadata_text(out, comma, "permit", permit);
	if (metadata || shadow[0] || permit[0])
		out_char(out, '}');
	out_char(out, '}');
}

static void on_response(const struct request *rl_request, const struct response *response,
			void *arg)
{
	struct header_list list = { .request = arg };
	struct http1_request *request = arg;
	char most[BODY_SIZE], headers[HEADERS_SIZE], *body = most, *metadata;
	struct out out;
	size_t size;

	if (response->code == RESPONSE_ERROR) {
		http1_reply_problem(request, 503, "no decision possible");
		return;
	}
	out_begin(&list.out, headers, sizeof(headers));
	response_headers(response, tier_def(request->worker->tier)->retry_jitter_permille,
			 add_header, &list);
	out_end(&list.out);
	metadata = metadata_text(response);
	out_begin(&out, body, sizeof(most));
	write_body(&out, response, headers, metadata);
	if (out.len > sizeof(most)) {
		size = out.len;
		body = malloc(size);
		out_begin(&out, body, body ? size : 0);
		write_body(&out, response, headers, metadata);
	}
	free(metadata);
	if (!body) {
		http1_reply_problem(request, 503, "out of memory");
		return;
	}
	http1_reply(request, response->code == RESPONSE_OK ? 200 : 429, "application/json", body,
		    out.len);
	if (body != most)
		free(body);
}

void rls_json(struct http1_request *request)
{
	struct json_request *rl_request;
	struct sl_err err = { 0 };
	int r;

	r = frontend_read(request, json_request_rls, &rl_request, &err);
	if (r) {
		frontend_reply_error(request, r, &err);
		return;
	}
	rl_request->request.api = API_JSON;
	frontend_submit(request, &rl_request->request, 400, on_response, rl_request,
			json_request_free);
}

void rls_healthcheck(struct http1_request *request)
{
	http1_reply(request, 200, "text/plain; charset=utf-8", "OK", 2);
}
