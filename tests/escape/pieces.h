/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* pieces.h - cases of several: fragments in every order, with decoys, cut. */
#ifndef TESTS_ESCAPE_PIECES_H
#define TESTS_ESCAPE_PIECES_H

#include <stddef.h>

#include "escape/whole.h"

/* A datagram in pieces of `size` bytes, and what each piece is wrapped in. */
struct pieces {
	bool v6;
	u32 id, size, count;
	u32 next;	/* protocol, or of IPv6 the header that comes first in the pieces */
	u32 later_next; /* the value in later ones; IPv6 only */
	u32 pre;	/* headers before the fragment header */
	struct ip4 ip4;
	struct buf whole;
};

static void send_bytes(struct maker *m, const struct pieces *p, u32 offset, bool more, const u8 *b,
		       u32 n)
{
	static struct chain c;
	struct ip6 ip6 = {};
	struct ip4 ip4 = p->ip4;

	if (!p->v6) {
		ip4.offset = offset;
		ip4.more = more;
		ip4.id = p->id;
		ip4.proto = p->next;
		send4(m, &ip4, b, n);
		return;
	}
	chain_begin(&c);
	for (u32 i = 0; i < p->pre; i++) {
		struct ext x = ext_of(i ? X_OPTIONS : X_HOP);

		chain_add(&c, &x);
	}
	chain_add(&c, &(struct ext){ .kind = X_FRAGMENT, .frag = offset | more, .id = p->id });
	chain_link(&c, offset ? p->later_next : p->next);
	ip6.next = c.first;
	put(&c.b, b, n);
	send6(m, &ip6, c.b.b, c.b.n);
}

static void send_piece(struct maker *m, const struct pieces *p, u32 k)
{
	u32 offset = k * p->size;
	u32 n = k + 1 < p->count ? p->size : p->whole.n - offset;

	send_bytes(m, p, offset, k + 1 < p->count, p->whole.b + offset, n);
}

/* A transport of so many bytes in all. */
static void l4_of_size(struct maker *m, bool v6, struct l4 *l, enum final final, u32 bytes)
{
	if (final == FINAL_SYN_LIMITED || final == FINAL_SYN_FREE)
		l4_tcp(m, v6, l, final == FINAL_SYN_LIMITED ? PORT_TCP_LIMITED : PORT_TCP_FREE, 2,
		       5, bytes > 20 ? bytes - 20 : 0);
	else
		l4_final(m, v6, l, final, bytes - 8);
}

static void pieces_of(struct maker *m, struct pieces *p, bool v6, enum final final, u32 size,
		      u32 count)
{
	static struct l4 l;

	memset(p, 0, offsetof(struct pieces, whole));
	p->v6 = v6;
	p->id = m->id;
	p->size = size;
	p->count = count;
	l4_of_size(m, v6, &l, final, size * count - 3);
	p->next = p->later_next = l.proto;
	p->whole.n = 0;
	put(&p->whole, l.b.b, l.b.n);
	m->need = count;
	m->proto = v6 ? 0 : l.proto;
	m->final = final;
	m->marks |= MARK_MEMORY;
}

/* The order number `index` of `count` things. */
static void order_of(u32 index, u32 count, u8 *order)
{
	u8 left[16];

	for (u32 i = 0; i < count; i++)
		left[i] = i;
	for (u32 i = 0; i < count; i++) {
		u32 n = count - i, k = index % n;

		index /= n;
		order[i] = left[k];
		memmove(left + k, left + k + 1, n - k - 1);
	}
}

static u32 some_order(struct maker *m)
{
	return any(m, 0x7fffffff);
}

static const enum final FRAGMENT_FINALS[] = { FINAL_UDP_LIMITED, FINAL_UDP_FREE, FINAL_SYN_LIMITED,
					      FINAL_ECHO };
#define FRAGMENT_ORDERS (24 * 4)

