// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * http1_parse.c - bytes of a connection -> struct http1_request.
 *
 * libhttp-parser finds the parts, in whatever pieces they come. They are copied one after the
 * other into one text that may move while it grows, so positions are offsets until the request is
 * complete. Values of headers are bytes: its lenient mode accepts anything but CR and LF. That mode
 * also accepts a length beside an encoding, which is refused here.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "request/frontends/http1/http1_private.h"

#define TEXT_START 2048
#define UNUSED_MAX 64

/* ------------------------------------------------------------------ memory */

static size_t beyond(size_t room)
{
	return room > TEXT_FREE_BYTES ? room - TEXT_FREE_BYTES : 0;
}

bool text_reserve(struct http1_worker *of, struct text *text, size_t more)
{
	size_t need = text->len + more, room = text->room ? text->room : TEXT_START;
	size_t large;
	char *at;

	if (need <= text->room)
		return true;
	while (room < need)
		room *= 2;
	large = of->large - beyond(text->room) + beyond(room);
	if (beyond(room) && large > LARGE_BYTES_MAX)
		return false;
	at = realloc(text->at, room);
	if (!at)
		return false;
	of->large = large;
	text->at = at;
	text->room = room;
	return true;
}

static void text_shrink(struct http1_worker *of, struct text *text)
{
	text->len = 0;
	if (!beyond(text->room))
		return;
	of->large -= beyond(text->room);
	free(text->at);
	*text = (struct text){ .at = NULL };
}

struct exchange *exchange_new(struct http1_worker *of)
{
	struct exchange *exchange = of->unused;

	if (exchange) {
		of->unused = exchange->next;
		of->unused_count--;
		return exchange;
	}
	return calloc(1, sizeof(*exchange));
}

void exchange_delete(struct exchange *exchange)
{
	free(exchange->text.at);
	free(exchange->body.at);
	free(exchange->headers.at);
	free(exchange);
}

void exchange_free(struct http1_worker *of, struct exchange *exchange)
{
	text_shrink(of, &exchange->text);
	text_shrink(of, &exchange->body);
	text_shrink(of, &exchange->headers);
	if (of->unused_count < UNUSED_MAX) {
		exchange->next = of->unused;
		of->unused = exchange;
		of->unused_count++;
		return;
	}
	exchange_delete(exchange);
}

/* ------------------------------------------------------------------ libhttp-parser's callbacks */

static struct exchange *exchange_of(http_parser *parser)
{
	return ((struct http1_conn *)parser->data)->exchange;
}

/* Ends the reading. */
static int refuse(struct exchange *exchange, int status, const char *detail)
{
	if (!exchange->refusal) {
		exchange->refusal = status;
		exchange->detail = detail;
	}
	return -1;
}

static int append(http_parser *parser, struct text *text, const char *at, size_t len)
{
	struct http1_conn *conn = parser->data;

	if (!text_reserve(conn->of, text, len))
		return refuse(conn->exchange, 503, "too many large requests at once");
	memcpy(text->at + text->len, at, len);
	text->len += len;
	return 0;
}

static int append_head(http_parser *parser, const char *at, size_t len)
{
	struct exchange *exchange = exchange_of(parser);

	if (exchange->text.len + len > HTTP1_HEAD_BYTES_MAX)
		return refuse(exchange, 431, "the head is larger than 256 KiB");
	return append(parser, &exchange->text, at, len);
}

static int on_url(http_parser *parser, const char *at, size_t len)
{
	exchange_of(parser)->target_len += len;
	return append_head(parser, at, len);
}

static int on_field(http_parser *parser, const char *at, size_t len)
{
	struct exchange *exchange = exchange_of(parser);
	struct http1_request *request = &exchange->request;
	struct http1_header *header;
	size_t from;

	if (exchange->headed)
		return 0; /* trailers are ignored */
	/* libhttp-parser reads "Content-Length : 5" as a length, and a first line that is folded as
	 * a name. */
	if (memchr(at, ' ', len))
		return refuse(exchange, 400, "a header's name has a blank");
	if (!request->header_count || exchange->in_value) {
		if (request->header_count == HTTP1_HEADERS_MAX)
			return refuse(exchange, 431, "more than 128 headers");
		header = &request->header[request->header_count++];
		*header = (struct http1_header){ .name.at = NULL };
		exchange->in_value = false;
		/* An offset until the text no longer moves. */
		header->name.at = (const char *)exchange->text.len;
	}
	header = &request->header[request->header_count - 1];
	from = exchange->text.len;
	if (append_head(parser, at, len) < 0)
		return -1;
	for (size_t i = from; i < exchange->text.len; i++)
		if (exchange->text.at[i] >= 'A' && exchange->text.at[i] <= 'Z')
			exchange->text.at[i] |= 0x20;
	header->name.len += len;
	return 0;
}

