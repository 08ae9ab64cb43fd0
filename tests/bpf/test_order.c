// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * test_order.c - the order of the steps stated in docs/packet-walk.md, each adjacent pair:
 * a packet that both would decide about is decided by the first.
 */
#include <stdio.h>

#include "lib/case.h"

#define SECOND SL_NS_PER_SEC

#define PASS_ND SL_ACT_PASS, SL_R_ND
#define PASS_ARP SL_ACT_PASS, SL_R_ARP
#define PATH_MTU SL_ACT_PASS, SL_R_PATH_MTU

/* clang-format off */
#define BLOCKED6 .src = "2001:db8:bad::7", .dst = TARGET_LOCAL_V6
#define BLOCKED4 .src = "198.51.100.7"
#define FROM(s, t) .src = s, .proto = 58, .icmp_type = t, .hop_limit = 255
/* clang-format on */
#define ND(t) BLOCKED6, .proto = 58, .icmp_type = t, .hop_limit = 255
/* clang-format off */
#define SSH .proto = 6, .dport = 22, .tcp_flags = FRAME_SYN
/* clang-format on */

/* ------------------------------------------------------------------ 1: ARP and ND */

/*
 * Step 1 before 5: all of these come from a blocked source. Of routers' messages, which change this
 * host's routes, only within a wide block.
 */
CASE_TEST(neighbour_discovery)
{
	static const struct packet_case cases[] = {
		{ "router solicitation", { ND(133) }, BLOCK },
		{ "router advertisement", { ND(134) }, BLOCK },
		{ "neighbour solicitation", { ND(135) }, PASS_ND },
		{ "neighbour advertisement", { ND(136) }, PASS_ND },
		{ "redirect", { ND(137) }, BLOCK },
		{ "router advertisement, wide block", { FROM("fe80::1", 134) }, PASS_ND },
		{ "redirect, wide block", { FROM("fe80::1", 137) }, PASS_ND },
		{ "behind a tag", { ND(135), .tags = 1 }, PASS_ND },
		{ "behind options", { ND(135), .ext = { EXT_HOPBYHOP } }, PASS_ND },
		{ "hop limit 64",
		  { BLOCKED6, .proto = 58, .icmp_type = 135, .hop_limit = 64 },
		  BLOCK },
		{ "hop limit 254",
		  { BLOCKED6, .proto = 58, .icmp_type = 135, .hop_limit = 254 },
		  BLOCK },
		{ "code 1", { ND(135), .icmp_code = 1 }, BLOCK },
		{ "first fragment",
		  { ND(135), .ext = { EXT_FRAGMENT }, .frag_more = true },
		  BLOCK },
		{ "later fragment", { ND(135), .ext = { EXT_FRAGMENT }, .frag_offset = 1 }, BLOCK },
		{ "fragment header without fragments",
		  { ND(135), .ext = { EXT_FRAGMENT } },
		  BLOCK },
		{ "the type below", { ND(132) }, BLOCK },
		{ "the type above", { ND(138) }, BLOCK },
		{ "cut before the checksum", { ND(135), .total = 3 }, BLOCK },
		{ "that number in UDP", { BLOCKED6, .hop_limit = 255, .sport = 135 << 8 }, BLOCK },
		{ "that number in ICMP",
		  { BLOCKED4, .proto = 1, .icmp_type = 135, .hop_limit = 255 },
		  BLOCK },
		{ "ICMPv6 in IPv4",
		  { BLOCKED4, .proto = 58, .icmp_type = 135, .hop_limit = 255 },
		  BLOCK },
		{ "ARP", { BLOCKED4, .ethertype = 0x0806 }, PASS_ARP },
	};

	case_policy(t, "block: [198.51.100.0/24, '2001:db8:bad::/48', 'fe80::/10']\n");
	CASES_RUN(t, cases);
}

