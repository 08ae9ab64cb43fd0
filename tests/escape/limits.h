/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* limits.h - the limits, and which of them a packet meets by how Linux read it. */
#ifndef TESTS_ESCAPE_LIMITS_H
#define TESTS_ESCAPE_LIMITS_H

#include "escape/linux.h"
#include "escape/pieces.h"

/* Groups of sources, and what is spent for each. */
enum group {
	G_FREE,	   /* no limit at all */
	G_AMPLE,   /* every limit, none spent */
	G_PORT,	   /* UDP to port 53 */
	G_SYN,	   /* TCP connections to port 80 */
	G_PROTO,   /* protocols by number */
	G_SHORT,   /* UDP to port 54 of up to 200 bytes */
	G_ALL,	   /* everything */
	G_FLAGS,   /* TCP with SYN and without ACK, to any port */
	G_ECHO,	   /* ICMP and ICMPv6 echo requests */
	G_SPORT,   /* source port 40000, in any protocol */
	G_BLOCK,   /* blocked */
	G_HEADERS, /* routing and destination options headers, as protocols */
	G_VLAN,	   /* VLAN 5 */
	G_BUDGET,  /* two packets to ports 53 and 80 for each source */
	G_BYTES,   /* 3000 bytes of UDP to port 53 for each source */
	G_PASS,	   /* everything but UDP to port 9 */
	G_COUNT,
};

#define SOURCES(v4, v6) "src: [10." #v4 ".0.0/12, '2001:db9:" #v6 "::/36']"
#define SPENT " per: [], rate: 1 packets/d, burst: 1, accounting: exact}\n"

static const char
	POLICY[] =
		"essential: {rate: 100 packets/s}\n"
		"failsafe: [22/tcp]\n"
		"failsafe_rate: 10 connections/s\n"
		"block: [10.160.0.0/12, '2001:db9:a000::/36']\n"
		"limits:\n"
		"- {name: ample-all, match: {" SOURCES(
			16, 1000) "}, rate: 1G packets/s}\n"
				  "- {name: ample-port, match: {" SOURCES(
					  16, 1000) ", proto: udp, dport: 53},"
						    " rate: 1G packets/s}\n"
						    "- {name: ample-syn, match: {" SOURCES(
							    16, 1000) ", proto: tcp, dport: 80},"
								      " rate: 1G connections/s}\n"
								      "- {name: port, match: {" SOURCES(
									      32, 2000) ", proto: udp, dport: 53}," SPENT "- {name: syn, match: {" SOURCES(48, 3000) ", proto: tcp, dport: 80},"
																				     " per: [], rate: 1 connections/d, burst: 1, accounting: exact}\n"
																				     "- {name: proto, match: {" SOURCES(64, 4000) ", "
																										  "proto: [47, 50, 51, 132, 135, 139, 140, 253]}," SPENT "- {name: short, match: {" SOURCES(80, 5000) ", proto: udp, dport: 54, length: 0-200}," SPENT "- {name: all, match: {" SOURCES(96,
																																																	6000) "}," SPENT
																																																	      "- {name: flags, match: {" SOURCES(
																																																		      112,
																																																		      7000) ", tcp_flags: 'syn,!ack'}," SPENT
																																																			    "- {name: echo, match: {" SOURCES(128,
																																																							      8000) ", icmp_type: echo-request}," SPENT "- {name: sport, match: {" SOURCES(144,
																																																																	   9000) ", sport: 40000}," SPENT
																																																																		 "- {name: headers, match: {" SOURCES(176,
																																																																						      b000) ", proto: [43, 60]}," SPENT
																																																																							    "- {name: vlan, match: {" SOURCES(192, c000) ", vlan: 5}," SPENT
																																																																													 "- {name: budget, match: {" SOURCES(208,
																																																																																	     d000) ", dport: [53, 80]},"
																																																																																		   " rate: 2 packets/d, burst: 2, accounting: exact}\n"
																																																																																		   "- {name: bytes, match: {" SOURCES(
																																																																																			   224, e000) ", proto: udp, dport: 53},"
																																																																																				      " rate: 3000 bytes/d, burst: 3000, accounting: exact}\n"
																																																																																				      "- {name: pass, match: {" SOURCES(240, f000) ", proto: udp, dport: 9}, action: pass}\n"
																																																																																										   "- {name: behind-pass, match: {" SOURCES(240,
																																																																																															    f000) "}," SPENT;

/* A case of the batch in hand. */
struct test_case {
	u32 class, index, id, need, proto, marks;
	u32 stated;	  /* the length that IP states */
	u32 tries;	  /* before this one */
	u32 turn;	  /* which group it is sent from besides: by seed and index */
	enum final final; /* MARK_MEMORY: of the datagram in pieces */
};

/*
 * The memory of first fragments is finite, and sources that meet in one part of it go by all
 * limits. Such cases are sent from fewer groups, and frames that were not delivered are sent again.
 */
#define TRIES 4

static bool is_sent(u32 group, const struct test_case *c)
{
	if (!(c->marks & MARK_MEMORY) || group == G_FREE || group == c->turn % G_COUNT)
		return true;
	switch (c->final) {
	case FINAL_SYN_LIMITED:
		return group == G_SYN || group == G_FLAGS || group == G_BUDGET;
	case FINAL_UDP_LIMITED:
		return group == G_PORT || group == G_BUDGET || group == G_BYTES;
	case FINAL_ECHO:
		return group == G_ECHO;
	default:
		return group == G_ALL;
	}
}

