/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * spoe_rig.h - the SPOE agent on one end of a socket pair, the test as HAProxy on the other, and
 * ask() as the test states it. Its functions are the test's own: one file includes it once.
 */
#ifndef SLUICE_TESTS_SPOE_RIG_H
#define SLUICE_TESTS_SPOE_RIG_H

#include <event2/buffer.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "lib/test.h"
#include "request/engine/observe.h"
#include "request/frontends/spoe/spoe.h"
#include "request/frontends/spoe/spop.h"
#include "request/server/worker.h"

#define DELAYED_MAX 4096
#define RIG_TEST(name) TEST_WITH(name, begin, end)

/* ------------------------------------------------------------------ requests of the agent */

struct delayed {
	const struct request *request;
	request_done_fn done;
	void *arg;
	bool cancelled;
};

static struct {
	struct response response;
	bool hold;
	struct delayed delayed[DELAYED_MAX];
	u32 count, asked;
	u32 rights;
	bool unix_socket; /* of connections to come */
	u32 good, malformed, undecided, ended;
	u64 max_wait_ns; /* of the last call */
	char domain[64], value[64];
} core;

struct delayed *request_submit(struct engine_thread *thread, const struct request *request,
			       request_done_fn done, void *arg)
{
	struct delayed *delayed;

	core.asked++;
	core.max_wait_ns = request->max_wait_ns;
	snprintf(core.domain, sizeof(core.domain), "%.*s", (int)request->domain.len,
		 request->domain.at);
	if (request->count)
		snprintf(core.value, sizeof(core.value), "%.*s",
			 (int)request->descriptor[0].entry[0].value.len,
			 request->descriptor[0].entry[0].value.at);
	if (!core.hold) {
		done(request, &core.response, arg);
		return NULL;
	}
	assert_true(core.count < DELAYED_MAX);
	delayed = &core.delayed[core.count++];
	*delayed = (struct delayed){ request, done, arg, false };
	return delayed;
}

void request_cancel(struct delayed *delayed)
{
	assert_false(delayed->cancelled);
	delayed->cancelled = true;
}

u32 caller_rights(const struct http_tier *tier, const struct peer_info *peer, struct bytes token,
		  struct bytes domain, bool *ret_bad_token)
{
	*ret_bad_token = false;
	return core.rights;
}

void observe_request(struct engine_thread *thread, enum request_api api, int code)
{
	assert_int_equal(api, API_SPOE);
	if (code)
		core.malformed++;
	else
		core.good++;
}

void undecided_note(struct engine_thread *thread, enum request_api api,
		    enum undecided_reason reason, const char *detail)
{
	assert_int_equal(api, API_SPOE);
	core.undecided++;
}

void worker_connection_end(struct worker *worker, const struct peer_info *peer)
{
	core.ended++;
}

/* ------------------------------------------------------------------ a connection */

static struct http_def def;
static struct http_tier tier = { .def = &def };
static struct engine engine;
static struct engine_thread engine_thread = { .engine = &engine };
static struct listen_def listener = { .address = "test", .kind = LISTEN_SPOE };

struct rig {
	struct worker worker;
	int fd; /* HAProxy's side */
	u8 in[1 << 20];
	size_t in_len;
	bool eof;
};

static struct rig rig;

static inline int open_connection(void)
{
	const struct peer_info peer = {
		.local = true,
		.unix_socket = core.unix_socket,
		.listener = &listener,
	};
	int fd[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fd), 0);
	frontend_spoe.accept(&rig.worker,
			     bufferevent_socket_new(rig.worker.base, fd[1], BEV_OPT_CLOSE_ON_FREE),
			     &peer);
	return fd[0];
}

static inline int begin(void **state)
{
	memset(&core, 0, sizeof(core));
	core.rights = MAY_CHECK;
	memset(&rig, 0, sizeof(rig));
	listener.has_max_wait = false;
	listener.max_wait_ns = 0;
	rig.worker.tier = &tier;
	rig.worker.engine = &engine_thread;
	rig.worker.base = event_base_new();
	assert_int_equal(frontend_spoe.start(&rig.worker), 0);
	rig.fd = open_connection();
	return 0;
}

static inline int end(void **state)
{
	if (rig.fd >= 0)
		close(rig.fd);
	frontend_spoe.stop(&rig.worker);
	event_base_free(rig.worker.base);
	return 0;
}

static inline void turn(void)
{
	ssize_t got;

	for (u32 i = 0; i < 4; i++)
		event_base_loop(rig.worker.base, EVLOOP_NONBLOCK);
	while ((got = read(rig.fd, rig.in + rig.in_len, sizeof(rig.in) - rig.in_len)) > 0)
		rig.in_len += got;
	if (!got)
		rig.eof = true;
}

static inline void send_bytes(const void *bytes, size_t size)
{
	assert_int_equal(write(rig.fd, bytes, size), size);
	turn();
}

static inline struct bytes bytes_of(const char *text)
{
	return (struct bytes){ text, strlen(text) };
}

static inline void put_string(struct spop_writer *writer, const char *name, const char *value)
{
	spop_put_pair_string(writer, name, value);
}

/* Returns whether a whole frame is there. */
static inline bool has_frame(void)
{
	return rig.in_len >= 4 && rig.in_len >= 4 + ((size_t)rig.in[0] << 24 | rig.in[1] << 16 |
						     rig.in[2] << 8 | rig.in[3]);
}

