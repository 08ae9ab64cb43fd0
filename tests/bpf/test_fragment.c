// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * test_fragment.c - later fragments get the verdict of their first, where that was seen;
 * otherwise they never pass where a first of their kind would be dropped.
 */
#include "lib/case.h"

#define SECOND SL_NS_PER_SEC
#define AS_FIRST SL_ACT_DROP, SL_R_FRAGMENT

/*
 * Of the datagram `n`; IPv4, and IPv6 behind a fragment header. All but the last are of a length
 * in units of 8 bytes, which makes one TCP header more.
 */
/* clang-format off */
#define FIRST(n) .frag_more = true, .payload = 64, .frag_id = 100 + (n)
#define TCP_FIRST(n) .proto = 6, .frag_more = true, .payload = 60, .frag_id = 100 + (n)
#define LATER(n) .frag_offset = 9, .payload = 64, .frag_id = 100 + (n)
/* clang-format on */
#define V6 .v6 = true, .ext = { EXT_FRAGMENT }

/* Exactly the limits of its first: port 53's, and not port 80's. */
CASE_TEST(meets_the_limits_of_its_first)
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
		{ "its later, behind options",
		  { .v6 = true, .ext = { EXT_HOPBYHOP, EXT_FRAGMENT }, LATER(2) },
		  AS_FIRST },
	};
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

/* One small first does not pay for the 64 KB behind it. */
CASE_TEST(later_are_charged)
{
	const struct frame_spec first = {
		.dport = 53, .frag_more = true, .payload = 8, .frag_id = 7
	};
	const struct frame_spec later = { .frag_offset = 9, .payload = 1400, .frag_id = 7 };
	const struct frame_spec neighbour = { .src = "192.0.2.2", .dport = 53, .payload = 100 };

	case_policy(t, "limits: [{name: dns, match: {dport: 53}, rate: 1 bytes/h, burst: 10K,"
		       " accounting: exact}]\n");
	assert_int_equal(case_send(t, &first, 1), 1);
	assert_in_range(case_send(t, &later, 45), 6, 7);
	assert_int_equal(case_send(t, &neighbour, 5), 5);
}

/* A bucket for each port: a later fragment is charged in its first's. */
CASE_TEST(per_port)
{
	const struct frame_spec first = { .dport = 1000, FIRST(0) }, later = { LATER(0) };
	const struct frame_spec other = { .dport = 1001 };

	case_policy(t,
		    "limits: [{name: port, per: [source, dport], rate: 4 packets/h, burst: 4}]\n");
	assert_int_equal(case_send(t, &first, 1), 1);
	assert_int_equal(case_send(t, &later, 10), 3);
	assert_int_equal(case_send(t, &other, 10), 4);
}

/* Connections are opened by whole packets and firsts. */
CASE_TEST(no_connections)
{
	static const struct packet_case cases[] = {
		{ "first, a SYN", { TCP_FIRST(0), .tcp_flags = FRAME_SYN }, WITHIN },
		{ "later", { .proto = 6, LATER(0) }, OTHER },
		{ "another SYN", { .proto = 6, .tcp_flags = FRAME_SYN }, WITHIN },
		{ "a third", { .proto = 6, .tcp_flags = FRAME_SYN }, OVER },
	};

	case_policy(t, "limits: [{name: opens, match: {proto: tcp}, rate: 2 connections/h,"
		       " burst: 2}]\n");
	CASES_RUN(t, cases);
}

/* TCP flags and ICMP types are remembered as ports are. */
CASE_TEST(flags_and_types)
{
	static const struct packet_case cases[] = {
		{ "first, SYN", { TCP_FIRST(0), .tcp_flags = FRAME_SYN }, WITHIN },
		{ "first, ACK", { TCP_FIRST(1) }, OTHER },
		{ "later of the ACK", { .proto = 6, LATER(1) }, OTHER },
		{ "later of the SYN", { .proto = 6, LATER(0) }, OVER },
		{ "first, echo", { .proto = 1, .icmp_type = 8, FIRST(2) }, WITHIN },
		{ "first, reply", { .proto = 1, FIRST(3) }, OTHER },
		{ "later of the reply", { .proto = 1, LATER(3) }, OTHER },
		{ "later of the echo", { .proto = 1, LATER(2) }, OVER },
		{ "IPv6, first, echo",
		  { V6, .proto = 58, .icmp_type = 128, FIRST(4), .src = "2001:db8::2" },
		  WITHIN },
		{ "IPv6, later of the echo",
		  { V6, .proto = 58, LATER(4), .src = "2001:db8::2" },
		  OVER },
	};

	case_policy(t, "limits:\n- {name: syn, match: {tcp_flags: syn}, rate: 1 packets/h}\n"
		       "- {name: ping, match: {icmp_type: echo-request}, rate: 1 packets/h}\n");
	CASES_RUN(t, cases);
}

