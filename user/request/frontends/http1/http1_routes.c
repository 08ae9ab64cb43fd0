// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * http1_routes.c - the handler of a request, callers without permission, and health.
 *
 * A web page can make a browser on this host send requests to this daemon, to a name that its DNS
 * server resolves to 127.0.0.1. Browsers send Origin with requests that change state, and Host with
 * all: requests with an Origin, or with a Host that is not one of the daemon's names, are refused.
 * Browsers cannot reach a Unix socket, so any Host is accepted there.
 */
#include <arpa/inet.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "request/frontends/http1/http1_private.h"

static void healthz(struct http1_request *request)
{
	http1_reply(request, 200, "text/plain; charset=utf-8", "ok\n", 3);
}

static void readyz(struct http1_request *request)
{
	http1_reply(request, 200, "text/plain; charset=utf-8", "ready\n", 6);
}

static const struct http1_route api[] = {
	{ "POST", "/v1/check", API_V1_CHECK, MAY_CHECK, v1_check },
	{ "POST", "/v1/report", API_V1_REPORT, MAY_REPORT, v1_report },
	{ "GET", "/v1/defer/", API_OTHER, 0, v1_defer_look },
	{ "DELETE", "/v1/defer/", API_OTHER, 0, v1_defer_cancel },
	{ "POST", "/json", API_JSON, MAY_CHECK, rls_json },
	{ "GET", "/healthcheck", API_OTHER, 0, rls_healthcheck },
	{ "GET", "/nginx/check", API_NGINX, 0, nginx_check },
	{ "GET", "/forward-auth", API_FORWARD_AUTH, 0, forward_auth },
	{ "GET", "/healthz", API_OTHER, 0, healthz },
	{ "GET", "/readyz", API_OTHER, 0, readyz },
};

static const struct http1_routes api_routes = { api, sizeof(api) / sizeof(api[0]) };

/* ------------------------------------------------------------------ for handlers */

struct bytes http1_find_bytes(const struct http1_request *request, struct bytes name)
{
	for (u32 i = 0; i < request->header_count; i++)
		if (bytes_same(request->header[i].name, name))
			return request->header[i].value;
	return (struct bytes){ NULL, 0 };
}

static int hex(char c)
{
	return c >= '0' && c <= '9'	    ? c - '0'
	       : isxdigit((unsigned char)c) ? (c | 0x20) - 'a' + 10
					    : -1;
}

/* Decodes %XX and '+'; other text stays. False if there is no room. */
static bool decode(const char *from, size_t len, char *buf, size_t size, size_t *ret_len)
{
	size_t used = 0;

	for (size_t i = 0; i < len; i++) {
		char c = from[i] == '+' ? ' ' : from[i];

		if (c == '%' && i + 2 < len && hex(from[i + 1]) >= 0 && hex(from[i + 2]) >= 0) {
			c = (char)(hex(from[i + 1]) << 4 | hex(from[i + 2]));
			i += 2;
		}
		if (used == size)
			return false;
		buf[used++] = c;
	}
	*ret_len = used;
	return true;
}

struct bytes http1_query(const struct http1_request *request, const char *name, char *buf,
			 size_t size)
{
	const char *at = request->query.at, *end = at + request->query.len;
	size_t name_len = strlen(name);
	struct bytes value = { NULL, 0 };

	while (at < end) {
		const char *next = memchr(at, '&', (size_t)(end - at));
		const char *stop = next ? next : end;

		if ((size_t)(stop - at) > name_len && at[name_len] == '=' &&
		    !memcmp(at, name, name_len)) {
			at += name_len + 1;
			if (decode(at, (size_t)(stop - at), buf, size, &value.len))
				value.at = buf;
			return value;
		}
		at = stop + 1;
	}
	return value;
}

/* ------------------------------------------------------------------ permissions */

/* "NAME", "NAME:PORT", "[IPV6]:PORT": the name, with its length in *ret_len. */
static const char *host_name(struct bytes host, size_t *ret_len)
{
	const char *end;

	if (host.len && host.at[0] == '[') {
		end = memchr(host.at, ']', host.len);
		*ret_len = end ? (size_t)(end - host.at) - 1 : 0;
		return host.at + 1;
	}
	end = memchr(host.at, ':', host.len);
	*ret_len = end ? (size_t)(end - host.at) : host.len;
	return host.at;
}

static bool is_address(const char *text)
{
	unsigned char ignored[16];

	return inet_pton(AF_INET, text, ignored) == 1 || inet_pton(AF_INET6, text, ignored) == 1;
}

/* An address or localhost; copies the name into `name`, "" if it is none. */
static bool is_host_address(struct bytes host, char *name, size_t size)
{
	size_t len;
	const char *at = host_name(host, &len);

	name[0] = '\0';
	if (!len || len >= size)
		return false;
	memcpy(name, at, len);
	name[len] = '\0';
	return is_address(name) || !strcasecmp(name, "localhost");
}

bool http1_is_host_address(const struct http1_request *request)
{
	struct bytes host = http1_find(request, "host");
	char name[256];

	return !host.at || is_host_address(host, name, sizeof(name));
}

