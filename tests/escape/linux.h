/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * linux.h - what a Linux stack in a namespace does with frames: what its sockets receive, what
 * it answers. A case is identified by its sources, so nothing in a frame has to be understood.
 */
#ifndef TESTS_ESCAPE_LINUX_H
#define TESTS_ESCAPE_LINUX_H

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "escape/wire.h"

#define GOT_MAX 48
#define GROUPS 16

enum got_kind {
	GOT_UDP,    /* a datagram, at its port */
	GOT_RAW,    /* by a raw socket of its protocol */
	GOT_SYNACK, /* a connection begins: answered from its port */
	GOT_RST,    /* TCP saw it: answered from its port */
	GOT_ECHO,
};

struct got {
	u8 kind;
	bool v6;
	u16 what;   /* port or protocol */
	u32 length; /* of a datagram's payload; of a raw socket's, all it says */
};

/* The outcome of one case from one group of sources. */
struct outcome {
	u32 count;
	struct got got[GOT_MAX];
};

/*
 * Sources: 10.0.0.0/8 and 2001:db9::/32, a sixteenth for each group, then the case. Case 0 of
 * group 0 is the marker's.
 */
static inline void source_of(u32 group, u32 id, u8 *src4, u8 *src6)
{
	u32 n = group << 20 | (id & 0xfffff);

	src4[0] = 10;
	src4[1] = n >> 16;
	src4[2] = n >> 8;
	src4[3] = n;
	memset(src6, 0, 16);
	memcpy(src6, "\x20\x01\x0d\xb9", 4);
	src6[4] = n >> 16;
	src6[5] = n >> 8;
	src6[6] = n;
	src6[15] = 1;
}

static inline bool source_read(const u8 *src, bool v6, u32 *group, u32 *id)
{
	const u8 *at = v6 ? src + 4 : src + 1;
	u32 n = at[0] << 16 | at[1] << 8 | at[2];

	if (v6 ? memcmp(src, "\x20\x01\x0d\xb9", 4) != 0 : src[0] != 10) {
		/* ::ffff:10.x.x.x */
		if (!v6 || src[10] != 0xff || src[11] != 0xff || src[12] != 10)
			return false;
		n = src[13] << 16 | src[14] << 8 | src[15];
	}
	*group = n >> 20;
	*id = n & 0xfffff;
	return true;
}

#define SOCKETS_MAX 96

struct stack {
	const char *name;
	int epoll;
	u32 sockets;
	struct {
		int fd;
		u8 kind;
		bool v6;
		u16 what;
	} socket[SOCKETS_MAX];
	int wire; /* the client's end: sends, and reads what is answered */
	int answers;
	u32 marker; /* number of the last marker seen */
	u64 sent;
};

static void stack_die(const char *what)
{
	fprintf(stderr, "escape: %s: %s\n", what, strerror(errno));
	exit(2);
}

static void enter(const char *ns)
{
	char path[128];
	int fd;

	snprintf(path, sizeof(path), "/run/netns/%s", ns);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || setns(fd, CLONE_NEWNET))
		stack_die(path);
	close(fd);
}

static void room(int fd)
{
	int bytes = 64 << 20;

	if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof(bytes)))
		stack_die("SO_RCVBUFFORCE");
}

static void stack_socket(struct stack *s, int kind, bool v6, int type, int proto, u16 what)
{
	struct sockaddr_in a4 = { .sin_family = AF_INET, .sin_port = htons(what) };
	struct sockaddr_in6 a6 = { .sin6_family = AF_INET6, .sin6_port = htons(what) };
	struct epoll_event event = { .events = EPOLLIN, .data.u32 = s->sockets };
	int one = 1,
	    fd = socket(v6 ? AF_INET6 : AF_INET, type | SOCK_NONBLOCK | SOCK_CLOEXEC, proto);

	if (fd < 0)
		stack_die("socket");
	room(fd);
	if (v6 && type != SOCK_RAW && setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof(one)))
		stack_die("IPV6_V6ONLY");
	if (type != SOCK_RAW &&
	    bind(fd, v6 ? (void *)&a6 : (void *)&a4, v6 ? sizeof(a6) : sizeof(a4)))
		stack_die("bind");
	if (type == SOCK_STREAM && listen(fd, 1 << 20))
		stack_die("listen");
	if (s->sockets == SOCKETS_MAX)
		abort();
	s->socket[s->sockets].fd = fd;
	s->socket[s->sockets].kind = kind;
	s->socket[s->sockets].v6 = v6;
	s->socket[s->sockets].what = what;
	if (type != SOCK_STREAM && epoll_ctl(s->epoll, EPOLL_CTL_ADD, fd, &event))
		stack_die("epoll");
	s->sockets++;
}