static int on_value(http_parser *parser, const char *at, size_t len)
{
	struct exchange *exchange = exchange_of(parser);
	struct http1_header *header;

	if (exchange->headed)
		return 0;
	header = &exchange->request.header[exchange->request.header_count - 1];
	if (!exchange->in_value) {
		exchange->in_value = true;
		header->value.at = (const char *)exchange->text.len;
	}
	header->value.len += len;
	return append_head(parser, at, len);
}

static struct bytes at_offset(const struct exchange *exchange, const char *offset, size_t len)
{
	return (struct bytes){ exchange->text.at + (size_t)offset, len };
}

/* All headers are read and the text no longer moves: offsets become pointers. */
static void settle(struct http1_conn *conn)
{
	struct exchange *exchange = conn->exchange;
	struct http1_request *request = &exchange->request;
	const char *method = http_method_str(conn->parser.method), *question;

	request->method = (struct bytes){ method, strlen(method) };
	for (u32 i = 0; i < request->header_count; i++) {
		struct http1_header *header = &request->header[i];

		header->name = at_offset(exchange, header->name.at, header->name.len);
		header->value = at_offset(exchange, header->value.at, header->value.len);
		/* libhttp-parser removes blanks before a value only. Else "bob " is another user
		 * than "bob". */
		while (header->value.len && is_blank(header->value.at[header->value.len - 1]))
			header->value.len--;
	}
	request->path = (struct bytes){ exchange->text.at, exchange->target_len };
	request->query = (struct bytes){ exchange->text.at + exchange->target_len, 0 };
	question = memchr(request->path.at, '?', request->path.len);
	if (question) {
		request->path.len = question - request->path.at;
		request->query.at = question + 1;
		request->query.len = exchange->target_len - request->path.len - 1;
	}
}

/* A client that waits for a 100 before its body gets one, or the refusal at once. */
static int expect(struct http1_conn *conn, const struct http1_header *header)
{
	static const char go_on[] = "HTTP/1.1 100 Continue\r\n\r\n";

	if (header->value.len != 12 || strncasecmp(header->value.at, "100-continue", 12) != 0)
		return refuse(conn->exchange, 417, "the only supported Expect is 100-continue");
	if (conn->parser.http_minor > 0)
		reply_now(conn, go_on, sizeof(go_on) - 1);
	return 0;
}

/* A request for a decision is refused by one: a caller may let traffic pass on an error. */
static int refuse_body(struct exchange *exchange)
{
	enum request_api api = exchange->wants_body ? exchange->route->api : API_OTHER;

	if (api == API_V1_CHECK || api == API_JSON)
		exchange->request.beyond = "a body of more than 4 MiB";
	return refuse(exchange, 413, "the body is larger than 4 MiB");
}

static int on_headers(http_parser *parser)
{
	struct http1_conn *conn = parser->data;
	struct exchange *exchange = conn->exchange;
	const struct http1_header *expects = NULL;

	for (u32 i = 0; i < exchange->request.header_count; i++) {
		const struct http1_header *header = &exchange->request.header[i];
		const char *name = exchange->text.at + (size_t)header->name.at;

		switch (header->name.len) {
		case 4:
			exchange->hosts += !memcmp(name, "host", 4);
			break;
		case 6:
			expects = memcmp(name, "expect", 6) ? expects : header;
			break;
		case 14:
			exchange->has_length |= !memcmp(name, "content-length", 14);
			break;
		case 17:
			exchange->has_encoding |= !memcmp(name, "transfer-encoding", 17);
			break;
		}
	}
	exchange->headed = true;
	if (parser->http_major != 1)
		return refuse(exchange, 505, "supported versions: HTTP/1.1, HTTP/1.0");
	if (exchange->has_length && exchange->has_encoding)
		return refuse(exchange, 400,
			      "a length and an encoding of the body exclude each "
			      "other");
	/* Else the body would have no end, or another one for a proxy. */
	if (exchange->has_encoding && (!(parser->flags & F_CHUNKED) || !parser->http_minor))
		return refuse(exchange, 400,
			      "the only supported encoding of a body is chunked, of HTTP/1.1");
	if (exchange->hosts != 1 && (exchange->hosts || parser->http_minor > 0))
		return refuse(exchange, 400, "a request must have one Host header");
	settle(conn);
	exchange->wants_body = routes_find(&exchange->request);
	if (exchange->has_length && parser->content_length > HTTP1_BODY_MAX)
		return refuse_body(exchange);
	return expects ? expect(conn, expects) : 0;
}

