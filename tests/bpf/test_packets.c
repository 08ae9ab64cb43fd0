// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * test_packets.c - how the parser reads any frame: the reason, the action, the counter.
 *
 * The rule set has one limit, on destination port 4242. So WITHIN says that the port was found
 * behind all those headers (or could not be ruled out, in a later fragment), NO_MATCH that the
 * packet is well and has no such port. Every table runs with on_parse_error pass and drop, and
 * with frames that begin in linear memory and go on in fragments.
 */
#include <errno.h>
#include <string.h>

#include "lib/case.h"

/* clang-format off */
#define PORT .dport = 4242
/* clang-format on */
#define RULES "limits: [{name: port, match: {dport: 4242}, rate: 1M packets/s}]\n"

#define FOUND SL_ACT_PASS, SL_R_WITHIN
#define MALFORMED SL_ACT_PASS, SL_R_MALFORMED
#define HIDDEN TOO_DEEP
/* clang-format off */
#define LATER .frag_offset = 100, .payload = 64
#define FIRST .frag_more = true, .payload = 64
/* clang-format on */
#define TOO_MANY_TAGS SL_ACT_DROP, SL_R_VLAN_DEPTH
#define NOT_IP SL_ACT_PASS, SL_R_NOT_IP

/* ------------------------------------------------------------------ Ethernet and tags */

static const struct packet_case tag_cases[] = {
	{ "no tag", { PORT }, FOUND },
	{ "802.1Q", { PORT, .tags = 1, .vlan = { 100 } }, FOUND },
	{ "802.1ad", { PORT, .tags = 1, .ad = 1, .vlan = { 100 } }, FOUND },
	{ "QinQ", { PORT, .tags = 2, .ad = 1, .vlan = { 100, 200 } }, FOUND },
	{ "QinQ the other way round", { PORT, .tags = 2, .ad = 2, .vlan = { 1, 2 } }, FOUND },
	{ "three tags", { PORT, .tags = 3, .ad = 2, .vlan = { 1, 2, 3 } }, FOUND },
	{ "four 802.1Q", { PORT, .tags = 4, .vlan = { 1, 2, 3, 4 } }, FOUND },
	{ "four 802.1ad", { PORT, .tags = 4, .ad = 15, .vlan = { 1, 2, 3, 4 } }, FOUND },
	{ "four mixed, IPv6", { PORT, .v6 = true, .tags = 4, .ad = 5 }, FOUND },
	{ "priority bits", { PORT, .tags = 1, .vlan = { 0xf064 } }, FOUND },
	{ "five tags", { PORT, .tags = 5 }, TOO_MANY_TAGS },
	{ "five 802.1ad, IPv6", { PORT, .v6 = true, .tags = 5, .ad = 31 }, TOO_MANY_TAGS },
	{ "six tags", { PORT, .tags = 6, .ad = 32 }, TOO_MANY_TAGS },
	{ "ARP", { .ethertype = 0x0806 }, SL_ACT_PASS, SL_R_ARP },
	{ "ARP behind four tags", { .ethertype = 0x0806, .tags = 4 }, SL_ACT_PASS, SL_R_ARP },
	{ "ARP cut short", { .ethertype = 0x0806, .cut = 14 }, SL_ACT_PASS, SL_R_ARP },
	{ "LLDP", { .ethertype = 0x88cc, .payload = 46 }, NOT_IP },
	{ "MPLS", { .ethertype = 0x8847, .payload = 46 }, NOT_IP },
	{ "PPPoE", { .ethertype = 0x8864, .payload = 46 }, NOT_IP },
	{ "802.3 with a length", { .ethertype = 0x0040, .payload = 46 }, NOT_IP },
	{ "another QinQ type", { .ethertype = 0x9100, .payload = 46 }, NOT_IP },
	{ "non-IP behind a tag", { .ethertype = 0x88cc, .tags = 1, .payload = 46 }, NOT_IP },
	{ "non-IP without a body", { .ethertype = 0x88cc }, NOT_IP },
	{ "IPv4 without a body", { .cut = 14 }, TRUNCATED },
	{ "IPv6 without a body", { .v6 = true, .cut = 14 }, TRUNCATED },
	{ "a tag without a body", { .tags = 1, .cut = 14 }, TRUNCATED },
	{ "half a tag", { .tags = 1, .cut = 17 }, TRUNCATED },
};

