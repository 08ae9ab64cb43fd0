/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * packet.h - the one struct that travels through all stages.
 *
 * parse fills in what is on the wire, classify which limits match, account what they said,
 * verdict what is done. All fields are in host byte order.
 */
#ifndef SLUICE_BPF_PACKET_H
#define SLUICE_BPF_PACKET_H

#include "sluice/abi.h"

enum packet_flags {
	PKT_ADDR = 1 << 0,		/* src, dst and family are known */
	PKT_PROTO = 1 << 1,		/* proto is the transport's, not an unread header's */
	PKT_L4 = 1 << 2,		/* the transport header was read: ports, flags, type */
	PKT_FRAGMENT = 1 << 3,		/* first or later */
	PKT_LATER = 1 << 4,		/* later fragment: L4 is its first's, or unknown */
	PKT_VLAN = 1 << 5,
	PKT_FRAG_HEADER = 1 << 6,	/* IPv6 with a fragment header, of an atomic one, too */
	PKT_FIRST_KNOWN = 1 << 7,	/* later fragment: its first was seen, fragment.h */
	PKT_FIRST_DROPPED = 1 << 8,	/* and was dropped */
	PKT_NOTE_FIRST = 1 << 9,	/* first fragment: its verdict is to be remembered */
	PKT_NOTE_UNSURE = 1 << 10,	/* first fragment: it could not be read */
	PKT_NO_BAN = 1 << 11,		/* its source is never banned */
	PKT_NOTE_DROP = 1 << 12,	/* refused by a limit that bans: ban.h */
	PKT_PUSH_TAG = 1 << 13,		/* a push-down tags it: push.h */
};

/* Whether what L4 would say of a packet is hidden in another fragment. */
static __always_inline int is_l4_hidden(u32 flags)
{
	return (flags & (PKT_LATER | PKT_FIRST_KNOWN)) == PKT_LATER;
}

/* A row that a packet is charged to: rows.h. */
struct charged {
	u16 row;			/* as its limit names it */
	u8 match;			/* which of the limits: matches.limit[match] */
	u8 taken;			/* enum row_taken */
};

/* The limits that a packet is charged to, in file order, and their rows. */
struct matches {
	u16 limit[SL_MATCHES_MAX];
	u32 rows[SL_MATCHES_MAX];	/* of each limit: bit i for row[i] */
	struct charged row[SL_WORDS_MAX];
	u32 limits, words;		/* how many */
	u32 dropping;			/* bits: rows of limits that drop */
	u32 soft;			/* bits: the row refused, and its soft row did not */
	u32 full;			/* bits: no room in the table, and that passes */
	u32 refused;			/* the row that refused last: row[refused] */
	u32 too_many;			/* 1: not all that matched could be charged */
};

struct packet {
	/* Reset for each packet: packet_reset(). */
	struct sl_addr src, dst;
	struct sl_now now;		/* mono_ns 0: not read yet */
	u32 length;			/* the frame, bytes, as XDP sees it */
	u32 l3_offset;
	u32 mark;			/* verdict: tags to put on */
	u16 sport, dport;
	u16 vlan;			/* of the outermost tag */
	u16 flags;			/* enum packet_flags, or-ed */
	u8 family;			/* enum sl_family */
	u8 proto;
	u8 tcp_flags;
	u8 icmp_type, icmp_code;
	u8 hop_limit;
	u8 reason;			/* enum sl_reason */
	u8 tag;				/* enum sl_tag_flags, or-ed */
	u8 dscp;
	u8 own_rates;			/* 1: an override holds for the source, see below */
	u8 own_len;			/* own_rates: as sl_override_own() */
	u8 own_params;			/* 1: the row in hand is stepped with `params` */
	u32 frag_id;			/* of a fragment */
	u16 refused_head, refused_row;	/* PKT_NOTE_DROP: the limit, and which row of it */
	/* Written before they are read. */
	struct sl_bitmap match;		/* classify: limits that match */
	u64 generation;			/* of the rule set that judges it */
	u64 key, cost;			/* of the row in hand: charge_prepare() */
	struct matches matches;
	u32 single;			/* the only row to be charged, or SL_NO_ROW */
	/* Of the row in hand: override_look(). */
	struct sl_override override;	/* the one found last; a bisection's own */
	struct sl_params params;	/* own_params: instead of the row's */
	u64 own_tag;			/* what is looked for, and where else: override_seek() */
	u32 own_second;
	u8 own_guess;			/* what own_rates was last, on this CPU */
};

static __always_inline void packet_reset(struct packet *pkt)
{
	__builtin_memset(pkt, 0, __builtin_offsetof(struct packet, match));
}

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
 * Hides a value's range from the compiler: where it can prove an index good it leaves out the
 * check that the verifier needs ("R0 unbounded memory access, make sure to bounds check any
 * such access").
 */
#define OPAQUE(x) __asm__ volatile("" : "+r"(x))

/*
 * Limit `index` of a rule set, NULL beyond the array. The check stands right before the use:
 * older verifiers (6.1) forget the bounds of a number that was kept on the stack.
 */
static __always_inline const struct sl_limit *limit_at(const struct sl_rules *rules, u32 index)
{
	OPAQUE(index);
	if (index >= SL_ROWS_MAX)
		return NULL;
	return &rules->limits[index];
}

#endif
