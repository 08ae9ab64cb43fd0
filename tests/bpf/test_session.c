// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * test_session.c - step 2 of the order: login sessions pass whatever the rules are, and nothing
 * but they does.
 */
#include "lib/case.h"

#define PASS_SESSION SL_ACT_PASS, SL_R_SESSION

/* The sessions of most tests: one of each family. */
/* clang-format off */
#define HOST4 .src = "198.51.100.7"
#define PORTS4 .sport = 50022, .dport = 22, .proto = 6
#define PORTS6 .sport = 50023, .dport = 22, .proto = 6
#define ADMIN4 .src = "198.51.100.7", PORTS4
#define ADMIN6 .src = "2001:db8:bad::7", .dst = TARGET_LOCAL_V6, PORTS6
/* clang-format on */

static struct sl_session two[2];

static void give_two(struct target *t)
{
	two[0] = target_session("198.51.100.7", 50022, TARGET_LOCAL_V4, 22);
	two[1] = target_session("2001:db8:bad::7", 50023, TARGET_LOCAL_V6, 22);
	target_sessions(t, two, 2);
}

/* Neither the widest block nor the narrowest, of either family. */
CASE_TEST(under_any_block)
{
	static const char *const blocks[] = {
		"0.0.0.0/0, '::/0'",
		"198.51.100.7/32, '2001:db8:bad::7/128'",
		"198.51.100.0/24, '2001:db8:bad::/48'",
	};
	static const struct packet_case cases[] = {
		{ "the session", { ADMIN4 }, PASS_SESSION },
		{ "the session, SYN", { ADMIN4, .tcp_flags = FRAME_SYN }, PASS_SESSION },
		{ "the session, IPv6", { ADMIN6 }, PASS_SESSION },
		{ "behind a tag", { ADMIN4, .tags = 1 }, PASS_SESSION },
		{ "behind options", { ADMIN6, .ext = { EXT_HOPBYHOP } }, PASS_SESSION },
		{ "another remote port",
		  { HOST4, .sport = 50021, .dport = 22, .proto = 6 },
		  BLOCK },
		{ "another local port", { HOST4, .sport = 50022, .dport = 23, .proto = 6 }, BLOCK },
		{ "another local address", { ADMIN4, .dst = "203.0.113.11" }, BLOCK },
		{ "the same in UDP", { HOST4, .sport = 50022, .dport = 22 }, BLOCK },
		{ "the way back",
		  { .src = TARGET_LOCAL_V4,
		    .dst = "198.51.100.7",
		    .sport = 22,
		    .dport = 50022,
		    .proto = 6 },
		  BLOCK },
		{ "another address of it, IPv6",
		  { .src = "2001:db8:bad::7", .dst = "2001:db8:ffff::11", PORTS6 },
		  BLOCK },
		{ "a later fragment that may be it",
		  { ADMIN4, .frag_offset = 5, .payload = 8 },
		  BLOCK },
		{ "cut before the ports end", { ADMIN4, .total = 30 }, BLOCK },
	};

	give_two(t);
	for (u32 i = 0; i < COUNT(blocks); i++) {
		/* The first block also holds this host, which sends the way back. */
		case_policy(t, "block: [%s%s]\n", blocks[i], i ? ", 203.0.113.10" : "");
		CASES_RUN(t, cases);
	}
}

/* A neighbouring address is not in it. */
CASE_TEST(neighbours)
{
	static const struct packet_case cases[] = {
		{ "the session", { ADMIN4 }, PASS_SESSION },
		{ "the address before", { .src = "198.51.100.6", PORTS4 }, BLOCK },
		{ "the address behind", { .src = "198.51.100.8", PORTS4 }, BLOCK },
		{ "IPv6, the address behind",
		  { .src = "2001:db8:bad::8", .dst = TARGET_LOCAL_V6, PORTS6 },
		  BLOCK },
		/* c633:6407:: left-aligned begins as 198.51.100.7 does. */
		{ "IPv6 of the same bits",
		  { .src = "c633:6407::", .dst = "cb00:710a::", PORTS4 },
		  BLOCK },
	};

	give_two(t);
	case_policy(t, "block: [0.0.0.0/0, '::/0']\n");
	CASES_RUN(t, cases);
}

/* Limits, `fragments` and on_parse_error do not apply to it; none is charged. */
CASE_TEST(outside_limits)
{
	const struct frame_spec session = { ADMIN4 };
	const struct frame_spec other = { HOST4, .proto = 6, .dport = 22 };

	give_two(t);
	case_policy(t, "fragments: drop\non_parse_error: drop\n"
		       "limits: [{name: all, per: [], rate: 5 packets/h, burst: 5}]\n");
	assert_int_equal(case_send(t, &session, 100), 100);
	assert_int_equal(case_send(t, &other, 100), 5);
	assert_int_equal(case_send(t, &session, 100), 100);
	assert_int_equal(case_counted(t, "all", SL_LV_PASS), 5);
	assert_int_equal(target_count(t, 0, SL_R_SESSION, SL_ACT_PASS), 200);
}

/* A first fragment of it passes, and so does what follows. */
CASE_TEST(in_fragments)
{
	static const struct packet_case cases[] = {
		{ "first", { ADMIN4, .frag_more = true, .payload = 20 }, PASS_SESSION },
		{ "later", { ADMIN4, .frag_offset = 5, .payload = 8 }, PASS_SESSION },
		{ "later, of another",
		  { ADMIN4, .frag_offset = 5, .payload = 8, .frag_id = 5 },
		  BLOCK },
	};

	give_two(t);
	case_policy(t, "block: [0.0.0.0/0]\n");
	CASES_RUN(t, cases);
}

/* Without sessions nothing passes as one; sessions are removed with their rule set. */
CASE_TEST(none)
{
	static const struct packet_case cases[] = { { "none", { ADMIN4 }, BLOCK } };

	give_two(t);
	case_policy(t, "block: [0.0.0.0/0]\n");
	target_sessions(t, NULL, 0);
	case_apply(t);
	CASES_RUN(t, cases);
}

/* The largest number of sessions, in clusters of the table: each passes, and no neighbour of
 * one. */
CASE_TEST(as_many_as_fit)
{
	static struct sl_session all[SL_SESSIONS_MAX + 3];
	struct frame_spec s = { ADMIN4 };

	for (u32 i = 0; i < COUNT(all); i++)
		all[i] = target_session("198.51.100.7", 1000 + 2 * i, TARGET_LOCAL_V4, 22);
	target_sessions(t, all, COUNT(all));
	case_policy(t, "block: [0.0.0.0/0]\n");
	for (u32 i = 0; i < COUNT(all); i++) {
		s.sport = 1000 + 2 * i;
		assert_int_equal(case_send(t, &s, 1), i < SL_SESSIONS_MAX);
		s.sport++;
		assert_int_equal(case_send(t, &s, 1), 0);
	}
}

int main(void)
{
	return case_main("session");
}