static void make_fragments(struct maker *m, bool v6, u32 index)
{
	static struct pieces p;
	enum final final =
		index < FRAGMENT_ORDERS ? FRAGMENT_FINALS[index % 4] : FRAGMENT_FINALS[any(m, 4)];
	u32 count = index < FRAGMENT_ORDERS ? 4 : 2 + any(m, 6);
	u32 size = index < FRAGMENT_ORDERS ? 24 : PICK(m, 24, 48, 200, 1400, 8000);
	u8 order[16];
	u32 at = 0;

	pieces_of(m, &p, v6, final, size, count);
	order_of(index < FRAGMENT_ORDERS ? index / 4
		 : one_in(m, 2)		 ? 0
					 : some_order(m),
		 count, order);
	if (index >= FRAGMENT_ORDERS && one_in(m, 3)) {
		if (v6)
			p.pre = any(m, 3);
		else
			some_options(m, &p.ip4);
		if (p.pre || p.ip4.options_len)
			m->marks |= MARK_ODD_FIRST;
	}
	if (v6 && index >= FRAGMENT_ORDERS && one_in(m, 3))
		p.later_next = any(m, 256);
	while (order[at])
		at++;
	if (at)
		m->marks |= MARK_LATER_FIRST;
	for (u32 i = 0; i < count; i++) {
		send_piece(m, &p, order[i]);
		if (index >= FRAGMENT_ORDERS && one_in(m, 10))
			send_piece(m, &p, order[i]);
	}
}

static void make_frag4(struct maker *m, u32 index)
{
	make_fragments(m, false, index);
}

static void make_frag6(struct maker *m, u32 index)
{
	make_fragments(m, true, index);
}

/*
 * Decoys: a first fragment of the same id to a port without a limit, which Linux discards for
 * one reason or another.
 */
enum decoy {
	DECOY_GOOD, /* not discarded: the one that comes first counts */
	DECOY_MAC,
	DECOY_VLAN,
	DECOY_CUT,	/* the frame ends before the packet */
	DECOY_ODD,	/* more to come, and no multiple of 8 bytes */
	DECOY_CHECKSUM, /* from here on IPv4 */
	DECOY_SSRR,
	DECOY_OPTION,
	DECOY_IHL,
	DECOY4_COUNT,
	DECOY_UNKNOWN = DECOY_CHECKSUM, /* from here on IPv6: an option that must be known */
	DECOY_HOP,			/* hop-by-hop options that are not first */
	DECOY_ROUTING,			/* segments left */
	DECOY_PRE,			/* headers before the fragment header */
	DECOY_TWO,			/* two fragment headers, two ids */
	DECOY_TWO_SWAPPED,
	DECOY_ATOMIC, /* an atomic one, then the true one's */
	DECOY_BEHIND, /* the option that must be known is behind the fragment header */
	DECOY6_COUNT,
};

static void send_decoy4(struct maker *m, const struct pieces *p, enum decoy kind, const u8 *b,
			u32 n)
{
	struct pieces d = { .id = p->id, .next = p->next, .size = p->size };

	switch (kind) {
	case DECOY_CUT:
		d.ip4.total = 20 + n + 64;
		break;
	case DECOY_CHECKSUM:
		d.ip4.bad_checksum = true;
		break;
	case DECOY_SSRR:
		memcpy(d.ip4.options, "\x89\x07\x04\x0a\x01\x02\x03\x01", 8);
		d.ip4.options_len = 8;
		break;
	case DECOY_OPTION:
		memcpy(d.ip4.options, "\x07\x01\x04\0", 4);
		d.ip4.options_len = 4;
		break;
	case DECOY_IHL:
		d.ip4.ihl = 4;
		break;
	default:
		break;
	}
	send_bytes(m, &d, 0, true, b, n);
}

static void send_decoy6(struct maker *m, const struct pieces *p, enum decoy kind, u32 proto,
			const u8 *b, u32 n)
{
	static struct chain c;
	struct ext frag = { .kind = X_FRAGMENT, .frag = 1, .id = p->id };
	struct ext other = { .kind = X_FRAGMENT, .frag = 1, .id = p->id + 1 };
	struct ext atomic = { .kind = X_FRAGMENT, .id = p->id + 1 };
	struct ext options = ext_of(X_OPTIONS), hop = ext_of(X_HOP), routing = ext_of(X_ROUTING);
	struct ip6 ip = {};

	chain_begin(&c);
	switch (kind) {
	case DECOY_CUT:
		ip.payload_len = 8 + n + 64;
		break;
	case DECOY_UNKNOWN:
		options.option = 0x5e;
		chain_add(&c, &options);
		break;
	case DECOY_HOP:
		chain_add(&c, &options);
		chain_add(&c, &hop);
		break;
	case DECOY_ROUTING:
		routing.segments_left = 1;
		chain_add(&c, &routing);
		break;
	case DECOY_PRE:
		chain_add(&c, &hop);
		chain_add(&c, &options);
		chain_add(&c, &options);
		break;
	case DECOY_TWO:
		chain_add(&c, &other);
		break;
	case DECOY_ATOMIC:
		chain_add(&c, &atomic);
		break;
	default:
		break;
	}
	chain_add(&c, &frag);
	if (kind == DECOY_TWO_SWAPPED)
		chain_add(&c, &other);
	if (kind == DECOY_BEHIND) {
		options.option = 0x5e;
		chain_add(&c, &options);
	}
	chain_link(&c, proto);
	ip.next = c.first;
	put(&c.b, b, n);
	send6(m, &ip, c.b.b, c.b.n);
}

