/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * frame.h - Ethernet frames from a description: fields that a test leaves out are correct.
 *
 *     struct frame f;
 *     frame_build(&(struct frame_spec){ .src = "192.0.2.7", .proto = 6, .dport = 80 }, &f);
 *
 * Lengths and the IPv4 header's checksum are correct unless the description states otherwise. The
 * builder shares no code and no constants with bpf/parse.h, so that the two can disagree.
 */
#ifndef TESTS_LIB_FRAME_H
#define TESTS_LIB_FRAME_H

#include <stdbool.h>

#include "sluice/types.h"

#define FRAME_MAX 9216
#define FRAME_ZERO 0x10000 /* in a field where 0 means "correct": really 0 */
#define FRAME_TAGS_MAX 6
#define FRAME_EXT_MAX 10

/* IPv6 extension headers, by their protocol number; 0 ends a chain, so hop-by-hop is 256. */
enum frame_ext {
	EXT_END,
	EXT_HOPBYHOP = 256,
	EXT_ROUTING = 43,
	EXT_FRAGMENT = 44,
	EXT_AH = 51,
	EXT_DSTOPTS = 60,
	EXT_MOBILITY = 135,
	EXT_HIP = 139,
	EXT_SHIM6 = 140,
};

#define FRAME_SYN 0x02
#define FRAME_RST 0x04
#define FRAME_PSH 0x08
#define FRAME_ACK 0x10
#define FRAME_URG 0x20

struct frame_spec {
	u32 iface; /* the interface slot it comes in on */

	/* Ethernet */
	u8 mac;			  /* last byte of the destination; 0: 1 */
	u16 vlan[FRAME_TAGS_MAX]; /* TCIs, outermost first */
	u8 tags;		  /* how many of them */
	u8 ad;			  /* bit i: tag i is 802.1ad */
	u16 ethertype;		  /* 0: that of the addresses; ARP makes an ARP request */

	/* IP. The family is that of src; without one 192.0.2.1 to 203.0.113.10. */
	const char *src, *dst;
	bool v6;  /* without src: 2001:db8::1 to 2001:db8:ffff::10 */
	u8 proto; /* of what follows the last header; 0 UDP, see proto_zero */
	bool proto_zero;
	u8 hop_limit; /* 0: 64 */
	u8 tos;	      /* TOS or traffic class, with ECN */
	u32 version;  /* 0: right */
	u32 ihl;      /* IPv4, 4-byte words; 5..15 are padded with options */
	u32 total;    /* IPv4 total length or IPv6 payload length; 0: right */
	bool bad_checksum;
	u16 frag_offset; /* in units of 8 bytes; IPv6: put in each EXT_FRAGMENT */
	bool frag_more;
	u32 frag_id;		      /* 0: 0x1234 */
	u16 frag_flags;		      /* IPv4: DF 0x4000, evil 0x8000; IPv6: reserved bits 0x6 */
	u16 ext[FRAME_EXT_MAX + 1];   /* IPv6 chain, enum frame_ext; ends with 0 */
	u16 ext_units[FRAME_EXT_MAX]; /* the length byte of each; fragment headers have none */

	/* transport: only the fields of the protocol are used */
	u16 sport, dport; /* 0: 40000, 9; FRAME_ZERO does not fit: use port_zero */
	bool port_zero;
	u8 tcp_flags; /* 0: ACK; null_flags for none */
	bool null_flags;
	u32 doff; /* 0: 5 */
	u32 seq;
	u32 udp_length; /* 0: right */
	u8 icmp_type, icmp_code;
	const struct frame_spec *quote; /* ICMP: from its IP header on, before the payload */
	u16 quote_length;		/* only so many bytes of it; 0: all */
	u16 payload;			/* bytes behind the transport header */

	/* the whole */
	u16 pad; /* bytes behind the IP packet */
	u16 cut; /* the frame ends here; 0: whole */
};

struct frame {
	u32 length;
	u32 l3, l4;	/* where those headers are; 0: there is none */
	u8 ip_align[2]; /* the IP header is at a multiple of 4 */
	u8 data[FRAME_MAX];
};

/* Builds it; false where it does not fit or an address does not parse: a test's own error. */
bool frame_build(const struct frame_spec *spec, struct frame *ret);

/* The ones' complement sum over `length` bytes: 0 over a header with a right checksum. */
u16 frame_checksum(const u8 *bytes, u32 length);

/*
 * Words of a scenario ("src 192.0.2.7 dport 80 tcp syn length 1000") into a spec; *at is moved
 * past them. "first N" and "later N" are fragments of datagram N. The first word that is none of
 * them ends it. `storage` holds the addresses.
 */
struct frame_words {
	struct frame_spec spec;
	u32 length; /* of the whole frame, by payload; 0: as small as can be */
	char src[64], dst[64];
};
void frame_words_parse(struct frame_words *words, const char **at);
/* frame_build() and the length asked for. */
bool frame_words_build(const struct frame_words *words, struct frame *ret);

#endif