/* A limit that names the type judges it, and no other; an exempt source has `essential` alone. */
CASE_TEST(neighbour_discovery_by_type)
{
	static const struct packet_case cases[] = {
		{ "advertisement of a router", { FROM("fe80::1", 134) }, SL_ACT_DROP, SL_R_MATCH },
		{ "of an exempt one", { FROM("fe80::e", 134) }, PASS_ND },
		{ "solicitation, within", { FROM("fe80::1", 135) }, WITHIN },
		{ "solicitation, over", { FROM("fe80::1", 135) }, OVER },
		{ "of a blocked source, within", { FROM("2001:db8:bad::1", 135) }, WITHIN },
		{ "over", { FROM("2001:db8:bad::1", 135) }, OVER },
		{ "of an exempt source", { FROM("fe80::e", 135) }, PASS_ND },
		{ "and again", { FROM("fe80::e", 135) }, PASS_ND },
		{ "advertisement: not named", { FROM("fe80::1", 136) }, PASS_ND },
		{ "redirect: named for another source", { FROM("fe80::1", 137) }, PASS_ND },
		{ "redirect of that one", { FROM("fe80::bad", 137) }, SL_ACT_DROP, SL_R_MATCH },
		{ "forged: a packet like any other",
		  { .src = "fe80::1", .proto = 58, .icmp_type = 136 },
		  WITHIN },
	};

	case_policy(t, "exempt: ['fe80::e']\nblock: ['2001:db8:bad::/48']\nlimits:\n"
		       "- {name: no-ra, match: {icmp_type: nd-router-advert}, action: drop}\n"
		       "- {name: few, match: {icmp_type: nd-neighbor-solicit}, rate: 1 packets/h}\n"
		       "- {name: bad, match: {src: 'fe80::bad', icmp_type: 137}, action: drop}\n"
		       "- {name: all, per: [], rate: 1 packets/h}\n");
	CASES_RUN(t, cases);
	assert_int_equal(case_counted(t, "all", SL_LV_PASS), 1);
}

/* Step 1 before 7: limits on everything do not see them. */
CASE_TEST(essential_is_outside_limits)
{
	static const struct packet_case cases[] = {
		{ "uses the limit up", { BLOCKED6 }, WITHIN },
		{ "over it", { BLOCKED6 }, OVER },
		{ "ND", { ND(135) }, PASS_ND },
		{ "forged ND", { BLOCKED6, .proto = 58, .icmp_type = 135 }, OVER },
		{ "ARP", { BLOCKED4, .ethertype = 0x0806 }, PASS_ARP },
	};

	case_policy(t, "limits: [{name: all, rate: 1 packets/h}]\n");
	CASES_RUN(t, cases);
	assert_int_equal(case_counted(t, "all", SL_LV_PASS), 1);
	assert_int_equal(case_counted(t, "all", SL_LV_DROP), 2);
}

/* Its own limit holds, for each source by itself; exempting a source does not lift it. */
CASE_TEST(essential_rate_holds)
{
	const struct frame_spec nd = { ND(135) };
	const struct frame_spec neighbour = {
		.src = "2001:db8:0:1::1", .proto = 58, .icmp_type = 135, .hop_limit = 255
	};
	const struct frame_spec arp = { .src = "192.0.2.1", .ethertype = 0x0806 };
	const struct frame_spec other_arp = { .src = "192.0.2.2", .ethertype = 0x0806 };

	case_policy(t, "essential: {rate: 10 packets/s}\nexempt: ['2001:db8:bad::/48']\n");
	assert_int_equal(case_send(t, &nd, 50), 10);
	assert_int_equal(case_send(t, &neighbour, 9), 9);
	assert_int_equal(case_send(t, &arp, 50), 10);
	assert_int_equal(case_send(t, &other_arp, 9), 9);
	assert_int_equal(target_count(t, 0, SL_R_ESSENTIAL_OVER, SL_ACT_DROP), 80);
	target_set_time(t, SECOND / 2);
	assert_int_equal(case_send(t, &nd, 50), 5);
	assert_int_equal(case_send(t, &arp, 50), 5);
}