static void send_decoy_to(struct maker *m, const struct pieces *p, enum decoy kind, u32 n, u32 port)
{
	static struct l4 l;

	if (port == PORT_FREE && p->next != 6)
		l4_udp(m, p->v6, &l, port, p->size * 2 - 8);
	else
		l4_tcp(m, p->v6, &l, port == PORT_FREE ? PORT_TCP_FREE : port, 2, 5,
		       p->size * 2 - 20);
	if (kind == DECOY_MAC)
		m->mac[5] = 99;
	if (kind == DECOY_VLAN) {
		m->tags = 1;
		m->tci[0] = 7;
	}
	if (kind == DECOY_ODD)
		n -= 3;
	if (p->v6)
		send_decoy6(m, p, kind, l.proto, l.b.b, n);
	else
		send_decoy4(m, p, kind, l.b.b, n);
	m->mac[5] = WIRE_MAC_SERVER[5];
	m->tags = 0;
}

static void send_decoy(struct maker *m, const struct pieces *p, enum decoy kind)
{
	send_decoy_to(m, p, kind, p->size, PORT_FREE);
}

#define DECOY_ORDERS 5
#define DECOY_LISTED(kinds) ((kinds)*DECOY_ORDERS * 2)

/* `d` is the decoy, 0 the true first, the others later ones. */
static void make_decoys(struct maker *m, bool v6, u32 kinds, u32 index)
{
	static const char *const orders[DECOY_ORDERS] = { "d1230", "d0123", "12d30", "0d123",
							  "d123d0" };
	static struct pieces p;
	bool listed = index < DECOY_LISTED(kinds);
	enum decoy kind = listed ? index % kinds : any(m, kinds);
	enum final final =
		listed ? (index / kinds / DECOY_ORDERS ? FINAL_SYN_LIMITED : FINAL_UDP_LIMITED)
		       : FRAGMENT_FINALS[any(m, 3)];
	u32 count = listed ? 4 : 2 + any(m, 5);
	u8 order[16];

	pieces_of(m, &p, v6, final, listed ? 24 : PICK(m, 24, 48, 200, 1400), count);
	m->marks |= MARK_CONTRADICTION;
	if (listed) {
		for (const char *at = orders[index / kinds % DECOY_ORDERS]; *at; at++) {
			if (*at == 'd')
				send_decoy(m, &p, kind);
			else
				send_piece(m, &p, *at - '0');
		}
		return;
	}
	/* The decoy anywhere, another one now and then, the true first mostly late. */
	order_of(some_order(m), count + 1, order);
	for (u32 i = 0; i <= count; i++) {
		if (order[i] == count || one_in(m, 8))
			send_decoy(m, &p, one_in(m, 4) ? any(m, kinds) : kind);
		if (order[i] != count)
			send_piece(m, &p, order[i]);
	}
}

static void make_decoy4(struct maker *m, u32 index)
{
	make_decoys(m, false, DECOY4_COUNT, index);
}

static void make_decoy6(struct maker *m, u32 index)
{
	make_decoys(m, true, DECOY6_COUNT, index);
}

/*
 * Decoys in valid form: Linux discards one that a later fragment overlaps in part, and
 * all that it had of the datagram. Behind the fragments under them: the true first in a form of its
 * own.
 */
