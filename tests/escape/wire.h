/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * wire.h - frames byte by byte, right and wrong ones. Shares nothing with bpf/parse.h or
 * tests/lib/frame.c, so that all three can disagree.
 *
 * A case is the frames of one source. The same seed and another source make the same frames,
 * with checksums that are right for that source.
 */
#ifndef TESTS_ESCAPE_WIRE_H
#define TESTS_ESCAPE_WIRE_H

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "sluice/types.h"

#define WIRE_FRAMES_MAX 64
#define WIRE_BYTES_MAX 9014

/* The server's addresses and both ends' MACs; tests/lib/target.h has the addresses as text. */
static const u8 WIRE_DST4[4] = { 203, 0, 113, 10 };
static const u8 WIRE_DST6[16] = { 0x20, 1, 0x0d, 0xb8, 0xff, 0xff, [15] = 0x10 };
static const u8 WIRE_MAC_SERVER[6] = { 2, 0, 0, 0, 0, 2 };
static const u8 WIRE_MAC_CLIENT[6] = { 2, 0, 0, 0, 0, 1 };

/* Ports: the policy of escape.c has limits on some. */
#define PORT_LIMITED 53
#define PORT_SHORT 54 /* limited by length only */
#define PORT_FREE 9
#define PORT_TCP_LIMITED 80
#define PORT_TCP_FREE 81
#define PORT_FAILSAFE 22

enum ext_kind {
	X_HOP = 0,
	X_ROUTING = 43,
	X_FRAGMENT = 44,
	X_ESP = 50,
	X_AH = 51,
	X_NONE = 59,
	X_OPTIONS = 60,
	X_MOBILITY = 135,
	X_HIP = 139,
	X_SHIM6 = 140,
};

struct buf {
	u32 n;
	u8 b[70000];
};

struct maker {
	u64 rng;
	u8 src4[4], src6[16];
	u32 count; /* frames of the case so far */
	u32 at[WIRE_FRAMES_MAX], len[WIRE_FRAMES_MAX];
	u8 *arena;
	u32 used, size;
	u32 number; /* of a frame in a flood */
	u32 stated; /* the length that IP states, of the last frame */
	u32 need;   /* frames without which the datagram is not complete */
	u32 proto;  /* that every fragment says, 0: unknown */
	u32 final;  /* enum final, of a datagram in pieces */
	u32 marks;  /* enum case_mark: what may be dropped and why */
	/* Of every frame until changed. */
	u8 tags;
	u16 tci[8];
	bool ad;
	bool simulated; /* nobody answers and no time passes */
	u32 id;		/* of fragments: a run's own, for Linux keeps those of the last */
	u8 mac[6];	/* destination */
	u16 ethertype;	/* 0: that of the packet */
	u8 snap;	/* bytes of LLC and SNAP before the packet */
	u32 trailer;
};

/* ------------------------------------------------------------------ chance */

static inline u64 mix(u64 x)
{
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
	return x ^ (x >> 31);
}

static inline u32 any(struct maker *m, u32 below)
{
	m->rng += 0x9e3779b97f4a7c15ULL;
	return (mix(m->rng) >> 32) % below;
}

static inline bool one_in(struct maker *m, u32 n)
{
	return any(m, n) == 0;
}

#define PICK(m, ...)                                                                               \
	({                                                                                         \
		const u32 from_[] = { __VA_ARGS__ };                                               \
		from_[any(m, sizeof(from_) / sizeof(*from_))];                                     \
	})

/* ------------------------------------------------------------------ bytes */

static inline void put8(struct buf *b, u32 v)
{
	b->b[b->n++] = v;
}

static inline void put16(struct buf *b, u32 v)
{
	put8(b, v >> 8);
	put8(b, v);
}

static inline void put32(struct buf *b, u32 v)
{
	put16(b, v >> 16);
	put16(b, v);
}

static inline void put(struct buf *b, const void *bytes, u32 n)
{
	memcpy(b->b + b->n, bytes, n);
	b->n += n;
}