/* The first was not seen, in any way: every limit that the fragment could meet applies. */
CASE_TEST(unknown_first)
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
		{ "a first of TCP", { TCP_FIRST(3) }, OTHER },
		{ "another protocol", { LATER(3) }, OVER },
		/* Reordered: a fragment before its first is judged without it. */
		{ "later before its first", { LATER(4) }, OVER },
		{ "the first", { FIRST(4) }, OTHER },
		{ "later behind it", { LATER(4) }, OTHER },
		/* It could not be read: the ports are not in it. */
		{ "first, cut", { FIRST(5), .total = 26 }, OVER },
		{ "its later", { LATER(5) }, OVER },
		{ "a whole first after a cut one", { FIRST(5) }, OTHER },
		{ "its later: which is it of?", { LATER(5) }, OVER },
	};

	case_policy(t, "limits: [{name: dns, match: {proto: udp, dport: 53},"
		       " rate: 1 packets/h}]\n");
	CASES_RUN(t, cases);
}

/* `count` limits to ports from 1000 on, each with `rest`, and behind them one on port 53. */
static void many_limits(struct target *t, u32 count, const char *rest, const char *last)
{
	char text[4096] = "limits:\n";
	size_t used = strlen(text);
	u32 i;

	for (i = 0; i < count; i++)
		used += snprintf(text + used, sizeof(text) - used,
				 "- {name: p%u, match: {dport: %u}, %s}\n", i, 1000 + i, rest);
	snprintf(text + used, sizeof(text) - used, "%s", last);
	target_reset(t);
	case_policy(t, "%s", text);
}

/*
 * A packet whose port is not known may belong to more limits than can be charged. Those that drop
 * are charged first; it is dropped only where one of them is left out.
 */
CASE_TEST(too_many_limits)
{
#define MANY SL_ACT_PASS, SL_R_TOO_MANY_LIMITS
#define LEFT_OUT SL_ACT_DROP, SL_R_TOO_MANY_LIMITS
#define SHADOW "rate: 1 packets/h, mode: shadow"
#define TAG "rate: 1 packets/h, action: tag, tag: {dscp: cs1}"
#define NINE_HEADERS .v6 = true, .ext = { 60, 60, 60, 60, 60, 60, 60, 60, 60 }
	static const char dns[] = "- {name: dns, match: {dport: 53}, rate: 1 packets/h}\n";
	static const struct packet_case passes[] = {
		{ "later", { LATER(0) }, MANY },
		{ "later, again", { LATER(0) }, MANY },
		{ "IPv6, later", { V6, LATER(0) }, MANY },
		{ "nine headers", { NINE_HEADERS }, MANY },
	};
	static const struct packet_case tagged[] = {
		{ "later", { LATER(0) }, MANY },
		{ "later, over", { LATER(0) }, SL_ACT_TAG, SL_R_OVER },
	};
	static const struct packet_case one_drops[] = {
		{ "later, within the one that drops", { LATER(0) }, MANY },
		{ "later, over it", { LATER(0) }, OVER },
		{ "nine headers", { NINE_HEADERS }, MANY },
		{ "nine headers, over", { NINE_HEADERS }, OVER },
		{ "another port", { .dport = 54 }, OTHER },
		{ "another source", { .src = "192.0.2.9", .dport = 53 }, WITHIN },
	};
	static const struct packet_case all_drop[] = {
		{ "later", { LATER(0) }, LEFT_OUT },
		{ "nine headers", { NINE_HEADERS }, LEFT_OUT },
		{ "of port 1000", { .dport = 1000 }, WITHIN },
	};
	static const struct packet_case not_counted[] = {
		{ "UDP opens no connection", { LATER(0) }, OTHER },
		{ "TCP may", { .proto = 6, LATER(0) }, LEFT_OUT },
	};

	many_limits(t, 17, SHADOW, "");
	CASES_RUN(t, passes);
	many_limits(t, 17, TAG, "");
	CASES_RUN(t, tagged);
	many_limits(t, 17, SHADOW, dns);
	CASES_RUN(t, one_drops);
	many_limits(t, 17, "rate: 1 packets/h", "");
	CASES_RUN(t, all_drop);
	many_limits(t, 17, "rate: 1 connections/h", "");
	CASES_RUN(t, not_counted);
}