/* An address, as that of the last request usually is, is not parsed again. */
static bool is_our_host(struct http1_worker *of, struct bytes host)
{
	const struct http_def *def = tier_def(of->worker->tier);
	char name[256];

	if (host.len && host.len == of->host_len && !memcmp(host.at, of->host, host.len))
		return true;
	if (is_host_address(host, name, sizeof(name))) {
		of->host_len = host.len <= sizeof(of->host) ? (u32)host.len : 0;
		memcpy(of->host, host.at, of->host_len);
		return true;
	}
	if (!name[0])
		return false;
	for (size_t i = 0; i < def->host_count; i++)
		if (!strcasecmp(name, def->host[i]))
			return true;
	return false;
}

static bool may_come(struct http1_request *request)
{
	struct bytes host = http1_find(request, "host");

	if (http1_find(request, "origin").at) {
		http1_reply_refused(request, 403,
				    "requests of web pages (with an Origin) are refused: "
				    "a proxy has to remove the header");
		return false;
	}
	if (!host.at || request->peer->unix_socket || is_our_host(request->conn->of, host))
		return true;
	http1_reply_refused(request, 403,
			    "Host is neither localhost, nor an address, nor one of "
			    "http.hosts");
	return false;
}

/* On behalf of a client the Authorization header is the client's, not the proxy's. */
static bool is_for_client(const struct http1_request *request)
{
	const struct http1_route *route = request->conn->exchange->route;

	return route && (route->api == API_NGINX || route->api == API_FORWARD_AUTH);
}

static struct bytes find_token(const struct http1_request *request)
{
	struct bytes token = http1_find(request, "x-sluice-token"), value = { NULL, 0 };

	if (token.len || is_for_client(request))
		return token;
	value = http1_find(request, "authorization");
	if (value.len < 7 || strncasecmp(value.at, "bearer ", 7) != 0)
		return (struct bytes){ NULL, 0 };
	value.at += 7;
	value.len -= 7;
	while (value.len && *value.at == ' ') {
		value.at++;
		value.len--;
	}
	return value;
}

/* Found once a request: its rights, and who it is, are looked up in turn. */
struct bytes http1_token(const struct http1_request *request)
{
	struct exchange *exchange = request->conn->exchange;

	if (!exchange->token_found)
		exchange->token = find_token(request);
	exchange->token_found = true;
	return exchange->token;
}

u32 http1_rights(struct http1_request *request, struct bytes domain, u32 needed)
{
	struct bytes token = http1_token(request);
	bool bad_token = false;
	u32 rights = caller_rights(request->worker->tier, request->peer, token, domain, &bad_token);

	if (bad_token) {
		if (!is_for_client(request))
			http1_reply_header(request, "www-authenticate",
					   "Bearer error=\"invalid_token\"");
		http1_reply_refused(request, 401, "unknown token");
		return 0;
	}
	if ((rights & needed) == needed)
		return rights;
	if (!rights && !token.len && !request->peer->cert_cn[0]) {
		if (!is_for_client(request))
			http1_reply_header(request, "www-authenticate", "Bearer");
		http1_reply_refused(request, 401,
				    "authentication required: send a token, see http.callers");
	} else {
		http1_reply_refused(request, 403,
				    "permission denied for this domain, see http.callers");
	}
	return 0;
}

/* ------------------------------------------------------------------ routes */

static bool is_method(const struct http1_request *request, const struct http1_route *route)
{
	return bytes_equal(request->method, route->method) ||
	       (bytes_equal(request->method, "HEAD") && !strcmp(route->method, "GET"));
}

static bool is_path(struct bytes path, const char *route)
{
	size_t len = strlen(route);

	return path.len >= len && !memcmp(path.at, route, len) &&
	       (path.len == len || (len > 1 && route[len - 1] == '/'));
}

bool routes_find(struct http1_request *request)
{
	struct exchange *exchange = request->conn->exchange;
	const struct http1_routes *routes = request->conn->of->routes;
	bool bad_token;
	u32 right;

	if (!routes)
		routes = &api_routes;
	for (size_t i = 0; i < routes->count; i++) {
		if (!is_path(request->path, routes->route[i].path))
			continue;
		exchange->on_path = &routes->route[i];
		if (is_method(request, &routes->route[i])) {
			exchange->route = &routes->route[i];
			break;
		}
	}
	right = exchange->route ? exchange->route->body_right : 0;
	if (right == HTTP1_BODY_OF_ANY)
		return true;
	return right && (caller_rights(request->worker->tier, request->peer, http1_token(request),
				       (struct bytes){ NULL, 0 }, &bad_token) &
			 right);
}

void routes_run(struct http1_request *request)
{
	const struct exchange *exchange = request->conn->exchange;
	const struct http1_route *route = exchange->route, *found = exchange->on_path;

	if (!request->conn->of->routes && !may_come(request))
		return;
	if (route && route->body_right && !exchange->wants_body) {
		/* Rights granted since then come too late for this request. */
		if (http1_rights(request, (struct bytes){ NULL, 0 }, route->body_right))
			http1_reply_refused(request, 401, "unknown token");
	} else if (route) {
		route->run(request);
	} else if (found) {
		http1_reply_header(request, "allow", found->method);
		http1_reply_undecided(request, 405, "method not allowed for this path");
	} else {
		http1_reply_undecided(request, 404, "unknown path");
	}
}