static int wire_open(const char *dev, int proto)
{
	struct sockaddr_ll address = {
		.sll_family = AF_PACKET,
		.sll_protocol = htons(proto),
		.sll_ifindex = if_nametoindex(dev),
	};
	int one = 1, fd = socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (fd < 0 || !address.sll_ifindex)
		stack_die(dev);
	room(fd);
	if (setsockopt(fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, &one, sizeof(one)) ||
	    setsockopt(fd, SOL_PACKET, PACKET_QDISC_BYPASS, &one, sizeof(one)) ||
	    bind(fd, (struct sockaddr *)&address, sizeof(address)))
		stack_die(dev);
	return fd;
}

static void stack_open(struct stack *s, const char *name, const char *client, const char *wire,
		       const char *server)
{
	/* 132 and up have no handler in many kernels; a raw socket receives them all the same. */
	static const u8 raw4[] = { 1, 43, 44, 47, 50, 51, 60, 132, 135, 136, 139, 140, 253 };
	static const u8 raw6[] = { 43, 44, 47, 50, 51, 58, 59, 60, 132, 135, 136, 139, 140, 253 };
	static const u16 udp[] = { PORT_LIMITED, PORT_SHORT, PORT_FREE };
	static const u16 tcp[] = { PORT_TCP_LIMITED, PORT_TCP_FREE, PORT_FAILSAFE };

	memset(s, 0, sizeof(*s));
	s->name = name;
	s->epoll = epoll_create1(EPOLL_CLOEXEC);
	enter(server);
	for (u32 i = 0; i < sizeof(raw4); i++)
		stack_socket(s, GOT_RAW, false, SOCK_RAW, raw4[i], raw4[i]);
	for (u32 i = 0; i < sizeof(raw6); i++)
		stack_socket(s, GOT_RAW, true, SOCK_RAW, raw6[i], raw6[i]);
	for (u32 v6 = 0; v6 < 2; v6++) {
		for (u32 i = 0; i < sizeof(udp) / sizeof(*udp); i++)
			stack_socket(s, GOT_UDP, v6, SOCK_DGRAM, 0, udp[i]);
		for (u32 i = 0; i < sizeof(tcp) / sizeof(*tcp); i++)
			stack_socket(s, GOT_SYNACK, v6, SOCK_STREAM, 0, tcp[i]);
	}
	enter(client);
	s->wire = wire_open(wire, 0);
	s->answers = wire_open(wire, ETH_P_ALL);
}

/* ------------------------------------------------------------------ receiving */

/* Where the outcomes of a batch go: cases from `first` on. */
struct tally {
	u32 first, count;
	struct outcome *outcome; /* count x GROUPS */
	u64 stray;		 /* from no source of the batch */
	u32 kind[GOT_ECHO + 1];	 /* how many of each kind */
};

static struct outcome *tally_of(struct tally *t, u32 group, u32 id)
{
	if (id < t->first || id - t->first >= t->count)
		return NULL;
	return &t->outcome[(id - t->first) * GROUPS + group];
}

static void tally_add(struct tally *t, const u8 *src, bool v6, struct got got)
{
	struct outcome *o = NULL;
	u32 group, id;

	if (source_read(src, v6, &group, &id)) {
		t->kind[got.kind] += id != 0;
		o = tally_of(t, group, id);
	}
	if (!o) {
		t->stray++;
		return;
	}
	if (o->count < GOT_MAX)
		o->got[o->count++] = got;
}