TEST(tags_and_types)
{
	CASES_RUN_EVERYWHERE(case_target(state), RULES, tag_cases);
}

/* `vlan` is the first tag's VID that is not 0, as it is for Linux. */
TEST(vlans)
{
	static const struct packet_case cases[] = {
		{ "5", { .tags = 1, .vlan = { 5 } }, FOUND },
		{ "5 with priority", { .tags = 1, .vlan = { 0xe005 } }, FOUND },
		{ "0, then 5", { .tags = 2, .vlan = { 0, 5 } }, FOUND },
		{ "priority alone, then 5", { .tags = 2, .vlan = { 0xe000, 5 } }, FOUND },
		{ "0, 0, 0, then 5", { .tags = 4, .ad = 5, .vlan = { 0, 0, 0, 5 } }, FOUND },
		{ "5, then 6", { .tags = 2, .vlan = { 5, 6 } }, FOUND },
		{ "0, 5, then 6", { .v6 = true, .tags = 3, .vlan = { 0, 5, 6 } }, FOUND },
		{ "6, then 5", { .tags = 2, .vlan = { 6, 5 } }, OTHER },
		{ "0", { .tags = 1 }, OTHER },
		{ "none", { .tags = 0 }, OTHER },
		{ "five tags", { .tags = 5, .vlan = { 0, 0, 0, 0, 5 } }, TOO_MANY_TAGS },
	};

	CASES_RUN_EVERYWHERE(case_target(state),
			     "limits: [{name: five, match: {vlan: 5}, rate: 1M packets/s}]\n",
			     cases);
}

/* Not even an Ethernet header. The kernel's test run refuses these, and no driver hands them up. */
CASE_TEST(runts)
{
	struct target_verdict v;
	static struct frame f;
	u32 length;

	case_policy(t, RULES "on_parse_error: drop\n");
	for (length = 1; length < 14; length++) {
		case_frame(&(struct frame_spec){ PORT }, &f);
		f.length = length;
		if (!strcmp(target_name(t), "bpf"))
			assert_int_equal(target_run(t, 0, 0, &f, &v), -EINVAL);
		else
			assert_int_equal(case_check(t, "runt", 0, &f, SL_ACT_DROP, SL_R_TRUNCATED),
					 0);
	}
}

/* ------------------------------------------------------------------ IPv4 */

static const struct packet_case ipv4_cases[] = {
	{ "ihl 6", { PORT, .ihl = 6 }, FOUND },
	{ "ihl 7", { PORT, .ihl = 7 }, FOUND },
	{ "ihl 15", { PORT, .ihl = 15 }, FOUND },
	{ "ihl 15, TCP, four tags", { PORT, .ihl = 15, .proto = 6, .tags = 4 }, FOUND },
	{ "ihl 4", { PORT, .ihl = 4 }, MALFORMED },
	{ "ihl 1", { PORT, .ihl = 1 }, MALFORMED },
	{ "ihl 0", { PORT, .ihl = FRAME_ZERO }, MALFORMED },
	{ "ihl longer than the packet", { PORT, .ihl = 15, .total = 59 }, MALFORMED },
	{ "version 6 under 0x0800", { PORT, .version = 6 }, MALFORMED },
	{ "version 5", { PORT, .version = 5 }, MALFORMED },
	{ "version 0", { PORT, .version = FRAME_ZERO }, MALFORMED },
	{ "total length 0", { PORT, .total = FRAME_ZERO }, MALFORMED },
	{ "total length 19", { PORT, .total = 19 }, MALFORMED },
	{ "total length 20, UDP", { PORT, .total = 20 }, TRUNCATED },
	{ "total length ends in UDP", { PORT, .total = 27, .payload = 40 }, TRUNCATED },
	{ "total length ends behind UDP", { PORT, .total = 28, .payload = 40 }, FOUND },
	{ "one byte short of its length", { PORT, .total = 29 }, TRUNCATED },
	{ "far short of its length", { PORT, .total = 0xffff }, TRUNCATED },
	{ "1 byte of padding", { PORT, .pad = 1 }, FOUND },
	{ "18 bytes of padding", { PORT, .pad = 18 }, FOUND },
	{ "1500 bytes of padding", { PORT, .pad = 1500 }, FOUND },
	{ "a bad checksum is not ours to judge", { PORT, .bad_checksum = true }, FOUND },
	{ "don't fragment", { PORT, .frag_flags = 0x4000 }, FOUND },
	{ "the evil bit", { PORT, .frag_flags = 0x8000 }, FOUND },
	{ "TTL 0 is not ours to judge", { PORT, .hop_limit = 1 }, FOUND },
};