/* One packet an hour to port 53, which is used up. */
#define DNS "limits:\n- {name: dns, match: {proto: udp, dport: 53}, per: [], rate: 1 packets/h}\n"

static void use_up(struct target *t)
{
	const struct frame_spec v4 = { .dport = 53 };

	case_policy(t, DNS);
	assert_true(case_meets(t, 0, &v4, WITHIN));
}

/*
 * A first to a port without a limit does not count for one to a port with one. Whichever of two
 * firsts the receiver takes: where later fragments passed under the one, the other is dropped if it
 * meets a limit that they did not meet.
 */
CASE_TEST(contradiction)
{
#define WEB "- {name: web, match: {proto: udp, dport: 80}, per: [], rate: 1G packets/s}\n"
	static const struct packet_case cases[] = {
		{ "uses up", { .dport = 53 }, WITHIN },
		{ "a first", { .dport = 9, FIRST(0) }, OTHER },
		{ "the same again", { .dport = 9, FIRST(0) }, OTHER },
		{ "another, dropped by its limit", { .dport = 53, FIRST(0) }, OVER },
		{ "the rest is the first one's", { LATER(0) }, OTHER },
		{ "one with a limit, now that some passed", { .dport = 80, FIRST(0) }, AS_FIRST },
		{ "one with a limit that is over", { .dport = 53, FIRST(0) }, AS_FIRST },
		{ "one cut", { FIRST(0), .total = 24 }, AS_FIRST },
		{ "one with options, the same port", { .dport = 9, FIRST(0), .ihl = 6 }, AS_FIRST },
		{ "one with options, another port", { .dport = 10, FIRST(0), .ihl = 6 }, AS_FIRST },
		{ "one with another way here",
		  { .dport = 80, FIRST(0), .hop_limit = 9 },
		  AS_FIRST },
		{ "one with a tag", { .dport = 80, FIRST(0), .tags = 1, .vlan = { 5 } }, AS_FIRST },
		{ "the rest goes on", { LATER(0) }, OTHER },
		{ "a neighbor's", { .dport = 80, FIRST(1) }, WITHIN },

		{ "two before any rest", { .dport = 9, FIRST(2) }, OTHER },
		{ "the second", { .dport = 80, FIRST(2) }, WITHIN },
		{ "the rest: of which?", { LATER(2) }, OVER },
		{ "the first again", { .dport = 9, FIRST(2) }, OTHER },
		{ "the rest", { LATER(2) }, OVER },

		{ "IPv6, a first", { V6, .dport = 9, FIRST(0) }, OTHER },
		{ "IPv6, its rest", { V6, LATER(0) }, OTHER },
		{ "IPv6, another", { V6, .dport = 53, FIRST(0) }, AS_FIRST },
		{ "IPv6, another behind options",
		  { .v6 = true, .ext = { EXT_DSTOPTS, EXT_FRAGMENT }, .dport = 10, FIRST(0) },
		  AS_FIRST },
		{ "IPv6, one behind more headers than are read",
		  { .v6 = true,
		    .ext = { EXT_DSTOPTS, EXT_DSTOPTS, EXT_DSTOPTS, EXT_DSTOPTS, EXT_DSTOPTS,
			     EXT_DSTOPTS, EXT_DSTOPTS, EXT_DSTOPTS, EXT_DSTOPTS, EXT_FRAGMENT },
		    .dport = 10,
		    FIRST(0) },
		  AS_FIRST },
	};

	case_policy(t, DNS WEB);
	CASES_RUN(t, cases);
}