/* Neighbors of one /64 have buckets of their own, all of them ten together, a gateway one apart. */
CASE_TEST(essential_by_address)
{
	const struct frame_spec bad = { FROM("fe80::bad", 135) }, good = { FROM("fe80::2", 135) };
	const struct frame_spec gateway = { FROM("fe80::1", 135) };
	const struct frame_spec router4 = { .src = "192.0.2.1", .ethertype = 0x0806 };
	struct sl_prefix gateways[2];
	const char *reason;
	u32 i, passed = 0;

	assert_int_equal(sl_prefix_parse("192.0.2.1", &gateways[0], &reason), 0);
	assert_int_equal(sl_prefix_parse("fe80::1", &gateways[1], &reason), 0);
	target_gateways(t, gateways, 2);
	case_policy(t, "essential: {rate: 10 packets/s}\n");
	assert_int_equal(case_send(t, &bad, 500), 10);
	assert_int_equal(case_send(t, &good, 20), 10);
	for (i = 0; i < 300; i++) {
		char text[32];
		const struct frame_spec forged = { FROM(text, 136) };

		snprintf(text, sizeof(text), "fe80::f:%x", i + 1);
		passed += case_send(t, &forged, 1);
	}
	assert_int_equal(passed, 80);
	assert_int_equal(case_send(t, &gateway, 50), 10);
	assert_int_equal(case_send(t, &router4, 50), 10);
	assert_int_equal(target_count(t, 0, SL_R_ESSENTIAL_OVER, SL_ACT_DROP), 490 + 10 + 220 + 80);
}

/* ------------------------------------------------------------------ 3, 4, 5: the lists */

CASE_TEST(exempt_before_block_and_limits)
{
	static const struct packet_case cases[] = {
		{ "uses the limit up", { .src = "192.0.2.9" }, WITHIN },
		{ "over it", { .src = "192.0.2.9" }, OVER },
		{ "exempt, inside a block", { BLOCKED4 }, EXEMPT },
		{ "exempt, again", { BLOCKED4 }, EXEMPT },
		{ "its neighbour in the block", { .src = "198.51.100.8" }, BLOCK },
		{ "exempt, outside", { .src = "10.1.2.3" }, EXEMPT },
		{ "an exempt block inside an exempt one", { .src = "10.9.9.9" }, EXEMPT },
		{ "exempt, later fragment", { BLOCKED4, .frag_offset = 3, .payload = 8 }, EXEMPT },
		{ "exempt, malformed", { BLOCKED4, .udp_length = 3 }, EXEMPT },
		{ "exempt, truncated", { BLOCKED4, .total = 22 }, EXEMPT },
		{ "exempt, IPv6", { BLOCKED6 }, EXEMPT },
		{ "its neighbour, IPv6", { .src = "2001:db8:bad::8" }, BLOCK },
		{ "the address as destination",
		  { .src = "198.51.100.8", .dst = "198.51.100.7" },
		  BLOCK },
	};

	case_policy(t, "exempt: [198.51.100.7, 10.0.0.0/8, '2001:db8:bad::7']\n"
		       "block: [198.51.100.0/24, 10.9.0.0/16, '2001:db8:bad::/48']\n"
		       "on_parse_error: drop\nfragments: drop\n"
		       "limits: [{name: all, per: [], rate: 1 packets/h}]\n");
	CASES_RUN(t, cases);
}

#define FAILSAFE_RULES                                                                             \
	"failsafe: [22/tcp, 53/udp]\n"                                                             \
	"block: [198.51.100.0/24, 96.0.0.0/7, 12.0.0.0/8, '2001:db8:bad::/48', '2400::/15']\n"     \
	"on_parse_error: drop\n"                                                                   \
	"limits: [{name: all, per: [], rate: 1 packets/h}]\n"

