// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * State of the SPOE agent for its peers: delayed responses, in any order,
 * output of peers that do not read, and how connections end.
 */
#include "spoe_rig.h"

static void hold_answers(void)
{
	core.hold = true;
	listener.has_max_wait = true;
	listener.max_wait_ns = SL_NS_PER_SEC;
	open_agreed("pipelining");
}

static void release(u32 i)
{
	core.delayed[i].done(core.delayed[i].request, &core.response, core.delayed[i].arg);
}

RIG_TEST(test_out_of_order)
{
	char user[16];

	hold_answers();
	for (u32 i = 0; i < 4; i++) {
		snprintf(user, sizeof(user), "user-%u", i);
		send_notify(i, 1, user);
	}
	assert_true(core.max_wait_ns == SL_NS_PER_SEC);
	assert_int_equal(rig.in_len, 0);
	/* Each request has bytes of its own, whatever came after it. */
	for (u32 i = 0; i < 4; i++)
		assert_int_equal(core.delayed[i].request->descriptor[0].entry[0].value.at[5],
				 '0' + i);
	release(2);
	expect_ack(2, 1);
	core.hold = false;
	send_notify(9, 1, "late");
	expect_ack(9, 1);
	release(0);
	release(3);
	expect_ack(0, 1);
	expect_ack(3, 1);
	close(rig.fd);
	rig.fd = open_connection();
	turn();
	assert_true(core.delayed[1].cancelled);
	assert_int_equal(core.ended, 1);
}

/* A request without waiting is not delayed; and a listener without max_wait delays none. */
RIG_TEST(test_no_wait)
{
	open_agreed("pipelining");
	send_notify(1, 1, "bob");
	expect_ack(1, 1);
	assert_true(core.max_wait_ns == 0);
}

/* Beyond so many delayed responses nothing more is read; each finished one admits one. */
RIG_TEST(test_many_held)
{
	u32 sent = 0, first;

	hold_answers();
	for (; sent < 3000; sent++) {
		size_t size = notify(memory, sizeof(memory), sent, 1, "api", "bob");

		if (write(rig.fd, memory, size) != (ssize_t)size)
			break;
		turn();
	}
	first = core.count;
	assert_true(first >= 256 && first < 3000);
	for (u32 i = 0; i < 10; i++) {
		release(i);
		turn();
	}
	assert_int_equal(core.count, first + 10);
	assert_false(rig.eof);
}

/* A disconnect in between frees all places, and no response is sent any more. */
RIG_TEST(test_disconnect_while_held)
{
	hold_answers();
	send_notify(1, 1, "bob");
	send_notify(2, 1, "eve");
	send_raw(SPOP_HAPROXY_DISCONNECT, SPOP_FIN, 0, "", 0);
	assert_true(core.delayed[0].cancelled && core.delayed[1].cancelled);
	expect_disconnect(SPOP_NORMAL);
}

/* ------------------------------------------------------------------ peers that do not read */

/* The agent stops reading before it stores much for a peer that does not read, and goes on
 * after. */
RIG_TEST(test_unread)
{
	size_t size = notify(memory, sizeof(memory), 1, 1, "api", "bob");
	u32 sent = 0, answered = 0;

	open_agreed("pipelining");
	core.response =
		(struct response){ .code = RESPONSE_OVER_LIMIT, .retry_after_ns = SL_NS_PER_SEC };
	size = notify(memory, sizeof(memory), 1, 1, "api", "bob");
	for (u32 stalled = 0; stalled < 50 && sent < 200000;) {
		if (write(rig.fd, memory, size) == (ssize_t)size) {
			sent++;
			stalled = 0;
		} else {
			stalled++;
			event_base_loop(rig.worker.base, EVLOOP_NONBLOCK);
		}
	}
	assert_true(sent > 1000 && sent < 200000);
	assert_true(core.asked < sent);
	while (answered < sent) {
		turn();
		while (has_frame()) {
			expect_ack(1, 1);
			answered++;
		}
		assert_false(rig.eof);
	}
	assert_int_equal(core.good, sent);
}

/* A peer that closed its sending side gets the responses to earlier requests. */
RIG_TEST(test_half_closed)
{
	static u8 many[64 * 1024];
	size_t len = 0;

	open_agreed("pipelining");
	for (u32 i = 0; i < 100; i++)
		len += notify(many + len, sizeof(many) - len, i, 1, "api", "bob");
	assert_int_equal(write(rig.fd, many, len), len);
	shutdown(rig.fd, SHUT_WR);
	turn();
	for (u32 i = 0; i < 100; i++)
		expect_ack(i, 1);
	turn();
	assert_true(rig.eof);
	assert_int_equal(core.ended, 1);
}

/* Draining: DISCONNECT once the connection is quiet, not while a response is delayed. */
RIG_TEST(test_drain)
{
	struct timespec begin, now;

	hold_answers();
	send_notify(1, 1, "bob");
	frontend_spoe.finish(&rig.worker);
	clock_gettime(CLOCK_MONOTONIC, &begin);
	do {
		turn();
		assert_int_equal(rig.in_len, 0);
		usleep(5000);
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while ((now.tv_sec - begin.tv_sec) * 1000 + (now.tv_nsec - begin.tv_nsec) / 1000000 <
		 150);
	release(0);
	turn();
	expect_ack(1, 1);
	for (u32 i = 0; i < 2000 && !rig.in_len; i++) {
		turn();
		usleep(5000);
	}
	expect_disconnect(SPOP_NORMAL);
	assert_int_equal(core.malformed, 0);
}

TEST_MAIN