TEST(ipv4)
{
	CASES_RUN_EVERYWHERE(case_target(state), RULES, ipv4_cases);
}

/* ------------------------------------------------------------------ IPv6 */

#define V6 PORT, .v6 = true
#define EXT(...) V6, .ext = { __VA_ARGS__ }
#define TWICE(x) x, x
#define FOUR(x) TWICE(x), TWICE(x)
#define EIGHT(x) FOUR(x), FOUR(x)

static const struct packet_case ipv6_cases[] = {
	{ "no extension header", { V6 }, FOUND },
	{ "hop-by-hop", { EXT(EXT_HOPBYHOP) }, FOUND },
	{ "routing", { EXT(EXT_ROUTING) }, FOUND },
	{ "destination options", { EXT(EXT_DSTOPTS) }, FOUND },
	/* Protocols to Linux: it looks for no port in them. */
	{ "AH", { EXT(EXT_AH) }, OTHER },
	{ "AH whose length lies", { EXT(EXT_AH), .ext_units = { 255 }, .total = 20 }, OTHER },
	{ "mobility", { EXT(EXT_MOBILITY) }, OTHER },
	{ "HIP", { EXT(EXT_HIP) }, OTHER },
	{ "shim6", { EXT(EXT_SHIM6) }, OTHER },
	{ "shim6 behind options", { EXT(EXT_DSTOPTS, EXT_SHIM6) }, OTHER },
	{ "atomic fragment", { EXT(EXT_FRAGMENT) }, FOUND },
	{ "long ones", { EXT(EXT_HOPBYHOP, EXT_DSTOPTS), .ext_units = { 9, 30 } }, FOUND },
	{ "one of each, TCP",
	  { EXT(EXT_HOPBYHOP, EXT_FRAGMENT, EXT_DSTOPTS, EXT_ROUTING), .proto = 6 },
	  FOUND },
	{ "eight routing", { EXT(EIGHT(EXT_ROUTING)) }, FOUND },
	{ "eight mixed", { EXT(FOUR(EXT_DSTOPTS), FOUR(EXT_ROUTING)) }, FOUND },
	{ "nine routing", { EXT(EIGHT(EXT_ROUTING), EXT_ROUTING) }, TOO_DEEP },
	{ "seven and AH",
	  { EXT(FOUR(EXT_ROUTING), TWICE(EXT_ROUTING), EXT_ROUTING, EXT_AH) },
	  OTHER },
	{ "eight and AH", { EXT(EIGHT(EXT_ROUTING), EXT_AH) }, TOO_DEEP },
	{ "eight and a fragment", { EXT(EIGHT(EXT_DSTOPTS), EXT_FRAGMENT) }, TOO_DEEP },
	{ "eight and a hop-by-hop", { EXT(EIGHT(EXT_DSTOPTS), EXT_HOPBYHOP) }, TOO_DEEP },
	{ "ten", { EXT(EIGHT(EXT_DSTOPTS), TWICE(EXT_DSTOPTS)) }, TOO_DEEP },
	{ "3664 bytes of options, still read",
	  { EXT(EXT_DSTOPTS, EXT_DSTOPTS), .ext_units = { 255, 201 } },
	  FOUND },
	{ "4096 bytes of options",
	  { EXT(TWICE(EXT_DSTOPTS)), .ext_units = { 255, 255 } },
	  TOO_DEEP },
	/* A fragment header behind others: what it holds is read in two ways (bpf/parse.h). */
	{ "atomic behind hop-by-hop", { EXT(EXT_HOPBYHOP, EXT_FRAGMENT) }, FOUND },
	{ "atomic behind two of them", { EXT(TWICE(EXT_HOPBYHOP), EXT_FRAGMENT) }, HIDDEN },
	{ "atomic behind options", { EXT(EXT_DSTOPTS, EXT_FRAGMENT) }, HIDDEN },
	{ "atomic behind routing", { EXT(EXT_ROUTING, EXT_FRAGMENT) }, HIDDEN },
	{ "atomic behind both", { EXT(EXT_HOPBYHOP, EXT_ROUTING, EXT_FRAGMENT) }, HIDDEN },
	{ "two atomic ones", { EXT(TWICE(EXT_FRAGMENT)) }, HIDDEN },
	{ "atomic behind AH", { EXT(EXT_AH, EXT_FRAGMENT) }, HIDDEN },
	{ "atomic behind AH and more", { EXT(EXT_AH, EXT_DSTOPTS, EXT_FRAGMENT) }, HIDDEN },
	{ "first behind options", { EXT(EXT_DSTOPTS, EXT_FRAGMENT), FIRST }, HIDDEN },
	{ "last behind options", { EXT(EXT_DSTOPTS, EXT_FRAGMENT), LATER }, HIDDEN },
	{ "last behind AH", { EXT(EXT_AH, EXT_FRAGMENT), LATER }, HIDDEN },
	{ "AH behind atomic", { EXT(EXT_FRAGMENT, EXT_AH) }, OTHER },
	{ "options behind AH", { EXT(EXT_AH, EXT_DSTOPTS) }, OTHER },
	{ "the end in options behind AH",
	  { EXT(EXT_AH, EXT_DSTOPTS), .ext_units = { 1, 9 }, .total = 20 },
	  OTHER },
	{ "the end at a fragment header behind AH",
	  { EXT(EXT_AH, EXT_FRAGMENT), .total = 12 },
	  OTHER },
	{ "no next header", { V6, .proto = 59 }, OTHER },
	{ "no next header behind options", { EXT(EXT_DSTOPTS), .proto = 59 }, OTHER },
	{ "payload length 0", { V6, .total = FRAME_ZERO }, TRUNCATED },
	{ "payload length 0 and hop-by-hop: to the frame's end, of any length",
	  { EXT(EXT_HOPBYHOP), .total = FRAME_ZERO },
	  MALFORMED },
	{ "payload length ends in UDP", { V6, .total = 7 }, TRUNCATED },
	{ "payload length ends behind UDP", { V6, .total = 8, .payload = 30 }, FOUND },
	{ "payload length ends in options",
	  { EXT(EXT_DSTOPTS), .ext_units = { 4 }, .total = 39 },
	  TRUNCATED },
	{ "payload length ends at options",
	  { EXT(EXT_DSTOPTS), .ext_units = { 4 }, .total = 40 },
	  TRUNCATED },
	{ "options alone",
	  { EXT(EXT_DSTOPTS), .proto = 59, .ext_units = { 4 }, .total = 40 },
	  OTHER },
	{ "one byte short of its length", { V6, .total = 9 }, TRUNCATED },
	{ "far short of its length", { V6, .total = 0xffff }, TRUNCATED },
	{ "version 4 under 0x86dd", { V6, .version = 4 }, MALFORMED },
	{ "version 0", { V6, .version = FRAME_ZERO }, MALFORMED },
	{ "padding", { V6, .pad = 40 }, FOUND },
};