/* Step 4 before 5 and 7, and where it does not apply. */
CASE_TEST(failsafe_ports)
{
	static const struct packet_case cases[] = {
		{ "uses the limit up", { .dport = 80 }, WITHIN },
		{ "over it", { .dport = 80 }, OVER },
		{ "ssh escapes the limit", { SSH }, FAILSAFE },
		{ "and so does what follows", { .proto = 6, .dport = 22 }, FAILSAFE },
		{ "dns too", { .dport = 53 }, FAILSAFE },
		{ "tcp 53 is not listed", { .proto = 6, .dport = 53 }, OVER },
		{ "udp 22 is not listed", { .dport = 22 }, OVER },
		{ "sctp 22 is not listed", { .proto = 132, .dport = 22 }, OVER },
		{ "port 23", { .proto = 6, .dport = 23 }, OVER },
		{ "from port 22", { .proto = 6, .sport = 22 }, OVER },
		{ "port 22 of another host", { SSH, .dst = "203.0.113.11" }, OVER },
		{ "a fragment that may be ssh", { .proto = 6, .frag_offset = 5 }, OVER },
		{ "wide block /7", { SSH, .src = "97.1.2.3" }, FAILSAFE },
		{ "wide block, another port", { .src = "97.1.2.3", .dport = 80 }, BLOCK },
		{ "wide block, another host",
		  { SSH, .src = "97.1.2.3", .dst = "203.0.113.9" },
		  BLOCK },
		{ "narrow block /8", { SSH, .src = "12.1.2.3" }, BLOCK },
		{ "narrow block /24", { SSH, BLOCKED4 }, BLOCK },
		{ "narrow block, udp", { .dport = 53, BLOCKED4 }, BLOCK },
		{ "IPv6", { SSH, .v6 = true }, FAILSAFE },
		{ "IPv6, wide block /15",
		  { SSH, .src = "2401::1", .dst = TARGET_LOCAL_V6 },
		  FAILSAFE },
		{ "IPv6, wide block, other host",
		  { SSH, .src = "2401::1", .dst = "2001:db8::9" },
		  BLOCK },
		{ "IPv6, narrow block", { SSH, BLOCKED6 }, BLOCK },
		{ "ssh, doff 0", { SSH, .doff = FRAME_ZERO }, SL_ACT_DROP, SL_R_MALFORMED },
	};

	case_policy(t, FAILSAFE_RULES);
	CASES_RUN(t, cases);
}

/* A wide block around a narrow one, and the other way round: the narrow one counts. */
CASE_TEST(failsafe_in_nested_blocks)
{
	static const struct packet_case cases[] = {
		{ "in both", { SSH, .src = "97.1.2.3" }, BLOCK },
		{ "in the wide one", { SSH, .src = "97.2.2.3" }, FAILSAFE },
		{ "in neither", { SSH, .src = "99.2.2.3" }, FAILSAFE },
		{ "in the widest, IPv6", { SSH, .v6 = true }, FAILSAFE },
		{ "in the widest, IPv6, another port", { .v6 = true, .dport = 80 }, BLOCK },
	};

	case_policy(t, "failsafe: [22/tcp]\nblock: [96.0.0.0/7, 97.1.0.0/16, '::/0']\n");
	CASES_RUN(t, cases);
}

/* Step 3 before 4: an exempt source does not use failsafe_rate up, nor is it limited by it. */
CASE_TEST(exempt_before_failsafe)
{
	const struct frame_spec ssh = { SSH, .src = "10.0.0.1" };

	case_policy(t,
		    "failsafe: [22/tcp]\nfailsafe_rate: 3 connections/s\nexempt: [10.0.0.0/8]\n");
	assert_int_equal(case_send(t, &ssh, 10), 10);
	assert_int_equal(target_count(t, 0, SL_R_EXEMPT, SL_ACT_PASS), 10);
	assert_int_equal(target_count(t, 0, SL_R_FAILSAFE, SL_ACT_PASS), 0);
}

/* failsafe_rate counts what opens a connection, per source; a blocked one stays blocked. */
CASE_TEST(failsafe_rate_holds)
{
	const struct frame_spec syn = { SSH }, ack = { .proto = 6, .dport = 22 };
	const struct frame_spec other = { SSH, .src = "192.0.2.2" };
	const struct frame_spec dns = { .src = "192.0.2.3", .dport = 53 };
	const struct frame_spec wide = { SSH, .src = "97.1.2.3" };

	case_policy(t, FAILSAFE_RULES "failsafe_rate: 3 connections/s\n");
	assert_int_equal(case_send(t, &syn, 10), 3);
	assert_int_equal(case_send(t, &ack, 20), 20);
	assert_int_equal(case_send(t, &other, 3), 3);
	assert_int_equal(case_send(t, &dns, 10), 3);
	assert_int_equal(case_send(t, &wide, 10), 3);
	assert_int_equal(target_count(t, 0, SL_R_FAILSAFE_OVER, SL_ACT_DROP), 7 + 7 + 7);
	target_set_time(t, SECOND / 3 + 1000);
	assert_int_equal(case_send(t, &syn, 10), 1);
	/* None of it was charged to the limit. */
	assert_int_equal(case_counted(t, "all", SL_LV_PASS), 0);
}

