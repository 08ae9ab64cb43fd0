/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * packet.h - the facts about one packet, and its verdict. Parsing writes the facts; the stages
 * write the reason and the tags. All fields are in host byte order.
 *
 * What the stages compute on the way is in struct evaluation (evaluation.h).
 */
#ifndef SLUICE_BPF_PACKET_H
#define SLUICE_BPF_PACKET_H

#include "sluice/abi.h"

enum packet_flags {
	PKT_ADDR = 1 << 0,     /* src, dst and family are known */
	PKT_PROTO = 1 << 1,    /* proto is the transport's, not an unread header's */
	PKT_L4 = 1 << 2,       /* the transport header was read: ports, flags, type */
	PKT_FRAGMENT = 1 << 3, /* first or later */
	PKT_LATER = 1 << 4,    /* later fragment: L4 is its first's, or unknown */
	PKT_VLAN = 1 << 5,
	PKT_FRAG_HEADER = 1 << 6,   /* IPv6 with a fragment header, of an atomic one, too */
	PKT_FIRST_KNOWN = 1 << 7,   /* later fragment: its first was seen, fragment.h */
	PKT_FIRST_DROPPED = 1 << 8, /* it was dropped; or this is a first that contradicts it */
	PKT_NOTE_FIRST = 1 << 9,    /* first fragment: its verdict is to be remembered */
	PKT_NOTE_UNSURE = 1 << 10,  /* first fragment: it does not decide for the rest */
	PKT_NO_BAN = 1 << 11,	    /* its source is never banned */
	PKT_NOTE_DROP = 1 << 12,    /* refused by a limit that bans: ban.h */
	PKT_PUSH_TAG = 1 << 13,	    /* a push-down tags it: push.h */
	PKT_UNREAD = 1 << 14,	    /* it could not be read to its end; reason in `unread` */
	PKT_V4_MAPPED = 1 << 15,    /* its IPv6 source is ::ffff:a.b.c.d */
};

enum ext_header {
	PKT_EXT_HOPOPTS = 1 << 0,
	PKT_EXT_ROUTING = 1 << 1,
	PKT_EXT_FRAGMENT = 1 << 2,
	PKT_EXT_DSTOPTS = 1 << 3,
	PKT_EXT_AH = 1 << 4, /* while parsing: parse_ah() */
};

/*
 * Whether the L4 header of a packet is unknown: it is in another fragment, or could not be read.
 * Such a packet meets every limit that it could belong to (classify.h).
 */
static __always_inline int is_l4_hidden(u32 flags)
{
	return (flags & PKT_UNREAD) || (flags & (PKT_LATER | PKT_FIRST_KNOWN)) == PKT_LATER;
}

struct packet {
	/* Cleared for each packet: packet_reset(). */
	struct sl_addr src, dst;
	struct sl_now now; /* mono_ns 0: not read yet */
	u32 length;	   /* the frame, bytes, as XDP sees it */
	u32 l3_length;	   /* the length in the IP header, with that header; 0: unknown */
	u32 l3_offset;
	u32 mark; /* the tag's mark */
	u16 sport, dport;
	u16 vlan;  /* of the outermost tag whose VID is not 0 */
	u16 flags; /* enum packet_flags, or-ed */
	u8 family; /* enum sl_family */
	u8 proto;
	u8 ext; /* enum ext_header, or-ed: IPv6 extension headers */
	u8 tcp_flags;
	u8 icmp_type, icmp_code;
	u8 hop_limit;
	u8 reason;     /* enum sl_reason: of the verdict */
	u8 unread;     /* PKT_UNREAD: enum sl_reason */
	u8 tag;	       /* enum sl_tag_flags, or-ed: which tags it gets */
	u8 dscp;       /* the tag's DSCP */
	u8 not_cached; /* 1: its refusal is not to be remembered: refused.h */
	u32 frag_id;   /* of a fragment */
	u64 zero;      /* always 0: see FORGET() */
	/* Of a fragment, and written before they are read: how it arrived, fragment.h. */
	u64 frag_link, frag_vlans;
	u64 frag_like;		    /* first: the fields that those under its id are judged by */
	struct sl_clock_pair clock; /* kept between packets: clock.h */
};

/* To be passed by value: of `pkt->src` or `pkt->now` clang 14 would copy a byte at a time. */
static __always_inline struct sl_addr packet_src(const struct packet *pkt)
{
	return (struct sl_addr){ pkt->src.hi, pkt->src.lo };
}

static __always_inline struct sl_addr packet_dst(const struct packet *pkt)
{
	return (struct sl_addr){ pkt->dst.hi, pkt->dst.lo };
}

static __always_inline struct sl_now packet_time(const struct packet *pkt)
{
	return (struct sl_now){ pkt->now.mono_ns, pkt->now.utc_ns };
}

static __always_inline void packet_reset(struct packet *pkt)
{
	__builtin_memset(pkt, 0, __builtin_offsetof(struct packet, frag_link));
}

/* The kernel's socket for a packet's addresses and ports: socket.h. */
enum socket_state {
	SOCKET_NONE,
	SOCKET_BOUND,	/* listens, or UDP that is not connected: for any peer */
	SOCKET_OPENING, /* of TCP, in the handshake */
	SOCKET_CONNECTED,
};

struct socket_tuple {
	struct sl_addr remote, local;
	u16 remote_port, local_port;
	u8 family; /* enum sl_family */
	u8 proto;  /* PROTO_TCP or PROTO_UDP */
};

#define PROTO_ICMP 1
#define PROTO_TCP 6
#define PROTO_UDP 17
#define PROTO_ICMPV6 58
#define PROTO_SCTP 132
#define PROTO_UDPLITE 136

#define TCP_SYN 0x02
#define TCP_RST 0x04
#define TCP_ACK 0x10

/*
 * A TCP SYN without ACK, or what may be one: a header that could not be read, or is in another
 * fragment that was not seen.
 */
static __always_inline int may_be_syn(const struct packet *pkt)
{
	if ((pkt->flags & PKT_PROTO) && pkt->proto != PROTO_TCP)
		return 0;
	if (!(pkt->flags & PKT_L4))
		return 1;
	return (pkt->tcp_flags & (TCP_SYN | TCP_ACK)) == TCP_SYN;
}

/*
 * Hides a value's range from the compiler: where it can prove an index good it leaves out the
 * check that the verifier needs ("R0 unbounded memory access, make sure to bounds check any
 * such access").
 */
#define OPAQUE(x) __asm__ volatile("" : "+r"(x))

/*
 * Makes a number unknown to the verifier, by adding a 0 that it cannot see. Paths that differ only
 * by such numbers are then one path; otherwise it walks all that follows once for each. Test:
 * test_budget.
 */
#define FORGET(pkt, x) ((x) += *(const volatile u64 *)&(pkt)->zero)

/*
 * Limit `index` of a rule set, NULL beyond the array. The check stands right before the use:
 * older verifiers (6.1) forget the bounds of a number that was kept on the stack.
 */
static __always_inline const struct sl_limit *limit_at(const struct sl_rules *rules, u32 index)
{
	OPAQUE(index);
	if (index >= SL_METERS_MAX)
		return NULL;
	return &rules->limits[index];
}

#endif
