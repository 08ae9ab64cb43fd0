// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * forward_auth.c - GET /forward-auth: Traefik's ForwardAuth, Caddy's forward_auth. 2xx lets the
 * request pass; any other reply goes to the client as it is. So a refusal is the 429 that the
 * client should see, and an error between proxy and daemon is a 500, not a 401.
 *
 * Both send the client's own headers, and X-Forwarded-Method, -Host and -Uri. Different spellings
 * of one thing are normalized, so that an alias gets no second budget: the host
 * "API.example.com:443" is "api.example.com".
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "request/rules/request_text.h"
#include "request/frontends/http1/check.h"
#include "request/frontends/http1/query_request.h"

#define NAME_MAX_BYTES 128

/* Upper case: many applications read "post" as "POST", and Go's proxies let it through. */
static struct bytes get_method(const struct http1_request *request,
			       struct query_request *rl_request)
{
	struct bytes method = http1_find(request, "x-forwarded-method");
	char *to = rl_request->method.at ? NULL : query_request_room(rl_request, method.len);

	if (!method.len || !to)
		return rl_request->method;
	for (size_t i = 0; i < method.len; i++)
		to[i] = method.at[i] >= 'a' && method.at[i] <= 'z' ? method.at[i] - 0x20
								   : method.at[i];
	rl_request->method = (struct bytes){ to, method.len };
	return rl_request->method;
}

/* Lower case, without a port and the dot of an absolute name. */
static struct bytes get_host(const struct http1_request *request, struct query_request *rl_request)
{
	struct bytes host = http1_find(request, "x-forwarded-host");
	char *to = rl_request->host.at ? NULL : query_request_room(rl_request, host.len);
	size_t i, len = host.len;

	if (!len || !to)
		return rl_request->host;
	for (i = len; i && host.at[i - 1] >= '0' && host.at[i - 1] <= '9';)
		i--;
	if (i && host.at[i - 1] == ':' && (host.at[0] != '[' || (i > 1 && host.at[i - 2] == ']')))
		len = i - 1;
	if (len && host.at[len - 1] == '.')
		len--;
	for (i = 0; i < len; i++)
		to[i] = host.at[i] >= 'A' && host.at[i] <= 'Z' ? host.at[i] | 0x20 : host.at[i];
	rl_request->host = (struct bytes){ to, len };
	return rl_request->host;
}

/*
 * The first cookie of that name, in any of the headers. Applications read "SID = x ;" and
 * "SID=\"x\"" as "SID=x", so no such alias gets another budget.
 */
static struct bytes get_cookie(const struct http1_request *request, const char *name)
{
	u32 i;

	for (i = 0; i < request->header_count; i++) {
		const struct http1_header *header = &request->header[i];
		const char *at = header->value.at, *end = at + header->value.len, *stop, *equals;
		struct bytes value;

		if (!bytes_equal(header->name, "cookie"))
			continue;
		for (; at < end; at = stop + 1) {
			stop = memchr(at, ';', end - at);
			if (!stop)
				stop = end;
			equals = memchr(at, '=', stop - at);
			if (!equals ||
			    !bytes_equal(bytes_trim((struct bytes){ at, equals - at }), name))
				continue;
			value = bytes_trim((struct bytes){ equals + 1, stop - equals - 1 });
			if (value.len > 1 && value.at[0] == '"' && value.at[value.len - 1] == '"')
				value = (struct bytes){ value.at + 1, value.len - 2 };
			return value;
		}
	}
	return (struct bytes){ NULL, 0 };
}

/*
 * The address that stands `depth` from the end of all X-Forwarded-For headers: 1 is the peer of the
 * proxy that asks, 2 that of the proxy before it. Of a shorter list the first, which the outermost
 * trusted proxy wrote.
 */
static struct bytes forwarded_for(const struct http1_request *request, u32 depth)
{
	struct bytes found = { NULL, 0 };

	for (u32 i = request->header_count; i-- && depth;) {
		const struct http1_header *header = &request->header[i];
		size_t end = header->value.len, at;

		if (!bytes_equal(header->name, "x-forwarded-for"))
			continue;
		do {
			for (at = end; at && header->value.at[at - 1] != ',';)
				at--;
			found = bytes_trim((struct bytes){ header->value.at + at, end - at });
			end = at ? at - 1 : 0;
		} while (--depth && at);
	}
	return found;
}

/*
 * A header of the client's. Of two that differ an application may take either, so such a request is
 * refused as one over its limits.
 */
