// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * v1_defer.c - GET and DELETE /v1/defer/TICKET: where a deferred request is, and its cancellation
 * while it waits.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "request/engine/defer.h"
#include "request/frontends/http1/http1.h"

struct lookup {
	struct http1_request *request;
	struct defer_lookup *pending; /* NULL: replied */
	bool cancel;
	char ticket[DEFER_TICKET_LEN + 1];
};

static void lookup_free(void *arg)
{
	struct lookup *lookup = arg;

	if (lookup->pending)
		defer_lookup_abandon(lookup->pending);
	free(lookup);
}

static const char no_ticket[] =
	"no such ticket: it was cancelled, or ended longer ago than the ttl";
static const char unavailable[] = "the cluster store is unavailable";

static void reply_state(const struct lookup *lookup, enum defer_status status, u64 number)
{
	const char *what = status == DEFER_WAITING ? "position" : "deliveries";
	char body[256];
	int len = snprintf(body, sizeof(body), "{\"ticket\":\"%s\",\"state\":\"%s\"",
			   lookup->ticket, defer_status_names[status]);

	if (status == DEFER_WAITING || status == DEFER_RELEASED)
		len += snprintf(body + len, sizeof(body) - len, ",\"%s\":%llu", what, number);
	len += snprintf(body + len, sizeof(body) - len, "}");
	http1_reply(lookup->request, 200, "application/json", body, len);
}

static void on_looked(void *arg, enum defer_status status, u64 number)
{
	struct lookup *lookup = arg;
	bool is_state = lookup->cancel ? status == DEFER_CANCELLED
				       : status == DEFER_WAITING || status == DEFER_RELEASED ||
						 status == DEFER_DONE || status == DEFER_DEAD;

	lookup->pending = NULL;
	if (is_state)
		reply_state(lookup, status, number);
	else if (status == DEFER_NONE)
		http1_reply_problem(lookup->request, 404, no_ticket);
	else if (status == DEFER_RELEASED)
		http1_reply_problem(lookup->request, 409,
				    "it was released already: a worker has it, or will");
	else
		http1_reply_problem(lookup->request, 503, unavailable);
}

static void look(struct http1_request *request, bool cancel)
{
	size_t before = strlen("/v1/defer/");
	struct bytes ticket = { request->path.at + before, request->path.len - before };
	struct lookup *lookup;
	char domain[256];
	int r;

	if (!defer_domain(request->worker->engine->engine, ticket, domain, sizeof(domain))) {
		if (http1_rights(request, (struct bytes){ NULL, 0 }, MAY_CHECK))
			http1_reply_problem(request, 404, no_ticket);
		return;
	}
	if (!http1_rights(request, (struct bytes){ domain, strlen(domain) }, MAY_CHECK))
		return;
	lookup = calloc(1, sizeof(*lookup));
	if (!lookup) {
		http1_reply_problem(request, 503, "out of memory");
		return;
	}
	lookup->request = request;
	lookup->cancel = cancel;
	memcpy(lookup->ticket, ticket.at, ticket.len);
	r = defer_look(request->worker->engine, ticket, cancel, on_looked, lookup,
		       &lookup->pending);
	if (r < 0) {
		free(lookup);
		http1_reply_problem(request, r == -ENOENT ? 404 : 503,
				    r == -ENOENT ? no_ticket : unavailable);
		return;
	}
	request->frontend = lookup;
	request->frontend_free = lookup_free;
}

void v1_defer_look(struct http1_request *request)
{
	look(request, false);
}

void v1_defer_cancel(struct http1_request *request)
{
	look(request, true);
}