static void play_overlap(struct maker *m, bool v6, enum final final, const char *order)
{
	static struct pieces p;

	pieces_of(m, &p, v6, final, 24, 4);
	m->marks |= MARK_CONTRADICTION;
	for (; *order; order++) {
		switch (*order) {
		case 'o':
			send_decoy_to(m, &p, DECOY_GOOD, p.size + 16, PORT_FREE);
			break;
		case 'b':
			send_decoy_to(m, &p, v6 ? DECOY_UNKNOWN : DECOY_CHECKSUM, p.size,
				      PORT_FREE);
			break;
		case 'f':
			m->marks |= MARK_FAILSAFE;
			send_decoy_to(m, &p, v6 ? DECOY_UNKNOWN : DECOY_CHECKSUM, p.size,
				      PORT_FAILSAFE);
			break;
		case 'h':
			p.pre = v6 ? 9 : 0;
			send_piece(m, &p, 0);
			p.pre = 0;
			break;
		default:
			send_piece(m, &p, *order - '0');
		}
	}
}

static void make_overlap(struct maker *m, u32 index)
{
	/* o: that decoy, b: a bad one, f: a bad one to a failsafe port, h: the first behind nine
	 * headers */
	static const char *const orders[] = {
		"o11230",  "o1123f0", "o1123b0", "o1123h", "o1123h0",
		"o11h230", "h123",    "ho1123",	 "f1230",  "o1f1230"
	};
	u32 n = sizeof(orders) / sizeof(*orders);

	play_overlap(m, index / n & 1, index / n & 2 ? FINAL_SYN_LIMITED : FINAL_UDP_LIMITED,
		     orders[index % n]);
}

/*
 * A sender uses an id again, for another port: Linux delivers each datagram. Only the limit of the
 * group G_SHORT is about one of the ports.
 */
static void make_again(struct maker *m, u32 index)
{
	static const enum final finals[] = { FINAL_UDP_FREE, FINAL_UDP_SHORT };
	static struct pieces p;

	for (u32 k = 0; k < 3; k++) {
		pieces_of(m, &p, index & 1, finals[(index / 2 + k) % 2], 24 + 8 * k, 4);
		for (u32 i = 0; i < p.count; i++)
			send_piece(m, &p, i);
	}
}

/* First fragments that end before the transport's header does. */
static void make_cut4(struct maker *m, u32 index)
{
	static struct pieces p;
	u32 count = index < 4 ? 2 + index / 2 : 2 + any(m, 5);
	enum final final = index < 4
				   ? FINAL_SYN_LIMITED
				   : PICK(m, FINAL_SYN_LIMITED, FINAL_SYN_FREE, FINAL_UDP_LIMITED);
	u8 order[16];

	pieces_of(m, &p, false, final, index < 4 ? 8 + 8 * (index & 1) : PICK(m, 8, 16), 2 + count);
	m->marks |= MARK_CUT;
	order_of(index < 4 || one_in(m, 2) ? 0 : some_order(m), p.count, order);
	if (order[0])
		m->marks |= MARK_LATER_FIRST;
	for (u32 i = 0; i < p.count; i++)
		send_piece(m, &p, order[i]);
}

static void make_cut6(struct maker *m, u32 index)
{
	static struct pieces p;
	static struct chain c;
	static struct l4 l;
	u32 headers = any(m, 4), size = 8 * (1 + any(m, 5));
	u8 order[16];

	l4_of_size(m, true, &l, index < 10 ? FINAL_SYN_LIMITED : FRAGMENT_FINALS[any(m, 4)],
		   20 + any(m, 60));
	chain_begin(&c);
	for (u32 i = 0; i < headers; i++) {
		struct ext x = ext_of(PICK(m, X_OPTIONS, X_OPTIONS, X_ROUTING, X_HIP));

		x.units = any(m, 4);
		chain_add(&c, &x);
	}
	chain_link(&c, l.proto);
	put(&c.b, l.b.b, l.b.n);
	pieces_of(m, &p, true, l.proto == 6 ? FINAL_SYN_LIMITED : FINAL_UDP_LIMITED, 8, 2);
	p.next = p.later_next = c.first;
	p.size = size;
	p.count = (c.b.n + size - 1) / size;
	if (p.count > 16) {
		p.size = (c.b.n / 16 + 8) & ~7U;
		p.count = (c.b.n + p.size - 1) / p.size;
	}
	p.whole.n = 0;
	put(&p.whole, c.b.b, c.b.n);
	m->need = p.count;
	m->marks |= MARK_CUT;
	order_of(index < 10 || one_in(m, 2) ? 0 : some_order(m), p.count, order);
	if (order[0])
		m->marks |= MARK_LATER_FIRST;
	for (u32 i = 0; i < p.count; i++)
		send_piece(m, &p, order[i]);
}

#endif
