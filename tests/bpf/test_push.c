// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * test_push.c - step 6 of the order: push-downs. What each kind passes, from which source, until
 * when. No daemon: only the program, the clock, and dp_push.h.
 */
#include "push_rig.h"

static struct dp_push push_of(struct target *t, const char *src)
{
	struct sl_prefix prefix = prefix_of(src);
	struct dp_push push = { .packets = ~0ULL };

	dp_push_get(target_dp(t), &prefix, &push);
	return push;
}

/* How many packets it met, and how many of them it refused. */
static void expect_counted(struct target *t, const char *src, u64 packets, u64 refused)
{
	struct dp_push push = push_of(t, src);

	assert_int_equal(push.packets, packets);
	assert_int_equal(push.refused, refused);
}

static int del(struct target *t, const char *src)
{
	struct sl_prefix prefix = prefix_of(src);

	return dp_push_del(target_dp(t), &prefix);
}

static size_t pushes_there_are(struct target *t)
{
	struct dp_push *push;
	size_t count;

	assert_int_equal(dp_pushes(target_dp(t), &push, &count), 0);
	free(push);
	return count;
}

/* ------------------------------------------------------------------ drop */

CASE_TEST(all_is_dropped)
{
	static const struct packet_case cases[] = {
		{ "UDP", { BAD }, DROPPED },
		{ "TCP", { BAD, .proto = 6, .dport = 443 }, DROPPED },
		{ "first fragment", { BAD, .frag_more = true }, DROPPED },
		{ "later fragment", { BAD, .frag_offset = 5 }, DROPPED },
		{ "malformed", { BAD, .udp_length = 3 }, DROPPED },
		{ "truncated", { BAD, .total = 22 }, DROPPED },
		{ "frag-needed", { BAD, .proto = 1, .icmp_type = 3, .icmp_code = 4 }, DROPPED },
		{ "tagged", { BAD, .tags = 1, .vlan = { 5 } }, DROPPED },
		{ "on the other interface", { BAD, .iface = 1 }, DROPPED },
		{ "ARP", { BAD, .ethertype = 0x0806 }, SL_ACT_PASS, SL_R_ARP },
		{ "the address before", { .src = "192.0.2.65" }, OTHER },
		{ "the address behind", { .src = "192.0.2.67" }, OTHER },
		{ "as destination", { .dst = "192.0.2.66" }, OTHER },
		{ "IPv6 of the same bits", { .src = "c000:242::" }, OTHER },
	};

	assert_true(case_meets(t, 0, &bad, OTHER));
	assert_int_equal(put(t, "192.0.2.66", SL_PUSH_DROP, 0, 60), 0);
	CASES_RUN(t, cases);
	expect_counted(t, "192.0.2.66", 9, 9);
	assert_int_equal(push_of(t, "192.0.2.66").note, 7);
	assert_int_equal(target_errors(t), 0);
}

/* To the nanosecond, by the program's own clock: nothing has to remove it. */
CASE_TEST(ends_by_itself)
{
	static const enum sl_push_kind kinds[] = { SL_PUSH_DROP, SL_PUSH_TAG, SL_PUSH_LIMIT };
	static const enum sl_reason reasons[] = { SL_R_PUSH_DROP, SL_R_PUSH_TAG, SL_R_PUSH_LIMIT };

	for (u32 i = 0; i < COUNT(kinds); i++) {
		enum sl_action action = kinds[i] == SL_PUSH_TAG ? SL_ACT_TAG : SL_ACT_DROP;

		target_reset(t);
		assert_int_equal(put(t, "192.0.2.66", kinds[i], 1, 60), 0);
		target_set_time(t, 60 * SECOND - 2);
		if (kinds[i] == SL_PUSH_LIMIT)
			assert_int_equal(case_send(t, &bad, 1), 1);
		assert_true(case_meets(t, 60 * SECOND - 1, &bad, action, reasons[i]));
		assert_true(case_meets(t, 60 * SECOND, &bad, OTHER));
		assert_int_equal(pushes_there_are(t), 1);
		assert_int_equal(dp_pushes_expire(target_dp(t), target_mono(t) - 1), 0);
		assert_int_equal(dp_pushes_expire(target_dp(t), target_mono(t)), 1);
		assert_int_equal(pushes_there_are(t), 0);
		assert_int_equal(target_dp(t)->push_now->flags, 0);
	}
}

/* ------------------------------------------------------------------ limit */