/* Step 5 before 7: a blocked packet is not charged. */
CASE_TEST(block_before_limits)
{
	static const struct packet_case cases[] = {
		{ "blocked", { BLOCKED4 }, BLOCK },
		{ "blocked fragment", { BLOCKED4, .frag_offset = 3, .payload = 3 }, BLOCK },
		{ "blocked, malformed", { BLOCKED4, .udp_length = 3 }, BLOCK },
		{ "another", { .src = "192.0.2.9" }, WITHIN },
		{ "another", { .src = "192.0.2.9" }, OVER },
	};

	case_policy(t, "block: [198.51.100.0/24]\nlimits: [{name: all, per: [], "
		       "rate: 1 packets/h}]\n");
	CASES_RUN(t, cases);
	assert_int_equal(case_counted(t, "all", SL_LV_DROP), 1);
}

static void add_entry(struct target *t, enum list_kind kind, const char *prefix, u64 until)
{
	struct list_entry entry = { .until_utc_ns = until ? target_utc(t, until) : 0,
				    .pos.line = 1 };
	const char *reason;
	struct sl_err err;

	assert_int_equal(sl_prefix_parse(prefix, &entry.prefix, &reason), 0);
	assert_int_equal(policy_list_add(target_policy_of(t), kind, &entry, &err), 0);
}

/* The data path ends them: the rule set does not change meanwhile. */
CASE_TEST(deadlines)
{
	const struct frame_spec in_long = { .src = "198.51.100.7" };
	const struct frame_spec in_both = { .src = "198.51.100.77" };
	const struct frame_spec exempt = { .src = "198.51.100.99" };
	const struct frame_spec six = { BLOCKED6 };

	case_policy(t, "limits: []\n");
	add_entry(t, LIST_BLOCK, "198.51.100.0/24", 10 * SECOND);
	add_entry(t, LIST_BLOCK, "198.51.100.64/26", 5 * SECOND);
	add_entry(t, LIST_BLOCK, "2001:db8:bad::/48", 7 * SECOND);
	add_entry(t, LIST_EXEMPT, "198.51.100.99", 3 * SECOND);
	case_apply(t);
	assert_true(case_meets(t, 0, &in_long, BLOCK));
	assert_true(case_meets(t, 0, &exempt, EXEMPT));
	assert_true(case_meets(t, 3 * SECOND - 1, &exempt, EXEMPT));
	assert_true(case_meets(t, 3 * SECOND, &exempt, BLOCK));
	/* The narrower one's end leaves it in the wider one. */
	assert_true(case_meets(t, 5 * SECOND + 1, &in_both, BLOCK));
	assert_true(case_meets(t, 7 * SECOND - 1, &six, BLOCK));
	assert_true(case_meets(t, 7 * SECOND, &six, OTHER));
	assert_true(case_meets(t, 10 * SECOND - 1, &in_both, BLOCK));
	assert_true(case_meets(t, 10 * SECOND - 1, &in_long, BLOCK));
	assert_true(case_meets(t, 10 * SECOND, &in_long, OTHER));
	assert_true(case_meets(t, 10 * SECOND, &in_both, OTHER));
	assert_true(case_meets(t, 10 * SECOND, &exempt, OTHER));
}

/* A block for good inside one that ends, and a narrower one that outlasts a wider one. */
CASE_TEST(deadlines_nested)
{
	const struct frame_spec good = { .src = "198.51.100.7" };
	const struct frame_spec longer = { .src = "198.51.100.200" };

	case_policy(t, "block: [198.51.100.0/28]\n");
	add_entry(t, LIST_BLOCK, "198.51.0.0/16", 2 * SECOND);
	add_entry(t, LIST_BLOCK, "198.51.100.128/25", 4 * SECOND);
	case_apply(t);
	assert_true(case_meets(t, SECOND, &good, BLOCK));
	assert_true(case_meets(t, 3 * SECOND, &longer, BLOCK));
	assert_true(case_meets(t, 4 * SECOND, &longer, OTHER));
	assert_true(case_meets(t, 86400 * SECOND, &good, BLOCK));
}

/* ------------------------------------------------------------------ 7: path MTU discovery */