static void stack_answer(struct stack *s, struct tally *t, const u8 *b, u32 n)
{
	struct got got = {};
	const u8 *l4, *dst;
	u8 proto;

	if (n < 14 + 20)
		return;
	if (b[12] == 8 && b[13] == 0) {
		proto = b[23];
		dst = b + 30;
		l4 = b + 14 + (b[14] & 15) * 4;
	} else if (b[12] == 0x86 && b[13] == 0xdd && n >= 14 + 40) {
		got.v6 = true;
		proto = b[20];
		dst = b + 38;
		l4 = b + 54;
	} else {
		return;
	}
	if (l4 + 8 > b + n)
		return;
	if (proto == 6 && l4 + 20 <= b + n) {
		got.kind = l4[13] & 4 ? GOT_RST : GOT_SYNACK;
		got.what = l4[0] << 8 | l4[1];
		if (got.kind == GOT_SYNACK && (l4[13] & 0x12) != 0x12)
			return;
	} else if ((proto == 1 && l4[0] == 0) || (proto == 58 && l4[0] == 129)) {
		u8 marker4[4], marker6[16];

		source_of(0, 0, marker4, marker6);
		if (proto == 1 && !memcmp(dst, marker4, 4)) {
			s->marker = (u32)l4[4] << 24 | l4[5] << 16 | l4[6] << 8 | l4[7];
			return;
		}
		got.kind = GOT_ECHO;
		got.what = proto;
		got.length = b + n - l4;
	} else {
		return;
	}
	tally_add(t, dst, got.v6, got);
}

static void stack_answers(struct stack *s, struct tally *t)
{
	static u8 b[16384];
	ssize_t n;

	while ((n = recv(s->answers, b, sizeof(b), 0)) >= 0)
		stack_answer(s, t, b, n);
	if (errno != EAGAIN)
		stack_die("answers");
}

static void stack_receive(struct stack *s, struct tally *t)
{
	struct epoll_event events[SOCKETS_MAX];
	static u8 b[70000];
	int ready;

	while ((ready = epoll_wait(s->epoll, events, SOCKETS_MAX, 0)) > 0) {
		for (int i = 0; i < ready; i++) {
			u32 k = events[i].data.u32;
			struct sockaddr_in6 from = {};
			socklen_t from_len = sizeof(from);
			const void *src =
				s->socket[k].v6 ? (void *)&from.sin6_addr
						: (void *)&((struct sockaddr_in *)&from)->sin_addr;
			ssize_t n;

			while ((n = recvfrom(s->socket[k].fd, b, sizeof(b), 0, (void *)&from,
					     &from_len)) >= 0)
				tally_add(t, src, s->socket[k].v6,
					  (struct got){ .kind = s->socket[k].kind,
							.v6 = s->socket[k].v6,
							.what = s->socket[k].what,
							.length = n });
		}
	}
}

/* ------------------------------------------------------------------ sending */

static void stack_send(struct stack *s, u8 *const *bytes, const u32 *len, u32 count)
{
	struct mmsghdr messages[64] = {};
	struct iovec iov[64];
	u32 done = 0;

	for (u32 i = 0; i < count; i++) {
		iov[i].iov_base = bytes[i];
		iov[i].iov_len = len[i];
		messages[i].msg_hdr.msg_iov = &iov[i];
		messages[i].msg_hdr.msg_iovlen = 1;
	}
	while (done < count) {
		int n = sendmmsg(s->wire, messages + done, count - done, 0);

		if (n > 0)
			done += n;
		else if (errno != ENOBUFS && errno != EAGAIN && errno != EINTR)
			stack_die("sendmmsg");
	}
	s->sent += count;
}

/* The answer to a ping comes behind everything that was sent before it. */
static void stack_settle(struct stack *s, struct tally *t, struct maker *m, u32 number)
{
	static struct l4 l;
	struct maker saved = *m;
	u8 *bytes;
	u32 rounds = 0;

	source_of(0, 0, m->src4, m->src6);
	m->tags = m->trailer = m->count = m->ethertype = m->snap = 0;
	memcpy(m->mac, WIRE_MAC_SERVER, 6);
	l4_icmp(m, false, &l, 8, 0, 8);
	l.b.b[4] = number >> 24;
	l.b.b[5] = number >> 16;
	l.b.b[6] = number >> 8;
	l.b.b[7] = number;
	l4_checksum(m, false, &l, 2);
	send4(m, &(struct ip4){ .proto = 1 }, l.b.b, l.b.n);
	bytes = m->arena + m->at[0];
	stack_send(s, &bytes, &m->len[0], 1);
	*m = saved;
	do {
		stack_answers(s, t);
		if (s->marker == number)
			break;
		if (rounds++ > 100)
			usleep(1000);
	} while (rounds < 10000);
	if (s->marker != number) {
		errno = ETIMEDOUT;
		stack_die(s->name);
	}
	stack_receive(s, t);
}

#endif