static struct bytes client_header(const struct http1_request *request,
				  struct query_request *rl_request, const char *name)
{
	struct bytes first = http1_find(request, name);

	for (u32 i = 0; i < request->header_count; i++) {
		struct bytes value = request->header[i].value;

		if (bytes_equal(request->header[i].name, name) &&
		    (value.len != first.len || memcmp(value.at, first.at, first.len) != 0))
			rl_request->request.beyond = "two different headers where one is expected";
	}
	return first;
}

/* "header(NAME)" -> NAME in lower case. */
static bool inside(const char *where, const char *what, bool lower, char *buf, size_t size)
{
	size_t len = strlen(what), n = strlen(where), i;

	if (n < len + 3 || memcmp(where, what, len) || where[len] != '(' || where[n - 1] != ')' ||
	    n - len - 2 >= size)
		return false;
	for (i = 0; i < n - len - 2; i++) {
		char c = where[len + 1 + i];

		buf[i] = lower && c >= 'A' && c <= 'Z' ? c | 0x20 : c;
	}
	buf[i] = 0;
	return true;
}

/* `source=`: none, xff-last, xff-2 to xff-9, header(NAME) */
static int get_source(const struct http1_request *request, const char *where, struct bytes *ret,
		      struct sl_err *err)
{
	char name[NAME_MAX_BYTES];

	*ret = (struct bytes){ NULL, 0 };
	if (!strcmp(where, "none"))
		return 0;
	if (!strcmp(where, "xff-last"))
		*ret = forwarded_for(request, 1);
	else if (!strncmp(where, "xff-", 4) && where[4] >= '2' && where[4] <= '9' && !where[5])
		*ret = forwarded_for(request, where[4] - '0');
	else if (inside(where, "header", true, name, sizeof(name)))
		*ret = http1_find(request, name);
	else
		return sl_err_set(err, EINVAL,
				  "source=%.64s: accepted: none, xff-last, xff-2 to xff-9, "
				  "header(NAME)",
				  where);
	return 0;
}

static int value_of(const struct http1_request *request, struct query_request *rl_request,
		    const char *key, const char *where, struct bytes *ret, struct sl_err *err)
{
	const char *what = *where ? where : key;
	char name[NAME_MAX_BYTES], text[NAME_MAX_BYTES];

	if (!strcmp(what, "method")) {
		*ret = get_method(request, rl_request);
	} else if (!strcmp(what, "path")) {
		*ret = query_request_path(request, rl_request, "x-forwarded-uri");
	} else if (!strcmp(what, "host")) {
		*ret = get_host(request, rl_request);
	} else if (!strcmp(what, "source")) {
		struct bytes source = http1_query(request, "source", text, sizeof(text) - 1);

		if (!source.at)
			return sl_err_set(err, EINVAL, "d=%s: the parameter source= is missing",
					  key);
		text[source.len] = 0;
		return get_source(request, text, ret, err);
	} else if (inside(what, "header", true, name, sizeof(name))) {
		*ret = client_header(request, rl_request, name);
	} else if (inside(what, "cookie", false, name, sizeof(name))) {
		*ret = get_cookie(request, name);
	} else {
		return sl_err_set(
			err, EINVAL,
			"d=%s: %.64s is unknown; accepted: "
			"KEY:header(NAME), KEY:cookie(NAME), method, path, host, source, KEY=TEXT",
			key, what);
	}
	return 0;
}

static int parameter(const struct http1_request *request, struct query_request *rl_request,
		     const char *name, const char *value, struct sl_err *err)
{
	struct bytes source;
	int r;

	if (strcmp(name, "source"))
		return -ENOENT;
	r = get_source(request, value, &source, err);
	if (!r)
		rl_request->request.has_source =
			request_source_parse(source, &rl_request->request.source);
	return r;
}

static void on_response(const struct request *rl_request, const struct response *response,
			void *arg)
{
	frontend_proxy_headers(arg, response);
	frontend_reply(arg, response);
}

void forward_auth(struct http1_request *request)
{
	struct query_request *rl_request;
	struct sl_err err = { 0 };
	/* Both are copied. */
	size_t room = http1_find(request, "x-forwarded-host").len +
		      http1_find(request, "x-forwarded-method").len;

	if (query_request_read(request, value_of, parameter, room, "x-forwarded-uri", &rl_request,
			       &err)) {
		http1_reply_undecided(request, 500, err.message);
		return;
	}
	rl_request->request.api = API_FORWARD_AUTH;
	frontend_submit(request, &rl_request->request, 500, on_response, rl_request,
			query_request_free);
}
