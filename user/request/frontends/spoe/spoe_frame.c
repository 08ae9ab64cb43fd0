// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * spoe_frame.c - handles frames of HAProxy: agrees on HELLO, submits NOTIFY, and sends its
 * response as ACK when it comes.
 *
 * A peer that breaks the protocol gets a DISCONNECT with the reason, and is closed. If the SPOE
 * configuration is wrong its NOTIFYs get ACKs without variables, as if no decision could be made.
 * Fragmented payloads are not supported (HAProxy dropped them in 3.1): a message that is too large
 * for a frame is an error in HAProxy, and the examples refuse on that.
 */
#include <errno.h>
#include <event2/buffer.h>
#include <stdlib.h>
#include <string.h>

#include "request/engine/observe.h"
#include "request/frontends/spoe/spoe_conn.h"
#include "lib/log.h"
#include "request/rules/request_text.h"

/* ------------------------------------------------------------------ hello */

struct spoe_hello {
	u32 frame_max;	  /* its maximum, at least SPOP_FRAME_MIN */
	bool pipelining;  /* it may send requests before the previous response */
	bool healthcheck; /* the connection is a health check */
};

/* The pairs read so far. */
struct pairs {
	struct bytes versions, capabilities;
	u64 frame_max;
	bool has_frame_max, healthcheck;
};

/* The next of "a, b,c", without blanks; false at the end. */
static bool next_of_list(struct bytes *list, struct bytes *ret)
{
	const char *comma;
	size_t len;

	if (!list->at)
		return false;
	comma = memchr(list->at, ',', list->len);
	len = comma ? (size_t)(comma - list->at) : list->len;
	*ret = (struct bytes){ list->at, len };
	*list = comma ? (struct bytes){ comma + 1, list->len - len - 1 }
		      : (struct bytes){ NULL, 0 };
	while (ret->len && *ret->at == ' ')
		*ret = (struct bytes){ ret->at + 1, ret->len - 1 };
	while (ret->len && ret->at[ret->len - 1] == ' ')
		ret->len--;
	return true;
}

/* A peer that supports any 2.x supports 2.0. */
static bool has_version_2(struct bytes list)
{
	struct bytes version;

	while (next_of_list(&list, &version))
		if (version.len > 2 && !memcmp(version.at, "2.", 2))
			return true;
	return false;
}

static bool has_feature(struct bytes list, const char *word)
{
	struct bytes text;

	while (next_of_list(&list, &text))
		if (bytes_equal(text, word))
			return true;
	return false;
}

/* A pair of HELLO's list; unknown ones are ignored. */
static bool take_pair(struct pairs *pairs, struct bytes name, const struct spop_value *value)
{
	if (bytes_equal(name, "supported-versions")) {
		pairs->versions = value->text;
		return value->type == SPOP_STRING;
	}
	if (bytes_equal(name, "capabilities")) {
		pairs->capabilities = value->text;
		return value->type == SPOP_STRING;
	}
	if (bytes_equal(name, "max-frame-size")) {
		pairs->frame_max = value->number;
		pairs->has_frame_max = true;
		return value->type >= SPOP_INT32 && value->type <= SPOP_UINT64;
	}
	if (bytes_equal(name, "healthcheck")) {
		pairs->healthcheck = value->number;
		return value->type == SPOP_BOOL;
	}
	return true;
}

/* SPOP_NORMAL, or the status of a DISCONNECT; ret is then untouched. */
static enum spop_status spoe_hello_read(struct spop_frame *frame, struct spoe_hello *ret)
{
	struct pairs pairs = { .healthcheck = false };

