/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * grpc_private.h - shared by the files of the gRPC frontend.
 *
 *     grpc.c          connections: bytes in and out, times, draining
 *     grpc_session.c  frames -> streams: nghttp2's callbacks, and the bounds of HTTP/2
 *     grpc_memory.c   nghttp2's memory
 *     grpc_stream.c   a stream: its message, its memory, its reply
 *     grpc_rls.c      ShouldRateLimit, CheckRateLimit, Report
 *     grpc_plain.c    their usual messages, without protobuf-c
 *     grpc_health.c   grpc.health.v1
 */
#ifndef SLUICE_HTTP_GRPC_PRIVATE_H
#define SLUICE_HTTP_GRPC_PRIVATE_H

#include <nghttp2/nghttp2.h>
#include <protobuf-c/protobuf-c.h>
#include <sys/queue.h>

#include "proto/rls.pb-c.h"
#include "request/server/response.h"
#include "request/server/worker.h"

/* Bounds of a connection, documented in docs/grpc.md. */
#define GRPC_STREAMS_MAX 1024	       /* open at once */
#define GRPC_MESSAGE_MAX (1024 * 1024) /* bytes of a request */
#define GRPC_HEADERS_MAX (16 * 1024)   /* bytes of its header list */
#define GRPC_WINDOW (2 * 1024 * 1024)  /* bytes of requests without a response */
#define GRPC_TOKEN_MAX 4096
#define GRPC_BACKLOG_MAX (256 * 1024) /* unread responses: above this, reading stops */

#define GRPC_PREFACE_MS 10000  /* from connecting to the client's SETTINGS */
#define GRPC_REQUEST_MS 10000  /* from a stream's first header to the end of its message */
#define GRPC_WRITE_MS 30000    /* without any output accepted */
#define GRPC_IDLE_MS 600000ULL /* without a stream */

/*
 * Frames that cost work and bring no request (pings, settings, priorities, window updates,
 * resets): a burst, a rate per second, and an allowance with each request.
 */
#define GRPC_IDLE_FRAMES 2000
#define GRPC_IDLE_FRAMES_PER_S 200
#define GRPC_IDLE_FRAMES_PER_REQUEST 8

enum grpc_status {
	GRPC_OK = 0,
	GRPC_INVALID_ARGUMENT = 3,
	GRPC_NOT_FOUND = 5,
	GRPC_PERMISSION_DENIED = 7,
	GRPC_RESOURCE_EXHAUSTED = 8,
	GRPC_UNIMPLEMENTED = 12,
	GRPC_UNAVAILABLE = 14,
	GRPC_UNAUTHENTICATED = 16,
};

struct grpc_stream;

struct grpc_method {
	const char *path;
	enum request_api api;
	u32 right; /* caller_right needed to read a message; 0: any */
	void (*run)(struct grpc_stream *stream, struct bytes message);
};

/* Memory of a stream's messages and response, freed at its end. Most streams need only this. */
struct grpc_block {
	struct grpc_block *next;
	char bytes[];
};

#define GRPC_ARENA_BYTES 3072

struct grpc_stream {
	TAILQ_ENTRY(grpc_stream) link;
	struct grpc_conn *conn;
	s32 id;
	const struct grpc_method *method;
	u64 since_ms;
	bool whole;    /* the request has ended */
	bool replied;  /* later input is ignored */
	bool watching; /* a Watch of grpc_health.c */
	bool too_much; /* it exceeded the memory of a stream */
	/* Of the headers */
	u32 header_bytes;
	bool is_post, is_grpc;
	bool has_timeout;
	u64 timeout_ns;
	struct bytes token;
	int http_status; /* refused by its headers: this, else 200 */
	/* The request's message, and the five bytes before it */
	u8 prefix[5], prefix_len;
	char *body;
	u32 body_len, body_want;
	u32 received; /* bytes that count against the connection's window */
	/* The reply */
	struct delayed *delayed; /* the response is delayed */
	const char *out;
	u32 out_len, out_sent;
	bool out_more; /* more may follow */
	/* Memory */
	u32 arena_left; /* bytes that may still be allocated beyond arena[] */
	u32 arena_used;
	struct grpc_block *block;
	ProtobufCAllocator allocator;
	char arena[GRPC_ARENA_BYTES] __attribute__((aligned(16)));
};