/* A token bucket of one second's worth, of all the source's packets; of no other's. */
CASE_TEST(limit_is_a_bucket)
{
	static const struct frame_spec kinds[] = {
		{ BAD },
		{ BAD, .proto = 6, .tcp_flags = FRAME_SYN },
		{ BAD, .dport = 443 },
		{ BAD, .udp_length = 3 },
	};
	static const struct frame_spec neighbour = { .src = "192.0.2.67" };

	assert_int_equal(put(t, "192.0.2.66", SL_PUSH_LIMIT, 5, 3600), 0);
	for (u32 i = 0; i < 5; i++)
		assert_int_equal(case_send(t, &kinds[i % COUNT(kinds)], 1), 1);
	for (u32 i = 0; i < 5; i++)
		assert_true(case_meets(t, 0, &kinds[i % COUNT(kinds)], LIMITED));
	assert_int_equal(case_send(t, &neighbour, 100), 100);
	expect_counted(t, "192.0.2.66", 10, 5);
	assert_true(case_meets(t, SECOND / 5 - 1, &bad, LIMITED));
	assert_true(case_meets(t, SECOND / 5, &bad, OTHER));
	assert_true(case_meets(t, SECOND / 5, &bad, LIMITED));
	target_set_time(t, 100 * SECOND);
	assert_int_equal(case_send(t, &bad, 50), 5);
}

/* Over any time: at most burst + rate x time, and no less while it keeps sending. */
CASE_TEST(limit_over_a_minute)
{
	u32 passed = 0;

	assert_int_equal(put(t, "192.0.2.66", SL_PUSH_LIMIT, 50, 3600), 0);
	for (u32 i = 0; i < 600; i++) {
		target_set_time(t, i * (SECOND / 10));
		passed += case_send(t, &bad, 20);
	}
	assert_in_range(passed, 50 + 50 * 59, 50 + 50 * 60);
}

/* Renewing a push-down, or another rate, gives no new burst; counters continue. */
CASE_TEST(a_renewal_adds_no_burst)
{
	assert_int_equal(put(t, "192.0.2.66", SL_PUSH_LIMIT, 10, 3600), 0);
	assert_int_equal(case_send(t, &bad, 15), 10);
	for (u32 i = 0; i < 5; i++) {
		assert_int_equal(put(t, "192.0.2.66", SL_PUSH_LIMIT, i % 2 ? 10 : 5, 3600), 0);
		assert_true(case_meets(t, 0, &bad, LIMITED));
	}
	assert_int_equal(put(t, "192.0.2.66", SL_PUSH_DROP, 0, 3600), 0);
	assert_true(case_meets(t, 0, &bad, DROPPED));
	assert_int_equal(put(t, "192.0.2.66", SL_PUSH_LIMIT, 10, 3600), 0);
	assert_true(case_meets(t, 0, &bad, LIMITED));
	expect_counted(t, "192.0.2.66", 22, 12);
	assert_int_equal(pushes_there_are(t), 1);
}

/* ------------------------------------------------------------------ no-new */

#define TCP BAD, .proto = 6
CASE_TEST(new_connections)
{
	static const struct packet_case cases[] = {
		{ "SYN", { TCP, .tcp_flags = FRAME_SYN }, NO_NEW },
		{ "SYN with data",
		  { TCP, .tcp_flags = FRAME_SYN | FRAME_PSH, .payload = 100 },
		  NO_NEW },
		{ "SYN and ACK", { TCP, .tcp_flags = FRAME_SYN | FRAME_ACK }, OTHER },
		{ "ACK", { TCP, .payload = 100 }, OTHER },
		{ "RST", { TCP, .tcp_flags = FRAME_RST }, OTHER },
		{ "no flags", { TCP, .null_flags = true }, OTHER },
		{ "UDP", { BAD }, OTHER },
		{ "UDP fragment", { BAD, .frag_offset = 5 }, OTHER },
		{ "echo request", { BAD, .proto = 1, .icmp_type = 8 }, OTHER },
		{ "a TCP header that cannot be read", { TCP, .doff = 3 }, NO_NEW },
		{ "half a TCP header",
		  { TCP, .frag_more = true, .cut = 14 + 20 + 8, .total = 28 },
		  NO_NEW },
		{ "a fragment of TCP, its first not seen",
		  { TCP, .frag_offset = 5, .frag_id = 9 },
		  NO_NEW },
		{ "SYN of the neighbour",
		  { .src = "192.0.2.67", .proto = 6, .tcp_flags = FRAME_SYN },
		  OTHER },
	};

	assert_int_equal(put(t, "192.0.2.66", SL_PUSH_NO_NEW, 0, 60), 0);
	CASES_RUN(t, cases);
}