/* clang-format off */
#define FRAG_NEEDED .proto = 1, .icmp_type = 3, .icmp_code = 4
/* clang-format on */
#define TOO_BIG .v6 = true, .proto = 58, .icmp_type = 2

CASE_TEST(path_mtu_is_outside_limits)
{
	static const struct packet_case cases[] = {
		{ "uses the limit up", { 0 }, WITHIN },
		{ "over it", { 0 }, OVER },
		{ "frag-needed", { FRAG_NEEDED }, PATH_MTU },
		{ "packet-too-big", { TOO_BIG }, PATH_MTU },
		{ "frag-needed of 576 bytes", { FRAG_NEEDED, .payload = 576 - 28 }, PATH_MTU },
		{ "one byte more", { FRAG_NEEDED, .payload = 576 - 27 }, OVER },
		{ "in the frame alone", { FRAG_NEEDED, .payload = 576 - 28, .pad = 1 }, OVER },
		{ "packet-too-big of 1280 bytes", { TOO_BIG, .payload = 1280 - 48 }, PATH_MTU },
		{ "one byte more", { TOO_BIG, .payload = 1280 - 47 }, OVER },
		{ "first fragment", { FRAG_NEEDED, .frag_more = true, .frag_id = 7 }, OVER },
		{ "later fragment", { FRAG_NEEDED, .frag_offset = 5, .frag_id = 7 }, OVER },
		{ "host unreachable", { .proto = 1, .icmp_type = 3, .icmp_code = 1 }, OVER },
		{ "time exceeded, code 4", { .proto = 1, .icmp_type = 11, .icmp_code = 4 }, OVER },
		{ "ICMPv6 type 3, code 4",
		  { .v6 = true, .proto = 58, .icmp_type = 3, .icmp_code = 4 },
		  OVER },
		{ "ICMP type 2", { .proto = 1, .icmp_type = 2 }, OVER },
		{ "blocked", { BLOCKED4, FRAG_NEEDED }, BLOCK },
	};

	case_policy(t, "block: [198.51.100.0/24]\n"
		       "limits: [{name: all, per: [], rate: 1 packets/h}]\n");
	CASES_RUN(t, cases);
}

CASE_TEST(path_mtu_in_a_limit_that_names_it)
{
	static const struct packet_case cases[] = {
		{ "named", { FRAG_NEEDED }, WITHIN },
		{ "named, over", { FRAG_NEEDED }, OVER },
		{ "packet-too-big is not named", { TOO_BIG }, PATH_MTU },
		{ "the limit on all was not charged", { 0 }, WITHIN },
		{ "and is one of its own", { 0 }, OVER },
	};

	case_policy(t, "limits:\n- {name: all, per: [], rate: 1 packets/h}\n"
		       "- {name: unreachable, match: {icmp_type: destination-unreachable,"
		       " proto: icmp}, per: [], rate: 1 packets/h}\n");
	CASES_RUN(t, cases);
	assert_int_equal(case_counted(t, "unreachable", SL_LV_DROP), 1);
	assert_int_equal(case_counted(t, "all", SL_LV_DROP), 1);
}

/* Without a limit they are within `essential` in sum, whatever sources they name. */
CASE_TEST(path_mtu_in_sum)
{
	const struct frame_spec big = { TOO_BIG };
	const struct frame_spec arp = { .src = "192.0.2.1", .ethertype = 0x0806 };
	struct frame_spec needed = { FRAG_NEEDED };
	char src[32];
	u32 passed = 0;

	case_policy(t, "essential: {rate: 5 packets/s}\n");
	for (u32 i = 0; i < 40; i++) {
		snprintf(src, sizeof(src), "198.51.100.%u", i);
		needed.src = src;
		passed += case_send(t, &needed, 1);
	}
	assert_int_equal(passed, 5);
	assert_int_equal(case_send(t, &big, 5), 0);
	assert_int_equal(case_send(t, &arp, 5), 5);
	assert_int_equal(target_count(t, 0, SL_R_PATH_MTU, SL_ACT_PASS), 5);
	assert_int_equal(target_count(t, 0, SL_R_PATH_MTU_OVER, SL_ACT_DROP), 40);
}

int main(void)
{
	return case_main("order");
}
