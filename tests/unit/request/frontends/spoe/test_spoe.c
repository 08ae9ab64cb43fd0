// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The SPOE agent's connections: negotiation, the error for each break of the protocol, a
 * response as variables.
 */
#include "spoe_rig.h"

/* ------------------------------------------------------------------ hello */

RIG_TEST(test_hello)
{
	static const struct {
		const char *versions, *capabilities, *response;
		u32 frame_max;
	} cases[] = {
		{ "2.0", "pipelining,async",
		  "version=2.0 max-frame-size=16380 capabilities=pipelining", 16380 },
		{ "1.0, 2.3 ,3.0", " async , pipelining ",
		  "version=2.0 max-frame-size=256 capabilities=pipelining", 256 },
		{ "2.0", "", "version=2.0 max-frame-size=16380 capabilities=", 16380 },
		{ "2.0", "pipeliningx,fragmentation",
		  "version=2.0 max-frame-size=262144 capabilities=", 4000000000U },
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct spop_frame frame;

		send_hello(cases[i].versions, cases[i].frame_max, cases[i].capabilities);
		frame = next_frame();
		assert_int_equal(frame.type, SPOP_AGENT_HELLO);
		assert_string_equal(pairs_text(frame), cases[i].response);
		assert_false(rig.eof);
		close(rig.fd);
		rig.fd = open_connection();
	}
}

RIG_TEST(test_hello_bad)
{
	static const struct {
		const char *versions, *capabilities;
		u32 frame_max;
		enum spop_status status;
	} cases[] = {
		{ NULL, "pipelining", 16380, SPOP_NO_VERSION },
		{ "2.0", "pipelining", 0, SPOP_NO_FRAME_SIZE },
		{ "2.0", NULL, 16380, SPOP_NO_CAPABILITIES },
		{ "1.0", "", 16380, SPOP_BAD_VERSION },
		{ "3.0,20.0,2,2.", "", 16380, SPOP_BAD_VERSION },
		{ "2.0", "", 255, SPOP_BAD_FRAME_SIZE },
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		send_hello(cases[i].versions, cases[i].frame_max, cases[i].capabilities);
		expect_disconnect(cases[i].status);
		assert_int_equal(core.malformed, i + 1);
		rig.eof = false;
		core.ended = 0;
		rig.fd = open_connection();
	}
}

/* A health check gets a response and is closed, without a DISCONNECT. */
RIG_TEST(test_health_check)
{
	struct spop_writer writer =
		spop_frame_begin(memory, sizeof(memory), SPOP_HAPROXY_HELLO, 0, 0);

	put_string(&writer, "supported-versions", "2.0");
	spop_put_pair_number(&writer, "max-frame-size", 16380);
	put_string(&writer, "capabilities", "pipelining");
	spop_put_text(&writer, bytes_of("healthcheck"));
	spop_put_value(&writer, &(struct spop_value){ SPOP_BOOL, 1, { 0 } });
	send_bytes(memory, spop_frame_end(&writer));
	assert_int_equal(next_frame().type, SPOP_AGENT_HELLO);
	turn();
	assert_true(rig.eof && !rig.in_len);
	assert_int_equal(core.malformed, 0);
}

/* ------------------------------------------------------------------ breaks of the protocol */

RIG_TEST(test_broken)
{
	static const char good[] = "\x05"
				   "check"
				   "\x01"
				   "\x06"
				   "domain\x08\x03"
				   "api";
	static const struct {
		bool agreed;
		u8 type;
		u32 flags;
		u64 stream;
		const char *payload;
		size_t size;
		enum spop_status status;
	} cases[] = {
		{ false, SPOP_NOTIFY, SPOP_FIN, 1, good, sizeof(good) - 1, SPOP_INVALID },
		{ false, SPOP_AGENT_HELLO, SPOP_FIN, 0, "", 0, SPOP_INVALID },
		{ false, 77, SPOP_FIN, 0, "", 0, SPOP_INVALID },
		{ false, SPOP_HAPROXY_HELLO, 0, 0, "", 0, SPOP_FRAGMENTED },
		{ false, SPOP_HAPROXY_HELLO, SPOP_FIN, 7, "", 0, SPOP_INVALID },
		{ false, SPOP_HAPROXY_HELLO, SPOP_FIN, 0,
		  "\x04"
		  "abc",
		  4, SPOP_INVALID },
		{ false, SPOP_HAPROXY_HELLO, SPOP_FIN, 0,
		  "\x0c"
		  "capabilities"
		  "\x03\x01",
		  15, SPOP_INVALID },
		{ true, SPOP_HAPROXY_HELLO, SPOP_FIN, 0, "", 0, SPOP_INVALID },
		{ true, SPOP_NOTIFY, 0, 1, good, sizeof(good) - 1, SPOP_FRAGMENTED },
		{ true, SPOP_UNSET, SPOP_FIN, 1, good, sizeof(good) - 1, SPOP_FRAGMENTED },
		{ true, SPOP_NOTIFY, SPOP_FIN, 1, good, sizeof(good) - 2, SPOP_INVALID },
		{ true, SPOP_NOTIFY, SPOP_FIN, 1,
		  "\x05"
		  "check",
		  6, SPOP_INVALID },
		{ true, SPOP_ACK, SPOP_FIN, 1, "", 0, SPOP_INVALID },
		{ true, SPOP_HAPROXY_DISCONNECT, SPOP_FIN, 0, "", 0, SPOP_NORMAL },
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		if (cases[i].agreed)
			open_agreed("pipelining");
		send_raw(cases[i].type, cases[i].flags, cases[i].stream, cases[i].payload,
			 cases[i].size);
		expect_disconnect(cases[i].status);
		rig.eof = false;
		core.ended = 0;
		rig.fd = open_connection();
	}
	assert_int_equal(core.asked, 0);
	assert_int_equal(core.malformed, COUNT(cases) - 1);
	assert_int_equal(core.undecided, COUNT(cases) - 1);
	/* An unknown type is skipped; ABORT has no meaning for a whole frame. */
	open_agreed("");
	send_raw(77, SPOP_FIN, 0, "odd", 3);
	send_raw(SPOP_NOTIFY, SPOP_FIN | SPOP_ABORT, 9, good, sizeof(good) - 1);
	expect_ack(9, 0);
	assert_int_equal(core.asked, 1);
}