TEST(ipv6)
{
	CASES_RUN_EVERYWHERE(case_target(state), RULES, ipv6_cases);
}

/* ------------------------------------------------------------------ fragments */

#define V6FRAG .v6 = true, .ext = { EXT_FRAGMENT }

/* WITHIN for a later fragment: it could belong to a packet that the limit matches. */
static const struct packet_case fragment_cases[] = {
	{ "first", { PORT, FIRST }, FOUND },
	{ "first of another port", { .dport = 4243, FIRST }, OTHER },
	{ "first, cut in UDP", { PORT, FIRST, .total = 27 }, TRUNCATED },
	{ "middle", { LATER, .frag_more = true }, FOUND },
	{ "last", { LATER }, FOUND },
	{ "last, offset 1", { .frag_offset = 1, .payload = 1 }, FOUND },
	{ "last, highest offset", { .frag_offset = 0x1fff, .payload = 8 }, FOUND },
	{ "last, empty", { .frag_offset = 100 }, FOUND },
	{ "last of TCP", { .proto = 6, LATER }, FOUND },
	{ "last of SCTP", { .proto = 132, LATER }, FOUND },
	{ "last of UDP-Lite", { .proto = 136, LATER }, FOUND },
	{ "last of GRE: it has no ports", { .proto = 47, LATER }, OTHER },
	{ "last of ICMP: it has no ports", { .proto = 1, LATER }, OTHER },
	{ "IPv6, first", { PORT, V6FRAG, FIRST }, FOUND },
	{ "IPv6, first of another port", { .dport = 4243, V6FRAG, FIRST }, OTHER },
	{ "IPv6, middle", { V6FRAG, LATER, .frag_more = true }, FOUND },
	{ "IPv6, last", { V6FRAG, LATER }, FOUND },
	{ "IPv6, last, highest offset", { V6FRAG, .frag_offset = 0x1fff, .payload = 8 }, FOUND },
	{ "IPv6, last of TCP", { .proto = 6, V6FRAG, LATER }, FOUND },
	{ "IPv6, last of GRE, it says: only the first counts",
	  { .proto = 47, V6FRAG, LATER },
	  FOUND },
	{ "IPv6, last of ICMPv6, it says", { .proto = 58, V6FRAG, LATER }, FOUND },
	{ "IPv6, last of who knows: options come first", { .proto = 60, V6FRAG, LATER }, FOUND },
	{ "IPv6, last of who knows: AH comes first", { .proto = 51, V6FRAG, LATER }, FOUND },
	{ "IPv6, last behind hop-by-hop options",
	  { .v6 = true, .ext = { EXT_HOPBYHOP, EXT_FRAGMENT }, LATER },
	  FOUND },
	{ "IPv6, reserved bits are no offset", { PORT, V6FRAG, .frag_flags = 6 }, FOUND },
	{ "IPv6, atomic, another port", { .dport = 4243, V6FRAG }, OTHER },
	{ "IPv6, first, header cut", { PORT, V6FRAG, FIRST, .total = 7 }, TRUNCATED },
};

