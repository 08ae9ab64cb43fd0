// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * h2bare.c - the cost of gRPC with nothing behind it: nghttp2 on epoll, one thread, the same few
 * bytes and "grpc-status: 0" for each request. The measure beside which the gRPC
 * frontend is benched.
 *
 *     h2bare          listens on a free port of 127.0.0.1 and prints it
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <nghttp2/nghttp2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "sluice/types.h"

/* RateLimitResponse{overall_code: OK, statuses: [{code: OK}]} with its prefix. */
static const u8 response[] = { 0, 0, 0, 0, 6, 0x08, 0x01, 0x12, 0x02, 0x08, 0x01 };

struct conn {
	int fd;
	nghttp2_session *session;
};

/* clang-format off */
#define NAME_VALUE(name, value) \
	{ (u8 *)(name), (u8 *)(value), sizeof(name) - 1, sizeof(value) - 1, \
	  NGHTTP2_NV_FLAG_NO_COPY_NAME | NGHTTP2_NV_FLAG_NO_COPY_VALUE }
/* clang-format on */

static ssize_t on_wanted(nghttp2_session *session, int32_t id, uint8_t *buf, size_t size,
			 uint32_t *flags, nghttp2_data_source *source, void *arg)
{
	static const nghttp2_nv trailer[] = { NAME_VALUE("grpc-status", "0") };

	memcpy(buf, response, sizeof(response));
	*flags |= NGHTTP2_DATA_FLAG_EOF | NGHTTP2_DATA_FLAG_NO_END_STREAM;
	nghttp2_submit_trailer(session, id, trailer, 1);
	return sizeof(response);
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *arg)
{
	static const nghttp2_nv headers[] = { NAME_VALUE(":status", "200"),
					      NAME_VALUE("content-type", "application/grpc") };
	nghttp2_data_provider provider = { .read_callback = on_wanted };

	if ((frame->hd.type == NGHTTP2_DATA || frame->hd.type == NGHTTP2_HEADERS) &&
	    frame->hd.flags & NGHTTP2_FLAG_END_STREAM)
		nghttp2_submit_response(session, frame->hd.stream_id, headers, 2, &provider);
	return 0;
}

static void conn_close(struct conn *conn)
{
	nghttp2_session_del(conn->session);
	close(conn->fd);
	free(conn);
}

static int conn_send(struct conn *conn)
{
	static u8 buffer[256 * 1024];
	size_t used = 0, sent = 0;
	const uint8_t *data;
	ssize_t len;

	while ((len = nghttp2_session_mem_send(conn->session, &data)) > 0 &&
	       used + len <= sizeof(buffer)) {
		memcpy(buffer + used, data, len);
		used += len;
	}
	while (sent < used) {
		len = send(conn->fd, buffer + sent, used - sent, MSG_NOSIGNAL);
		if (len < 0)
			return -1;
		sent += len;
	}
	return 0;
}

static void conn_serve(struct conn *conn)
{
	u8 buffer[16 * 1024];
	ssize_t len = recv(conn->fd, buffer, sizeof(buffer), MSG_DONTWAIT);

	if (len < 0 && errno == EAGAIN)
		return;
	if (len <= 0 || nghttp2_session_mem_recv(conn->session, buffer, len) < 0 ||
	    conn_send(conn) < 0)
		conn_close(conn);
}

static void conn_accept(int listening, int epoll, nghttp2_session_callbacks *callbacks)
{
	struct epoll_event event = { .events = EPOLLIN };
	struct conn *conn = calloc(1, sizeof(*conn));
	nghttp2_settings_entry streams = { NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, 1024 };
	int on = 1;

	conn->fd = accept(listening, NULL, NULL);
	if (conn->fd < 0) {
		free(conn);
		return;
	}
	setsockopt(conn->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	nghttp2_session_server_new(&conn->session, callbacks, conn);
	nghttp2_submit_settings(conn->session, NGHTTP2_FLAG_NONE, &streams, 1);
	event.data.ptr = conn;
	epoll_ctl(epoll, EPOLL_CTL_ADD, conn->fd, &event);
}

int main(void)
{
	struct sockaddr_in addr = { .sin_family = AF_INET,
				    .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct epoll_event event = { .events = EPOLLIN }, events[64];
	int listening = socket(AF_INET, SOCK_STREAM, 0), epoll = epoll_create1(0);
	nghttp2_session_callbacks *callbacks;
	socklen_t size = sizeof(addr);

	if (bind(listening, (struct sockaddr *)&addr, sizeof(addr)) || listen(listening, 128) ||
	    getsockname(listening, (struct sockaddr *)&addr, &size)) {
		perror("h2bare");
		return 1;
	}
	printf("%d\n", ntohs(addr.sin_port));
	fflush(stdout);
	nghttp2_session_callbacks_new(&callbacks);
	nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
	epoll_ctl(epoll, EPOLL_CTL_ADD, listening, &event);
	for (;;) {
		int n = epoll_wait(epoll, events, 64, -1);

		for (int i = 0; i < n; i++)
			if (events[i].data.ptr)
				conn_serve(events[i].data.ptr);
			else
				conn_accept(listening, epoll, callbacks);
	}
}
