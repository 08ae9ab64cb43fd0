/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* whole.h - cases of one frame: options, lies, chains of headers, tags. */
#ifndef TESTS_ESCAPE_WHOLE_H
#define TESTS_ESCAPE_WHOLE_H

#include "escape/wire.h"

/* Frames that the limiter may drop though every limit has room, or the packet's own limit has. */
enum case_mark {
	MARK_LATER_FIRST = 1 << 0,   /* a later fragment before its first */
	MARK_CONTRADICTION = 1 << 1, /* two firsts of one id */
	MARK_CUT = 1 << 2,	     /* a first fragment without its whole header chain */
	MARK_TAGS = 1 << 3,	     /* more VLAN tags than are read */
	MARK_DEEP =
		1
		<< 4, /* extension headers that are not read on: too many, too long, in odd order */
	MARK_ODD_FIRST = 1 << 5, /* options, or headers beside the fragment header */
	MARK_FAILSAFE = 1 << 7,	 /* one goes to a failsafe port, which no limit closes */
	MARK_MEMORY = 1 << 6,	 /* firsts are remembered: see is_sent() */
	MARK_VLAN = 1 << 8,	 /* the first VID that is not 0 is VLAN_LIMITED */
	MARK_MAPPED = 1 << 9,	 /* from ::ffff:a.b.c.d */
};

static void some_options(struct maker *m, struct ip4 *ip)
{
	u32 n = 0, most = 4 * any(m, 11);

	memset(ip->options, 1, sizeof(ip->options));
	while (n + 8 <= most) {
		switch (any(m, 7)) {
		case 0: /* record route */
			memcpy(ip->options + n, "\x07\x07\x04\0\0\0\0\x01", 8);
			break;
		case 1: /* timestamp */
			memcpy(ip->options + n, "\x44\x08\x05\x00\0\0\0\0", 8);
			break;
		case 2: /* router alert */
			memcpy(ip->options + n, "\x94\x04\0\0\x01\x01\x01\x01", 8);
			break;
		case 3: /* unknown, good */
			memcpy(ip->options + n, "\x99\x08xxxxxx", 8);
			break;
		case 4: /* the end, then rubbish */
			memcpy(ip->options + n, "\0\xff\xff\xff\xff\xff\xff\xff", 8);
			break;
		default:
			break;
		}
		n += 8;
		if (ip->options[n - 8] == 0)
			break;
	}
	ip->options_len = most;
	/* Strict source route, too short an option: Linux discards these. */
	if (most >= 8 && one_in(m, 8))
		memcpy(ip->options,
		       one_in(m, 2) ? "\x89\x07\x04\0\0\0\0\x01" : "\x07\x01\x04\0\0\0\0\x01", 8);
}

static u32 some_payload(struct maker *m)
{
	return one_in(m, 8) ? PICK(m, 1400, 1472, 8000, 0, 1, 2, 3, 7) : any(m, 60);
}

static void make_plain4(struct maker *m, u32 index)
{
	static struct l4 l;
	struct ip4 ip = {};

	l4_final(m, false, &l, index < FINAL_COUNT ? index : any(m, FINAL_COUNT), some_payload(m));
	ip.proto = l.proto;
	if (index >= FINAL_COUNT) {
		if (one_in(m, 2))
			some_options(m, &ip);
		if (one_in(m, 4))
			m->trailer = PICK(m, 1, 18, 200, 1000);
		if (one_in(m, 8))
			ip.flags = PICK(m, 0x4000, 0x8000, 0xc000);
		ip.ttl = PICK(m, 1, 64, 255);
	}
	send4(m, &ip, l.b.b, l.b.n);
}

/* Lengths, versions and ends that are wrong. */
static void make_lies4(struct maker *m, u32 index)
{
	static struct l4 l;
	struct ip4 ip = {};

	l4_final(m, false, &l, any(m, FINAL_COUNT), some_payload(m));
	ip.proto = l.proto;
	if (one_in(m, 3))
		some_options(m, &ip);
	switch (any(m, 7)) {
	case 0:
		ip.total = 20 + ip.options_len + any(m, l.b.n + 40);
		break;
	case 1:
		ip.total = PICK(m, 1, 19, 20, 21, 24, 27, 28, 40, 65535);
		break;
	case 2:
		ip.ihl = 1 + any(m, 15);
		break;
	case 3:
		ip.version = 1 + any(m, 15);
		break;
	case 4:
		ip.cut = 14 + any(m, 60);
		break;
	case 5: /* of UDP the length; of TCP the sequence */
		set16(l.b.b + 4, PICK(m, 1, 7, 8, 9, 20, l.b.n - 1, l.b.n + 1, 65535));
		if (one_in(m, 2) && l.proto == 17)
			set16(l.b.b + 6, 0);
		break;
	case 6:
		if (l.b.n > 12)
			l.b.b[12] = any(m, 256);
		if (l.proto == 6)
			l4_checksum(m, false, &l, 16);
		break;
	}
	if (one_in(m, 3))
		m->trailer = PICK(m, 1, 18, 200, 1000);
	if (one_in(m, 10))
		ip.bad_checksum = true;
	send4(m, &ip, l.b.b, l.b.n);
}