/* The next frame that came; fails where there is none. */
static u8 memory[SPOP_FRAME_MAX + 64], frame_bytes[SPOP_FRAME_MAX];
static inline struct spop_frame next_frame(void)
{
	struct spop_frame frame;
	size_t size;

	if (!has_frame())
		turn();
	assert_true(has_frame());
	size = (size_t)rig.in[0] << 24 | rig.in[1] << 16 | rig.in[2] << 8 | rig.in[3];
	memcpy(frame_bytes, rig.in + 4, size);
	assert_true(spop_get_frame(frame_bytes, size, &frame));
	assert_int_equal(frame.flags, SPOP_FIN);
	rig.in_len -= 4 + size;
	memmove(rig.in, rig.in + 4 + size, rig.in_len);
	return frame;
}

static inline void send_hello(const char *versions, u32 frame_max, const char *capabilities)
{
	struct spop_writer writer =
		spop_frame_begin(memory, sizeof(memory), SPOP_HAPROXY_HELLO, 0, 0);

	if (versions)
		put_string(&writer, "supported-versions", versions);
	if (frame_max)
		spop_put_pair_number(&writer, "max-frame-size", frame_max);
	if (capabilities)
		put_string(&writer, "capabilities", capabilities);
	put_string(&writer, "engine-id", "00000000-0000-0000-0000-000000000000");
	send_bytes(memory, spop_frame_end(&writer));
}

/* Pairs of the frame as text: "version=2.0 max-frame-size=16380 capabilities=". */
static inline const char *pairs_text(struct spop_frame frame)
{
	static char text[512];
	char *at = text;

	*at = 0;
	while (frame.payload.at < frame.payload.end) {
		struct spop_value value;
		struct bytes name;

		assert_true(spop_get_text(&frame.payload, &name));
		assert_true(spop_get_value(&frame.payload, &value));
		at += sprintf(at, "%s%.*s=", at == text ? "" : " ", (int)name.len, name.at);
		if (value.type == SPOP_STRING)
			at += sprintf(at, "%.*s", (int)value.text.len, value.text.at);
		else
			at += sprintf(at, "%llu", value.number);
	}
	return text;
}

/* Variables of an ACK as text; "-name" is unset. */
static inline const char *actions_text(struct spop_frame frame)
{
	static char text[8192];
	char *at = text;

	*at = 0;
	while (frame.payload.at < frame.payload.end) {
		struct spop_value value;
		struct bytes name;
		u8 action, count, scope;

		assert_true(spop_get_u8(&frame.payload, &action));
		assert_true(spop_get_u8(&frame.payload, &count));
		assert_true(spop_get_u8(&frame.payload, &scope));
		assert_int_equal(scope, SPOP_SCOPE_TXN);
		assert_true(spop_get_text(&frame.payload, &name));
		if (at != text)
			*at++ = ' ';
		if (action == SPOP_UNSET_VAR) {
			assert_int_equal(count, 2);
			at += sprintf(at, "-%.*s", (int)name.len, name.at);
			continue;
		}
		assert_int_equal(action, SPOP_SET_VAR);
		assert_int_equal(count, 3);
		assert_true(spop_get_value(&frame.payload, &value));
		at += sprintf(at, "%.*s=", (int)name.len, name.at);
		if (value.type == SPOP_STRING)
			at += sprintf(at, "%.*s", (int)value.text.len, value.text.at);
		else
			at += sprintf(at, "%lld", (s64)value.number);
	}
	return text;
}

static inline void open_agreed(const char *capabilities)
{
	send_hello("2.0", 16380, capabilities);
	assert_int_equal(next_frame().type, SPOP_AGENT_HELLO);
}

static inline size_t notify(void *to, size_t size, u64 stream, u64 frame, const char *domain,
			    const char *user)
{
	struct spop_writer writer = spop_frame_begin(to, size, SPOP_NOTIFY, stream, frame);

	spop_put_text(&writer, bytes_of("check"));
	spop_put_u8(&writer, 2);
	put_string(&writer, domain ? "domain" : "nothing", domain ? domain : "");
	put_string(&writer, "user", user);
	return spop_frame_end(&writer);
}

static inline void send_notify(u64 stream, u64 frame, const char *user)
{
	send_bytes(memory, notify(memory, sizeof(memory), stream, frame, "api", user));
}

static inline void expect_ack(u64 stream, u64 number)
{
	struct spop_frame frame = next_frame();

	assert_int_equal(frame.type, SPOP_ACK);
	assert_true(frame.stream == stream && frame.frame == number);
}

/* A frame of any type, flags and payload, before or after HELLO. */
static inline void send_raw(u8 type, u32 flags, u64 stream, const char *payload, size_t size)
{
	struct spop_writer writer = spop_frame_begin(memory, sizeof(memory), type, stream, 0);

	memory[8] = flags;
	memcpy(writer.at, payload, size);
	writer.at += size;
	send_bytes(memory, spop_frame_end(&writer));
}

/* The agent sends the reason, and closes. */
static inline void expect_disconnect(enum spop_status status)
{
	char expected[128];
	struct spop_frame frame = next_frame();

	assert_int_equal(frame.type, SPOP_AGENT_DISCONNECT);
	assert_true(!frame.stream && !frame.frame);
	snprintf(expected, sizeof(expected), "status-code=%d message=%s", status,
		 spop_status_text(status));
	assert_string_equal(pairs_text(frame), expected);
	turn();
	assert_true(rig.eof);
	assert_int_equal(rig.in_len, 0);
	close(rig.fd);
	rig.fd = -1;
	for (u32 i = 0; i < 4; i++)
		event_base_loop(rig.worker.base, EVLOOP_NONBLOCK);
	assert_int_equal(core.ended, 1);
}

#endif
