// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* v1.c - POST /v1/check: the call as JSON, the answer as JSON. v1_report.c has /v1/report. */
#include "request/server/frontend.h"
#include "request/rules/json_request.h"

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

	r = json_request_check(request->body.at, request->body.len, &rl_request, &err);
	if (r) {
		frontend_reply_error(request, r, &err);
		return;
	}
	rl_request->request.api = API_V1_CHECK;
	frontend_submit(request, &rl_request->request, 400, on_response, rl_request,
			json_request_free);
}
