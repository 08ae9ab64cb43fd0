// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* sockets.c - see sockets.h. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <linux/tcp.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/addr.h"
#include "lib/case.h"
#include "lib/sockets.h"

#define FDS_MAX (SOCKETS_MAX * 3)

static struct sim_socket listed[SOCKETS_MAX];
static int fds[FDS_MAX], accepted[SOCKETS_MAX];
static u32 fd_count;

void sockets_prepare(void)
{
	if (geteuid())
		return;
	if (unshare(CLONE_NEWNET) ||
	    system("ip link set lo up && ip route add local default dev lo && "
		   "ip -6 route add local default dev lo"))
		print_error("no network namespace of its own: %s\n", strerror(errno));
}

static struct sl_addr parse(const char *text, u8 *ret_family)
{
	struct sl_prefix prefix = { 0 };
	const char *reason;

	assert_int_equal(sl_prefix_parse(text, &prefix, &reason), 0);
	*ret_family = prefix.family;
	return prefix.addr;
}

static void list_one(const struct socket_spec *spec, struct sim_socket *ret)
{
	u8 family;

	memset(ret, 0, sizeof(*ret));
	ret->rcv_nxt = 0xfffffff0; /* it goes round soon */
	ret->rcv_wnd = 65536;
	ret->state = spec->state;
	ret->tuple.local = parse(spec->local, &ret->tuple.family);
	ret->tuple.local_port = spec->local_port;
	ret->tuple.proto = spec->udp ? 17 : 6;
	if (!spec->remote)
		return;
	ret->tuple.remote = parse(spec->remote, &family);
	ret->tuple.remote_port = spec->remote_port;
}

static socklen_t address(const char *text, u16 port, struct sockaddr_storage *ret)
{
	struct sockaddr_in *v4 = (struct sockaddr_in *)ret;
	struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)ret;

	memset(ret, 0, sizeof(*ret));
	if (inet_pton(AF_INET, text, &v4->sin_addr) == 1) {
		v4->sin_family = AF_INET;
		v4->sin_port = htons(port);
		return sizeof(*v4);
	}
	assert_int_equal(inet_pton(AF_INET6, text, &v6->sin6_addr), 1);
	v6->sin6_family = AF_INET6;
	v6->sin6_port = htons(port);
	return sizeof(*v6);
}

static int keep(int fd)
{
	assert_true(fd >= 0 && fd_count < FDS_MAX);
	fds[fd_count++] = fd;
	return fd;
}

/* Bound to an address that need not be this machine's. */
static int bound(const char *text, u16 port, bool udp)
{
	struct sockaddr_storage at;
	socklen_t size = address(text, port, &at);
	int one = 1, fd = keep(socket(at.ss_family, udp ? SOCK_DGRAM : SOCK_STREAM, 0));

	assert_int_equal(setsockopt(fd, IPPROTO_IP, IP_FREEBIND, &one, sizeof(one)), 0);
	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)), 0);
	if (bind(fd, (struct sockaddr *)&at, size))
		fail_msg("bind to %s:%u: %s", text, port, strerror(errno));
	return fd;
}

static void connect_to(int fd, const char *text, u16 port)
{
	struct sockaddr_storage at;
	socklen_t size = address(text, port, &at);

	if (connect(fd, (struct sockaddr *)&at, size))
		fail_msg("connect to %s:%u: %s", text, port, strerror(errno));
}

/* A connection whose accepting end stays in the handshake until data comes, or for good. */
static void open_tcp(const struct socket_spec *spec, int *ret_accepted)
{
	int fd = bound(spec->local, spec->local_port, false), one = 1, defer = 60;

	if (spec->state == SOCKET_OPENING)
		assert_int_equal(
			setsockopt(fd, IPPROTO_TCP, TCP_DEFER_ACCEPT, &defer, sizeof(defer)), 0);
	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &one, sizeof(one)), 0);
	assert_int_equal(listen(fd, 8), 0);
	if (spec->state == SOCKET_BOUND)
		return;
	connect_to(bound(spec->remote, spec->remote_port, false), spec->local, spec->local_port);
	if (spec->state == SOCKET_CONNECTED)
		*ret_accepted = keep(accept(fd, NULL, NULL));
}

static void open_one(const struct socket_spec *spec, int *ret_accepted)
{
	int fd;

	if (!spec->udp) {
		open_tcp(spec, ret_accepted);
		return;
	}
	fd = bound(spec->local, spec->local_port, true);
	if (spec->state == SOCKET_CONNECTED)
		connect_to(fd, spec->remote, spec->remote_port);
}

void sockets_open(struct target *t, const struct socket_spec *spec, u32 count)
{
	assert_true(count <= SOCKETS_MAX);
	sockets_close(t);
	for (u32 i = 0; i < count; i++) {
		if (target_kind(t) == TARGET_SIM)
			list_one(&spec[i], &listed[i]);
		else
			open_one(&spec[i], &accepted[i]);
	}
	if (target_kind(t) == TARGET_SIM)
		dp_sim_set_sockets(target_dp(t), listed, count);
}

u32 sockets_next_seq(struct target *t, u32 index)
{
	int on = 1, off = TCP_REPAIR_OFF_NO_WP, queue = TCP_RECV_QUEUE, fd = accepted[index];
	u32 seq = 0;
	socklen_t size = sizeof(seq);

	if (target_kind(t) == TARGET_SIM)
		return listed[index].rcv_nxt;
	assert_int_equal(setsockopt(fd, IPPROTO_TCP, TCP_REPAIR, &on, sizeof(on)), 0);
	assert_int_equal(setsockopt(fd, IPPROTO_TCP, TCP_REPAIR_QUEUE, &queue, sizeof(queue)), 0);
	assert_int_equal(getsockopt(fd, IPPROTO_TCP, TCP_QUEUE_SEQ, &seq, &size), 0);
	assert_int_equal(setsockopt(fd, IPPROTO_TCP, TCP_REPAIR, &off, sizeof(off)), 0);
	return seq;
}

void sockets_close(struct target *t)
{
	struct linger at_once = { .l_onoff = 1 };

	if (target_kind(t) == TARGET_SIM)
		dp_sim_set_sockets(target_dp(t), NULL, 0);
	while (fd_count) {
		setsockopt(fds[--fd_count], SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
		close(fds[fd_count]);
	}
}