TAILQ_HEAD(grpc_streams, grpc_stream);

struct grpc_conn {
	LIST_ENTRY(grpc_conn) link;
	struct grpc_worker *of;
	struct bufferevent *bev;
	struct event *readable; /* NULL: TLS, read by the bufferevent */
	bool reading;
	int fd;
	struct peer_info peer;
	nghttp2_session *session;
	struct grpc_streams streams;
	struct grpc_stream *headed; /* the one whose header block came last; NULL: it has ended */
	u32 stream_count;
	u32 asking_count;   /* whole requests without a reply */
	u32 watching_count; /* streams with open responses: Watches of grpc_health.c */
	u64 since_ms;	    /* the last stream ended, or it was accepted */
	bool greeted;	    /* the client's SETTINGS came */
	bool busy;	    /* inside nghttp2: no sending, no freeing */
	bool dead;	    /* to be freed */
	bool closing;	    /* freed once all responses are written */
	u64 drain_ms;	    /* start of draining; 0: not draining */
	bool drained;	    /* the last GOAWAY was sent */
	u64 stuck_ms;	    /* time since which the client accepts no output; 0: it does */
	s64 frames;	    /* frames that it may still send without a request */
	u64 frames_ms;	    /* as of when */
};

/* Blocks that nghttp2 freed, by size; none with a sanitizer. */
#define GRPC_SIZES 3
#define GRPC_KEPT_MAX 1024
#ifdef __SANITIZE_ADDRESS__
#undef GRPC_KEPT_MAX
#define GRPC_KEPT_MAX 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#undef GRPC_KEPT_MAX
#define GRPC_KEPT_MAX 0
#endif
#endif
struct grpc_memory {
	struct grpc_memory_block *kept[GRPC_SIZES];
	u32 count[GRPC_SIZES];
};

/* The state of one worker. */
struct grpc_worker {
	struct worker *worker;
	LIST_HEAD(, grpc_conn) conns;
	struct event *tick;
	u64 now_ms; /* as of the last tick or read */
	bool draining;
	nghttp2_session_callbacks *callbacks;
	nghttp2_option *option;
	struct grpc_memory memory;  /* of nghttp2 */
	struct grpc_stream *unused; /* linked by link.tqe_next */
	u32 unused_count;
	u8 received[16 * 1024]; /* of one read, until the callback returns */
	char message[4096];	/* a response that is as small, until it is copied */
};

/* ---- grpc.c ---- */
/* Sends nghttp2's output, unless it is busy; frees the connection if it has ended. */
void grpc_conn_settle(struct grpc_conn *conn);

/* ---- grpc_session.c ---- */
int grpc_session_prepare(struct grpc_worker *of);
int grpc_session_new(struct grpc_conn *conn);

/* ---- grpc_memory.c ---- */
nghttp2_mem grpc_memory_of(struct grpc_memory *memory);
/* Once no connection is left. */
void grpc_memory_end(struct grpc_memory *memory);

