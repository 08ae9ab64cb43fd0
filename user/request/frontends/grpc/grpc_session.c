// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * grpc_session.c - HTTP/2 of the gRPC frontend: nghttp2's callbacks, and bounds.
 *
 * Windows bound memory. A stream's window holds one message of the largest size and is never
 * extended; the connection's holds what all its streams have sent and is extended as they end. So
 * a connection keeps at most GRPC_WINDOW of requests, whatever it opens.
 *
 * nghttp2 bounds resets, settings, unsent acknowledgements and continuations itself; this file
 * counts the other frames that are cheap to send and bring no request.
 */
#include <errno.h>

#include "request/frontends/grpc/grpc_private.h"

static struct grpc_stream *stream_of(nghttp2_session *session, s32 id)
{
	return nghttp2_session_get_stream_user_data(session, id);
}

/* nghttp2 finds a stream by its hash; most frames are of the one that began last. */
static struct grpc_stream *stream_at(struct grpc_conn *conn, s32 id)
{
	if (conn->headed && conn->headed->id == id)
		return conn->headed;
	return stream_of(conn->session, id);
}

/* A frame that brings no request; too many of them end the connection. */
static void count_idle_frame(struct grpc_conn *conn)
{
	u64 now_ms = conn->of->now_ms;

	conn->frames += (now_ms - conn->frames_ms) * GRPC_IDLE_FRAMES_PER_S / 1000;
	if (conn->frames > GRPC_IDLE_FRAMES)
		conn->frames = GRPC_IDLE_FRAMES;
	/* Keeps the remainder below one frame's time. */
	if (now_ms - conn->frames_ms >= 1000 / GRPC_IDLE_FRAMES_PER_S)
		conn->frames_ms = now_ms;
	if (--conn->frames < 0)
		nghttp2_session_terminate_session(conn->session, NGHTTP2_ENHANCE_YOUR_CALM);
}

static void request_ended(struct grpc_conn *conn, struct grpc_stream *stream)
{
	stream->whole = true;
	conn->asking_count += !stream->replied;
	connection_set(conn->peer.connection, CONNECTION_BUSY);
	if (conn->frames < GRPC_IDLE_FRAMES)
		conn->frames += GRPC_IDLE_FRAMES_PER_REQUEST;
	if (!stream->replied)
		grpc_stream_run(stream);
}

static int on_begin_headers(nghttp2_session *session, const nghttp2_frame *frame, void *arg)
{
	struct grpc_conn *conn = arg;
	struct grpc_stream *stream;

	if (frame->hd.type != NGHTTP2_HEADERS || frame->headers.cat != NGHTTP2_HCAT_REQUEST)
		return 0;
	stream = grpc_stream_new(conn, frame->hd.stream_id);
	if (!stream)
		return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
	nghttp2_session_set_stream_user_data(session, frame->hd.stream_id, stream);
	conn->headed = stream;
	return 0;
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const u8 *name,
		     size_t name_len, const u8 *value, size_t value_len, u8 flags, void *arg)
{
	struct grpc_conn *conn = arg;
	struct grpc_stream *stream = conn->headed;

	/* One header block is not interrupted by another. */
	if (stream && stream->id == frame->hd.stream_id &&
	    frame->headers.cat == NGHTTP2_HCAT_REQUEST)
		grpc_stream_header(stream, (struct bytes){ (const char *)name, name_len },
				   (struct bytes){ (const char *)value, value_len });
	return 0;
}