static void make_plain6(struct maker *m, u32 index)
{
	static struct l4 l;
	struct ip6 ip = {};

	l4_final(m, true, &l, index < FINAL_COUNT ? index : any(m, FINAL_COUNT), some_payload(m));
	ip.next = l.proto;
	if (index >= FINAL_COUNT) {
		if (one_in(m, 4))
			m->trailer = PICK(m, 1, 18, 200, 1000);
		ip.hop_limit = PICK(m, 1, 64, 255);
	}
	send6(m, &ip, l.b.b, l.b.n);
}

static void make_lies6(struct maker *m, u32 index)
{
	static struct l4 l;
	struct ip6 ip = {};

	l4_final(m, true, &l, any(m, FINAL_COUNT), some_payload(m));
	ip.next = l.proto;
	switch (any(m, 5)) {
	case 0:
		ip.payload_len = any(m, l.b.n + 40);
		ip.zero_len = !ip.payload_len || one_in(m, 8);
		if (ip.zero_len && one_in(m, 2)) {
			ip.next = X_HOP;
			m->marks |= MARK_DEEP;
		}
		break;
	case 1:
		ip.version = 1 + any(m, 15);
		break;
	case 2:
		ip.cut = 14 + any(m, 80);
		break;
	case 3:
		set16(l.b.b + 4, PICK(m, 0, 1, 7, 8, 9, 20, l.b.n - 1, l.b.n + 1, 65535));
		if (l.proto == 17)
			l4_checksum(m, true, &l, 6);
		break;
	case 4:
		if (l.b.n > 12)
			l.b.b[12] = any(m, 256);
		if (l.proto == 6)
			l4_checksum(m, true, &l, 16);
		break;
	}
	if (one_in(m, 3))
		m->trailer = PICK(m, 1, 18, 200, 1000);
	send6(m, &ip, l.b.b, l.b.n);
}

/* A payload length of 0 before hop-by-hop options, and a trailer: Linux takes both for the
 * packet. */
static void make_zero6(struct maker *m, u32 index)
{
	static struct chain c;
	static struct l4 l;
	struct ext x = ext_of(X_HOP);

	chain_begin(&c);
	chain_add(&c, &x);
	l4_final(m, true, &l, index / 4 % 2 ? FINAL_UDP_LIMITED : FINAL_UDP_SHORT,
		 index / 8 % 2 ? 300 : 12);
	chain_link(&c, l.proto);
	put(&c.b, l.b.b, l.b.n);
	m->trailer = (const u32[]){ 0, 18, 200, 1000 }[index % 4];
	m->marks |= MARK_DEEP;
	send6(m, &(struct ip6){ .next = c.first, .zero_len = true }, c.b.b, c.b.n);
}

/* ------------------------------------------------------------------ chains */

static const u8 CHAIN_KINDS[] = { X_HOP, X_ROUTING,  X_FRAGMENT, X_OPTIONS,
				  X_AH,	 X_MOBILITY, X_HIP,	 X_SHIM6 };
#define KINDS 8
#define CHAINS_TO_3 (KINDS + KINDS * KINDS + KINDS * KINDS * KINDS)

static void chain_end(struct maker *m, struct chain *c, struct ip6 *ip, const struct l4 *l)
{
	chain_link(c, l->proto);
	ip->next = c->first;
	put(&c->b, l->b.b, l->b.n);
	send6(m, ip, c->b.b, c->b.n);
}

static struct ext some_ext(struct maker *m, u32 kind)
{
	struct ext x = ext_of(kind);