TEST(fragments)
{
	CASES_RUN_EVERYWHERE(case_target(state), RULES, fragment_cases);
}

#define FRAGMENT(action) action, SL_R_FRAGMENT

TEST(fragments_passed)
{
	static const struct packet_case cases[] = {
		{ "first", { PORT, FIRST }, FRAGMENT(SL_ACT_PASS) },
		{ "last", { LATER }, FRAGMENT(SL_ACT_PASS) },
		{ "IPv6, first", { PORT, V6FRAG, FIRST }, FRAGMENT(SL_ACT_PASS) },
		{ "IPv6, last", { V6FRAG, LATER }, FRAGMENT(SL_ACT_PASS) },
		{ "IPv6, last of who knows",
		  { .proto = 60, V6FRAG, LATER },
		  FRAGMENT(SL_ACT_PASS) },
		{ "IPv6, atomic: none", { PORT, V6FRAG }, FOUND },
		{ "none", { PORT }, FOUND },
		{ "don't fragment: none", { PORT, .frag_flags = 0x4000 }, FOUND },
	};

	CASES_RUN_EVERYWHERE(case_target(state), RULES "fragments: pass\n", cases);
}

TEST(fragments_dropped)
{
	static const struct packet_case cases[] = {
		{ "first", { PORT, FIRST }, FRAGMENT(SL_ACT_DROP) },
		{ "last", { LATER }, FRAGMENT(SL_ACT_DROP) },
		{ "IPv6, first", { PORT, V6FRAG, FIRST }, FRAGMENT(SL_ACT_DROP) },
		{ "IPv6, last", { V6FRAG, LATER }, FRAGMENT(SL_ACT_DROP) },
		{ "IPv6, last of GRE", { .proto = 47, V6FRAG, LATER }, FRAGMENT(SL_ACT_DROP) },
		{ "IPv6, atomic: none", { PORT, V6FRAG }, FOUND },
		{ "none", { PORT }, FOUND },
	};

	CASES_RUN_EVERYWHERE(case_target(state), RULES "fragments: drop\n", cases);
}

