// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* front.c - see front.h. */
#include "request/server/front.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/units.h"
#include "request/server/callers.h"

bool front_wait(const struct http1_request *request, u64 *ret_ns)
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

void front_ask(struct http1_request *request, struct call *call, int malformed, ask_done_fn done,
	       void *front, void (*front_free)(void *front))
{
	struct waiting *waiting;

	call->rights = http1_rights(request, call->domain, MAY_CHECK);
	call->caller = caller_number(request->peer, http1_token(request));
	if (!call->rights) {
		front_free(front);
		return;
	}
	if (!front_wait(request, &call->max_wait_ns)) {
		http1_reply_problem(request, malformed,
				    "X-Sluice-Wait: no duration; accepted: 2s, 500ms, 0");
		front_free(front);
		return;
	}
	request->front = front;
	request->front_free = front_free;
	waiting = ask(request->worker, call, done, request);
	/* NULL: done() has replied. */
	if (waiting)
		request->waiting = waiting;
}

static void add_header(const char *name, const char *value, void *arg)
{
	http1_reply_header(arg, name, value);
}

void front_headers(struct http1_request *request, const struct answer *answer)
{
	answer_headers(answer, tier_def(request->worker->tier)->retry_jitter_permille, add_header,
		       request);
}

void front_reply(struct http1_request *request, const struct answer *answer)
{
	char most[ANSWER_JSON_SIZE(CALL_DESCRIPTORS_MAX)], *body = most;
	size_t len = answer_json(answer, body, sizeof(most));

	if (len >= sizeof(most)) {
		body = malloc(len + 1);
		if (!body) {
			http1_reply_problem(request, 503, "out of memory");
			return;
		}
		answer_json(answer, body, len + 1);
	}
	front_headers(request, answer);
	http1_reply(request, answer_http_status(answer), answer_content_type(answer), body, len);
	if (body != most)
		free(body);
}

void front_reply_error(struct http1_request *request, int r, const struct sl_err *err)
{
	http1_reply_problem(request, r == -ENOMEM ? 503 : 400, err->message);
}