	if (kind == X_AH || kind == X_FRAGMENT)
		return x;
	if (one_in(m, 3))
		x.units = any(m, 5);
	if (kind == X_ROUTING) {
		x.routing_type = PICK(m, 0, 0, 2, 3, 4, 253);
		x.segments_left = one_in(m, 8);
	}
	if (one_in(m, 16))
		x.option = PICK(m, 0x5e, 0x9e, 0xde, 0x1e, 0xc2, 0x05);
	if (one_in(m, 24))
		x.lie = 1 + any(m, 255);
	return x;
}

/*
 * Adds header `i` of a chain. What is behind a fragment header that follows others is not read on,
 * but behind lone hop-by-hop options it is; *walked: those before are walked over.
 */
static void chain_add_marked(struct maker *m, struct chain *c, const struct ext *x, u32 i,
			     bool *walked)
{
	if (x->kind == X_FRAGMENT && *walked && i > (c->first == X_HOP))
		m->marks |= MARK_DEEP;
	*walked &= x->kind < X_MOBILITY;
	chain_add(c, x);
}

/* The listed: every chain to depth 3 before each kind of transport, in its plainest form. */
static void make_chain(struct maker *m, u32 index)
{
	static struct chain c;
	static struct l4 l;
	struct ip6 ip = {};
	u32 depth, final = any(m, FINAL_COUNT);
	bool walked = true;

	chain_begin(&c);
	if (index < CHAINS_TO_3 * 3) {
		u32 n = index / 3;

		final = (const u8[]){ FINAL_UDP_LIMITED, FINAL_SYN_LIMITED,
				      FINAL_UDP_FREE }[index % 3];
		for (depth = 1; depth < 3; depth++) {
			u32 chains = depth == 1 ? KINDS : KINDS * KINDS;

			if (n < chains)
				break;
			n -= chains;
		}
		for (u32 i = 0; i < depth; i++, n /= KINDS) {
			struct ext x = ext_of(CHAIN_KINDS[n % KINDS]);

			chain_add_marked(m, &c, &x, i, &walked);
		}
	} else {
		/* Mostly headers that Linux accepts; hop-by-hop only at the front. */
		bool wild = one_in(m, 3);

		depth = one_in(m, 4) ? 8 + any(m, 17) : 1 + any(m, 12);
		if (depth > 8)
			m->marks |= MARK_DEEP;
		for (u32 i = 0; i < depth; i++) {
			u32 kind = wild			? CHAIN_KINDS[any(m, KINDS)]
				   : !i && one_in(m, 2) ? X_HOP
							: PICK(m, X_OPTIONS, X_OPTIONS, X_ROUTING);
			struct ext x = some_ext(m, kind);

			chain_add_marked(m, &c, &x, i, &walked);
		}
	}
	l4_final(m, true, &l, final, any(m, 40));
	/* AH is walked, too. */
	if (depth == 8 && l.proto == X_AH)
		m->marks |= MARK_DEEP;
	chain_end(m, &c, &ip, &l);
	if (c.b.n > 4000)
		m->marks |= MARK_DEEP;
}

/* Headers of up to 2048 bytes in jumbo frames. */
static void make_long(struct maker *m, u32 index)
{
	static struct chain c;
	static struct l4 l;
	struct ip6 ip = {};
	u32 count = index < 8 ? 1 + index / 2 : 1 + any(m, 4);

	chain_begin(&c);
	for (u32 i = 0; i < count; i++) {
		struct ext x = ext_of(!i && one_in(m, 2) ? X_HOP : X_OPTIONS);

		x.units = index < 8 ? 255 - index % 2 : 255 - any(m, one_in(m, 2) ? 8 : 250);
		chain_add(&c, &x);
	}
	if (c.b.n > 3900)
		m->marks |= MARK_DEEP;
	l4_final(m, true, &l, index < 8 ? FINAL_SYN_LIMITED : any(m, FINAL_COUNT), any(m, 40));
	chain_end(m, &c, &ip, &l);
}

/* ------------------------------------------------------------------ VLAN tags */

#define TAGS_READ 4
#define VLAN_LIMITED 5
#define VLAN_INNER 7

static void make_tags(struct maker *m, u32 index)
{
	static struct l4 l;
	bool v6 = index < 24 ? index & 1 : one_in(m, 2);

	m->tags = index < 24 ? 1 + index / 2 % 6 : 1 + any(m, 8);
	m->ad = index < 24 ? index >= 12 : one_in(m, 2);
	for (u32 i = 0; i < m->tags; i++)
		m->tci[i] = index >= 24 && one_in(m, 6) ? any(m, 65536)
			    : index >= 24		? any(m, 16) << 12
							: 0;
	if (m->tags > TAGS_READ)
		m->marks |= MARK_TAGS;
	l4_final(m, v6, &l, index < 24 ? FINAL_UDP_LIMITED : any(m, FINAL_COUNT), any(m, 40));
	if (v6)
		send6(m, &(struct ip6){ .next = l.proto }, l.b.b, l.b.n);
	else
		send4(m, &(struct ip4){ .proto = l.proto }, l.b.b, l.b.n);
}

