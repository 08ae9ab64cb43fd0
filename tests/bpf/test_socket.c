// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * test_socket.c - verdicts that depend on the kernel's sockets: the shares of failsafe ports and of
 * path-MTU messages, and bans. A flood without a socket is limited in sum, and takes nothing from
 * packets with one; and no source is banned by segments that others forge.
 */
#include <stdio.h>

#include "lib/case.h"
#include "lib/sockets.h"

#define SECOND SL_NS_PER_SEC

#define ADMIN "192.0.2.7"
#define ADMIN6 "2001:db8:5::7"
/* clang-format off */
#define SSH .proto = 6, .dport = 22
#define FROM_ADMIN .src = ADMIN, .sport = 50000, SSH
#define FROM_ADMIN6 .src = ADMIN6, .dst = TARGET_LOCAL_V6, .sport = 50006, SSH
/* clang-format on */

/* Of failsafe_rate 2: 20 packets/s a source without a socket, 200 in sum, 200 with a socket. */
#define RULES "failsafe: [22/tcp]\n" RATES
#define RATES                                                                                      \
	"failsafe_rate: 2 connections/s\n"                                                         \
	"essential: {rate: 5 packets/s}\n"                                                         \
	"limits: [{name: all, per: [], rate: 1 packets/h}]\n"

static const struct socket_spec sockets[] = {
	{ SOCKET_CONNECTED, .local = TARGET_LOCAL_V4, .local_port = 22, .remote = ADMIN,
	  .remote_port = 50000 },
	{ SOCKET_CONNECTED, .local = TARGET_LOCAL_V6, .local_port = 22, .remote = ADMIN6,
	  .remote_port = 50006 },
	{ SOCKET_OPENING, .local = TARGET_LOCAL_V4, .local_port = 2022, .remote = ADMIN,
	  .remote_port = 50001 },
	{ SOCKET_BOUND, .udp = true, .local = TARGET_LOCAL_V4, .local_port = 53 },
	{ SOCKET_BOUND, .udp = true, .local = TARGET_LOCAL_V6, .local_port = 53 },
	{ SOCKET_CONNECTED, .udp = true, .local = TARGET_LOCAL_V4, .local_port = 4433,
	  .remote = ADMIN, .remote_port = 443 },
};

static struct target *target_with_sockets(void **state, const char *rules)
{
	struct target *t = case_target(state);

	sockets_open(t, sockets, COUNT(sockets));
	case_policy(t, "%s", rules);
	/* The limit on all is used up: from here on packets pass by failsafe or path MTU. */
	assert_int_equal(case_send(t, &(struct frame_spec){ .dport = 9 }, 2), 1);
	return t;
}

/* One such packet from each of `count` sources; how many passed. */
static u32 spray(struct target *t, struct frame_spec spec, u32 count)
{
	char src[32];
	u32 passed = 0;

	spec.src = src;
	for (u32 i = 0; i < count; i++) {
		snprintf(src, sizeof(src), "198.18.%u.%u", i / 200, 1 + i % 200);
		passed += case_send(t, &spec, 1);
	}
	return passed;
}

/* ------------------------------------------------------------------ failsafe */

/* Without a socket: per source, then in sum; beyond that the limits decide. */
TEST(segments_without_a_socket)
{
	struct target *t = target_with_sockets(state, RULES);
	const struct frame_spec ack = { .src = "192.0.2.9", SSH };
	const struct frame_spec fin = { .src = "192.0.2.9", SSH, .tcp_flags = 1 };

	assert_int_equal(case_send(t, &ack, 50), 20);
	assert_int_equal(case_send(t, &fin, 5), 0);
	assert_int_equal(target_count(t, 0, SL_R_FAILSAFE, SL_ACT_PASS), 20);
	assert_int_equal(spray(t, (struct frame_spec){ SSH }, 400), 180);
	assert_int_equal(case_counted(t, "all", SL_LV_DROP), 1 + 30 + 5 + 220);
	assert_int_equal(target_count(t, 0, SL_R_FAILSAFE_OVER, SL_ACT_DROP), 0);
	/* Packets refused by the sum used nothing of the source's own share. */
	target_set_time(t, SECOND);
	assert_int_equal(case_send(t, &(struct frame_spec){ .src = "198.18.1.200", SSH }, 30), 20);
	sockets_close(t);
}

/* With a socket: floods in the sum do not affect it, also where its source is forged. */
TEST(segments_of_a_connection)
{
	struct target *t = target_with_sockets(state, RULES);
	const struct frame_spec admin = { FROM_ADMIN }, admin6 = { FROM_ADMIN6 };
	const struct frame_spec forged = { .src = ADMIN, .sport = 50002, SSH };
	static const struct packet_case cases[] = {
		{ "the connection", { FROM_ADMIN }, FAILSAFE },
		{ "IPv6", { FROM_ADMIN6 }, FAILSAFE },
		{ "behind a tag", { FROM_ADMIN, .tags = 1 }, FAILSAFE },
		{ "another source", { .src = "192.0.2.8", .sport = 50000, SSH }, OVER },
		{ "another port of it", { .src = ADMIN, .sport = 50003, SSH }, OVER },
		{ "another of this host's",
		  { .src = ADMIN, .sport = 50000, .proto = 6, .dport = 2022 },
		  OVER },
	};

	assert_int_equal(spray(t, (struct frame_spec){ SSH }, 400), 200);
	assert_int_equal(case_send(t, &forged, 50), 0);
	CASES_RUN(t, cases);
	assert_int_equal(case_send(t, &admin, 300), 199 - 1);
	assert_int_equal(case_send(t, &admin6, 300), 199);
	sockets_close(t);
}

