// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * test_match.c - limits without a rate: each match key in pairs (this packet is decided, the next
 * one is not), their order among each other, with limits and with the steps before them, and that
 * nobody gains a pass by what cannot be read.
 */
#include <stdio.h>

#include "lib/case.h"

#define DROP SL_ACT_DROP, SL_R_MATCH
#define PASS SL_ACT_PASS, SL_R_MATCH
#define TAG SL_ACT_TAG, SL_R_MATCH
#define NO SL_ACT_PASS, SL_R_NO_MATCH
/* clang-format off */
#define SYN .proto = 6, .tcp_flags = FRAME_SYN
/* clang-format on */

/* Two cases of one key, for IPv4 and IPv6: the first is dropped, or passed; the second never is. */
static void run_pair(struct target *t, const char *match, struct frame_spec it,
		     struct frame_spec other)
{
	for (int v6 = 0; v6 < 2; v6++) {
		struct packet_case cases[2] = { { match, it, DROP }, { match, other, NO } };

		if (v6 && (it.src || it.dst))
			break;
		for (int i = 0; i < 2; i++)
			cases[i].f.v6 = v6;
		if (v6 && it.proto == 1)
			cases[0].f.proto = cases[1].f.proto = 58;
		if (v6 && it.proto == 1)
			cases[0].f.icmp_type = 128;
		case_policy(t, "limits: [{name: one, match: {%s}, action: drop}]\n", match);
		CASES_RUN(t, cases);
		assert_int_equal(case_counted(t, "one", SL_LV_DROP), 1);
		case_policy(t, "limits: [{name: two, match: {%s}, action: pass}]\n", match);
		cases[0].action = SL_ACT_PASS;
		CASES_RUN(t, cases);
		assert_int_equal(case_counted(t, "two", SL_LV_PASS), 1);
		case_policy(t,
			    "limits: [{name: three, match: {%s}, action: tag, tag: {dscp: ef}}]\n",
			    match);
		cases[0].action = SL_ACT_TAG;
		CASES_RUN(t, cases);
		assert_int_equal(case_counted(t, "three", SL_LV_TAG), 1);
	}
}
#define PAIR(match, it, ...)                                                                       \
	run_pair(t, match, (struct frame_spec)it, (struct frame_spec)__VA_ARGS__)
/* clang-format off */
#define _(...) { __VA_ARGS__ }
/* clang-format on */

CASE_TEST(each_key)
{
	PAIR("src: 192.0.2.7", _(.src = "192.0.2.7"), { .src = "192.0.2.8" });
	PAIR("src: '2001:db8::/33'", _(.src = "2001:db8:7fff::1"), { .src = "2001:db8:8000::1" });
	PAIR("dst: 203.0.113.11", _(.dst = "203.0.113.11", .src = "192.0.2.1"), { 0 });
	PAIR("proto: udp", _(.dport = 5), { .proto = 6 });
	PAIR("proto: udp, dport: 11211", _(.dport = 11211), { .dport = 11212 });
	PAIR("dport: 11211", _(.proto = 6, .dport = 11211), { .proto = 6, .sport = 11211 });
	PAIR("sport: 53", _(.sport = 53), { .dport = 53 });
	PAIR("vlan: 5", _(.tags = 1, .vlan = { 5 }), { .tags = 1, .vlan = { 6 } });
	PAIR("tcp_flags: 'syn,!ack'", _(SYN), { .proto = 6 });
	PAIR("icmp_type: echo-request", _(.proto = 1, .icmp_type = 8),
	     { .proto = 1, .icmp_type = 3 });
	PAIR("length: 200-300", _(.payload = 200), { .payload = 400 });
}

/* The first that decides, in file order; a limit holds before a pass, not behind it. */
CASE_TEST(order)
{
	static const struct packet_case cases[] = {
		{ "before the drop", { .dport = 1 }, PASS },
		{ "behind the pass", { .dport = 2 }, DROP },
		{ "the first limit, once", { .dport = 3 }, PASS },
		{ "and then over, before the pass", { .dport = 3 }, OVER },
		{ "tagged by the second rule", { .dport = 5 }, TAG },
		{ "the last limit, with the tag", { .dport = 5 }, OVER },
		{ "passed, so the last limit is not met", { .dport = 1 }, PASS },
		{ "a drop behind the tag", { .dport = 6 }, DROP },
		{ "shadow: not dropped, within the last limit",
		  { .src = "192.0.2.9", .dport = 7 },
		  WITHIN },
		{ "the neighbor", { .src = "192.0.2.10", .dport = 8 }, WITHIN },
	};

	case_policy(t, "limits:\n"
		       "- {name: first, match: {dport: 1}, action: pass}\n"
		       "- {name: small, match: {dport: [1, 2, 3]}, rate: 1 packets/h}\n"
		       "- {name: mark, match: {dport: 5-6}, action: tag, tag: {dscp: cs1}}\n"
		       "- {name: gone, match: {dport: [1, 2, 6]}, action: drop}\n"
		       "- {name: free, match: {dport: [1, 2, 3, 6]}, action: pass}\n"
		       "- {name: watch, match: {dport: 7}, mode: shadow, action: drop}\n"
		       "- {name: off, match: {dport: 8}, mode: off, action: drop}\n"
		       "- {name: last, rate: 1 packets/h}\n");
	CASES_RUN(t, cases);
	assert_int_equal(case_counted(t, "first", SL_LV_PASS), 2);
	assert_int_equal(case_counted(t, "gone", SL_LV_DROP), 2);
	assert_int_equal(case_counted(t, "free", SL_LV_PASS), 1);
	assert_int_equal(case_counted(t, "watch", SL_LV_SHADOW), 1);
	assert_int_equal(case_counted(t, "mark", SL_LV_TAG), 1);
	/* What is dropped by its match is charged nowhere. */
	assert_int_equal(case_counted(t, "small", SL_LV_PASS), 1);
	assert_int_equal(case_counted(t, "small", SL_LV_DROP), 1);
	assert_int_equal(case_counted(t, "last", SL_LV_PASS), 3);
}