/* ---- grpc_stream.c ---- */
struct grpc_stream *grpc_stream_new(struct grpc_conn *conn, s32 id);
/* Ends a stream that has its response, or will get none. */
void grpc_stream_replied(struct grpc_stream *stream);
/* Also without a response: cancels a delayed one. */
void grpc_stream_free(struct grpc_stream *stream);
/* NULL: above the bound of a stream. Aligned for anything. */
void *grpc_stream_alloc(struct grpc_stream *stream, size_t size);
/* Frees what was allocated since a mark, as if it had never been. */
struct grpc_mark {
	u32 left, used;
	struct grpc_block *block;
};
struct grpc_mark grpc_stream_mark(const struct grpc_stream *stream);
void grpc_stream_release(struct grpc_stream *stream, struct grpc_mark mark);
/* A header of the request. */
void grpc_stream_header(struct grpc_stream *stream, struct bytes name, struct bytes value);
/* End of the headers: a request that they refuse gets its response. */
void grpc_stream_headed(struct grpc_stream *stream);
/* Bytes of the body. */
void grpc_stream_body(struct grpc_stream *stream, const void *data, size_t len);
/* The request is complete. */
void grpc_stream_run(struct grpc_stream *stream);
/* Responds with a message and OK; with `more` the stream stays open for another one. */
void grpc_stream_reply(struct grpc_stream *stream, const ProtobufCMessage *message, bool more);
/* The same with a message that is packed, and no more. */
void grpc_stream_reply_packed(struct grpc_stream *stream, struct bytes message);
/* Responds with a status only. `message` is static. */
void grpc_stream_fail(struct grpc_stream *stream, enum grpc_status status, const char *message);
/* Responds with UNAVAILABLE, unless there is a response already: Envoy takes RESOURCE_EXHAUSTED for
 * a 429. */
void grpc_stream_no_memory(struct grpc_stream *stream);

/* ---- grpc_rls.c, grpc_health.c ---- */
void grpc_should_rate_limit(struct grpc_stream *stream, struct bytes message);
void grpc_check_rate_limit(struct grpc_stream *stream, struct bytes message);
void grpc_report(struct grpc_stream *stream, struct bytes message);
/*
 * OVER_LIMIT, of a deciding method, for an unread message; false: another method, no response
 * sent.
 */
bool grpc_refuse_beyond(struct grpc_stream *stream, const char *message);
/* One descriptor's part of a response, with the messages that it points to. */
struct grpc_status_message {
	Rls__Status status;
	Rls__Limit limit;
	Rls__Duration reset;
};
void grpc_status_set(struct grpc_status_message *ret, const struct response_status *from);
/* A response for protobuf-c; it points into the other one, and lives as long as that and the
 * stream. */
#define GRPC_RESPONSE_HEADERS_MAX 7
struct grpc_response_message {
	Rls__Response response;
	struct grpc_status_message status[REQUEST_DESCRIPTORS_MAX];
	Rls__Status *status_at[REQUEST_DESCRIPTORS_MAX];
	Rls__Header header[GRPC_RESPONSE_HEADERS_MAX], *header_at[GRPC_RESPONSE_HEADERS_MAX];
	char text[GRPC_RESPONSE_HEADERS_MAX][RESPONSE_TEXT_MAX];
};
void grpc_response_set(struct grpc_stream *stream, struct grpc_response_message *ret,
		       const struct response *from, u32 jitter_permille);
/* A descriptor without entries; 0 hits: absent. */
void grpc_descriptor_begin(struct request_descriptor *ret, u64 hits);
/* A RateLimitRequest, by protobuf-c: NULL, or why it is malformed; or it sets `beyond`. */
const char *grpc_request_read(struct grpc_stream *stream, struct bytes message,
			      struct request *rl_request);
void grpc_health_check(struct grpc_stream *stream, struct bytes message);
void grpc_health_watch(struct grpc_stream *stream, struct bytes message);
/* Draining: sends NOT_SERVING to watchers. */
void grpc_health_drain(struct grpc_conn *conn);

/* ---- grpc_plain.c ---- */
/* As grpc_request_read(). False: it is not of the usual form; *ret is unchanged. */
bool grpc_request_plain(struct grpc_stream *stream, struct bytes message, struct request *ret);
/* The packed response without metadata: its length; 0: it does not fit. */
size_t grpc_response_plain(const struct response *response, u32 jitter_permille, char *buf,
			   size_t size);

#endif