static inline void fill(struct buf *b, u32 value, u32 n)
{
	memset(b->b + b->n, value, n);
	b->n += n;
}

static inline void set16(u8 *at, u32 v)
{
	at[0] = v >> 8;
	at[1] = v;
}

static inline u32 sum16(u32 sum, const u8 *b, u32 n)
{
	for (u32 i = 0; i + 1 < n; i += 2)
		sum += b[i] << 8 | b[i + 1];
	if (n & 1)
		sum += b[n - 1] << 8;
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return sum;
}

/* ------------------------------------------------------------------ transport */

struct l4 {
	u8 proto;
	struct buf b;
};

/* The checksum at `at`, over addresses, length, protocol and all bytes. */
static inline void l4_checksum(struct maker *m, bool v6, struct l4 *l, u32 at)
{
	u8 tail[4] = { 0, l->proto, l->b.n >> 8, l->b.n };
	u32 sum;

	set16(l->b.b + at, 0);
	if (l->proto == 1) {
		sum = 0;
	} else if (v6) {
		sum = sum16(sum16(0, m->src6, 16), WIRE_DST6, 16);
		sum = sum16(sum, tail, 4);
	} else {
		sum = sum16(sum16(sum16(0, m->src4, 4), WIRE_DST4, 4), tail, 4);
	}
	sum = 0xffff & ~sum16(sum, l->b.b, l->b.n);
	set16(l->b.b + at, l->proto == 17 && !sum ? 0xffff : sum);
}

static inline void l4_udp(struct maker *m, bool v6, struct l4 *l, u32 dport, u32 payload)
{
	l->proto = 17;
	l->b.n = 0;
	put16(&l->b, 40000);
	put16(&l->b, dport);
	put16(&l->b, 8 + payload);
	put16(&l->b, 0);
	fill(&l->b, 0x75, payload);
	l4_checksum(m, v6, l, 6);
}

/* doff in 4-byte units, filled with NOPs. */
static inline void l4_tcp(struct maker *m, bool v6, struct l4 *l, u32 dport, u32 flags, u32 doff,
			  u32 payload)
{
	l->proto = 6;
	l->b.n = 0;
	put16(&l->b, 40000 + m->number % 20000);
	put16(&l->b, dport);
	put32(&l->b, 1000);
	put32(&l->b, flags & 0x10 ? 2000 : 0);
	put16(&l->b, doff << 12 | flags);
	put16(&l->b, 8192);
	put32(&l->b, 0);
	if (doff > 5)
		fill(&l->b, 1, (doff - 5) * 4);
	fill(&l->b, 0x74, payload);
	l4_checksum(m, v6, l, 16);
}

static inline void l4_icmp(struct maker *m, bool v6, struct l4 *l, u32 type, u32 code, u32 payload)
{
	l->proto = v6 ? 58 : 1;
	l->b.n = 0;
	put8(&l->b, type);
	put8(&l->b, code);
	put16(&l->b, 0);
	put32(&l->b, 0x00070007);
	fill(&l->b, 0x69, payload);
	l4_checksum(m, v6, l, 2);
}

static inline void l4_other(struct l4 *l, u32 proto, u32 payload)
{
	l->proto = proto;
	l->b.n = 0;
	/* Reads as a header of 8 bytes followed by "no next header", where it is read as one. */
	put8(&l->b, 59);
	fill(&l->b, 0, 7 + payload);
}

static inline u32 echo_request(bool v6)
{
	return v6 ? 128 : 8;
}

/* What is most often asked for: each has something to say at one of the limits. */
enum final {
	FINAL_UDP_LIMITED,
	FINAL_UDP_FREE,
	FINAL_SYN_LIMITED,
	FINAL_SYN_FREE,
	FINAL_ECHO,
	FINAL_OTHER,
	FINAL_UDP_SHORT,
	FINAL_TCP_ODD,
	FINAL_COUNT,
};

