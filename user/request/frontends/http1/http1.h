/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * http1.h - HTTP/1.1 for the frontends on it: a request read whole, a reply sent whole.
 *
 * Parsing is libhttp-parser's; connections are bufferevents of the worker. Sizes, counts, times
 * and the depth of pipelining are bounded here, once. Requests with an Origin, or with a Host
 * that is not served, get 403 here.
 */
#ifndef SLUICE_HTTP_HTTP1_H
#define SLUICE_HTTP_HTTP1_H

#include <string.h>

#include "request/server/worker.h"

#define HTTP1_HEADERS_MAX 128
#define HTTP1_HEAD_BYTES_MAX (256 * 1024)
#define HTTP1_BODY_MAX (4 * 1024 * 1024) /* a report of 10000 */

struct http1_header {
	struct bytes name, value; /* name in lower case */
};

/*
 * A handler replies once: before it returns, or later (from request_submit()'s callback). The
 * request is valid until it has replied and returned. If the client disconnects first, `delayed`
 * is cancelled and `frontend_free` called; no reply may follow.
 */
struct http1_request {
	struct worker *worker;
	const struct peer_info *peer;
	struct bytes method, path, query; /* as sent, not decoded */
	struct http1_header header[HTTP1_HEADERS_MAX];
	u32 header_count;
	struct bytes body;
	const char *beyond;	 /* the reason why its rest was not read: it is refused */
	struct delayed *delayed; /* NULL: not delayed; cancelled by a disconnect */
	struct http1_conn *conn;
	void *frontend;			       /* the handler's own, until it replied */
	void (*frontend_free)(void *frontend); /* called once: after the reply, or a disconnect */
};

/* The first header of a name in lower case; ret.at NULL without one. */
struct bytes http1_find_bytes(const struct http1_request *request, struct bytes name);
static inline struct bytes http1_find(const struct http1_request *request, const char *name)
{
	return http1_find_bytes(request, (struct bytes){ name, strlen(name) });
}

/* A parameter of the query, decoded into buf; ret.at NULL without one. */
struct bytes http1_query(const struct http1_request *request, const char *name, char *buf,
			 size_t size);

/* Whether the Host header is an address or localhost, or missing: no name that others could own. */
bool http1_is_host_address(const struct http1_request *request);

/* A reply: headers one by one, then the end. Never blocks. */
void http1_reply_header_bytes(struct http1_request *request, struct bytes name, struct bytes value);
static inline void http1_reply_header(struct http1_request *request, const char *name,
				      const char *value)
{
	http1_reply_header_bytes(request, (struct bytes){ name, strlen(name) },
				 (struct bytes){ value, strlen(value) });
}
void http1_reply(struct http1_request *request, int status, const char *content_type,
		 const void *body, size_t size);
/* An error as problem+json: {"title", "status", "detail"}. */
void http1_reply_problem(struct http1_request *request, int status, const char *detail);
/* The same in place of a decision, which is counted and logged: most proxies let the request pass
 * then. */
void http1_reply_undecided(struct http1_request *request, int status, const char *detail);
/*
 * The same for a caller without permission: 500 on /nginx/check, where 403 means a rule's
 * refusal, and on /forward-auth, whose replies the client sees.
 */
void http1_reply_refused(struct http1_request *request, int status, const char *detail);

/*
 * The caller's token: X-Sluice-Token, or Authorization: Bearer if that is the caller's own and
 * not the client's. len 0: none.
 */
struct bytes http1_token(const struct http1_request *request);
/*
 * The caller's rights for a domain, by its connection and token. Without `needed` (enum
 * caller_right) it sends 401 or 403, and returns 0.
 */
u32 http1_rights(struct http1_request *request, struct bytes domain, u32 needed);

#define HTTP1_BODY_OF_ANY (~0U) /* a body_right that all have */

/* Paths, one line each in http1_routes.c. One that ends in '/' includes everything below it. */
struct http1_route {
	const char *method, *path;
	enum request_api api;
	u32 body_right; /* caller_right needed to send a body; 0: none is read */
	void (*run)(struct http1_request *request);
};
struct http1_routes {
	const struct http1_route *route;
	size_t count;
};
/* Makes a worker serve these instead of the API: after frontend_http1.start(). */
void http1_serve(struct worker *worker, const struct http1_routes *routes);

extern const struct frontend frontend_http1;

void v1_check(struct http1_request *request);
void v1_report(struct http1_request *request);
void v1_defer_look(struct http1_request *request);
void v1_defer_cancel(struct http1_request *request);
void rls_json(struct http1_request *request);
void rls_healthcheck(struct http1_request *request);
void nginx_check(struct http1_request *request);
void forward_auth(struct http1_request *request);

#endif
