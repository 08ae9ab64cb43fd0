// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * test_fragment.c - later fragments share the fate of their first, where that was seen; and
 * where it was not, they never pass where a first of their kind would be dropped.
 */
#include "lib/case.h"

#define SECOND SL_NS_PER_SEC
#define WITHIN SL_ACT_PASS, SL_R_WITHIN
#define OTHER SL_ACT_PASS, SL_R_NO_MATCH
#define OVER SL_ACT_DROP, SL_R_OVER
#define AS_FIRST SL_ACT_DROP, SL_R_FRAGMENT

/* Of the datagram `n`; IPv4, and IPv6 behind a fragment header. */
#define FIRST(n) .frag_more = true, .payload = 64, .frag_id = 100 + (n)
#define LATER(n) .frag_offset = 9, .payload = 64, .frag_id = 100 + (n)
#define V6 .v6 = true, .ext = { EXT_FRAGMENT }

/* Exactly the limits of its first: port 53's, and not port 80's. */
static void meets_what_its_first_met(void **state)
{
	static const struct packet_case cases[] = {
		{ "first to 53", { .dport = 53, FIRST(0) }, WITHIN },
		{ "first to 9", { .dport = 9, FIRST(1) }, OTHER },
		{ "later of 53: fits", { LATER(0) }, WITHIN },
		{ "later of 9: no limit", { LATER(1) }, OTHER },
		{ "later of 53: over", { LATER(0) }, OVER },
		{ "later of 9, again", { LATER(1), .frag_more = true }, OTHER },
		{ "first to 53: over", { .dport = 53, FIRST(2) }, OVER },
		{ "its later", { LATER(2) }, AS_FIRST },
		{ "80 was not charged", { .dport = 80 }, WITHIN },
		{ "80 was not charged", { .dport = 80 }, OVER },
	};
	static const struct packet_case v6_cases[] = {
		{ "first to 53", { V6, .dport = 53, FIRST(0) }, WITHIN },
		{ "first to 9", { V6, .dport = 9, FIRST(0x10000) }, OTHER },
		{ "later of 53: fits", { V6, LATER(0) }, WITHIN },
		{ "later of 9: no limit", { V6, LATER(0x10000) }, OTHER },
		{ "later of 53: over", { V6, LATER(0) }, OVER },
		{ "later of 53 that says it is GRE: over", { V6, .proto = 47, LATER(0) }, OVER },
		{ "first to 53: over", { V6, .dport = 53, FIRST(2) }, OVER },
		{ "its later", { V6, LATER(2) }, AS_FIRST },
		{ "its later, behind options", { .v6 = true, .ext = { EXT_HOPBYHOP, EXT_FRAGMENT },
						 LATER(2) }, AS_FIRST },
	};
	struct target *t = case_target(state);
	static const char rules[] =
		"limits:\n- {name: dns, match: {proto: udp, dport: 53}, rate: 2 packets/h, burst: 2}\n"
		"- {name: web, match: {proto: udp, dport: 80}, rate: 1 packets/h}\n";

	case_policy(t, "%s", rules);
	CASES_RUN(t, cases);
	assert_int_equal(case_counted(t, "web", SL_LV_DROP), 1);
	target_reset(t);
	case_policy(t, "%s", rules);
	CASES_RUN(t, v6_cases);
}

/* One small first does not buy the 64 KB behind it. */
static void later_are_charged(void **state)
{
	const struct frame_spec first = { .dport = 53, .frag_more = true, .frag_id = 7 };
	const struct frame_spec later = { .frag_offset = 9, .payload = 1400, .frag_id = 7 };
	const struct frame_spec neighbour = { .src = "192.0.2.2", .dport = 53, .payload = 100 };
	struct target *t = case_target(state);

	case_policy(t, "limits: [{name: dns, match: {dport: 53}, rate: 1 bytes/h, burst: 10K,"
		       " accounting: exact}]\n");
	assert_int_equal(case_send(t, &first, 1), 1);
	assert_in_range(case_send(t, &later, 45), 6, 7);
	assert_int_equal(case_send(t, &neighbour, 5), 5);
}

/* A bucket for each port: a later fragment is charged in its first's. */
static void per_port(void **state)
{
	const struct frame_spec first = { .dport = 1000, FIRST(0) }, later = { LATER(0) };
	const struct frame_spec other = { .dport = 1001 };
	struct target *t = case_target(state);

	case_policy(t, "limits: [{name: port, per: [source, dport], rate: 4 packets/h, burst: 4}]\n");
	assert_int_equal(case_send(t, &first, 1), 1);
	assert_int_equal(case_send(t, &later, 10), 3);
	assert_int_equal(case_send(t, &other, 10), 4);
}

