/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* spoe_conn.h - an HAProxy connection: spoe.c keeps it, spoe_frame.c handles its frames. */
#ifndef SLUICE_HTTP_SPOE_CONN_H
#define SLUICE_HTTP_SPOE_CONN_H

#include "request/frontends/spoe/spoe_request.h"
#include "lib/clock.h"
#include "request/server/worker.h"

enum spoe_state { SPOE_HELLO, SPOE_OPEN, SPOE_CLOSING };

struct spoe_worker;

struct spoe_conn {
	struct spoe_worker *owner;
	struct spoe_conn *next, **link;
	struct bufferevent *bev;
	struct peer_info peer;
	enum spoe_state state;
	bool paused;   /* not reading until output or responses are written */
	bool in_frame; /* the deadline is that of a frame */
	bool eof;
	u32 frame_max; /* for both directions, without the length */
	u64 deadline_ns, last_frame_ns;
	u64 thrown_away; /* bytes received while closing */
	struct spoe_delayed *held;
	u32 held_count;
};

/* A request under way; if its response is delayed, followed by a copy of the request. */
struct spoe_delayed {
	struct spoe_conn *conn;
	struct spoe_delayed *next, **link;
	struct delayed *delayed; /* NULL: not delayed */
	u64 stream, frame;
	struct request request;
	char memory[] __attribute__((aligned(16)));
};

struct spoe_worker {
	struct worker *worker;
	struct spoe_conn *first;
	struct event *tick;
	u64 drain_ns;		     /* start of draining; 0: not draining */
	struct spoe_request request; /* the one being read */
};

/* Handles a complete frame. */
void spoe_take_frame(struct spoe_conn *conn, const void *bytes, size_t size);

void spoe_conn_send(struct spoe_conn *conn, struct spop_writer *writer);
/* Stops processing: pending output is still written, then the peer disconnects. */
void spoe_conn_close(struct spoe_conn *conn);
/* The same, with a DISCONNECT that has the reason. */
void spoe_disconnect(struct spoe_conn *conn, enum spop_status status);
/* Resumes paused reading if possible. May be called within a decision. */
void spoe_resume(struct spoe_conn *conn);
void spoe_delayed_free(struct spoe_delayed *held);

#endif
