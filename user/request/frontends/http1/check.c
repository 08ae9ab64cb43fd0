// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* check.c - see check.h. */
#include "request/frontends/http1/check.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/units.h"
#include "request/rules/permit.h"
#include "request/server/callers.h"

bool frontend_wait(const struct http1_request *request, u64 *ret_ns)
{
	const struct listen_def *listener = request->peer->listener;
	struct bytes header = http1_find(request, "x-sluice-wait");
	const char *reason;
	char text[32];

	*ret_ns = listener && listener->has_max_wait ? listener->max_wait_ns : ~0ULL;
	if (!header.len)
		return true;
	if (header.len >= sizeof(text) || memchr(header.at, 0, header.len))
		return false;
	memcpy(text, header.at, header.len);
	text[header.len] = 0;
	if (!strcmp(text, "0")) {
		*ret_ns = 0;
		return true;
	}
	return !duration_parse(text, ret_ns, &reason);
}

void frontend_submit(struct http1_request *request, struct request *rl_request, int malformed,
		     request_done_fn done, void *frontend, void (*frontend_free)(void *frontend))
{
	struct delayed *delayed;

	rl_request->rights = http1_rights(request, rl_request->domain, MAY_CHECK);
	rl_request->caller = caller_number(request->peer, http1_token(request));
	if (!rl_request->rights) {
		frontend_free(frontend);
		return;
	}
	if (!frontend_wait(request, &rl_request->max_wait_ns)) {
		http1_reply_undecided(request, malformed,
				      "X-Sluice-Wait: not a duration; accepted: 2s, 500ms, 0");
		frontend_free(frontend);
		return;
	}
	request->frontend = frontend;
	request->frontend_free = frontend_free;
	delayed = request_submit(request->worker->engine, rl_request, done, request);
	/* NULL: done() was called and has replied. */
	if (delayed)
		request->delayed = delayed;
}

int frontend_read(const struct http1_request *request,
		  int (*read)(const char *text, size_t len, struct json_request **ret,
			      struct sl_err *err),
		  struct json_request **ret, struct sl_err *err)
{
	if (!request->beyond)
		return read(request->body.at, request->body.len, ret, err);
	sl_err_set(err, E2BIG, "%s", request->beyond);
	return json_request_beyond(NULL, err, ret);
}

static void add_header(struct bytes name, struct bytes value, void *arg)
{
	http1_reply_header_bytes(arg, name, value);
}

void frontend_headers(struct http1_request *request, const struct response *response)
{
	response_headers(response, tier_def(request->worker->tier)->retry_jitter_permille,
			 add_header, request);
}

void frontend_proxy_headers(struct http1_request *request, const struct response *response)
{
	char text[RESPONSE_TEXT_MAX];

	if (response_shadow(response, text, sizeof(text))[0])
		http1_reply_header(request, "x-sluice-shadow", text);
	if (response_violated(response, text, sizeof(text))[0])
		http1_reply_header(request, "x-sluice-violated-policies", text);
	if (permit_format(&response->permit, text, sizeof(text))[0])
		http1_reply_header(request, "x-sluice-permit", text);
}

void frontend_ticket_headers(struct http1_request *request, const struct response *response)
{
	char position[24];

	if (!response->ticket[0])
		return;
	snprintf(position, sizeof(position), "%llu", response->position);
	http1_reply_header(request, "x-sluice-ticket", response->ticket);
	http1_reply_header(request, "x-sluice-position", position);
}

void frontend_reply(struct http1_request *request, const struct response *response)
{
	char most[RESPONSE_JSON_SIZE(REQUEST_DESCRIPTORS_MAX)], *body = most;
	size_t len = response_json(response, body, sizeof(most));

	if (len >= sizeof(most)) {
		body = malloc(len + 1);
		if (!body) {
			http1_reply_problem(request, 503, "out of memory");
			return;
		}
		response_json(response, body, len + 1);
	}
	frontend_headers(request, response);
	http1_reply(request, response_http_status(response), response_content_type(response), body,
		    len);
	if (body != most)
		free(body);
}

void frontend_reply_error(struct http1_request *request, int r, const struct sl_err *err)
{
	if (r == -ENOMEM)
		http1_reply_problem(request, 503, err->message);
	else
		http1_reply_undecided(request, 400, err->message);
}

/* ------------------------------------------------------------------ POST /v1/check */

static void on_response(const struct request *rl_request, const struct response *response,
			void *arg)
{
	frontend_reply(arg, response);
}

void v1_check(struct http1_request *request)
{
	struct json_request *rl_request;
	struct sl_err err = { 0 };
	int r;

	r = frontend_read(request, json_request_check, &rl_request, &err);
	if (r) {
		frontend_reply_error(request, r, &err);
		return;
	}
	rl_request->request.api = API_V1_CHECK;
	frontend_submit(request, &rl_request->request, 400, on_response, rl_request,
			json_request_free);
}