static int on_body(http_parser *parser, const char *at, size_t len)
{
	struct exchange *exchange = exchange_of(parser);

	exchange->body_bytes += len;
	if (exchange->body_bytes > HTTP1_BODY_MAX)
		return refuse_body(exchange);
	return exchange->wants_body ? append(parser, &exchange->body, at, len) : 0;
}

static int on_complete(http_parser *parser)
{
	http_parser_pause(parser, 1);
	return 0;
}

static const http_parser_settings settings = {
	.on_url = on_url,
	.on_header_field = on_field,
	.on_header_value = on_value,
	.on_headers_complete = on_headers,
	.on_body = on_body,
	.on_message_complete = on_complete,
};

/* ------------------------------------------------------------------ a request */

void exchange_begin(struct http1_conn *conn)
{
	struct exchange *exchange = conn->exchange;
	struct http1_request *request = &exchange->request;

	exchange->begun = false;
	exchange->target_len = 0;
	exchange->body_bytes = 0;
	exchange->wants_body = false;
	exchange->headed = exchange->in_value = exchange->has_length = exchange->has_encoding =
		false;
	exchange->running = exchange->replied = false;
	exchange->hosts = 0;
	exchange->token_found = false;
	exchange->refusal = 0;
	exchange->detail = NULL;
	exchange->route = exchange->on_path = NULL;
	exchange->text.len = exchange->body.len = exchange->headers.len = 0;
	request->worker = conn->of->worker;
	request->peer = &conn->peer;
	request->header_count = 0;
	request->body = (struct bytes){ NULL, 0 };
	request->delayed = NULL;
	request->beyond = NULL;
	request->conn = conn;
	request->frontend = NULL;
	request->frontend_free = NULL;
}

/* The bytes used by a request of the usual form; 0: it has another, or more is to come. */
static size_t parse_plain(struct http1_conn *conn, const char *data, size_t len)
{
	struct http_parser *parser = &conn->parser;
	struct exchange *exchange = conn->exchange;
	enum http_method method;
	struct bytes body;

	if (!exchange_plain(conn, (struct bytes){ data, len }, &method, &body))
		return 0;
	/* As http_parser_execute() leaves them. */
	parser->method = method;
	parser->http_major = parser->http_minor = 1;
	parser->flags = 0;
	parser->upgrade = 0;
	parser->content_length =
		0; /* it is only compared with the bound: a body that is here is below */
	parser->data = conn;
	if (!on_headers(parser) && body.len && !on_body(parser, body.at, body.len))
		exchange->request.body = (struct bytes){ exchange->body.at, exchange->body.len };
	return body.at + body.len - data;
}

static void parser_begin(struct http1_conn *conn)
{
	http_parser_init(&conn->parser, HTTP_REQUEST);
	conn->parser.data = conn;
	conn->parser.lenient_http_headers = 1;
}

size_t exchange_parse(struct http1_conn *conn, const char *data, size_t len, bool *ret_whole)
{
	struct exchange *exchange = conn->exchange;
	enum http_errno error;
	size_t used;

	*ret_whole = true;
	if (!exchange->begun) {
		exchange->begun = true;
		used = parse_plain(conn, data, len);
		if (used)
			return used;
		parser_begin(conn);
	}
	used = http_parser_execute(&conn->parser, &settings, data, len);
	error = HTTP_PARSER_ERRNO(&conn->parser);
	if (error == HPE_PAUSED) {
		http_parser_pause(&conn->parser, 0);
		exchange->request.body = (struct bytes){ exchange->body.at, exchange->body.len };
		return used;
	}
	if (error == HPE_OK) {
		*ret_whole = false;
		return used;
	}
	if (error == HPE_HEADER_OVERFLOW)
		refuse(exchange, 431, "the head is larger than 256 KiB");
	else if (!exchange->refusal)
		refuse(exchange, 400, http_errno_description(error));
	return used;
}