/* Those that are not read on are fragments, too. */
CASE_TEST(hidden_fragments)
{
#define BEHIND(...) .v6 = true, .ext = { __VA_ARGS__, EXT_FRAGMENT }
	static const struct packet_case passed[] = {
		{ "first", { BEHIND(EXT_ROUTING), FIRST }, FRAGMENT(SL_ACT_PASS) },
		{ "last", { BEHIND(EXT_AH), LATER }, FRAGMENT(SL_ACT_PASS) },
		{ "atomic: none", { BEHIND(EXT_DSTOPTS) }, HIDDEN },
	}, dropped[] = {
		{ "first", { BEHIND(EXT_ROUTING), FIRST }, FRAGMENT(SL_ACT_DROP) },
		{ "last", { BEHIND(EXT_AH), LATER }, FRAGMENT(SL_ACT_DROP) },
		{ "atomic: none", { BEHIND(EXT_DSTOPTS) }, HIDDEN },
	};

	case_policy(t, RULES "fragments: pass\n");
	CASES_RUN(t, passed);
	case_policy(t, RULES "fragments: drop\n");
	CASES_RUN(t, dropped);
}

/* ------------------------------------------------------------------ what IP carries */

static const struct packet_case transport_cases[] = {
	{ "TCP", { PORT, .proto = 6 }, FOUND },
	{ "TCP with 40 bytes of options", { PORT, .proto = 6, .doff = 15 }, FOUND },
	{ "TCP, doff 4", { PORT, .proto = 6, .doff = 4 }, MALFORMED },
	{ "TCP, doff 0", { PORT, .proto = 6, .doff = FRAME_ZERO }, MALFORMED },
	{ "TCP, doff 4, IPv6", { V6, .proto = 6, .doff = 4 }, MALFORMED },
	{ "TCP, another port", { .dport = 4243, .proto = 6 }, OTHER },
	{ "TCP from that port", { .sport = 4242, .proto = 6 }, OTHER },
	{ "UDP", { PORT }, FOUND },
	{ "UDP, another port", { .dport = 4241 }, OTHER },
	{ "UDP from that port", { .sport = 4242 }, OTHER },
	{ "UDP, length 7", { PORT, .udp_length = 7 }, MALFORMED },
	{ "UDP, length 1", { PORT, .udp_length = 1 }, MALFORMED },
	{ "UDP, length 8", { PORT, .udp_length = 8 }, FOUND },
	{ "UDP, length 0 as in a jumbogram", { PORT, .udp_length = FRAME_ZERO }, FOUND },
	{ "UDP, length 7, IPv6", { V6, .udp_length = 7 }, MALFORMED },
	{ "UDP-Lite", { PORT, .proto = 136 }, FOUND },
	{ "UDP-Lite, coverage 0", { PORT, .proto = 136, .udp_length = FRAME_ZERO }, FOUND },
	{ "SCTP", { PORT, .proto = 132 }, FOUND },
	{ "SCTP, another port", { .dport = 1, .proto = 132 }, OTHER },
	{ "ICMP", { .proto = 1, .icmp_type = 8 }, OTHER },
	{ "ICMP of 4 bytes", { .proto = 1, .icmp_type = 8, .total = 24 }, OTHER },
	{ "ICMP of 3 bytes", { .proto = 1, .icmp_type = 8, .total = 23 }, TRUNCATED },
	{ "ICMPv6", { .v6 = true, .proto = 58, .icmp_type = 128 }, OTHER },
	{ "ICMPv6 of 3 bytes", { .v6 = true, .proto = 58, .total = 3 }, TRUNCATED },
	{ "ICMP in IPv6", { .v6 = true, .proto = 1, .total = 3 }, OTHER },
	{ "ICMPv6 in IPv4", { .proto = 58, .total = 23 }, OTHER },
	{ "GRE", { .proto = 47, .payload = 24 }, OTHER },
	{ "ESP", { .proto = 50, .payload = 24 }, OTHER },
	{ "AH in IPv4", { .proto = 51, .payload = 24 }, OTHER },
	{ "IPv4 in IPv4", { .proto = 4, .payload = 40 }, OTHER },
	{ "IPv6 in IPv4", { .proto = 41, .payload = 40 }, OTHER },
	{ "hop-by-hop's number in IPv4", { .proto_zero = true, .payload = 8 }, OTHER },
	{ "protocol 253", { .proto = 253 }, OTHER },
	{ "protocol 255, IPv6", { .v6 = true, .proto = 255 }, OTHER },
	{ "ESP in IPv6", { .v6 = true, .proto = 50, .payload = 24 }, OTHER },
};