RIG_TEST(test_sizes)
{
	static const struct {
		bool agreed;
		const char *length;
		enum spop_status status;
	} cases[] = {
		{ false, "\0\0\x10\x01", SPOP_TOO_BIG }, { false, "GET ", SPOP_TOO_BIG },
		{ true, "\0\0\x3f\xfd", SPOP_TOO_BIG },	 { true, "\xff\xff\xff\xff", SPOP_TOO_BIG },
		{ true, "\0\0\0\0", SPOP_INVALID },
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		if (cases[i].agreed)
			open_agreed("");
		send_bytes(cases[i].length, 4);
		expect_disconnect(cases[i].status);
		rig.eof = false;
		core.ended = 0;
		rig.fd = open_connection();
	}
}

/* ------------------------------------------------------------------ questions */

static void refuse_with(u64 wait_ns)
{
	core.response = (struct response){ .code = RESPONSE_OVER_LIMIT, .retry_after_ns = wait_ns };
	core.response.policy_count = 1;
	core.response.policy[0] = (struct response_policy){
		.q = 10,
		.w_s = 60,
		.r = 0,
		.t_ns = 41500000000ULL,
		.reset_ns = 41500000000ULL,
		.wait_ns = wait_ns,
		.refused = true,
	};
}

RIG_TEST(test_variables)
{
	open_agreed("pipelining");
	send_notify(1, 1, "bob");
	assert_string_equal(actions_text(next_frame()),
			    "limited=0 -retry_after -limit -remaining "
			    "-reset -reason -violated -policy -ratelimit");
	assert_string_equal(core.domain, "api");
	assert_string_equal(core.value, "bob");
	refuse_with(2500000000ULL);
	send_notify(1, 2, "bob");
	assert_string_equal(
		actions_text(next_frame()),
		"limited=1 retry_after=3 limit=10 "
		"remaining=0 reset=42 -reason violated=[\"request\"] policy=\"request\";q=10;w=60 "
		"ratelimit=\"request\";r=0;t=42");
	core.response.code = RESPONSE_CLOSED;
	send_notify(2, 1, "bob");
	assert_memory_equal(actions_text(next_frame()), "limited=1", 9);
	assert_int_equal(core.good, 3);
	/* No decision: no variables, and HAProxy's rule for that case decides. */
	core.response.code = RESPONSE_ERROR;
	send_notify(2, 2, "bob");
	assert_string_equal(actions_text(next_frame()), "");
	assert_int_equal(core.malformed, 0);
}

/* Errors of the SPOE configuration, and callers without the right, get no decision. */
RIG_TEST(test_refused)
{
	open_agreed("pipelining");
	send_bytes(memory, notify(memory, sizeof(memory), 1, 1, NULL, "bob"));
	assert_string_equal(actions_text(next_frame()), "");
	assert_int_equal(core.malformed, 1);
	/* Over TCP every client of the listener may check; over a Unix socket callers decide. */
	core.rights = 0;
	send_notify(1, 2, "bob");
	expect_ack(1, 2);
	assert_int_equal(core.asked, 1);
	close(rig.fd);
	core.unix_socket = true;
	core.rights = MAY_REPORT;
	rig.fd = open_connection();
	open_agreed("pipelining");
	send_notify(1, 2, "bob");
	assert_string_equal(actions_text(next_frame()), "");
	assert_int_equal(core.malformed, 2);
	assert_int_equal(core.asked, 1);
	core.rights = MAY_CHECK;
	send_notify(1, 3, "bob");
	expect_ack(1, 3);
	assert_int_equal(core.asked, 2);
}

/* Texts without room in a small frame are left out, numbers never. */
RIG_TEST(test_small_frames)
{
	static char name[SL_NAME_MAX * 8];
	struct rule_limit limit = { .name = name };
	struct rule rule = { .domain = "api", .path = name };

	memset(name, 'n', sizeof(name) - 1);
	refuse_with(SL_NS_PER_SEC);
	core.response.policy[0].rule = &rule;
	core.response.policy[0].limit = &limit;
	send_hello("2.0", SPOP_FRAME_MIN, "");
	assert_int_equal(next_frame().type, SPOP_AGENT_HELLO);
	send_notify(~0ULL, ~0ULL, "bob");
	assert_string_equal(actions_text(next_frame()), "limited=1 retry_after=1 limit=10 "
							"remaining=0 reset=42");
}

/* Byte by byte, and many in one write: the same responses. */
RIG_TEST(test_stream)
{
	static u8 many[64 * 1024];
	size_t size = notify(memory, sizeof(memory), 300, 1, "api", "bob"), len = 0;

	open_agreed("pipelining");
	notify(memory, sizeof(memory), 300, 1, "api", "bob");
	for (size_t i = 0; i < size; i++) {
		assert_int_equal(rig.in_len, 0);
		send_bytes(memory + i, 1);
	}
	expect_ack(300, 1);
	for (u32 i = 0; i < 500; i++)
		len += notify(many + len, sizeof(many) - len, i, 7, "api", "bob");
	send_bytes(many, len);
	for (u32 i = 0; i < 500; i++)
		expect_ack(i, 7);
	assert_int_equal(core.good, 501);
}

TEST_MAIN
