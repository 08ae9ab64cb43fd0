// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * nginx.c - GET /nginx/check: for auth_request, which distinguishes three replies: 2xx, 401 or 403,
 * and any other, which it turns into a 500.
 *
 * So 204 lets the request pass, 403 is a refusal (also "closed"), and 500 is any result without a
 * decision: an error of the rule, the configuration, the token. Each value comes in a
 * header of its own, since nginx cannot escape one in a URL: X-Sluice-V-KEY. nginx does not send
 * a header whose value is empty.
 *
 * Take a path from X-Sluice-Uri ($request_uri): $uri is already decoded, and a "%0d%0a" in it
 * would end the header and begin another of the client's choice.
 */
#include <errno.h>
#include <string.h>

#include "request/rules/request_text.h"
#include "request/frontends/http1/check.h"
#include "request/frontends/http1/query_request.h"

#define VALUE_HEADER "x-sluice-v-"
#define URI_HEADER "x-sluice-uri"

/* KEY's header; if not sent, for "source" the source's own, for "path" the URI's. */
static int value_of(const struct http1_request *request, struct query_request *rl_request,
		    const char *key, const char *where, struct bytes *ret, struct sl_err *err)
{
	char name[sizeof(VALUE_HEADER) + REQUEST_KEY_MAX] = VALUE_HEADER;
	char *at = name + strlen(VALUE_HEADER);

	if (*where)
		return sl_err_set(err, EINVAL,
				  "d=%s:...: values are in X-Sluice-V-%s; accepted are "
				  "KEY and KEY=TEXT",
				  key, key);
	for (; *key; key++)
		*at++ = *key >= 'A' && *key <= 'Z' ? *key | 0x20 : *key;
	*at = 0;
	*ret = http1_find(request, name);
	if (!ret->len && !strcmp(name, VALUE_HEADER "source"))
		*ret = http1_find(request, "x-sluice-source");
	else if (!ret->len && !strcmp(name, VALUE_HEADER "path"))
		*ret = query_request_path(request, rl_request, URI_HEADER);
	return 0;
}

static void on_response(const struct request *rl_request, const struct response *response,
			void *arg)
{
	struct http1_request *request = arg;

	frontend_headers(request, response);
	frontend_proxy_headers(request, response);
	frontend_ticket_headers(request, response);
	if (response->code == RESPONSE_ERROR)
		http1_reply_problem(request, 500, "no decision possible");
	else
		http1_reply(request, response->code == RESPONSE_OK ? 204 : 403, NULL, NULL, 0);
}

/* A client could send the header itself: it is read only where the query, which is the
 * administrator's, says so. */
static int parameter(const struct http1_request *request, struct query_request *rl_request,
		     const char *name, const char *value, struct sl_err *err)
{
	struct bytes reference = http1_find(request, "x-sluice-reference");

	if (strcmp(name, "defer"))
		return sl_err_set(
			err, EINVAL,
			"%.64s: unknown parameter; accepted: domain, d, limit, hits, defer", name);
	if (strcmp(value, "on"))
		return sl_err_set(err, EINVAL, "defer: found '%.64s'; accepted: on", value);
	if (request_reference_ok(reference))
		rl_request->request.reference = reference;
	return 0;
}

void nginx_check(struct http1_request *request)
{
	struct query_request *rl_request;
	struct sl_err err = { 0 };

	if (query_request_read(request, value_of, parameter, 0, URI_HEADER, &rl_request, &err)) {
		http1_reply_undecided(request, 500, err.message);
		return;
	}
	rl_request->request.api = API_NGINX;
	rl_request->request.has_source = request_source_parse(
		http1_find(request, "x-sluice-source"), &rl_request->request.source);
	frontend_submit(request, &rl_request->request, 500, on_response, rl_request,
			query_request_free);
}
