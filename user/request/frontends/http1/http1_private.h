/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * http1_private.h - shared by the files of HTTP/1.1.
 *
 *     http1.c         connections: their states, times and ends
 *     http1_parse.c   bytes -> struct http1_request, by libhttp-parser
 *     http1_plain.c   the same for a request of the usual form that was received as a whole
 *     http1_reply.c   a reply -> bytes
 *     http1_routes.c  finds the handler; permissions; health
 */
#ifndef SLUICE_HTTP_HTTP1_PRIVATE_H
#define SLUICE_HTTP_HTTP1_PRIVATE_H

#include <http_parser.h>
#include <sys/queue.h>

#include "request/frontends/http1/http1.h"

/* Bytes that grow up to a bound. */
struct text {
	char *at;
	size_t len, room;
};

/* A request while it is read and answered, in one block; idle connections have none. */
struct exchange {
	struct http1_request request;
	struct exchange *next; /* in the worker's list of unused ones */
	struct text text;      /* target, names and values, concatenated */
	struct text body;
	size_t target_len;
	u64 body_bytes;	 /* received, kept or not */
	bool begun;	 /* some of it was parsed */
	bool headed;	 /* all headers were received */
	bool wants_body; /* its route accepts a body, and the caller may send one */
	bool in_value;	 /* the header read last has some of its value */
	bool has_length, has_encoding;
	u32 hosts;
	bool token_found;
	struct bytes token;		 /* http1_token(), once it was found */
	struct text headers;		 /* of the reply */
	const struct http1_route *route; /* NULL: unknown path, or method */
	const struct http1_route *on_path;
	int refusal; /* the status that ended parsing; 0: none */
	const char *detail;
	bool running; /* its handler is */
	bool replied;
};

/* The event that a connection waits for; each state has a list, longest wait first. */
enum conn_state {
	CONN_IDLE,	/* the next request */
	CONN_READING,	/* the rest of a request */
	CONN_ANSWERING, /* its handler */
	CONN_WRITING,	/* the client to read its reply */
	CONN_LINGERING, /* the client to notice the end */
	CONN_STATE_COUNT,
};

TAILQ_HEAD(conn_list, http1_conn);

struct http1_conn {
	TAILQ_ENTRY(http1_conn) link;
	TAILQ_ENTRY(http1_conn) turn; /* in of->turns, while it has one */
	bool has_turn;
	enum conn_state state;
	u64 since_ms; /* in that state */
	struct http1_worker *of;
	struct bufferevent *bev;
	struct evbuffer *in;	/* received bytes; with TLS the bufferevent's own */
	struct bytes fresh;	/* those behind them, in of->received; empty between callbacks */
	struct event *readable; /* NULL: TLS, read by the bufferevent */
	int fd;
	struct peer_info peer;
	http_parser parser;
	struct exchange *exchange; /* NULL: idle */
	bool keep;		   /* after this reply another request may come */
	bool paused;		   /* not reading: the client sent far ahead of its replies */
	bool broken;		   /* writing failed */
	bool eof;		   /* the client has closed its side */
};

struct http1_worker {
	struct worker *worker;
	const struct http1_routes *routes; /* NULL: the API's */
	struct conn_list list[CONN_STATE_COUNT];
	struct event *tick;
	struct conn_list turns; /* served after the next poll: they have input already */
	struct event *turn;
	u32 turn_count;
	u64 now_ms;    /* as of the last tick */
	char date[32]; /* the Date header's value, at that time */
	struct exchange *unused;
	char host[64]; /* the last Host that was an address or localhost */
	u32 host_len;
	char received[16 * 1024]; /* of one read, until the callback returns */
	char reply[4096];	  /* one that is as small, until it is sent */
	u32 unused_count;
	size_t large; /* bytes in texts beyond the free size of each */
	bool draining;
	u64 grace_ms; /* if draining: for a client to go on */
};

#define TEXT_FREE_BYTES (16 * 1024)	   /* a request up to this size is always read */
#define LARGE_BYTES_MAX (64 * 1024 * 1024) /* all larger ones of a worker together */

/* ---- http1_parse.c ---- */
struct exchange *exchange_new(struct http1_worker *of);
void exchange_free(struct http1_worker *of, struct exchange *exchange);
void exchange_delete(struct exchange *exchange);
void exchange_begin(struct http1_conn *conn);
/*
 * Parses the input. Returns the bytes used; *ret_whole: the request is complete, or refused
 * (exchange->refusal). A body that no handler reads is skipped.
 */
size_t exchange_parse(struct http1_conn *conn, const char *data, size_t len, bool *ret_whole);
/*
 * http1_plain.c: reads a request that is all of the first bytes of `data`, and puts its head into
 * the exchange, as parsed but not yet settled. False: it is not of the usual form, or not all
 * there.
 */
bool exchange_plain(struct http1_conn *conn, struct bytes data, enum http_method *ret_method,
		    struct bytes *ret_body);
/* Makes room for `more` bytes after text->len; false above the bound. */
bool text_reserve(struct http1_worker *of, struct text *text, size_t more);

/* ---- http1_reply.c ---- */
void reply_now(struct http1_conn *conn, const void *data, size_t len);

/* ---- http1_routes.c ---- */
/*
 * After the headers: finds the route. False: its body is not read, since there is no such route
 * or the caller has no right to it.
 */
bool routes_find(struct http1_request *request);
/* Runs the handler, or refuses: then it has replied. */
void routes_run(struct http1_request *request);

/* ---- http1.c ---- */
/* The reply is written or under way: the connection goes on. */
void conn_replied(struct http1_conn *conn);
bool conn_keeps(const struct http1_conn *conn);

#endif
