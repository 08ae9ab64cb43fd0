// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * explain_frame.c - the packet of a query of explain, as a frame, so that
 * it goes through parse like any other.
 */
#include <string.h>

#include "packet/explain/dp_explain.h"

#define ETHERNET 14
#define TAG 4
#define IPV4 20
#define IPV6 40
#define FRAGMENT_HEADER 8
#define EXT_HEADER 8
#define FRAGMENT_OFFSET 185 /* in units of 8 bytes: 1480, as Ethernet has them */
#define NEXT_FRAGMENT 44
#define NEXT_NONE 59
/* Of a later fragment: some payload. */
#define LATER_PAYLOAD 8

#define ND_FIRST 133
#define ND_LAST 137

/* A protocol that is an IPv6 extension header: one of the least length, and nothing behind it. */
static bool is_ext_header(const struct explain_packet *p)
{
	return p->family == SL_V6 &&
	       (p->proto == 0 || p->proto == 43 || p->proto == NEXT_FRAGMENT || p->proto == 60);
}

static u32 transport_length(const struct explain_packet *p)
{
	if (p->fragment == EXPLAIN_LATER)
		return LATER_PAYLOAD;
	if (is_ext_header(p))
		return EXT_HEADER;
	switch (p->proto) {
	case 6:
		return 20;
	case 1:
	case 17:
	case 58:
	case 132:
	case 136:
		return 8;
	}
	return 0;
}

static u32 network_length(const struct explain_packet *p)
{
	if (p->family == SL_V4)
		return IPV4;
	return IPV6 + (p->fragment != EXPLAIN_WHOLE ? FRAGMENT_HEADER : 0);
}

u32 explain_link_length(const struct explain_packet *p)
{
	return ETHERNET + (p->vlan != SL_VLAN_NONE ? TAG : 0);
}

u32 explain_min_length(const struct explain_packet *p)
{
	return network_length(p) + transport_length(p);
}

u32 explain_frame_length(const struct explain_packet *p)
{
	return explain_link_length(p) + p->length;
}

static void put16(u8 *at, u32 value)
{
	at[0] = value >> 8;
	at[1] = value;
}

static void put64(u8 *at, u64 value)
{
	for (int i = 7; i >= 0; i--, value >>= 8)
		at[i] = value;
}

static u8 *put_link(const struct explain_packet *p, u8 *at)
{
	at[0] = at[6] = 2; /* locally administered addresses; not used */
	at[11] = 1;
	at += 12;
	if (p->vlan != SL_VLAN_NONE) {
		put16(at, 0x8100);
		put16(at + 2, p->vlan & 0xfff);
		at += TAG;
	}
	put16(at, p->family == SL_V4 ? 0x0800 : 0x86dd);
	return at + 2;
}

static u32 fragment_field(const struct explain_packet *p, u32 shift, u32 more)
{
	if (p->fragment == EXPLAIN_FIRST)
		return more;
	return p->fragment == EXPLAIN_LATER ? FRAGMENT_OFFSET << shift : 0;
}

static u8 *put_ipv4(const struct explain_packet *p, u8 *at, u32 length)
{
	u32 sum = 0;

	at[0] = 0x45;
	put16(at + 2, length);
	put16(at + 6, fragment_field(p, 0, 0x2000));
	at[8] = 64;
	at[9] = p->proto;
	put16(at + 12, p->src.hi >> 48);
	put16(at + 14, p->src.hi >> 32);
	put16(at + 16, p->dst.hi >> 48);
	put16(at + 18, p->dst.hi >> 32);
	for (int i = 0; i < IPV4; i += 2)
		sum += at[i] << 8 | at[i + 1];
	sum = (sum & 0xffff) + (sum >> 16);
	put16(at + 10, ~(sum + (sum >> 16)));
	return at + IPV4;
}

/* Neighbour discovery comes with hop limit 255, or is forged. */
static u8 *put_ipv6(const struct explain_packet *p, u8 *at, u32 length)
{
	bool nd = p->proto == 58 && p->icmp_type >= ND_FIRST && p->icmp_type <= ND_LAST;

	at[0] = 0x60;
	put16(at + 4, length - IPV6);
	at[6] = p->fragment == EXPLAIN_WHOLE ? p->proto : NEXT_FRAGMENT;
	at[7] = nd ? 255 : 64;
	put64(at + 8, p->src.hi);
	put64(at + 16, p->src.lo);
	put64(at + 24, p->dst.hi);
	put64(at + 32, p->dst.lo);
	at += IPV6;
	if (p->fragment == EXPLAIN_WHOLE)
		return at;
	at[0] = p->proto;
	put16(at + 2, fragment_field(p, 3, 1));
	return at + FRAGMENT_HEADER;
}

static void put_transport(const struct explain_packet *p, u8 *at, u32 length)
{
	if (p->fragment == EXPLAIN_LATER)
		return;
	if (is_ext_header(p)) {
		at[0] = NEXT_NONE;
		return;
	}
	switch (p->proto) {
	case 6:
		at[12] = 5 << 4;
		at[13] = p->tcp_flags;
		break;
	case 17:
		put16(at + 4, length);
		break;
	case 132:
	case 136:
		break;
	case 1:
	case 58:
		at[0] = p->icmp_type;
		at[1] = p->icmp_code;
		return;
	default:
		return;
	}
	put16(at, p->sport);
	put16(at + 2, p->dport);
}

void explain_frame(const struct explain_packet *p, u8 *frame)
{
	u32 length = explain_frame_length(p);
	const u8 *end = frame + length;
	u8 *at;

	memset(frame, 0, length);
	at = put_link(p, frame);
	if (p->family == SL_V4)
		at = put_ipv4(p, at, end - at);
	else
		at = put_ipv6(p, at, end - at);
	put_transport(p, at, end - at);
}