/* Later fragments get their first's verdict, whatever else the rules contain. */
CASE_TEST(fragments_of_connections)
{
	static const struct packet_case cases[] = {
		{ "first, ACK", { TCP, .frag_more = true, .frag_id = 1, .payload = 20 }, OTHER },
		{ "its rest", { TCP, .frag_offset = 5, .frag_id = 1 }, OTHER },
		{ "first, SYN",
		  { TCP, .frag_more = true, .frag_id = 2, .tcp_flags = FRAME_SYN },
		  NO_NEW },
		{ "its rest", { TCP, .frag_offset = 5, .frag_id = 2 }, NO_NEW },
	};
	static const struct frame_spec first = { BAD, .frag_more = true, .frag_id = 3 };
	static const struct frame_spec rest = { BAD, .frag_offset = 5, .frag_id = 3 };

	assert_int_equal(put(t, "192.0.2.66", SL_PUSH_NO_NEW, 0, 60), 0);
	CASES_RUN(t, cases);
	assert_int_equal(put(t, "192.0.2.66", SL_PUSH_LIMIT, 1, 60), 0);
	assert_int_equal(case_send(t, &bad, 1), 1);
	assert_true(case_meets(t, 0, &first, LIMITED));
	/* The bucket has room again, but the datagram of a dropped first cannot be put together. */
	assert_true(case_meets(t, SECOND, &rest, SL_ACT_DROP, SL_R_FRAGMENT));
}

/* ------------------------------------------------------------------ tag */

/* The frame's DSCP behind the program, ECN as it was; and its mark. */
CASE_TEST(tags)
{
	static const char *const src[] = { "192.0.2.66", "2001:db8:66::1" };
	struct target_verdict v;
	struct frame f;

	for (u32 i = 0; i < COUNT(src); i++) {
		assert_int_equal(put(t, src[i], SL_PUSH_TAG, 0, 60), 0);
		case_frame(&(struct frame_spec){ .src = src[i], .tos = 0xb9 }, &f);
		assert_int_equal(target_run(t, 0, 0, &f, &v), 0);
		assert_int_equal(v.action, SL_ACT_TAG);
		assert_int_equal(v.reason, SL_R_PUSH_TAG);
		assert_true(v.marked && v.mark == SL_PUSH_MARK);
		if (i)
			assert_int_equal((f.data[f.l3] << 4 | f.data[f.l3 + 1] >> 4) & 0xff,
					 8 << 2 | 1);
		else
			assert_int_equal(f.data[f.l3 + 1], 8 << 2 | 1);
		expect_counted(t, src[i], 1, 0); /* it passes */
	}
	assert_true(dp_marks(target_dp(t)));
}

/* Only then the mark reader is needed. */
CASE_TEST(who_marks)
{
	assert_int_equal(put(t, "192.0.2.65", SL_PUSH_LIMIT, 10, 60), 0);
	assert_false(dp_marks(target_dp(t)));
	assert_int_equal(put(t, "192.0.2.66", SL_PUSH_TAG, 0, 5), 0);
	assert_true(dp_marks(target_dp(t)));
	target_set_time(t, 10 * SECOND);
	assert_int_equal(dp_pushes_expire(target_dp(t), target_mono(t)), 1);
	assert_false(dp_marks(target_dp(t)));
	assert_int_equal(put(t, "192.0.2.66", SL_PUSH_TAG, 0, 60), 0);
	assert_true(dp_marks(target_dp(t)));
}

/* First in the order: before the tags of limits; and dropped packets stay dropped. */
CASE_TEST(tags_and_limits)
{
	static const struct frame_spec neighbour = { .src = "192.0.2.67" };
	struct target_verdict v;
	struct frame f;

	case_policy(t, "limits:\n- {name: tags, rate: 1 packets/h, action: tag, tag: {mark: 9}}\n"
		       "- {name: all, rate: 3 packets/h, burst: 3}\n");
	assert_int_equal(put(t, "192.0.2.66", SL_PUSH_TAG, 0, 60), 0);
	assert_true(case_meets(t, 0, &bad, TAGGED));
	case_frame(&bad, &f);
	assert_int_equal(target_run(t, 0, 0, &f, &v), 0);
	assert_int_equal(v.reason, SL_R_OVER);
	assert_int_equal(v.mark, SL_PUSH_MARK);
	assert_int_equal(f.data[f.l3 + 1], 8 << 2);
	assert_int_equal(case_send(t, &bad, 1), 1);
	assert_true(case_meets(t, 0, &bad, OVER));
	assert_true(case_meets(t, 0, &neighbour, WITHIN));
	case_frame(&neighbour, &f);
	assert_int_equal(target_run(t, 0, 0, &f, &v), 0);
	assert_int_equal(v.mark, 9);
	assert_int_equal(f.data[f.l3 + 1], 0);
}

