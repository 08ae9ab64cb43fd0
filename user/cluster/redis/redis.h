/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * redis.h - a client of Redis on one event loop: commands out, replies to callbacks.
 *
 *     redis_new() -> redis_slot_of(key) -> redis_send() ... done() -> redis_free()
 *
 * hiredis formats and parses; sockets are libevent's bufferevents (TLS: bufferevent_openssl).
 * One connection to each server: what is sent within one turn of the loop goes out in one write,
 * so pipelines form under load. Each thread that asks has a client of its own; none is shared.
 *
 * Nothing here blocks and nothing waits for ever. A command that has no answer by its deadline
 * is told so (REPLY_LATE); what came of it comes later. While a server is away its commands
 * fail at once (REPLY_DOWN): a breaker opens after a few that were late or failed, and lets a
 * single probe through after a pause that doubles, with jitter, up to a bound.
 *
 * What Redis answers is input: a reply of a kind that was not expected is an error, not a crash,
 * and one that is larger than REDIS_REPLY_MAX ends the connection.
 */
#ifndef SLUICE_REDIS_H
#define SLUICE_REDIS_H

#include <event2/event.h>
#include <hiredis/hiredis.h>
#include <stdbool.h>

#include "lib/err.h"
#include "lib/histogram.h"
#include "config/cluster_def.h"

#define REDIS_ARGS_MAX 4096
#define REDIS_REPLY_MAX (16U << 20)	/* bytes */
#define REDIS_COMMAND_MAX (1U << 20)	/* bytes of a command's arguments */
#define REDIS_PENDING_MAX 65536		/* commands of one client that are not answered yet */

struct redis;

enum redis_outcome {
	REPLY_OK,
	REPLY_ERROR,		/* Redis said an error: reply->str has its words; or a reply made no sense */
	REPLY_LATE,		/* sent, and no answer by the deadline */
	REPLY_DOWN,		/* not sent: no connection, the breaker is open, too much is pending; or the
				   connection ended before the answer, and nobody knows whether it was done */
};

/*
 * done() is called exactly once, never before redis_send() returns. After REPLY_LATE late() is
 * called exactly once, too, when the answer has come after all (REPLY_OK, REPLY_ERROR) or never
 * will (REPLY_DOWN); `reply` holds during the call.
 */
struct redis_handler {
	void (*done)(void *arg, enum redis_outcome outcome, const redisReply *reply);
	void (*late)(void *arg, enum redis_outcome outcome, const redisReply *reply);	/* NULL: not wanted */
	void *arg;
};

/* A script, by its text: sent by EVALSHA, with its text where the server does not have it. */
struct redis_script {
	const char *text;
	char sha[41];
};
void redis_script_init(struct redis_script *script, const char *text);

/*
 * Reads the password's file and certificates; does not connect before the first command. `def` has
 * to last as long as the client.
 */
int redis_new(struct event_base *base, const struct redis_def *def, struct redis **ret,
	      struct sl_err *err);
/* What is pending is answered with REPLY_DOWN first. NULL is fine. Not from within done() or late(). */
void redis_free(struct redis *redis);
/* Before the first command: connections are called "sluice-NODE" where Redis lists its clients. */
void redis_name(struct redis *redis, const char *node);
/* Connects now rather than with the first command. */
void redis_warm(struct redis *redis);

/*
 * Where a key lives, as far as commands are concerned: keys of one place may stand in one
 * command. single, sentinel: 0; cluster: the slot of its hash tag; ring: the server's number.
 */
u32 redis_slot_of(const struct redis *redis, const char *key, size_t len);

/* `script` NULL: argv is the whole command; else argv is what follows EVALSHA SHA. */
struct redis_command {
	u32 place;
	const struct redis_script *script;
	int argc;
	const char *const *argv;
	const size_t *len;
	u64 deadline_ns;		/* from now; 0: a second */
	bool unhurried;			/* its being late says nothing about the server: not for the breaker. What
					   blocks (XREAD BLOCK) keeps others of its place waiting: a client for it */
	bool durable;			/* redis.wait: answered when so many replicas have it; where fewer have by the
					   deadline REPLY_ERROR "NOREPLICAS...": done, but not certain to last */
};
/* 0, or -ENOBUFS, -E2BIG and done() is never called. The arguments are copied. */
int redis_send(struct redis *redis, const struct redis_command *command,
	       struct redis_handler handler);

/* Whether commands for a place would be sent now. */
bool redis_up(const struct redis *redis, u32 place);

/* Counted since redis_new(); read by any thread. */
struct redis_stats {
	u64 commands, replies, errors, late, refused;
	u64 connects, redirects, reloads;	/* connections made; MOVED and ASK; slot maps read */
	u64 sum_ns, count;			/* of answered commands */
	u64 bucket[HISTOGRAM_BUCKETS];		/* histogram_bound_ns(), not cumulative */
	u64 servers, up, breakers_open;
};
void redis_stats(const struct redis *redis, struct redis_stats *ret);

struct redis_server_state {
	char name[300];			/* HOST:PORT, unix:PATH */
	bool sentinel, up, breaker_open;
	const char *error_class;		/* what it suffers from, in words; NULL: nothing */
};
/* Of those that are known now; by any thread. How many there are, `max` at most. */
u32 redis_server_states(struct redis *redis, struct redis_server_state *ret, u32 max);

#endif