/* A whole datagram under id `n`, twice, from `first` to `second`: what becomes of the second. */
static void twice(struct target *t, u32 n, struct frame_spec first, struct frame_spec second,
		  bool passes)
{
	const struct frame_spec later = {
		.src = first.src, .dst = first.dst, .proto = first.proto, LATER(n)
	};

	first.frag_more = second.frag_more = true;
	first.frag_id = second.frag_id = 100 + n;
	first.payload = second.payload = first.proto == 6 ? 60 : 64;
	assert_int_equal(case_send(t, &first, 1), 1);
	assert_int_equal(case_send(t, &later, 1), 1);
	assert_int_equal(case_send(t, &second, 1), passes);
	if (passes)
		assert_int_equal(case_send(t, &later, 1), 1);
}

/*
 * A sender uses an id again: the second datagram is lost only if it meets a limit that the rest of
 * the first one escaped: by its port, its place in the order, its bucket or a failsafe port.
 */
CASE_TEST(ids_again)
{
#define UDP(port)                                                                                  \
	(struct frame_spec)                                                                        \
	{                                                                                          \
		.proto = 17, .dport = port                                                         \
	}
#define SYN(port)                                                                                  \
	(struct frame_spec)                                                                        \
	{                                                                                          \
		.proto = 6, .dport = port, .tcp_flags = FRAME_SYN                                  \
	}
#define ADMIN "198.51.100.7"
#define OF_ADMIN(port)                                                                             \
	(struct frame_spec)                                                                        \
	{                                                                                          \
		.src = ADMIN, .dst = TARGET_LOCAL_V4, .proto = 6, .sport = 50022, .dport = port    \
	}
	const struct frame_spec used = { .dport = 53 };
	struct sl_session session;

	case_policy(t, DNS WEB
		    "- {name: other, match: {src: 192.0.2.9, dport: 11}, rate: 1G packets/s}\n");
	assert_int_equal(case_send(t, &used, 1), 1);
	twice(t, 0, UDP(9), UDP(10), true);
	twice(t, 1, UDP(9), UDP(11), true);
	twice(t, 2, UDP(80), UDP(9), true);
	twice(t, 3, UDP(9), UDP(80), false);
	twice(t, 4, SYN(9), SYN(10), true);
	target_reset(t);
	case_policy(t, "limits:\n- {name: p, match: {dport: 9}, action: pass}\n"
		       "- {name: q, match: {dport: 10}, action: pass}\n"
		       "- {name: all, rate: 1G packets/s}\n");
	twice(t, 0, UDP(9), UDP(11), false);
	twice(t, 1, UDP(9), UDP(10), false);
	twice(t, 2, UDP(11), UDP(12), true);
	target_reset(t);
	case_policy(t, "limits: [{name: port, per: [source, dport], rate: 1G packets/s}]\n");
	twice(t, 0, UDP(9), UDP(10), false);
	twice(t, 1, (struct frame_spec){ .proto = 17, .dport = 9, .sport = 1 },
	      (struct frame_spec){ .proto = 17, .dport = 9, .sport = 2 }, true);
	target_reset(t);
	case_policy(t, "failsafe: [22/tcp]\nlimits: [{name: all, rate: 1G packets/s}]\n");
	twice(t, 0, SYN(22), SYN(23), false);
	twice(t, 1, SYN(23), SYN(24), true);
	/* A login session's segment, which no limit judges, and another one of its address. */
	target_reset(t);
	session = target_session(ADMIN, 50022, TARGET_LOCAL_V4, 22);
	target_sessions(t, &session, 1);
	case_policy(t, "limits: [{name: all, rate: 1G packets/s}]\n");
	twice(t, 0, OF_ADMIN(22), OF_ADMIN(80), false);
	target_sessions(t, NULL, 0);
}