/* Nor the handshake of one; packets that open a connection are limited as before. */
TEST(a_handshake)
{
	struct target *t = target_with_sockets(state, "failsafe: [22/tcp, 2022/tcp]\n" RATES);
	const struct frame_spec third = { .src = ADMIN, .sport = 50001, .proto = 6, .dport = 2022 };
	const struct frame_spec syn = { .src = "192.0.2.9", SSH, .tcp_flags = FRAME_SYN };

	assert_int_equal(spray(t, (struct frame_spec){ SSH }, 400), 200);
	assert_int_equal(case_send(t, &third, 20), 20);
	assert_int_equal(case_send(t, &syn, 5), 2);
	assert_int_equal(target_count(t, 0, SL_R_FAILSAFE_OVER, SL_ACT_DROP), 3);
	sockets_close(t);
}

/* A banned source has its share, and is banned beyond. */
TEST(of_a_banned_source)
{
	struct target *t = target_with_sockets(
		state, "failsafe: [22/tcp]\nfailsafe_rate: 2 connections/s\n"
		       "limits: [{name: all, rate: 1 packets/h, "
		       "ban: {after: 4 drops/10s, for: 60s, spoofable: yes}}]\n");
	const struct frame_spec other = { .src = "192.0.2.9", .dport = 80 };
	const struct frame_spec admin_other = { .src = ADMIN, .dport = 80 };
	const struct frame_spec ack = { .src = "192.0.2.9", SSH }, admin = { FROM_ADMIN };

	case_send(t, &other, 10);
	case_send(t, &admin_other, 10);
	assert_int_equal(target_count(t, 0, SL_R_BAN, SL_ACT_DROP), 8);
	assert_int_equal(case_send(t, &ack, 50), 20);
	assert_int_equal(target_count(t, 0, SL_R_BAN, SL_ACT_DROP), 8 + 30);
	assert_int_equal(case_send(t, &admin, 500), 200);
	assert_int_equal(target_count(t, 0, SL_R_BAN, SL_ACT_DROP), 8 + 30 + 300);
	sockets_close(t);
}

/* ------------------------------------------------------------------ path MTU */

#define QUOTED(...)                                                                                \
	&(const struct frame_spec)                                                                 \
	{                                                                                          \
		.src = TARGET_LOCAL_V4, __VA_ARGS__                                                \
	}
#define QUOTED6(...)                                                                               \
	&(const struct frame_spec)                                                                 \
	{                                                                                          \
		.src = TARGET_LOCAL_V6, __VA_ARGS__                                                \
	}
/* clang-format off */
#define FRAG_NEEDED .proto = 1, .icmp_type = 3, .icmp_code = 4
/* clang-format on */
#define TOO_BIG .v6 = true, .proto = 58, .icmp_type = 2

/* Forged ones use up the sum, and none of the share of a socket's peer. (over 70 lines: a table of
 * cases.) */
