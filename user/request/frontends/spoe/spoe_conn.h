/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* spoe_conn.h - a connection of HAProxy's: between spoe.c, which keeps it, and spoe_frame.c. */
#ifndef SLUICE_HTTP_SPOE_CONN_H
#define SLUICE_HTTP_SPOE_CONN_H

#include "request/frontends/spoe/spoe_request.h"
#include "request/server/worker.h"

enum spoe_state { SPOE_HELLO, SPOE_OPEN, SPOE_CLOSING };

struct spoe_worker;

struct spoe_conn {
	struct spoe_worker *owner;
	struct spoe_conn *next, **link;
	struct bufferevent *bev;
	struct peer_info peer;
	enum spoe_state state;
	bool paused;			/* does not read until output or answers are gone */
	bool in_frame;			/* the deadline is a frame's */
	bool eof;
	u32 frame_max;			/* both ways, without the length */
	u64 deadline_ns, last_frame_ns;
	u64 thrown_away;		/* bytes that came while closing */
	struct spoe_delayed *held;
	u32 held_count;
};

/* A question on its way; where its answer is held, with the call's own memory behind it. */
struct spoe_delayed {
	struct spoe_conn *conn;
	struct spoe_delayed *next, **link;
	struct delayed *delayed;	/* NULL: not held */
	u64 stream, frame;
	struct request request;
	char memory[] __attribute__((aligned(16)));
};

struct spoe_worker {
	struct worker *worker;
	struct spoe_conn *first;
	struct event *tick;
	u64 drain_ns;			/* since when it drains; 0 not */
	u64 warned_ns;
	struct spoe_request request;		/* the one that is read now */
};

u64 spoe_clock_ns(void);
/* A frame that is answered in. */
void spoe_take_frame(struct spoe_conn *conn, const void *bytes, size_t size);

void spoe_conn_send(struct spoe_conn *conn, struct spop_writer *writer);
/* Nothing more is asked or answered: what is in the output goes out, then the other side goes. */
void spoe_conn_close(struct spoe_conn *conn);
/* The same, saying why. */
void spoe_disconnect(struct spoe_conn *conn, enum spop_status status);
/* Reads on, where it had stopped and need not. From within a decision, too. */
void spoe_resume(struct spoe_conn *conn);
void spoe_delayed_free(struct spoe_delayed *held);

#endif