static inline void l4_final(struct maker *m, bool v6, struct l4 *l, enum final final, u32 payload)
{
	switch (final) {
	case FINAL_UDP_LIMITED:
		return l4_udp(m, v6, l, PORT_LIMITED, payload);
	case FINAL_UDP_FREE:
		return l4_udp(m, v6, l, PORT_FREE, payload);
	case FINAL_UDP_SHORT:
		return l4_udp(m, v6, l, PORT_SHORT, payload);
	case FINAL_SYN_LIMITED:
		return l4_tcp(m, v6, l, PORT_TCP_LIMITED, 0x02, 5 + any(m, 6), 0);
	case FINAL_SYN_FREE:
		return l4_tcp(m, v6, l, PORT_TCP_FREE, 0x02, 5, 0);
	case FINAL_TCP_ODD:
		return l4_tcp(m, v6, l, PICK(m, PORT_TCP_LIMITED, PORT_TCP_FREE, 7), any(m, 4096),
			      PICK(m, 5, 5, 5, 6, 15, 4, 0), payload);
	case FINAL_ECHO:
		return l4_icmp(m, v6, l, echo_request(v6), 0, payload);
	default:
		return l4_other(l, PICK(m, 47, 50, 51, 132, 135, 136, 139, 140, 253, v6 ? 1 : 58),
				payload);
	}
}

/* ------------------------------------------------------------------ the frame */

static inline void frame_begin(struct maker *m, struct buf *f, u32 ethertype)
{
	f->n = 0;
	put(f, m->mac, 6);
	put(f, WIRE_MAC_CLIENT, 6);
	for (u32 i = 0; i < m->tags; i++) {
		put16(f, m->ad ? 0x88a8 : 0x8100);
		put16(f, m->tci[i]);
	}
	if (m->snap) {
		put16(f, 46 + m->snap);
		put(f, "\xaa\xaa\x03\0\0\0", 6);
	}
	put16(f, m->ethertype ?: ethertype);
}

/* A cut in a frame of length `cut`, 0: whole. */
static inline void frame_end(struct maker *m, struct buf *f, u32 cut)
{
	fill(f, 0xee, m->trailer);
	if (cut && cut < f->n)
		f->n = cut;
	if (f->n > WIRE_BYTES_MAX)
		f->n = WIRE_BYTES_MAX;
	if (m->count == WIRE_FRAMES_MAX || m->used + f->n > m->size)
		abort();
	memcpy(m->arena + m->used, f->b, f->n);
	m->at[m->count] = m->used;
	m->len[m->count++] = f->n;
	m->used += f->n;
}

struct ip4 {
	u8 options[40];
	u32 options_len; /* a multiple of 4 */
	u32 proto;
	u32 offset; /* bytes */
	bool more;
	u32 id;
	u32 flags;   /* DF 0x4000, reserved 0x8000 */
	u32 total;   /* 0: right */
	u32 ihl;     /* 0: right */
	u32 version; /* 0: 4 */
	u32 ttl;     /* 0: 64 */
	bool bad_checksum;
	u32 cut; /* bytes of the frame, 0: whole */
};

static inline void send4(struct maker *m, const struct ip4 *ip, const u8 *payload, u32 n)
{
	static struct buf f;
	u32 start, header = 20 + ip->options_len;

	frame_begin(m, &f, 0x0800);
	start = f.n;
	put8(&f, (ip->version ?: 4) << 4 | (ip->ihl ?: header / 4));
	put8(&f, 0);
	m->stated = ip->total ?: header + n;
	put16(&f, m->stated);
	put16(&f, ip->id);
	put16(&f, ip->flags | (ip->more ? 0x2000 : 0) | ip->offset / 8);
	put8(&f, ip->ttl ?: 64);
	put8(&f, ip->proto);
	put16(&f, 0);
	put(&f, m->src4, 4);
	put(&f, WIRE_DST4, 4);
	put(&f, ip->options, ip->options_len);
	set16(f.b + start + 10, ~sum16(0, f.b + start, header) ^ (ip->bad_checksum ? 0x5555 : 0));
	put(&f, payload, n);
	frame_end(m, &f, ip->cut);
}