/* An IPv6 header that Linux walks on from: a raw socket receives it, whatever is behind. */
static bool is_on_the_way(const struct got *g)
{
	return g->kind == GOT_RAW && g->v6 && (g->what == 43 || g->what == 44 || g->what == 60);
}

static bool is_limited_proto(u32 proto)
{
	static const u8 limited[] = { 47, 50, 51, 132, 135, 139, 140, 253 };

	return memchr(limited, proto, sizeof(limited)) != NULL;
}

/* Whether the packet that Linux delivered may meet a limit of the group that is spent. */
static bool could_be_over(u32 group, const struct test_case *c, const struct got *g)
{
	bool tcp = g->kind == GOT_SYNACK || g->kind == GOT_RST;

	switch (group) {
	case G_PORT:
	case G_BYTES:
		return g->kind == GOT_UDP && g->what == PORT_LIMITED;
	case G_BUDGET:
		return (g->kind == GOT_UDP && g->what == PORT_LIMITED) ||
		       (tcp && g->what == PORT_TCP_LIMITED) ||
		       (g->kind == GOT_RAW && (g->what == 132 || g->what == 136));
	case G_SYN:
		return tcp && g->what == PORT_TCP_LIMITED;
	case G_PROTO:
		return g->kind == GOT_RAW && is_limited_proto(g->what);
	case G_SHORT:
		return g->kind == GOT_UDP && g->what == PORT_SHORT &&
		       (c->need > 1 || c->stated <= 200);
	case G_FLAGS:
		return tcp;
	case G_ECHO:
		return g->kind == GOT_ECHO ||
		       (g->kind == GOT_RAW && (g->what == 1 || g->what == 58));
	case G_SPORT:
		/* SCTP and UDP-Lite have ports, too. */
		return tcp || g->kind == GOT_UDP ||
		       (g->kind == GOT_RAW && (g->what == 132 || g->what == 136));
	case G_HEADERS:
		return g->kind == GOT_RAW && (g->what == 43 || g->what == 60);
	case G_VLAN:
		return c->marks & MARK_VLAN;
	case G_PASS:
		return g->kind != GOT_UDP || g->what != PORT_FREE;
	case G_ALL:
	case G_BLOCK:
		return true;
	default:
		return false;
	}
}

/* Whether the delivered packet surely is over: of the budgets, only one larger than they are. */
static bool is_over(u32 group, const struct test_case *c, const struct got *g)
{
	if (!could_be_over(group, c, g) || (c->marks & MARK_FAILSAFE && is_on_the_way(g)))
		return false;
	switch (group) {
	case G_SYN:
	case G_FLAGS:
		return g->kind == GOT_SYNACK;
	case G_SHORT:
		return c->need == 1;
	case G_ECHO:
		return g->kind == GOT_ECHO;
	case G_SPORT:
		return g->kind != GOT_RAW;
	case G_BUDGET:
		return c->need > 2 && g->kind != GOT_RAW;
	case G_BYTES:
		return g->length > 3000;
	case G_PASS:
		return !is_on_the_way(g);
	default:
		return true;
	}
}

/* Whether a limit of the group takes packets of a protocol. */
static bool could_be_of(u32 group, u32 proto)
{
	switch (group) {
	case G_SYN:
	case G_FLAGS:
		return proto == 6;
	case G_PROTO:
		return is_limited_proto(proto);
	case G_HEADERS:
		return proto == 43 || proto == 60;
	case G_ECHO:
		return proto == 1;
	case G_SPORT:
	case G_BUDGET:
		return proto == 6 || proto == 17;
	case G_VLAN:
		return false;
	case G_ALL:
	case G_BLOCK:
	case G_PASS:
		return true;
	default:
		return proto == 17;
	}
}

/*
 * The exceptions: cases that may be dropped though no packet that Linux delivers of them is over
 * a limit.
 */
static bool may_drop(u32 group, const struct test_case *c)
{
	/* More tags than are read: dropped, whatever the limits. */
	if (c->marks & MARK_TAGS)
		return true;
	/* Two firsts of one id: only one of them may speak for the rest, whatever the limits. */
	if (c->marks & MARK_CONTRADICTION)
		return true;
	/* A pass for an IPv4 source is none for that source written as an IPv6 one. */
	if (group == G_PASS && c->marks & MARK_MAPPED)
		return true;
	/* The rest holds where a limit is spent that it could have met. */
	if (group == G_FREE || group == G_AMPLE)
		return false;
	/* The bytes behind the last header that is read may be anything. */
	if (c->marks & MARK_DEEP)
		return true;
	/*
	 * A later fragment whose first comes later, is cut, or is of a form that Linux may discard:
	 * it may meet any limit of its protocol.
	 */
	if (c->marks & (MARK_LATER_FIRST | MARK_CUT | MARK_ODD_FIRST))
		return !c->proto || could_be_of(group, c->proto);
	/* A length that lies: each side may take the one or the other for the end. */
	return false;
}

#endif