/* Connections are opened by whole packets and firsts. */
static void no_connections(void **state)
{
	static const struct packet_case cases[] = {
		{ "first, a SYN", { .proto = 6, .tcp_flags = FRAME_SYN, FIRST(0) }, WITHIN },
		{ "later", { .proto = 6, LATER(0) }, OTHER },
		{ "another SYN", { .proto = 6, .tcp_flags = FRAME_SYN }, WITHIN },
		{ "a third", { .proto = 6, .tcp_flags = FRAME_SYN }, OVER },
	};
	struct target *t = case_target(state);

	case_policy(t, "limits: [{name: opens, match: {proto: tcp}, rate: 2 connections/h,"
		       " burst: 2}]\n");
	CASES_RUN(t, cases);
}

/* TCP flags and ICMP types are remembered as ports are. */
static void flags_and_types(void **state)
{
	static const struct packet_case cases[] = {
		{ "first, SYN", { .proto = 6, .tcp_flags = FRAME_SYN, FIRST(0) }, WITHIN },
		{ "first, ACK", { .proto = 6, FIRST(1) }, OTHER },
		{ "later of the ACK", { .proto = 6, LATER(1) }, OTHER },
		{ "later of the SYN", { .proto = 6, LATER(0) }, OVER },
		{ "first, echo", { .proto = 1, .icmp_type = 8, FIRST(2) }, WITHIN },
		{ "first, reply", { .proto = 1, FIRST(3) }, OTHER },
		{ "later of the reply", { .proto = 1, LATER(3) }, OTHER },
		{ "later of the echo", { .proto = 1, LATER(2) }, OVER },
		{ "IPv6, first, echo", { V6, .proto = 58, .icmp_type = 128, FIRST(4),
					 .src = "2001:db8::2" }, WITHIN },
		{ "IPv6, later of the echo", { V6, .proto = 58, LATER(4), .src = "2001:db8::2" },
		  OVER },
	};
	struct target *t = case_target(state);

	case_policy(t, "limits:\n- {name: syn, match: {tcp_flags: syn}, rate: 1 packets/h}\n"
		       "- {name: ping, match: {icmp_type: echo-request}, rate: 1 packets/h}\n");
	CASES_RUN(t, cases);
}

/* Not seen, in any way: as any limit it could meet says. */
static void unknown_first(void **state)
{
	static const struct packet_case cases[] = {
		{ "uses it up", { .dport = 53 }, WITHIN },
		{ "uses it up, IPv6", { .dport = 53, .v6 = true }, WITHIN },
		{ "no first", { LATER(0) }, OVER },
		{ "no first, IPv6", { V6, LATER(0) }, OVER },
		{ "no first, IPv6, says it is TCP", { V6, .proto = 6, LATER(0) }, OVER },
		{ "TCP could not", { .proto = 6, LATER(0) }, OTHER },
		/* One of each that differs: it is another datagram. */
		{ "a first", { FIRST(1) }, OTHER },
		{ "its later", { LATER(1) }, OTHER },
		{ "another id", { LATER(2) }, OVER },
		{ "another source", { .src = "192.0.2.2", LATER(1) }, WITHIN },
		{ "another destination", { .dst = "203.0.113.9", LATER(1) }, OVER },
		{ "a first of TCP", { .proto = 6, FIRST(3) }, OTHER },
		{ "another protocol", { LATER(3) }, OVER },
		/* Reordered: what comes before its first is judged without. */
		{ "later before its first", { LATER(4) }, OVER },
		{ "the first", { FIRST(4) }, OTHER },
		{ "later behind it", { LATER(4) }, OTHER },
		/* It could not be read: the ports are not in it. */
		{ "first, cut", { FIRST(5), .total = 26 }, SL_ACT_PASS, SL_R_TRUNCATED },
		{ "its later", { LATER(5) }, OVER },
		{ "a whole first after a cut one", { FIRST(5) }, OTHER },
		{ "its later: which is it of?", { LATER(5) }, OVER },
	};
	struct target *t = case_target(state);

	case_policy(t, "limits: [{name: dns, match: {proto: udp, dport: 53},"
		       " rate: 1 packets/h}]\n");
	CASES_RUN(t, cases);
}

/* A first to a port without a limit does not speak for one to a port with one. */
static void decoy(void **state)
{
	static const struct packet_case cases[] = {
		{ "uses it up", { .dport = 53 }, WITHIN },
		{ "the decoy", { .dport = 9, FIRST(0) }, OTHER },
		{ "the same again", { .dport = 9, FIRST(0) }, OTHER },
		{ "its later", { LATER(0) }, OTHER },
		{ "the other first", { .dport = 53, FIRST(0) }, OVER },
		{ "later", { LATER(0) }, OVER },
		{ "the decoy again", { .dport = 9, FIRST(0) }, OTHER },
		{ "later", { LATER(0) }, OVER },
	};
	struct target *t = case_target(state);

	case_policy(t, "limits: [{name: dns, match: {proto: udp, dport: 53},"
		       " rate: 1 packets/h}]\n");
	CASES_RUN(t, cases);
}