	if (!(frame->flags & SPOP_FIN))
		return SPOP_FRAGMENTED;
	if (frame->stream || frame->frame)
		return SPOP_INVALID;
	while (frame->payload.at < frame->payload.end) {
		struct spop_value value;
		struct bytes name;

		if (!spop_get_text(&frame->payload, &name) ||
		    !spop_get_value(&frame->payload, &value) || !take_pair(&pairs, name, &value))
			return SPOP_INVALID;
	}
	if (!pairs.versions.at)
		return SPOP_NO_VERSION;
	if (!has_version_2(pairs.versions))
		return SPOP_BAD_VERSION;
	if (!pairs.has_frame_max)
		return SPOP_NO_FRAME_SIZE;
	if (pairs.frame_max < SPOP_FRAME_MIN || pairs.frame_max >> 32)
		return SPOP_BAD_FRAME_SIZE;
	if (!pairs.capabilities.at)
		return SPOP_NO_CAPABILITIES;
	ret->frame_max = pairs.frame_max;
	ret->pipelining = has_feature(pairs.capabilities, "pipelining");
	ret->healthcheck = pairs.healthcheck;
	return SPOP_NORMAL;
}

static void take_hello(struct spoe_conn *conn, struct spop_frame *frame)
{
	u8 memory[SPOP_FRAME_MIN];
	struct spop_writer writer;
	struct spoe_hello hello;
	enum spop_status status = spoe_hello_read(frame, &hello);

	if (status != SPOP_NORMAL) {
		spoe_disconnect(conn, status);
		return;
	}
	conn->frame_max = hello.frame_max < SPOP_FRAME_MAX ? hello.frame_max : SPOP_FRAME_MAX;
	conn->state = SPOE_OPEN;
	writer = spop_frame_begin(memory, sizeof(memory), SPOP_AGENT_HELLO, 0, 0);
	spop_put_pair_string(&writer, "version", "2.0");
	spop_put_pair_number(&writer, "max-frame-size", conn->frame_max);
	/*
	 * Not async: a response uses the connection of its request, so no connection needs a
	 * lock.
	 */
	spop_put_pair_string(&writer, "capabilities", hello.pipelining ? "pipelining" : "");
	spoe_conn_send(conn, &writer);
	if (hello.healthcheck)
		spoe_conn_close(conn);
}

/* ------------------------------------------------------------------ requests */

/* The largest ACK: eight variables, three of them texts. */
#define ACK_MAX 8192

static void send_ack(struct spoe_conn *conn, const struct response *response, u64 stream, u64 frame)
{
	const struct http_def *def = tier_def(conn->owner->worker->tier);
	size_t most = 4 + (size_t)conn->frame_max;
	u8 memory[ACK_MAX];

	if (most > sizeof(memory))
		most = sizeof(memory);
	bufferevent_write(
		conn->bev, memory,
		spoe_ack(response, def->retry_jitter_permille, stream, frame, memory, most));
}

/* Without a variable HAProxy lets the request pass. */
static void refuse(struct spoe_conn *conn, const struct spop_frame *frame,
		   enum undecided_reason why, const char *reason)
{
	struct engine_thread *engine = conn->owner->worker->engine;

	observe_request(engine, API_SPOE, 1);
	undecided_note(engine, API_SPOE, why, reason);
	send_ack(conn, NULL, frame->stream, frame->frame);
}

static void on_response(const struct request *request, const struct response *response, void *arg)
{
	struct spoe_delayed *held = arg;
	struct spoe_conn *conn = held->conn;

	observe_request(conn->owner->worker->engine, API_SPOE, 0);
	send_ack(conn, response, held->stream, held->frame);
	if (held->delayed) {
		spoe_delayed_free(held);
		spoe_resume(conn);
	}
}

/* If no response can be delayed, the request is submitted without a copy. */
static void submit_now(struct spoe_conn *conn, const struct spop_frame *frame)
{
	struct spoe_delayed now = { .conn = conn, .stream = frame->stream, .frame = frame->frame };
	struct delayed *delayed = request_submit(conn->owner->worker->engine,
						 &conn->owner->request.request, on_response, &now);

	if (delayed) {
		request_cancel(delayed);
		refuse(conn, frame, UNDECIDED_UNREADABLE,
		       "its response was delayed although no caller waits");
	}
}

