/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * frontend_feed.h - a front with everything behind it (rules, store, decisions, held answers), fed
 * bytes as one connection after the other. No thread, no listener.
 *
 * After each connection nothing of it may be left: the front said so, and no answer is held.
 */
#ifndef SLUICE_TESTS_FRONTEND_FEED_H
#define SLUICE_TESTS_FRONTEND_FEED_H

#include <assert.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "request/engine/delay.h"
#include "request/engine/observe.h"
#include "request/server/worker.h"

static const char feed_rules[] =
	"domain: api\n"
	"descriptors:\n"
	"- {key: user, limits: ['5 requests/m', {rate: 100 requests/h, algorithm: sliding-log}],\n"
	"   descriptors: [{key: path, rate_limit: {unit: second, requests_per_unit: 3}}]}\n"
	"- {key: user, value: root, rate_limit: {unlimited: true}}\n"
	"- {key: source, limits: ['20 requests/s'], algorithm: token-bucket, prefix: {ipv4: 24}}\n"
	"- {key: slow, limits: ['1 requests/s'], algorithm: leaky-bucket, on_limit: {wait: 1s, queue: 2}}\n"
	"- {key: watched, limits: ['1 requests/h'], algorithm: sliding-window, shadow_mode: true}\n";

struct feed {
	struct http_def def;
	struct http_tier tier;
	struct worker worker;
	struct listen_def listener;
	struct peer_info peer;
	const struct frontend *frontend;
};

static struct feed feed;

static inline void feed_begin(const struct frontend *frontend)
{
	static const struct engine_plan plan = {
		.users = 1000,
		.log_bytes = 1 << 20,
		.threads = 1,
		.max_delayed = 100,
	};
	struct ruleset *rules;
	struct sl_err err = { .line = 0 };

	if (feed.frontend)
		return;
	if (ruleset_parse("feed", feed_rules, sizeof(feed_rules) - 1, &rules, &err)) {
		fprintf(stderr, "%d:%d: %s\n", err.line, err.column, err.message);
		abort();
	}
	feed.frontend = frontend;
	feed.listener = (struct listen_def){ .address = "feed",
					     .max_wait_ns = SL_NS_PER_SEC,
					     .has_max_wait = true };
	feed.peer = (struct peer_info){ .local = true, .listener = &feed.listener };
	feed.tier =
		(struct http_tier){ .def = &feed.def, .worker = &feed.worker, .worker_count = 1 };
	assert(!engine_open(&plan, &feed.tier.engine, &err));
	feed.worker = (struct worker){ .tier = &feed.tier,
				       .base = event_base_new(),
				       .engine = &feed.tier.engine->thread[0] };
	feed.worker.engine->base = feed.worker.base;
	engine_thread_begin(feed.worker.engine);
	engine_rules_publish(feed.tier.engine, rules);
	assert(!frontend->start || !frontend->start(&feed.worker));
}

static inline void feed_turn(int fd)
{
	static char response[65536];

	for (int i = 0; i < 3; i++)
		event_base_loop(feed.worker.base, EVLOOP_NONBLOCK);
	while (read(fd, response, sizeof(response)) > 0)
		;
}

static inline int feed_connect(void)
{
	int pair[2];

	assert(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair));
	feed.worker.connections++;
	feed.frontend->accept(
		&feed.worker,
		bufferevent_socket_new(feed.worker.base, pair[1], BEV_OPT_CLOSE_ON_FREE),
		&feed.peer);
	return pair[0];
}

/* Sends what the other side takes, in pieces of `piece` bytes; 0: as much as goes. */
static inline void feed_send(int fd, const void *bytes, size_t size, size_t piece)
{
	const char *at = bytes;

	for (int stuck = 0; size && stuck < 4;) {
		ssize_t sent = send(fd, at, piece && piece < size ? piece : size, MSG_NOSIGNAL);

		if (sent > 0) {
			at += sent;
			size -= sent;
		} else {
			stuck++;
		}
		if (piece || sent <= 0)
			feed_turn(fd);
	}
	feed_turn(fd);
}

static inline void feed_close(int fd)
{
	close(fd);
	for (int i = 0; i < 1000 && feed.worker.connections; i++)
		event_base_loop(feed.worker.base, EVLOOP_NONBLOCK);
	assert(!feed.worker.connections);
	assert(!delays_total(feed.tier.engine->delays));
}

#endif