/* An id comes round again: 30 s later a first is forgotten, not a moment before. */
static void expires(void **state)
{
	const struct frame_spec first = { FIRST(0) }, later = { LATER(0) };
	const struct frame_spec first53 = { .dport = 53, FIRST(0) }, dns = { .dport = 53 };
	struct target *t = case_target(state);

	case_policy(t, "limits: [{name: dns, match: {proto: udp, dport: 53},"
		       " rate: 1 packets/h}]\n");
	assert_true(case_meets(t, 0, &dns, WITHIN));
	assert_true(case_meets(t, 0, &first, OTHER));
	assert_true(case_meets(t, SL_FRAG_NS - 1, &later, OTHER));
	assert_true(case_meets(t, SL_FRAG_NS, &later, OVER));
	/* Another datagram under the id: no decoy. */
	assert_true(case_meets(t, SL_FRAG_NS, &first53, OVER));
	assert_true(case_meets(t, SL_FRAG_NS + SECOND, &later, AS_FIRST));
	assert_true(case_meets(t, 2 * SL_FRAG_NS, &first, OTHER));
	assert_true(case_meets(t, 2 * SL_FRAG_NS + 1, &later, OTHER));
}

/* Firsts of others only push older ones out: what is unknown is held, what is new is known. */
static void flood_of_firsts(void **state)
{
	struct frame_spec flood = { .src = "192.0.2.66", FIRST(0) };
	struct frame_spec mine = { FIRST(0) }, my_later = { LATER(0) };
	const struct frame_spec dns = { .dport = 53 };
	struct target *t = case_target(state);
	u32 i, known = 0;

	case_policy(t, "limits: [{name: dns, match: {proto: udp, dport: 53}, per: [],"
		       " rate: 1 packets/h}]\n");
	assert_true(case_meets(t, 0, &dns, WITHIN));
	for (i = 0; i < 100; i++, mine.frag_id++)
		assert_int_equal(case_send(t, &mine, 1), 1);
	for (i = 0; i < 3 * SL_FRAGS_MAX; i++) {
		flood.frag_id = 1 + i % 65535;
		target_set_time(t, i * 1000);
		assert_int_equal(case_send(t, &flood, 1), 1);
	}
	/* The kernel's LRU is none to the letter. */
	for (i = 0; i < 100; i++, my_later.frag_id++)
		known += case_send(t, &my_later, 1);
	assert_in_range(known, 0, 20);
	assert_int_equal(case_counted(t, "dns", SL_LV_DROP), 100 - known);
	mine.frag_id = my_later.frag_id = 5;
	assert_true(case_meets(t, SECOND, &mine, OTHER));
	assert_true(case_meets(t, SECOND, &my_later, OTHER));
	assert_int_equal(target_errors(t), 0);
}

/* Failsafe ports: the rest of a datagram to one is no less safe than its first. */
static void failsafe(void **state)
{
	static const struct packet_case cases[] = {
		{ "first", { .proto = 6, .dport = 22, FIRST(0) }, SL_ACT_PASS, SL_R_FAILSAFE },
		{ "later", { .proto = 6, LATER(0) }, SL_ACT_PASS, SL_R_FAILSAFE },
		{ "another port", { .proto = 6, .dport = 23, FIRST(1) }, SL_ACT_DROP, SL_R_BLOCK },
		{ "its later", { .proto = 6, LATER(1) }, SL_ACT_DROP, SL_R_BLOCK },
		{ "unknown", { .proto = 6, LATER(2) }, SL_ACT_DROP, SL_R_BLOCK },
	};
	struct target *t = case_target(state);

	case_policy(t, "failsafe: [22/tcp]\nblock: [0.0.0.0/0]\nfragments: drop\n");
	CASES_RUN(t, cases);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(meets_what_its_first_met),
		cmocka_unit_test(later_are_charged),
		cmocka_unit_test(per_port),
		cmocka_unit_test(no_connections),
		cmocka_unit_test(flags_and_types),
		cmocka_unit_test(unknown_first),
		cmocka_unit_test(decoy),
		cmocka_unit_test(expires),
		cmocka_unit_test(flood_of_firsts),
		cmocka_unit_test(failsafe),
	};

	return case_main("fragment", tests, ARRAY_LEN(tests));
}
