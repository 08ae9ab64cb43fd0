// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* v1.c - POST /v1/check: the call as JSON, the answer as JSON. v1_report.c has /v1/report. */
#include "request/server/front.h"
#include "request/rules/json_call.h"

static void on_answer(const struct call *call, const struct answer *answer, void *arg)
{
	front_reply(arg, answer);
}

void v1_check(struct http1_request *request)
{
	struct json_call *call;
	struct sl_err err = { 0 };
	int r;

	r = json_call_check(request->body.at, request->body.len, &call, &err);
	if (r) {
		front_reply_error(request, r, &err);
		return;
	}
	call->call.api = API_V1_CHECK;
	front_ask(request, &call->call, 400, on_answer, call, json_call_free);
}