/* Essentials, exempt sources and failsafe ports come before a drop; blocks before a pass. */
CASE_TEST(the_steps_before)
{
	static const struct packet_case cases[] = {
		{ "ARP", { .ethertype = 0x0806 }, SL_ACT_PASS, SL_R_ARP },
		{ "neighbor discovery",
		  { .src = "2001:db8::9", .proto = 58, .icmp_type = 135, .hop_limit = 255 },
		  SL_ACT_PASS,
		  SL_R_ND },
		{ "exempt", { .src = "192.0.2.7" }, EXEMPT },
		{ "ssh of this host", { SYN, .dport = 22 }, FAILSAFE },
		{ "ssh of another", { SYN, .dport = 22, .dst = "203.0.113.11" }, DROP },
		{ "blocked, port 179", { SYN, .src = "198.51.100.1", .dport = 179 }, BLOCK },
		{ "port 179", { SYN, .dport = 179 }, PASS },
		{ "path MTU, no ICMP type is named",
		  { .proto = 1, .icmp_type = 3, .icmp_code = 4 },
		  SL_ACT_PASS,
		  SL_R_PATH_MTU },
		{ "all others", { 0 }, DROP },
	};

	case_policy(t, "failsafe: [22/tcp]\nexempt: [192.0.2.7]\nblock: [198.51.100.0/24]\n"
		       "limits:\n"
		       "- {name: bgp, match: {proto: tcp, dport: 179}, action: pass}\n"
		       "- {name: rest, match: {src: [0.0.0.0/0, '::/0']}, action: drop}\n");
	CASES_RUN(t, cases);
}

#define UNREAD(r) SL_ACT_PASS, SL_R_##r

/* What cannot be read meets each drop that it could, and gains no pass. */
CASE_TEST(unread)
{
	static const struct packet_case drops[] = {
		{ "cut UDP", { .cut = 38 }, DROP },
		{ "cut first", { .total = 24, .frag_more = true, .payload = 64 }, DROP },
		{ "nine headers",
		  { .v6 = true, .ext = { 60, 60, 60, 60, 60, 60, 60, 60, 60 } },
		  DROP },
		{ "cut TCP", { .proto = 6, .cut = 38 }, UNREAD(TRUNCATED) },
	};
	static const struct packet_case passes[] = {
		{ "uses the limit up", { .dport = 9 }, WITHIN },
		{ "passed", { .dport = 11211 }, PASS },
		{ "passed, IPv6", { .v6 = true, .dport = 11211 }, PASS },
		{ "later fragment, first unknown", { .frag_offset = 3, .payload = 8 }, OVER },
		{ "of IPv6",
		  { .v6 = true, .ext = { EXT_FRAGMENT }, .frag_offset = 3, .payload = 8 },
		  OVER },
		{ "cut", { .cut = 38 }, OVER },
		{ "by source, fragment",
		  { .src = "192.0.2.99", .frag_offset = 3, .payload = 8 },
		  PASS },
		{ "by source, cut", { .src = "192.0.2.99", .cut = 38 }, PASS },
		{ "mapped source", { .src = "::ffff:192.0.2.99" }, OVER },
		{ "its own header", { .v6 = true, .ext = { EXT_DSTOPTS } }, OVER },
		{ "by protocol, fragment", { .proto = 47, .frag_offset = 3, .payload = 8 }, PASS },
		{ "by protocol, that is not known",
		  { .v6 = true,
		    .proto = 47,
		    .ext = { EXT_FRAGMENT },
		    .frag_offset = 3,
		    .payload = 8 },
		  OVER },
	};

	case_policy(t, "limits: [{name: one, match: {proto: udp, dport: 11211}, action: drop}]\n");
	CASES_RUN(t, drops);
	case_policy(t, "limits:\n"
		       "- {name: port, match: {proto: udp, dport: 11211}, action: pass}\n"
		       "- {name: who, match: {src: 192.0.2.99}, action: pass}\n"
		       "- {name: gre, match: {proto: [47, 60]}, action: pass}\n"
		       "- {name: all, per: [], rate: 1 packets/h}\n");
	CASES_RUN(t, passes);
}