/* ------------------------------------------------------------------ order */

CASE_TEST(order)
{
	static const struct packet_case cases[] = {
		{ "exempt", { .src = "10.0.0.66" }, EXEMPT },
		{ "failsafe port", { BAD, .proto = 6, .dport = 22 }, FAILSAFE },
		{ "the same port of another host",
		  { BAD, .proto = 6, .dport = 22, .dst = "192.0.2.9" },
		  DROPPED },
		{ "a session",
		  { BAD, .proto = 6, .sport = 4444, .dport = 2222 },
		  SL_ACT_PASS,
		  SL_R_SESSION },
		{ "the session's neighbour",
		  { BAD, .proto = 6, .sport = 4445, .dport = 2222 },
		  DROPPED },
		{ "blocked", { .src = "198.51.100.66" }, BLOCK },
		{ "before limits", { BAD, .dport = 80 }, DROPPED },
		{ "nobody", { .src = "192.0.2.67", .dport = 80 }, WITHIN },
	};
	struct sl_session session = target_session("192.0.2.66", 4444, TARGET_LOCAL_V4, 2222);

	target_sessions(t, &session, 1);
	case_policy(t, "failsafe: [22/tcp]\nexempt: [10.0.0.0/8]\nblock: [198.51.100.0/24]\n"
		       "limits: [{name: web, match: {dport: 80}, rate: 1 packets/h}]\n");
	assert_int_equal(put(t, "192.0.2.66", SL_PUSH_DROP, 0, 60), 0);
	assert_int_equal(put(t, "10.0.0.66", SL_PUSH_DROP, 0, 60), 0);
	assert_int_equal(put(t, "198.51.100.66", SL_PUSH_DROP, 0, 60), 0);
	CASES_RUN(t, cases);
	assert_int_equal(case_counted(t, "web", SL_LV_DROP), 0);
	expect_counted(t, "10.0.0.66", 0, 0);
	expect_counted(t, "198.51.100.66", 0, 0);
	/* Push-downs survive a change of the rule set. */
	case_policy(t, "limits: []\n");
	assert_true(case_meets(t, 0, &bad, DROPPED));
}

/* A ban is looked up first; drops by a push-down count towards no ban. */
CASE_TEST(beside_bans)
{
	static const struct frame_spec web = { BAD, .dport = 80 };

	case_policy(t, "limits: [{name: web, match: {dport: 80}, rate: 1 packets/h, ban: {after: 4 "
		       "drops/10s, for: 30s, spoofable: yes}}]\n");
	assert_int_equal(put(t, "192.0.2.66", SL_PUSH_DROP, 0, 10), 0);
	for (u32 i = 0; i < 20; i++)
		assert_true(case_meets(t, 0, &web, DROPPED));
	assert_true(case_meets(t, 10 * SECOND, &web, WITHIN));
	assert_int_equal(case_send(t, &web, 6), 0);
	assert_int_equal(put(t, "192.0.2.66", SL_PUSH_DROP, 0, 60), 0);
	assert_true(case_meets(t, 10 * SECOND, &web, SL_ACT_DROP, SL_R_BAN));
	assert_true(case_meets(t, 40 * SECOND, &web, DROPPED));
}

/* ------------------------------------------------------------------ whom */

CASE_TEST(prefixes)
{
	static const struct packet_case cases[] = {
		{ "first of the /24", { .src = "192.0.2.0" }, DROPPED },
		{ "last of the /24", { .src = "192.0.2.255" }, DROPPED },
		{ "before the /24", { .src = "192.0.1.255" }, OTHER },
		{ "behind the /24", { .src = "192.0.3.0" }, OTHER },
		{ "first of the /64", { .src = "2001:db8:0:1::" }, DROPPED },
		{ "last of the /64", { .src = "2001:db8:0:1:ffff:ffff:ffff:ffff" }, DROPPED },
		{ "before the /64", { .src = "2001:db8:0:0:ffff:ffff:ffff:ffff" }, OTHER },
		{ "behind the /64", { .src = "2001:db8:0:2::" }, OTHER },
		{ "the /128", { .src = "2001:db8:5::1" }, TAGGED },
		{ "beside the /128", { .src = "2001:db8:5::2" }, OTHER },
	};

	assert_int_equal(put(t, "192.0.2.0/24", SL_PUSH_DROP, 0, 60), 0);
	assert_int_equal(put(t, "2001:db8:0:1::/64", SL_PUSH_DROP, 0, 60), 0);
	assert_int_equal(put(t, "2001:db8:5::1", SL_PUSH_TAG, 0, 60), 0);
	CASES_RUN(t, cases);
	expect_counted(t, "192.0.2.0/24", 2, 2);
	assert_int_equal(del(t, "192.0.2.0/25"), -ENOENT);
	assert_int_equal(del(t, "192.0.2.0/24"), 0);
	assert_int_equal(del(t, "192.0.2.0/24"), -ENOENT);
	assert_true(case_meets(t, 0, &bad, OTHER));
	/* The length of the others is removed with its last push-down; theirs stays. */
	assert_int_equal(dp_pushes_expire(target_dp(t), target_mono(t)), 0);
	assert_true(case_meets(t, 0, &(struct frame_spec){ .src = "2001:db8:0:1::5" }, DROPPED));
}