TEST(transports)
{
	CASES_RUN_EVERYWHERE(case_target(state), RULES, transport_cases);
}

/* Bytes of a jumbo frame beyond a page are in fragments however it is split. */
TEST(jumbo_frames)
{
	static const struct packet_case cases[] = {
		{ "9000 bytes", { PORT, .payload = 8958 }, FOUND },
		{ "9000 bytes of TCP, QinQ",
		  { PORT, .proto = 6, .tags = 2, .payload = 8938 },
		  FOUND },
		{ "9000 bytes, IPv6", { V6, .payload = 8938 }, FOUND },
		{ "9000 bytes, another port", { .dport = 4243, .payload = 8958 }, OTHER },
		{ "ports 3700 bytes in",
		  { EXT(TWICE(EXT_DSTOPTS)), .ext_units = { 255, 200 }, .payload = 5000 },
		  FOUND },
		{ "9000 bytes, one short", { PORT, .payload = 8958, .total = 8987 }, TRUNCATED },
	};

	CASES_RUN_EVERYWHERE(case_target(state), RULES, cases);
}

/* Limits match the length that IP states; bytes are the whole frame's. */
CASE_TEST(jumbo_length)
{
	struct sl_limit_stats stats;
	static const struct packet_case cases[] = {
		{ "9000", { .payload = 8972 }, FOUND },
		{ "8999", { .payload = 8971 }, OTHER },
		{ "9000, IPv6 and tags", { .v6 = true, .tags = 2, .payload = 8952 }, FOUND },
	};

	case_policy(t, "limits: [{name: big, match: {length: 9000}, rate: 1M packets/s}]\n");
	CASES_RUN(t, cases);
	assert_int_equal(target_limit_stats(t, "big", &stats), 0);
	assert_int_equal(stats.bytes[SL_LV_PASS], 9014 + 9022);
}

/* ------------------------------------------------------------------ without an Ethernet header */