/* Random ids, as BSD and others choose them: of 4000 datagrams in 20 s some 120 have one twice. */
CASE_TEST(random_ids)
{
	u64 seed = case_seed();
	u32 i, twice = 0, passed = 0;
	static u8 seen[65536];

	memset(seen, 0, sizeof(seen));
	use_up(t);
	for (i = 0; i < 4000; i++) {
		u32 id = (seed = seed * 6364136223846793005ULL + 1442695040888963407ULL) >> 48;
		const struct frame_spec first = { .sport = 1024 + i,
						  .dport = 2000 + i % 700,
						  .frag_more = true,
						  .payload = 64,
						  .frag_id = id };
		const struct frame_spec later = { .frag_offset = 9, .payload = 64, .frag_id = id };

		twice += seen[id]++ != 0;
		target_set_time(t, target_time(t) + 5 * SECOND / 1000);
		passed += case_send(t, &first, 1) + case_send(t, &later, 1);
	}
	assert_in_range(twice, 60, 200);
	/* A set of the memory may be full: then some of its later fragments meet port 53's
	 * limit. */
	assert_in_range(passed, 7990, 8000);
}

/*
 * Firsts to a port without a limit that a receiver may discard: none counts for the rest of a
 * datagram whose true first comes later.
 */
CASE_TEST(decoys)
{
/* clang-format off */
#define ODD_FIRST .frag_more = true, .payload = 63, .frag_id = 100
	/* clang-format on */
	static const struct {
		const char *what;
		struct frame_spec f;
	} decoy[] = {
		{ "wrong checksum", { FIRST(0), .bad_checksum = true } },
		{ "options", { FIRST(0), .ihl = 6 } },
		{ "odd length", { ODD_FIRST } },
		{ "another destination MAC", { FIRST(0), .mac = 0x77 } },
		{ "a tag", { FIRST(0), .tags = 1, .vlan = { 5 } } },
		{ "a tag of no VLAN", { FIRST(0), .tags = 1 } },
		{ "another interface", { FIRST(0), .iface = 1 } },
		{ "another hop limit", { FIRST(0), .hop_limit = 1 } },
		{ "IPv6, odd length", { V6, ODD_FIRST } },
		{ "IPv6, options",
		  { .v6 = true, .ext = { EXT_HOPBYHOP, EXT_FRAGMENT }, FIRST(0) } },
		{ "IPv6, options behind",
		  { .v6 = true, .ext = { EXT_FRAGMENT, EXT_DSTOPTS }, FIRST(0) } },
		{ "IPv6, another destination MAC", { V6, FIRST(0), .mac = 0x77 } },
	};
	struct target_verdict verdict;
	struct frame f;
	u32 i;

	for (i = 0; i < COUNT(decoy); i++) {
		struct frame_spec first = decoy[i].f, later = { LATER(0) };
		struct frame_spec other = { FIRST(1) }, others_later = { LATER(1) };

		if (first.v6) {
			later.v6 = other.v6 = others_later.v6 = true;
			later.ext[0] = other.ext[0] = others_later.ext[0] = EXT_FRAGMENT;
		}
		target_reset(t);
		use_up(t);
		case_frame(&first, &f);
		assert_int_equal(target_run(t, 0, first.iface, &f, &verdict), 0);
		if (verdict.drop || !case_meets(t, 0, &later, OVER))
			fail_msg("%s: %s", decoy[i].what, verdict.drop ? "dropped" : "believed");
		assert_true(case_meets(t, 0, &other, OTHER));
		assert_true(case_meets(t, 0, &others_later, OTHER));
	}
}

/* A chain of headers that is not read on may have made the receiver's first of any datagram. */
CASE_TEST(decoy_after_a_hidden_first)
{
	static const u16 chains[][FRAME_EXT_MAX + 1] = {
		{ 60, 60, 60, 60, 60, 60, 60, 60, 60, EXT_FRAGMENT },
		{ EXT_DSTOPTS, EXT_FRAGMENT },
		{ EXT_ROUTING, EXT_FRAGMENT },
		{ EXT_FRAGMENT, EXT_FRAGMENT },
		{ EXT_AH, EXT_FRAGMENT },
	};
	struct frame_spec hidden = {
		.src = "2001:db8::2", .frag_more = true, .frag_id = 100, .payload = 64
	};
	const struct frame_spec decoy = { V6, .src = "2001:db8::2", .dport = 9, FIRST(0) };
	const struct frame_spec later = { V6, .src = "2001:db8::2", LATER(0) };
	const struct frame_spec neighbor = { V6, .dport = 9, FIRST(0) };
	const struct frame_spec neighbors_later = { V6, LATER(0) };

	for (u32 i = 0; i < COUNT(chains); i++) {
		memcpy(hidden.ext, chains[i], sizeof(hidden.ext));
		target_reset(t);
		case_policy(
			t,
			"limits: [{name: dns, match: {proto: udp, dport: 53}, rate: 1 packets/h}]\n");
		case_send(t, &hidden, 1);
		case_send(t, &hidden, 1);
		assert_true(case_meets(t, 0, &neighbor, OTHER));
		assert_true(case_meets(t, 0, &decoy, OTHER));
		case_send(t, &later, 1);
		assert_true(case_meets(t, 0, &later, OVER));
		assert_true(case_meets(t, 0, &neighbors_later, OTHER));
		assert_true(case_meets(t, SL_FRAG_V6_NS + SECOND, &decoy, OTHER));
		assert_true(case_meets(t, SL_FRAG_V6_NS + SECOND, &later, OTHER));
	}
}