static void submit_delayed(struct spoe_conn *conn, const struct spop_frame *frame)
{
	const struct spoe_request *request = &conn->owner->request;
	struct spoe_delayed *held = malloc(sizeof(*held) + spoe_request_size(request));

	if (!held) {
		refuse(conn, frame, UNDECIDED_UNREADABLE, "out of memory");
		return;
	}
	held->conn = conn;
	held->delayed = NULL;
	held->stream = frame->stream;
	held->frame = frame->frame;
	spoe_request_copy(request, &held->request, held->memory);
	held->delayed =
		request_submit(conn->owner->worker->engine, &held->request, on_response, held);
	if (!held->delayed) {
		free(held);
		return;
	}
	held->next = conn->held;
	held->link = &conn->held;
	if (held->next)
		held->next->link = &held->next;
	conn->held = held;
	conn->held_count++;
}

/*
 * SPOP has no tokens: over TCP any client of the listener may check; more rights need a
 * certificate or a Unix socket.
 */
static u32 rights_of(struct spoe_conn *conn, struct bytes domain)
{
	bool bad_token;
	u32 rights = caller_rights(conn->owner->worker->tier, &conn->peer, (struct bytes){ "", 0 },
				   domain, &bad_token);

	if (!conn->peer.unix_socket && !conn->peer.cert_cn[0])
		rights |= MAY_CHECK;
	return rights;
}

static void take_notify(struct spoe_conn *conn, const struct spop_frame *frame)
{
	struct spoe_worker *owner = conn->owner;
	const struct listen_def *listener = conn->peer.listener;
	struct request *request = &owner->request.request;
	const char *reason = "";
	int r;

	if (!(frame->flags & SPOP_FIN)) {
		spoe_disconnect(conn, SPOP_FRAGMENTED);
		return;
	}
	r = spoe_request_read(&owner->request, frame->payload.at,
			      frame->payload.end - frame->payload.at, &reason);
	if (r == -EBADMSG) {
		spoe_disconnect(conn, SPOP_INVALID);
		return;
	}
	if (r < 0) {
		refuse(conn, frame, UNDECIDED_UNREADABLE, reason);
		return;
	}
	request->rights = rights_of(conn, request->domain);
	if (!(request->rights & MAY_CHECK)) {
		refuse(conn, frame, UNDECIDED_CALLER,
		       "permission denied: the caller may not check this domain, see http.callers");
		return;
	}
	if (listener && listener->has_max_wait)
		request->max_wait_ns = listener->max_wait_ns;
	/* A response that needs the cluster store comes later, too. */
	if (request->max_wait_ns || owner->worker->engine->engine->ledger.quotas)
		submit_delayed(conn, frame);
	else
		submit_now(conn, frame);
}

/* ------------------------------------------------------------------ frames */

void spoe_take_frame(struct spoe_conn *conn, const void *bytes, size_t size)
{
	struct spop_frame frame;

	if (!spop_get_frame(bytes, size, &frame)) {
		spoe_disconnect(conn, SPOP_INVALID);
		return;
	}
	switch (frame.type) {
	case SPOP_HAPROXY_DISCONNECT:
		spoe_disconnect(conn, SPOP_NORMAL);
		break;
	case SPOP_HAPROXY_HELLO:
		if (conn->state == SPOE_HELLO)
			take_hello(conn, &frame);
		else
			spoe_disconnect(conn, SPOP_INVALID);
		break;
	case SPOP_NOTIFY:
		if (conn->state == SPOE_OPEN)
			take_notify(conn, &frame);
		else
			spoe_disconnect(conn, SPOP_INVALID);
		break;
	case SPOP_UNSET: /* the rest of a fragmented frame */
		spoe_disconnect(conn, SPOP_FRAGMENTED);
		break;
	default:
		/* Types of agents are errors; unknown types may be added later. */
		if (conn->state == SPOE_HELLO ||
		    (frame.type >= SPOP_AGENT_HELLO && frame.type <= SPOP_ACK))
			spoe_disconnect(conn, SPOP_INVALID);
		break;
	}
}
