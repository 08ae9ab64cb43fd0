// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * exchange.c - see exchange.h. The other side is sluiced, so a response has a Content-Length or
 * ends with its connection; a chunked one is refused.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "client/exchange.h"

u64 client_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (u64)now.tv_sec * SL_NS_PER_SEC + now.tv_nsec;
}

void client_disconnect(struct client_conn *conn)
{
	if (conn->fd >= 0)
		close(conn->fd);
	conn->fd = -1;
	conn->used = false;
}

/* connect(2) waits for room in the listener's queue as long as a send may take; poll(2) cannot wait
 * for it. */
static int connect_to(struct client_conn *conn, const struct sockaddr_un *to, u64 deadline_ns)
{
	u64 now_ns = client_now_ns(), left_us;
	struct timeval left;

	if (now_ns >= deadline_ns)
		return -ETIMEDOUT;
	left_us = (deadline_ns - now_ns) / 1000 + 1;
	left = (struct timeval){ left_us / 1000000, left_us % 1000000 };
	conn->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (conn->fd < 0)
		return -errno;
	if (setsockopt(conn->fd, SOL_SOCKET, SO_SNDTIMEO, &left, sizeof(left)) ||
	    connect(conn->fd, (const struct sockaddr *)to, sizeof(*to)))
		return errno == EAGAIN || errno == EINTR ? -ETIMEDOUT : -errno;
	return 0;
}

/* Until the socket can be read or written. */
static int await(int fd, short events, u64 deadline_ns)
{
	struct pollfd wait = { .fd = fd, .events = events };

	for (;;) {
		u64 now_ns = client_now_ns();
		struct timespec left;
		int ready;

		if (now_ns >= deadline_ns)
			return -ETIMEDOUT;
		left = (struct timespec){ (deadline_ns - now_ns) / SL_NS_PER_SEC,
					  (deadline_ns - now_ns) % SL_NS_PER_SEC };
		ready = ppoll(&wait, 1, &left, NULL);
		if (ready > 0)
			return 0;
		if (ready < 0 && errno != EINTR)
			return -errno;
	}
}

static int send_all(struct client_conn *conn, u64 deadline_ns)
{
	size_t sent = 0;

	while (sent < conn->out.len) {
		ssize_t n = send(conn->fd, conn->out.at + sent, conn->out.len - sent,
				 MSG_DONTWAIT | MSG_NOSIGNAL);
		int err = 0;

		if (n > 0)
			sent += n;
		else if (n < 0 && errno == EAGAIN)
			err = await(conn->fd, POLLOUT, deadline_ns);
		else if (n < 0 && errno != EINTR)
			err = -errno;
		if (err)
			return err;
	}
	return 0;
}

/* At most `size` bytes, at least one; 0: the daemon has closed. */
static ssize_t receive(struct client_conn *conn, char *buf, size_t size, u64 deadline_ns)
{
	for (;;) {
		ssize_t n = recv(conn->fd, buf, size, MSG_DONTWAIT);
		int err;

		if (n >= 0)
			return n;
		if (errno == EINTR)
			continue;
		if (errno != EAGAIN)
			return -errno;
		err = await(conn->fd, POLLIN, deadline_ns);
		if (err)
			return err;
	}
}

const char *client_header(const struct client_response *response, const char *name)
{
	size_t len = strlen(name);

	for (char *line = response->head; (line = strchr(line, '\n'));) {
		line++;
		if (!strncasecmp(line, name, len) && line[len] == ':')
			return line + len + 1 + strspn(line + len + 1, " \t");
	}
	return NULL;
}

/* "HTTP/1.1 200 OK", and what the headers say about the body: *ret_length, or -1 up to the end. */
static int parse_head(struct client_response *r, long *ret_length)
{
	const char *length, *connection;

	if (strncmp(r->head, "HTTP/1.1 ", 9) || strspn(r->head + 9, "0123456789") != 3)
		return -EPROTO;
	r->status = atoi(r->head + 9);
	if (client_header(r, "transfer-encoding"))
		return -EPROTO;
	connection = client_header(r, "connection");
	r->keep = !connection || strncasecmp(connection, "close", 5);
	length = client_header(r, "content-length");
	*ret_length = length ? atol(length) : r->status == 204 ? 0 : -1;
	if (length && (*length < '0' || *length > '9' || *ret_length < 0))
		return -EPROTO;
	r->keep = r->keep && *ret_length >= 0;
	return 0;
}

/* The rest of a body of which `have` bytes are at `r->body`. */
static int read_body(struct client_conn *conn, struct client_response *r, size_t have, long length,
		     u64 deadline_ns)
{
	size_t room = conn->in + CLIENT_RESPONSE_MAX - r->body, kept = have;
	char dropped[4096];

	while (length < 0 || have < (size_t)length) {
		bool full = kept == room;
		ssize_t n = receive(conn, full ? dropped : r->body + kept,
				    full ? sizeof(dropped) : room - kept, deadline_ns);

		if (!n && length < 0)
			break;
		if (n <= 0)
			return n ? (int)n : -ECONNRESET;
		have += n;
		if (!full)
			kept += n;
	}
	r->body[kept] = 0;
	/* More than one response: what follows could be taken for the next one. */
	if (length >= 0 && have > (size_t)length)
		return -EPROTO;
	return 0;
}

static int read_response(struct client_conn *conn, struct client_response *r, u64 deadline_ns)
{
	size_t have = 0;
	long length;
	char *end;
	int err;

	do {
		ssize_t n;

		if (have == CLIENT_RESPONSE_MAX)
			return -EPROTO;
		n = receive(conn, conn->in + have, CLIENT_RESPONSE_MAX - have, deadline_ns);
		if (n <= 0)
			return n ? (int)n : -ECONNRESET;
		have += n;
		conn->in[have] = 0;
		if (memchr(conn->in, 0, have))
			return -EPROTO;
		end = strstr(conn->in, "\r\n\r\n");
	} while (!end);
	*end = 0;
	r->head = conn->in;
	r->body = end + 4;
	err = parse_head(r, &length);
	return err ? err : read_body(conn, r, conn->in + have - r->body, length, deadline_ns);
}

int client_exchange(struct client_conn *conn, const struct sockaddr_un *to, u64 deadline_ns,
		    struct client_response *ret)
{
	bool used;
	int err;

	do {
		used = conn->used;
		err = conn->fd >= 0 ? 0 : connect_to(conn, to, deadline_ns);
		if (!err)
			err = send_all(conn, deadline_ns);
		if (!err)
			err = read_response(conn, ret, deadline_ns);
		if (err || !ret->keep)
			client_disconnect(conn);
		else
			conn->used = true;
	} while (used && (err == -ECONNRESET || err == -EPIPE));
	return err;
}