/* A first is remembered as long as a receiver may keep the fragments under it. */
CASE_TEST(expires)
{
	const struct frame_spec first = { FIRST(0) }, later = { LATER(0) };
	const struct frame_spec first53 = { .dport = 53, FIRST(0) };
	const struct frame_spec v6 = { V6, FIRST(0) }, v6_later = { V6, LATER(0) };
	u64 now;

	use_up(t);
	assert_true(case_meets(t, 0, &first, OTHER));
	assert_true(case_meets(t, 0, &v6, OTHER));
	assert_true(case_meets(t, now = SL_FRAG_V4_NS - 1, &later, OTHER));
	assert_true(case_meets(t, now += 31 * SECOND, &later, OTHER));
	assert_true(case_meets(t, now, &v6_later, OTHER));
	assert_true(case_meets(t, now += 31 * SECOND, &first53, AS_FIRST));
	/* A first alone renews it as well. */
	assert_true(case_meets(t, now, &first, OTHER));
	assert_true(case_meets(t, now + SL_FRAG_V4_NS - 1, &first53, AS_FIRST));
	now += SL_FRAG_V4_NS;
	assert_true(case_meets(t, now, &later, OVER));
	assert_true(case_meets(t, now, &v6_later, OTHER));
	/* Another datagram under the id. */
	now += SL_FRAG_STEP_NS;
	assert_true(case_meets(t, now, &first53, OVER));
	assert_true(case_meets(t, now, &later, AS_FIRST));
	now += SL_FRAG_V6_NS;
	assert_true(case_meets(t, now, &v6_later, OVER));
	assert_true(case_meets(t, now, &first, OTHER));
	assert_true(case_meets(t, now, &later, OTHER));
}

/* More firsts of one source than there are places for; all to `dport`. */
static void flood(struct target *t, u16 dport)
{
	struct frame_spec first = { .src = "192.0.2.66", .dport = dport, FIRST(0) };
	u32 i;

	for (i = 0; i < 3 * SL_FRAGS_MAX; i++) {
		first.frag_id = 1 + i % 65535;
		case_send(t, &first, 1);
	}
}

/* Remembered firsts stay, whatever others send; a first without a place counts as not seen. */
CASE_TEST(flood_of_firsts)
{
	struct frame_spec mine = { FIRST(0) }, my_later = { LATER(0) };
	const struct frame_spec true53 = { .src = "192.0.2.3", .dport = 53, FIRST(0) };
	const struct frame_spec decoy = { .src = "192.0.2.3", FIRST(0) };
	const struct frame_spec later = { .src = "192.0.2.3", LATER(0) };
	u64 now = 30 * SECOND;
	u32 i;

	case_policy(t,
		    "limits: [{name: dns, match: {proto: udp, dport: 53}, rate: 1 packets/h}]\n");
	for (i = 0; i < 100; i++, mine.frag_id++)
		assert_true(case_meets(t, 0, &mine, OTHER));
	flood(t, 9);
	assert_int_not_equal(target_errors(t), 0);
	for (i = 0; i < 100; i++, my_later.frag_id++)
		assert_true(case_meets(t, SECOND, &my_later, OTHER));
	/* A first without a place, one that finds it when others have ended, and the rest. */
	assert_true(case_meets(t, now, &true53, WITHIN));
	assert_true(case_meets(t, now = SL_FRAG_V4_NS + SECOND, &decoy, OTHER));
	assert_true(case_meets(t, now, &later, OVER));
	assert_true(case_meets(t, now = 3 * SL_FRAG_V4_NS, &decoy, OTHER));
	assert_true(case_meets(t, now, &later, OTHER));
}

