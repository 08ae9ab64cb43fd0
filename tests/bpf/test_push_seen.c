// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * test_push_seen.c - which sources count as established, and for how long.
 */
#include "push_rig.h"

/* ------------------------------------------------------------------ established sources */

static bool seen(struct target *t, const char *src, u64 within)
{
	struct sl_prefix prefix = prefix_of(src);

	return dp_push_seen(target_dp(t), &prefix, target_mono(t), within);
}

/* Sends such a packet, at the target's time: returns whether its source is established then. */
static bool seen_by(struct target *t, const struct frame_spec *spec, const u8 *payload, u32 size)
{
	struct target_verdict v;
	struct frame f;

	case_frame(spec, &f);
	if (payload)
		memcpy(f.data + f.l4 + 8, payload, size);
	assert_int_equal(target_run(t, 0, 0, &f, &v), 0);
	return seen(t, spec->src, 10 * SECOND);
}

/* clang-format off */
#define TCP(n) .src = "192.0.2." #n, .proto = 6
#define QUIC(n) .src = "192.0.2." #n, .dport = 443, .payload = 30
/* clang-format on */

CASE_TEST(established_sources)
{
	static const struct {
		const char *what;
		struct frame_spec f;
		u8 first; /* of a UDP payload */
		bool established;
	} cases[] = {
		{ "ACK", { TCP(1) }, 0, true },
		{ "data", { TCP(2), .tcp_flags = FRAME_ACK | FRAME_PSH, .payload = 9 }, 0, true },
		{ "SYN", { TCP(3), .tcp_flags = FRAME_SYN }, 0, false },
		{ "SYN and ACK", { TCP(4), .tcp_flags = FRAME_SYN | FRAME_ACK }, 0, false },
		{ "RST and ACK", { TCP(5), .tcp_flags = FRAME_RST | FRAME_ACK }, 0, false },
		{ "a fragment", { TCP(6), .frag_more = true }, 0, false },
		{ "QUIC, short header", { QUIC(7) }, 0x5a, true },
		{ "QUIC, long header", { QUIC(8) }, 0xda, false },
		{ "no QUIC", { QUIC(9) }, 0x1a, false },
		{ "no payload", { .src = "192.0.2.10", .dport = 443 }, 0, false },
		{ "another port",
		  { .src = "192.0.2.11", .dport = 444, .payload = 30 },
		  0x5a,
		  false },
		{ "QUIC behind options", { QUIC(12), .ihl = 7 }, 0x5a, true },
		{ "IPv6", { .src = "2001:db8::1", .proto = 6 }, 0, true },
		{ "QUIC, IPv6", { .src = "2001:db8::2", .dport = 443, .payload = 30 }, 0x5a, true },
		{ "echo request", { .src = "192.0.2.13", .proto = 1, .icmp_type = 8 }, 0, false },
		{ "exempt", { .src = "10.0.0.1", .proto = 6 }, 0, false },
		{ "blocked", { .src = "198.51.100.1", .proto = 6 }, 0, false },
		{ "pushed down", { TCP(66) }, 0, false },
	};
	int failed = 0;

	case_policy(t, "exempt: [10.0.0.0/8]\nblock: [198.51.100.0/24]\nlimits: []\n");
	assert_int_equal(put(t, "192.0.2.66", SL_PUSH_DROP, 0, 60), 0);
	assert_false(seen_by(t, &cases[0].f, NULL, 0));
	assert_int_equal(dp_push_watch(target_dp(t), true), 0);
	for (u32 i = 0; i < COUNT(cases); i++) {
		if (seen_by(t, &cases[i].f, cases[i].first ? &cases[i].first : NULL, 1) ==
		    cases[i].established)
			continue;
		print_error("%s: %s\n", target_name(t), cases[i].what);
		failed++;
	}
	assert_int_equal(failed, 0);
	assert_false(seen(t, "2001:db8::3", 10 * SECOND));
	assert_int_equal(dp_push_watch(target_dp(t), false), 0);
	assert_false(seen_by(t, &(struct frame_spec){ TCP(99) }, NULL, 0));
}

/* For the time configured, within a unit of time; written once in each. */
CASE_TEST(established_for_a_time)
{
	static const struct frame_spec ack = { TCP(1) };
	u64 unit = 1ULL << SL_ESTABLISHED_SHIFT;

	assert_int_equal(dp_push_watch(target_dp(t), true), 0);
	assert_true(seen_by(t, &ack, NULL, 0));
	target_set_time(t, 10 * SECOND);
	assert_true(seen(t, "192.0.2.1", 10 * SECOND));
	target_set_time(t, 10 * SECOND + unit);
	assert_false(seen(t, "192.0.2.1", 10 * SECOND));
	assert_true(seen(t, "192.0.2.1", 12 * SECOND));
	assert_true(seen_by(t, &ack, NULL, 0));
	target_set_time(t, 20 * SECOND);
	assert_true(seen(t, "192.0.2.1", 10 * SECOND));
	assert_int_equal(dp_push_watch(target_dp(t), true), 0);
	assert_true(seen(t, "192.0.2.1", 10 * SECOND));
}

/* A flood of others removes no established source that goes on sending, nor establishes another. */
CASE_TEST(established_in_a_flood)
{
	struct frame_spec s = { .proto = 6 };
	char src[32];
	u32 found = 0, missed = 0;

	s.src = src;
	assert_int_equal(dp_push_watch(target_dp(t), true), 0);
	for (u32 i = 0; i < 20000; i++) {
		snprintf(src, sizeof(src), "10.%u.%u.%u", i >> 14, (i >> 6) & 255, i & 63);
		case_send(t, &s, 1);
		missed += !seen(t, src, 10 * SECOND);
		snprintf(src, sizeof(src), "11.%u.%u.%u", i >> 14, (i >> 6) & 255, i & 63);
		found += seen(t, src, 10 * SECOND);
	}
	assert_int_equal(missed, 0);
	assert_int_equal(found, 0);
}

int main(void)
{
	return case_main("push seen");
}