struct ip6 {
	u32 next;
	u32 payload_len; /* 0: right */
	bool zero_len;
	u32 hop_limit; /* 0: 64 */
	u32 version;   /* 0: 6 */
	u32 cut;
	const u8 *src; /* NULL: the case's */
};

static inline void send6(struct maker *m, const struct ip6 *ip, const u8 *payload, u32 n)
{
	static struct buf f;

	frame_begin(m, &f, 0x86dd);
	put32(&f, (ip->version ?: 6) << 28);
	m->stated = 40 + (ip->payload_len ?: n);
	put16(&f, ip->zero_len ? 0 : m->stated - 40);
	put8(&f, ip->next);
	put8(&f, ip->hop_limit ?: 64);
	put(&f, ip->src ?: m->src6, 16);
	put(&f, WIRE_DST6, 16);
	put(&f, payload, n);
	frame_end(m, &f, ip->cut);
}

/* ------------------------------------------------------------------ extension headers */

/* A chain under construction; the next header of the last one is filled in by the next. */
struct chain {
	struct buf b;
	u32 first; /* the next header value that names the chain */
	u32 link;  /* where the next header byte of the last is; ~0: none yet */
};

static inline void chain_begin(struct chain *c)
{
	c->b.n = 0;
	c->first = X_NONE;
	c->link = ~0U;
}

static inline void chain_link(struct chain *c, u32 next)
{
	if (c->link == ~0U)
		c->first = next;
	else
		c->b.b[c->link] = next;
}

struct ext {
	u32 kind;
	u32 units; /* the length byte */
	u32 lie;   /* added to the length byte on the wire only */
	u8 option; /* hop-by-hop, options: the first option's type, 1: only padding */
	u8 routing_type, segments_left;
	u32 frag; /* fragment header: offset and M, as is */
	u32 id;
};

static inline void chain_add(struct chain *c, const struct ext *x)
{
	u32 bytes = x->kind == X_AH	    ? (x->units + 2) * 4
		    : x->kind == X_FRAGMENT ? 8
					    : (x->units + 1) * 8;
	u32 start = c->b.n;

	chain_link(c, x->kind);
	c->link = start;
	put8(&c->b, X_NONE);
	put8(&c->b, x->kind == X_FRAGMENT ? 0 : x->units + x->lie);
	fill(&c->b, 0, bytes - 2);
	u8 *body = c->b.b + start + 2;
	u32 left = bytes - 2;

	if (x->kind == X_FRAGMENT) {
		set16(body, x->frag);
		body[2] = x->id >> 24;
		body[3] = x->id >> 16;
		body[4] = x->id >> 8;
		body[5] = x->id;
	} else if (x->kind == X_ROUTING) {
		body[0] = x->routing_type;
		body[1] = x->segments_left;
	} else if (x->kind == X_HOP || x->kind == X_OPTIONS) {
		/* Linux takes at most 7 bytes of padding in a row and 8 other options. */
		bool first = true;

		while (left) {
			u32 n = left <= 6 ? left : left < 257 ? left : 257;
			bool pad = n <= 6 && (!first || x->option <= 1);

			if (n == 1) {
				*body = 0;
				break;
			}
			/* 0x1e is unknown and to be skipped. */
			body[0] = pad ? 1 : first && x->option > 1 ? x->option : 0x1e;
			body[1] = n - 2;
			first = false;
			body += n;
			left -= n;
		}
	} else if (x->kind == X_MOBILITY || x->kind == X_HIP || x->kind == X_SHIM6) {
		body[0] = 1;
	}
}

/* A header that may be two: options, and a transport to `port`, with ACK. */
static inline void put_two_faced(struct buf *b, u32 next, u32 port)
{
	put8(b, next);
	put8(b, 2);
	put16(b, port); /* padding, an unknown option of 19 bytes */
	put8(b, 19);
	fill(b, 0, 7);
	put16(b, 0x5010);
	fill(b, 0, 10);
}

static inline struct ext ext_of(u32 kind)
{
	return (struct ext){ .kind = kind, .units = kind == X_AH ? 4 : 0, .option = 1 };
}

#endif