/*
 * A flood over its limit leaves places to others; of its firsts the newest are remembered, and
 * those of which a receiver may have one.
 */
CASE_TEST(flood_of_dropped_firsts)
{
	struct frame_spec mine = { FIRST(0) }, my_later = { LATER(0) };
	struct frame_spec kept = { .dport = 53, .src = "192.0.2.7", FIRST(0) };
	const struct frame_spec kept_later = { .src = "192.0.2.7", LATER(0) };
	const struct frame_spec newest = { .src = "192.0.2.66",
					   .frag_offset = 9,
					   .payload = 64,
					   .frag_id = 1 + (3 * SL_FRAGS_MAX - 1) % 65535 };
	u32 i;

	case_policy(t, DNS);
	assert_true(case_meets(t, 0, &kept, WITHIN));
	assert_true(case_meets(t, 0, &kept, OVER));
	flood(t, 53);
	assert_true(case_meets(t, 0, &newest, AS_FIRST));
	assert_true(case_meets(t, 0, &kept_later, AS_FIRST));
	for (i = 0; i < 100; i++, mine.frag_id++)
		assert_true(case_meets(t, 0, &mine, OTHER));
	for (i = 0; i < 100; i++, my_later.frag_id++)
		assert_true(case_meets(t, 0, &my_later, OTHER));
	assert_int_equal(target_errors(t), 0);
}

/*
 * A SYN in pieces: the first ends before the flags, which are in the second. Each costs a
 * connection, for each may be one; so does a first that ends inside its chain of headers.
 */
CASE_TEST(connections_in_pieces)
{
	static const struct frame_spec kinds[][2] = {
		{ { .proto = 6, .dport = 80, .frag_more = true, .total = 28, .cut = 42 },
		  { .proto = 6, .frag_offset = 1, .payload = 12 } },
		{ { V6, .proto = 6, .dport = 80, .frag_more = true, .total = 16, .cut = 70 },
		  { V6, .proto = 6, .frag_offset = 1, .payload = 12 } },
		{ { .v6 = true,
		    .ext = { EXT_FRAGMENT, EXT_DSTOPTS },
		    .ext_units = { 0, 1 },
		    .proto = 6,
		    .dport = 80,
		    .frag_more = true,
		    .total = 16,
		    .cut = 70 },
		  { V6, .proto = 60, .frag_offset = 1, .payload = 28 } },
	};
	u32 kind, i;

	for (kind = 0; kind < COUNT(kinds); kind++) {
		struct frame_spec first = kinds[kind][0], second = kinds[kind][1];
		const struct frame_spec neighbor = {
			.src = "192.0.2.9", .proto = 6, .dport = 80, .tcp_flags = FRAME_SYN
		};
		u32 firsts = 0, seconds = 0;

		target_reset(t);
		case_policy(t, "limits: [{name: opens, match: {proto: tcp, dport: 80},"
			       " rate: 1 connections/h, burst: 5}]\n");
		for (i = 0; i < 20; i++) {
			first.frag_id = second.frag_id = 100 + i;
			firsts += case_send(t, &first, 1);
			seconds += case_send(t, &second, 1);
		}
		assert_in_range(firsts, 1, 5);
		assert_int_equal(firsts + seconds, 5);
		assert_int_equal(case_send(t, &neighbor, 9), 5);
	}
}

/* Failsafe ports: the rest of a datagram to one is no less safe than its first. */
CASE_TEST(failsafe)
{
	static const struct packet_case cases[] = {
		{ "first", { TCP_FIRST(0), .dport = 22 }, FAILSAFE },
		{ "later", { .proto = 6, LATER(0) }, FAILSAFE },
		{ "another port", { TCP_FIRST(1), .dport = 23 }, BLOCK },
		{ "its later", { .proto = 6, LATER(1) }, BLOCK },
		{ "unknown", { .proto = 6, LATER(2) }, BLOCK },
	};

	case_policy(t, "failsafe: [22/tcp]\nblock: [0.0.0.0/0]\nfragments: drop\n");
	CASES_RUN(t, cases);
}

int main(void)
{
	return case_main("fragment");
}