/* Of a prefix and a longer one in it, both apply. */
CASE_TEST(prefixes_in_one_another)
{
	assert_int_equal(put(t, "192.0.2.66", SL_PUSH_LIMIT, 2, 60), 0);
	assert_int_equal(put(t, "192.0.2.0/24", SL_PUSH_LIMIT, 5, 60), 0);
	assert_int_equal(case_send(t, &bad, 10), 2);
	assert_int_equal(case_send(t, &(struct frame_spec){ .src = "192.0.2.67" }, 10), 3);
	target_set_time(t, 10 * SECOND);
	assert_int_equal(put(t, "192.0.2.66", SL_PUSH_TAG, 0, 60), 0);
	assert_true(case_meets(t, 10 * SECOND, &bad, TAGGED));
	assert_int_equal(put(t, "192.0.2.0/24", SL_PUSH_DROP, 0, 60), 0);
	assert_true(case_meets(t, 10 * SECOND, &bad, DROPPED));
}

CASE_TEST(room)
{
	char src[32];

	/* Four lengths of a family. */
	assert_int_equal(put(t, "192.0.2.66", SL_PUSH_TAG, 0, 60), 0);
	assert_int_equal(put(t, "192.0.2.0/31", SL_PUSH_TAG, 0, 60), 0);
	assert_int_equal(put(t, "192.0.2.0/24", SL_PUSH_TAG, 0, 60), 0);
	assert_int_equal(put(t, "192.0.0.0/16", SL_PUSH_TAG, 0, 60), 0);
	assert_int_equal(put(t, "192.0.2.0/30", SL_PUSH_TAG, 0, 60), -E2BIG);
	assert_int_equal(put(t, "2001:db8::/30", SL_PUSH_TAG, 0, 60), 0);
	assert_int_equal(del(t, "192.0.2.0/31"), 0);
	assert_int_equal(dp_pushes_expire(target_dp(t), target_mono(t)), 0);
	assert_int_equal(put(t, "192.0.2.0/30", SL_PUSH_TAG, 0, 60), 0);
	assert_int_equal(put(t, "0.0.0.0/0", SL_PUSH_TAG, 0, 60), -EINVAL);
	assert_int_equal(put(t, "192.0.2.66", SL_PUSH_COUNT, 0, 60), -EINVAL);

	/* As many as there are, each of them found. */
	target_reset(t);
	for (u32 i = 0; i < SL_PUSHES_MAX; i++) {
		snprintf(src, sizeof(src), "10.%u.%u.9", i >> 8, i & 255);
		assert_int_equal(put(t, src, SL_PUSH_DROP, 0, 60), 0);
	}
	assert_int_equal(put(t, "192.0.2.66", SL_PUSH_DROP, 0, 60), -E2BIG);
	assert_int_equal(put(t, "10.7.7.9", SL_PUSH_DROP, 0, 60), 0);
	assert_int_equal(pushes_there_are(t), SL_PUSHES_MAX);
	for (u32 i = 0; i < SL_PUSHES_MAX; i += 97) {
		snprintf(src, sizeof(src), "10.%u.%u.9", i >> 8, i & 255);
		assert_int_equal(case_send(t, &(struct frame_spec){ .src = src }, 1), 0);
		snprintf(src, sizeof(src), "10.%u.%u.8", i >> 8, i & 255);
		assert_int_equal(case_send(t, &(struct frame_spec){ .src = src }, 1), 1);
	}
	assert_int_equal(dp_pushes_expire(target_dp(t), ~0ULL), SL_PUSHES_MAX);
}

int main(void)
{
	return case_main("push");
}