/* clang-format off */
#define TUN .iface = TARGET_TUN
/* clang-format on */

/* Which protocol it is, the first four bits say; bytes are the packet's. */
CASE_TEST(no_ethernet_header)
{
	struct sl_limit_stats stats;
	static const struct packet_case cases[] = {
		{ "IPv4", { TUN, .payload = 72 }, FOUND },
		{ "IPv6", { TUN, .v6 = true, .payload = 52 }, FOUND },
		{ "version 0", { TUN, .version = FRAME_ZERO }, NOT_IP },
		{ "version 5", { TUN, .version = 5 }, NOT_IP },
		{ "version 15", { TUN, .v6 = true, .version = 15 }, NOT_IP },
		{ "IPv4 that says 6", { TUN, .version = 6 }, TRUNCATED },
		{ "IPv6 that says 4", { TUN, .v6 = true, .version = 4 }, MALFORMED },
		{ "ARP", { TUN, .ethertype = 0x0806 }, NOT_IP },
		{ "a blocked source", { TUN, .src = "192.0.2.9" }, BLOCK },
		/* Read at the offset of an Ethernet header, these would be that source and its
		 * limit. */
		{ "its bytes in the payload's place",
		  { TUN, .src = "8.0.0.1", .dst = "192.0.2.9" },
		  FOUND },
	};

	case_policy(t, "limits: [{name: all, rate: 1M packets/s}]\nblock: [192.0.2.9]\n");
	CASES_RUN(t, cases);
	assert_int_equal(target_limit_stats(t, "all", &stats), 0);
	assert_int_equal(stats.bytes[SL_LV_PASS], 100 + 100 + 48 + 28);
}

/* A fragment shares the fate of its first where both come in by the same interface. */
CASE_TEST(fragments_without_ethernet_header)
{
	static const struct packet_case cases[] = {
		{ "first, another port", { TUN, .dport = 4243, FIRST }, OTHER },
		{ "its last", { TUN, .frag_offset = 9, .payload = 64 }, OTHER },
		{ "last on another interface",
		  { .iface = 1, .frag_offset = 9, .payload = 64 },
		  FOUND },
		{ "IPv6, first, another port", { TUN, .dport = 4243, V6FRAG, FIRST }, OTHER },
		{ "IPv6, its last", { TUN, V6FRAG, .frag_offset = 9, .payload = 64 }, OTHER },
	};

	case_policy(t, RULES);
	CASES_RUN(t, cases);
}

/*
 * The kernel takes the first 14 bytes for an Ethernet header, and looks whether the program changed
 * the bit of group addresses in the first of them: no tag may.
 */
CASE_TEST(tags_without_ethernet_header)
{
	static const struct {
		const char *dscp;
		bool v6, tagged;
	} cases[] = {
		{ "cs1", false, true }, { "ef", false, true }, { "cs1", true, true },
		{ "af11", true, true }, { "ef", true, false }, { "af12", true, false },
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		const struct frame_spec spec = { TUN, .v6 = cases[i].v6, .tos = 1 };
		struct target_verdict v;
		static struct frame f, sent;

		target_reset(t);
		case_policy(t,
			    "limits: [{name: all, rate: 1 packets/h, burst: 1, action: tag, "
			    "tag: {dscp: %s, mark: 7}}]\n",
			    cases[i].dscp);
		case_frame(&spec, &sent);
		for (u32 n = 0; n < 2; n++) {
			f = sent;
			assert_int_equal(target_run(t, 0, TARGET_TUN, &f, &v), 0);
		}
		assert_int_equal(v.action, SL_ACT_TAG);
		assert_false(v.drop);
		assert_true(v.marked);
		assert_int_equal(memcmp(f.data, sent.data, f.length) != 0, cases[i].tagged);
		assert_int_equal((f.data[14] ^ sent.data[14]) & 1, 0);
		assert_int_equal(target_errors(t), !cases[i].tagged);
	}
}

int main(void)
{
	return case_main("packets");
}