/*
 * For devices of VLAN 5 and of VLAN 7 in it (escape.sh), where the kernel has 802.1Q: up to three
 * tags of VID 0, then 5, then maybe 7 or 0. Elsewhere Linux delivers none of them.
 */
static void make_vlan(struct maker *m, u32 index)
{
	static struct l4 l;
	bool v6 = index & 1;
	u32 zeros = index / 2 % 4;

	for (u32 i = 0; i < zeros; i++)
		m->tci[m->tags++] = index < 16 ? 0 : any(m, 16) << 12;
	m->tci[m->tags++] = (index < 16 ? 0 : any(m, 8) << 13) | VLAN_LIMITED;
	if (index / 8 % 2)
		m->tci[m->tags++] = index < 16 || one_in(m, 2) ? VLAN_INNER : 0;
	m->marks |= MARK_VLAN;
	if (m->tags > TAGS_READ)
		m->marks |= MARK_TAGS;
	l4_final(m, v6, &l, index < 16 ? FINAL_UDP_LIMITED : any(m, FINAL_COUNT), any(m, 40));
	if (v6)
		send6(m, &(struct ip6){ .next = l.proto }, l.b.b, l.b.n);
	else
		send4(m, &(struct ip4){ .proto = l.proto }, l.b.b, l.b.n);
}

/*
 * For another address, so that no socket answers. Simulated ones are of another kind now and then,
 * or cut: those are limited all together, by the clock.
 */
static void send_arp(struct maker *m)
{
	static struct buf f;
	bool odd = m->simulated && one_in(m, 2);

	frame_begin(m, &f, 0x0806);
	put16(&f, 1);
	put16(&f, 0x0800);
	put8(&f, odd && one_in(m, 2) ? 8 : 6);
	put8(&f, odd && one_in(m, 2) ? 16 : 4);
	put16(&f, 1);
	put(&f, WIRE_MAC_CLIENT, 6);
	put(&f, m->src4, 4);
	fill(&f, 0, 6);
	put32(&f, 0xcb007163);
	frame_end(m, &f, odd && one_in(m, 2) ? 14 + any(m, 28) : 0);
}

/* Other types than IP's, LLC and SNAP, frames of a few bytes. */
static void make_ethernet(struct maker *m, u32 index)
{
	static struct l4 l;
	bool v6 = one_in(m, 2);
	struct ip4 ip4 = {};
	struct ip6 ip6 = {};

	if (one_in(m, 8))
		return send_arp(m);
	l4_final(m, v6, &l, any(m, FINAL_COUNT), any(m, 40));
	ip4.proto = ip6.next = l.proto;
	switch (any(m, 5)) {
	case 0:
		m->ethertype = PICK(m, 0x9100, 0x9200, 0x8847, 0x8864, 0x0600, 0x88b5, 0x6558);
		break;
	case 1:
		m->ethertype = any(m, 65536);
		break;
	case 2:
		m->snap = 8;
		break;
	case 3:
		m->ethertype = v6 ? 0x0800 : 0x86dd;
		break;
	case 4:
		m->tags = any(m, 3);
		m->ad = one_in(m, 2);
		ip4.cut = ip6.cut = 14 + any(m, 30);
		break;
	}
	if (v6)
		send6(m, &ip6, l.b.b, l.b.n);
	else
		send4(m, &ip4, l.b.b, l.b.n);
}

/* An IPv4 source written as an IPv6 one. */
static void make_mapped(struct maker *m, u32 index)
{
	static struct l4 l;
	u8 src[16] = { [10] = 0xff, [11] = one_in(m, 8) ? 0xfe : 0xff }, own[16];

	m->marks |= MARK_MAPPED;
	memcpy(src + 12, m->src4, 4);
	memcpy(own, m->src6, 16);
	memcpy(m->src6, src, 16);
	l4_final(m, true, &l, any(m, FINAL_COUNT), any(m, 40));
	send6(m, &(struct ip6){ .next = l.proto }, l.b.b, l.b.n);
	memcpy(m->src6, own, 16);
}

#endif