static int on_data(nghttp2_session *session, u8 flags, s32 id, const u8 *data, size_t len,
		   void *arg)
{
	struct grpc_stream *stream = stream_at(arg, id);

	if (!stream) {
		nghttp2_session_consume_connection(session, len);
		return 0;
	}
	stream->received += len;
	if (!stream->replied)
		grpc_stream_body(stream, data, len);
	return 0;
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *arg)
{
	struct grpc_conn *conn = arg;
	bool ends = frame->hd.flags & NGHTTP2_FLAG_END_STREAM;
	struct grpc_stream *stream;

	switch (frame->hd.type) {
	case NGHTTP2_HEADERS:
	case NGHTTP2_DATA:
		stream = stream_at(conn, frame->hd.stream_id);
		if (stream && frame->hd.type == NGHTTP2_HEADERS &&
		    frame->headers.cat == NGHTTP2_HCAT_REQUEST)
			grpc_stream_headed(stream);
		if (stream && ends)
			request_ended(conn, stream);
		else if (frame->hd.type == NGHTTP2_DATA && frame->hd.length < 64)
			count_idle_frame(conn);
		break;
	case NGHTTP2_SETTINGS:
		conn->greeted = true;
		/* fall through */
	default:
		count_idle_frame(conn);
	}
	return 0;
}

/* The response came before the request's end: the client need not send the rest. */
static int on_sent(nghttp2_session *session, const nghttp2_frame *frame, void *arg)
{
	struct grpc_stream *stream;

	if (frame->hd.type != NGHTTP2_HEADERS || !(frame->hd.flags & NGHTTP2_FLAG_END_STREAM))
		return 0;
	stream = stream_of(session, frame->hd.stream_id);
	if (stream && !stream->whole)
		nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, frame->hd.stream_id,
					  NGHTTP2_NO_ERROR);
	return 0;
}

static int on_stream_close(nghttp2_session *session, s32 id, u32 error_code, void *arg)
{
	struct grpc_stream *stream = stream_of(session, id);

	if (!stream)
		return 0;
	nghttp2_session_consume_connection(session, stream->received);
	grpc_stream_free(stream);
	return 0;
}

int grpc_session_prepare(struct grpc_worker *of)
{
	if (nghttp2_session_callbacks_new(&of->callbacks) || nghttp2_option_new(&of->option))
		return -ENOMEM;
	nghttp2_session_callbacks_set_on_begin_headers_callback(of->callbacks, on_begin_headers);
	nghttp2_session_callbacks_set_on_header_callback(of->callbacks, on_header);
	nghttp2_session_callbacks_set_on_data_chunk_recv_callback(of->callbacks, on_data);
	nghttp2_session_callbacks_set_on_frame_recv_callback(of->callbacks, on_frame);
	nghttp2_session_callbacks_set_on_frame_send_callback(of->callbacks, on_sent);
	nghttp2_session_callbacks_set_on_stream_close_callback(of->callbacks, on_stream_close);
	nghttp2_option_set_no_auto_window_update(of->option, 1);
	nghttp2_option_set_no_closed_streams(of->option, 1);
	nghttp2_option_set_max_outbound_ack(of->option, 200);
	nghttp2_option_set_stream_reset_rate_limit(of->option, 1000, 200);
	return 0;
}

int grpc_session_new(struct grpc_conn *conn)
{
	static const nghttp2_settings_entry settings[] = {
		{ NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, GRPC_STREAMS_MAX },
		{ NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, GRPC_MESSAGE_MAX + 5 },
		{ NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, GRPC_HEADERS_MAX },
		/* Responses are small: no priority tree. */
		{ NGHTTP2_SETTINGS_NO_RFC7540_PRIORITIES, 1 },
	};

	nghttp2_mem mem = grpc_memory_of(&conn->of->memory);

	/* It copies mem. */
	if (nghttp2_session_server_new3(&conn->session, conn->of->callbacks, conn, conn->of->option,
					&mem))
		return -ENOMEM;
	if (nghttp2_submit_settings(conn->session, NGHTTP2_FLAG_NONE, settings,
				    sizeof(settings) / sizeof(settings[0])) ||
	    nghttp2_session_set_local_window_size(conn->session, NGHTTP2_FLAG_NONE, 0,
						  GRPC_WINDOW)) {
		nghttp2_session_del(conn->session);
		return -ENOMEM;
	}
	return 0;
}
