// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * http1_reply.c - a reply -> bytes, in one system call if the socket accepts them.
 *
 * libevent would wait until a socket is writable before it writes: two more system calls and
 * another turn of the loop. A socket with nothing left to write nearly always is, so it is tried
 * at once, and only the rest goes through the bufferevent. TLS always does.
 */
#include <errno.h>
#include <event2/buffer.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "request/frontends/http1/http1_private.h"
#include "lib/out.h"
#include "request/engine/observe.h"

#define PIECES 3

/* A small reply is put together first: one piece costs the kernel less than the copies do. */
static ssize_t send_now(struct http1_conn *conn, const struct iovec *piece, int count)
{
	struct msghdr message = { .msg_iov = (struct iovec *)piece, .msg_iovlen = (size_t)count };
	size_t len = 0;

	for (int i = 0; i < count; i++) {
		if (piece[i].iov_len > sizeof(conn->of->reply) - len)
			return sendmsg(conn->fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
		memcpy(conn->of->reply + len, piece[i].iov_base, piece[i].iov_len);
		len += piece[i].iov_len;
	}
	return send(conn->fd, conn->of->reply, len, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void send_pieces(struct http1_conn *conn, struct iovec *piece, int count)
{
	struct evbuffer *out = bufferevent_get_output(conn->bev);
	ssize_t sent = 0;

	if (!conn->peer.tls && !evbuffer_get_length(out)) {
		sent = send_now(conn, piece, count);
		if (sent < 0 && errno != EAGAIN && errno != EINTR)
			conn->broken = true;
		if (sent < 0)
			sent = 0;
	}
	for (int i = 0; !conn->broken && i < count; i++) {
		size_t skip = (size_t)sent < piece[i].iov_len ? (size_t)sent : piece[i].iov_len;

		sent -= (ssize_t)skip;
		if (skip < piece[i].iov_len &&
		    bufferevent_write(conn->bev, (char *)piece[i].iov_base + skip,
				      piece[i].iov_len - skip) < 0)
			conn->broken = true;
	}
}

void reply_now(struct http1_conn *conn, const void *data, size_t len)
{
	struct iovec piece = { (void *)data, len };

	send_pieces(conn, &piece, 1);
}

static struct exchange *exchange_of(struct http1_request *request)
{
	return request->conn->exchange;
}

void http1_reply_header_bytes(struct http1_request *request, struct bytes name, struct bytes value)
{
	struct text *text = &exchange_of(request)->headers;
	size_t len = name.len + 2 + value.len + 2;
	/* Without memory for a header the reply omits it. */
	if (!text_reserve(request->conn->of, text, len))
		return;
	memcpy(text->at + text->len, name.at, name.len);
	memcpy(text->at + text->len + name.len, ": ", 2);
	memcpy(text->at + text->len + name.len + 2, value.at, value.len);
	memcpy(text->at + text->len + len - 2, "\r\n", 2);
	text->len += len;
}

static const char *phrase(int status)
{
	switch (status) {
#define CASE(number, name, text)                                                                   \
	case number:                                                                               \
		return #text;
		HTTP_STATUS_MAP(CASE)
#undef CASE
	}
	return "Unknown";
}

static bool has_body(int status)
{
	return status >= 200 && status != 204 && status != 304;
}

void http1_reply(struct http1_request *request, int status, const char *content_type,
		 const void *body, size_t size)
{
	struct http1_conn *conn = request->conn;
	struct exchange *exchange = conn->exchange;
	bool bodied = has_body(status);
	char head[512];
	struct iovec piece[PIECES];
	struct out out;

	if (exchange->replied)
		return;
	exchange->replied = true;
	conn->keep = conn_keeps(conn);
	/* Put together, not printed: printf takes a tenth of a request's instructions. */
	out_begin(&out, head, sizeof(head));
	out_text(&out, "HTTP/1.1 ");
	out_u64(&out, status);
	out_char(&out, ' ');
	out_text(&out, phrase(status));
	out_text(&out, "\r\ndate: ");
	out_text(&out, conn->of->date);
	out_text(&out, !conn->keep		 ? "\r\nconnection: close\r\n"
		       : conn->parser.http_minor ? "\r\n"
						 : "\r\nconnection: keep-alive\r\n");
	if (bodied && content_type) {
		out_text(&out, "content-type: ");
		out_text(&out, content_type);
		out_text(&out, "\r\n");
	}
	if (bodied) {
		out_text(&out, "content-length: ");
		out_u64(&out, size);
		out_text(&out, "\r\n");
	}
	/* The end of the head follows the last header, so that there are three pieces. */
	if (text_reserve(conn->of, &exchange->headers, 2)) {
		memcpy(exchange->headers.at + exchange->headers.len, "\r\n", 2);
		exchange->headers.len += 2;
	} else {
		conn->broken = true;
	}
	piece[0] = (struct iovec){ head, out.len };
	piece[1] = (struct iovec){ exchange->headers.at, exchange->headers.len };
	piece[2] = (struct iovec){ (void *)body, size };
	if (!conn->broken)
		send_pieces(conn, piece,
			    bodied && size && conn->parser.method != HTTP_HEAD ? 3 : 2);
	observe_request(request->worker->engine, exchange->route ? exchange->route->api : API_OTHER,
			status);
	conn_replied(conn);
}

void http1_reply_problem(struct http1_request *request, int status, const char *detail)
{
	json_t *json = json_pack("{s:s, s:i, s:s*}", "title", phrase(status), "status", status,
				 "detail", detail);
	char *text = json ? json_dumps(json, JSON_COMPACT | JSON_REAL_PRECISION(15)) : NULL;

	http1_reply(request, status, "application/problem+json", text ? text : "",
		    text ? strlen(text) : 0);
	free(text);
	json_decref(json);
}

static void note_undecided(struct http1_request *request, int status, const char *detail)
{
	const struct http1_route *route = exchange_of(request)->route;
	enum request_api api = route ? route->api : API_OTHER;
	enum undecided_reason reason = status == 401 || status == 403	? UNDECIDED_CALLER
				       : status == 404 || status == 405 ? UNDECIDED_PATH
									: UNDECIDED_UNREADABLE;

	/* Reports decide nothing, and other listeners than the API's do not. */
	if (api != API_V1_REPORT && !request->conn->of->routes)
		undecided_note(request->worker->engine, api, reason, detail);
}

void http1_reply_undecided(struct http1_request *request, int status, const char *detail)
{
	note_undecided(request, status, detail);
	http1_reply_problem(request, status, detail);
}

/*
 * On /nginx/check a 403 is a refusal by a rule, and the client sees the replies of /forward-auth:
 * a caller without permission gets a 500 there.
 */
void http1_reply_refused(struct http1_request *request, int status, const char *detail)
{
	const struct http1_route *route = exchange_of(request)->route;

	bool proxied = route && (route->api == API_NGINX || route->api == API_FORWARD_AUTH);

	note_undecided(request, status, detail);
	http1_reply_problem(request, proxied ? 500 : status, detail);
}