TEST(path_mtu_of_a_socket)
{
	struct target *t = target_with_sockets(state, RULES);
	const struct {
		const char *what;
		struct frame_spec f;
		u32 passes; /* of 20 */
	} cases[] = {
		{ "a connection",
		  { FRAG_NEEDED,
		    .quote = QUOTED(.dst = ADMIN, .proto = 6, .sport = 22, .dport = 50000) },
		  5 },
		{ "the same from elsewhere",
		  { .src = "192.0.2.99",
		    FRAG_NEEDED,
		    .quote = QUOTED(.dst = ADMIN, .proto = 6, .sport = 22, .dport = 50000) },
		  0 },
		{ "another port",
		  { FRAG_NEEDED,
		    .quote = QUOTED(.dst = ADMIN, .proto = 6, .sport = 22, .dport = 50009) },
		  0 },
		{ "another peer",
		  { FRAG_NEEDED,
		    .quote = QUOTED(.dst = "192.0.2.8", .proto = 6, .sport = 22, .dport = 50000) },
		  0 },
		{ "a handshake",
		  { FRAG_NEEDED,
		    .quote = QUOTED(.dst = ADMIN, .proto = 6, .sport = 2022, .dport = 50001) },
		  0 },
		{ "a later fragment of it",
		  { FRAG_NEEDED, .quote = QUOTED(.dst = ADMIN, .proto = 6, .sport = 22,
						 .dport = 50000, .frag_offset = 3) },
		  0 },
		{ "IPv6",
		  { TOO_BIG,
		    .quote = QUOTED6(.dst = ADMIN6, .proto = 6, .sport = 22, .dport = 50006),
		    .quote_length = 48 },
		  5 },
		{ "UDP to anybody",
		  { FRAG_NEEDED, .quote = QUOTED(.dst = "192.0.2.3", .sport = 53, .dport = 1234),
		    .quote_length = 28 },
		  5 },
		{ "UDP to another",
		  { FRAG_NEEDED, .quote = QUOTED(.dst = "192.0.2.4", .sport = 53, .dport = 99) },
		  0 },
		{ "UDP in IPv6", { TOO_BIG, .quote = QUOTED6(.dst = ADMIN6, .sport = 53) }, 5 },
		{ "no such UDP",
		  { FRAG_NEEDED, .quote = QUOTED(.dst = "192.0.2.3", .sport = 54) },
		  0 },
		{ "a header alone",
		  { FRAG_NEEDED,
		    .quote = QUOTED(.dst = ADMIN, .proto = 6, .sport = 22, .dport = 50000),
		    .quote_length = 20 },
		  0 },
		{ "another protocol",
		  { FRAG_NEEDED,
		    .quote = QUOTED(.dst = ADMIN, .proto = 132, .sport = 22, .dport = 50000) },
		  0 },
		{ "options around and in it",
		  { FRAG_NEEDED, .ihl = 7,
		    .quote = QUOTED(.dst = ADMIN, .ihl = 8, .sport = 4433, .dport = 443) },
		  0 },
	};

	assert_int_equal(spray(t, (struct frame_spec){ FRAG_NEEDED }, 40), 5);
	for (u32 i = 0; i < COUNT(cases); i++)
		if (case_send(t, &cases[i].f, 20) != cases[i].passes)
			fail_msg("%s: %s", target_name(t), cases[i].what);
	/* A second later each of them again; options are no hindrance. */
	target_set_time(t, SECOND);
	assert_int_equal(case_send(t, &cases[COUNT(cases) - 1].f, 20), 5);
	assert_int_equal(spray(t, (struct frame_spec){ FRAG_NEEDED }, 40), 5);
	assert_int_equal(target_count(t, 0, SL_R_PATH_MTU, SL_ACT_PASS), 5 + 4 * 5 + 5 + 5);
	sockets_close(t);
}

/* ------------------------------------------------------------------ bans */

#define ACK_BANS                                                                                   \
	"limits: [{name: acks, match: {tcp_flags: ack}, rate: 1 packets/h,"                        \
	" ban: {after: 4 drops/10s, for: 60s%s}}]\n"
/* clang-format off */
#define TO_CONNECTION .proto = 6, .dport = 22, .src = ADMIN, .sport = 50000
/* clang-format on */

static bool is_banned(struct target *t, const char *src)
{
	u64 before = target_count(t, 0, SL_R_BAN, SL_ACT_DROP);

	case_send(t, &(struct frame_spec){ .src = src, .dport = 9 }, 1);
	return target_count(t, 0, SL_R_BAN, SL_ACT_DROP) != before;
}

/* Only segments of an established connection, numbered as its peer numbers them, are proof. */
CASE_TEST(bans_need_proof)
{
	static const struct frame_spec forged[] = {
		{ .proto = 6, .src = "192.0.2.8", .dport = 22 },
		{ .proto = 6, .src = ADMIN, .sport = 50009, .dport = 22 },
		{ .proto = 6, .src = ADMIN, .sport = 50001, .dport = 2022 }, /* a handshake */
		{ .proto = 6, .src = ADMIN, .frag_offset = 5, .frag_id = 77 },
	};
	u32 next, i;

	sockets_open(t, sockets, COUNT(sockets));
	next = sockets_next_seq(t, 0);
	case_policy(t, ACK_BANS, "");
	for (i = 0; i < COUNT(forged); i++) {
		case_send(t, &forged[i], 60);
		assert_false(is_banned(t, forged[i].src));
	}
	for (i = 1; i < 16; i++)
		case_send(t, &(struct frame_spec){ TO_CONNECTION, .seq = next + (i << 28) }, 60);
	assert_false(is_banned(t, ADMIN));
	for (i = 0; i < 3; i++)
		case_send(t, &(struct frame_spec){ TO_CONNECTION, .seq = next + i * 1000 }, 1);
	case_send(t, &(struct frame_spec){ TO_CONNECTION, .seq = next - 1000 }, 1);
	assert_false(is_banned(t, ADMIN));
	case_send(t, &(struct frame_spec){ TO_CONNECTION, .seq = next + 4000 }, 1);
	assert_true(is_banned(t, ADMIN));
	assert_false(is_banned(t, "192.0.2.8"));
	/* With `spoofable` any segment is. */
	case_policy(t, ACK_BANS, ", spoofable: yes");
	case_send(t, &forged[0], 6);
	assert_true(is_banned(t, forged[0].src));
	sockets_close(t);
}

int main(void)
{
	sockets_prepare();
	return case_main("socket");
}