/*
 * A later fragment whose first is not known does not meet a drop that its first must have met, so
 * that datagrams of other ports may arrive in any order. It does meet one by what it shows itself.
 */
CASE_TEST(later_alone)
{
/* clang-format off */
#define LATER .frag_offset = 9, .payload = 8
/* clang-format on */
#define LATER6 .v6 = true, .ext = { EXT_FRAGMENT }, .frag_offset = 9, .payload = 8
/* clang-format off */
#define FIRST .frag_more = true, .payload = 64
	/* clang-format on */
	static const struct packet_case cases[] = {
		{ "of another port, before its first", { LATER, .frag_id = 7 }, NO },
		{ "its first", { FIRST, .frag_id = 7 }, NO },
		{ "of IPv6", { LATER6, .frag_id = 7 }, NO },
		{ "of port 11211, before its first", { LATER, .frag_id = 8 }, NO },
		{ "its first: nothing completes it",
		  { FIRST, .sport = 11211, .frag_id = 8 },
		  DROP },
		{ "the rest", { LATER, .frag_id = 8 }, SL_ACT_DROP, SL_R_FRAGMENT },
		{ "ping", { .proto = 1, LATER }, NO },
		{ "SYN", { .proto = 6, LATER }, NO },
		{ "its protocol, IPv4", { .proto = 47, LATER }, DROP },
		{ "its protocol, IPv6: its first decides", { LATER6, .proto = 47 }, NO },
		{ "its length", { .src = "192.0.2.2", LATER }, DROP },
		{ "longer", { .src = "192.0.2.2", .frag_offset = 9, .payload = 200 }, NO },
		{ "its tag", { .src = "192.0.2.3", LATER, .tags = 1, .vlan = { 5 } }, DROP },
		{ "another tag", { .src = "192.0.2.3", LATER, .tags = 1, .vlan = { 6 } }, NO },
		{ "its fragment header", { LATER6, .src = "2001:db8::2" }, DROP },
	};

	case_policy(
		t,
		"limits:\n"
		"- {name: memcached, match: {proto: udp, sport: 11211}, action: drop}\n"
		"- {name: ping, match: {icmp_type: echo-request}, action: drop}\n"
		"- {name: syn, match: {tcp_flags: syn}, action: drop}\n"
		"- {name: gre, match: {proto: 47}, action: drop}\n"
		"- {name: short, match: {src: 192.0.2.2, dport: 53, length: 0-100}, action: drop}\n"
		"- {name: tagged, match: {src: 192.0.2.3, dport: 53, vlan: 5}, action: drop}\n"
		"- {name: headers, match: {src: '2001:db8::2', proto: 44}, action: drop}\n");
	CASES_RUN(t, cases);
}

/* Later fragments of a first that was seen share its fate. */
CASE_TEST(fragments)
{
	static const struct packet_case cases[] = {
		{ "first, dropped",
		  { .dport = 11211, .frag_more = true, .payload = 64, .frag_id = 7 },
		  DROP },
		{ "later",
		  { .frag_offset = 9, .payload = 8, .frag_id = 7 },
		  SL_ACT_DROP,
		  SL_R_FRAGMENT },
		{ "first, passed",
		  { .dport = 53, .frag_more = true, .payload = 64, .frag_id = 8 },
		  PASS },
		{ "later", { .frag_offset = 9, .payload = 8, .frag_id = 8 }, PASS },
		{ "another port",
		  { .dport = 54, .frag_more = true, .payload = 64, .frag_id = 9 },
		  NO },
	};

	case_policy(t, "limits:\n"
		       "- {name: dns, match: {proto: udp, dport: 53}, action: pass}\n"
		       "- {name: memcached, match: {proto: udp, dport: 11211}, action: drop}\n");
	CASES_RUN(t, cases);
}

/* More drops than limits that may match one packet: they are charged nowhere. */
CASE_TEST(many_drops)
{
	static const struct packet_case cases[] = {
		{ "the first that matches", { .dport = 30 }, DROP },
		{ "beyond the last", { .dport = 300 }, NO },
	};
	static char rules[16384];
	size_t used = snprintf(rules, sizeof(rules), "limits:\n");

	for (int i = 0; i < 200; i++)
		used += snprintf(rules + used, sizeof(rules) - used,
				 "- {name: d%d, match: {dport: 20-%d}, action: drop}\n", i, 20 + i);
	case_policy(t, "%s", rules);
	CASES_RUN(t, cases);
	assert_int_equal(case_counted(t, "d10", SL_LV_DROP), 1);
	assert_int_equal(case_counted(t, "d9", SL_LV_DROP), 0);
}

int main(void)
{
	return case_main("match");
}
