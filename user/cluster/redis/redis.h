/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * redis.h - a client of Redis on one event loop: commands out, replies to callbacks.
 *
 *     redis_new() -> redis_slot_of(key) -> redis_send() ... done() -> redis_free()
 *
 * hiredis formats and parses; sockets are libevent's bufferevents (TLS: bufferevent_openssl). One
 * connection to each server: commands sent within one turn of the loop go out in one write, so
 * pipelines form under load. Each thread has its own client.
 *
 * No function blocks, and each command has a deadline. A command without a reply at its deadline
 * ends with REPLY_LATE; a later reply goes to late(). While a server is unavailable its commands
 * fail at once (REPLY_DOWN): a breaker opens after a few late or failed commands, and sends a
 * single probe after a pause that doubles, with jitter, up to a bound.
 *
 * Replies are untrusted input: one of an unexpected type is an error, not a crash, and one larger
 * than REDIS_REPLY_MAX ends the connection.
 */
#ifndef SLUICE_REDIS_H
#define SLUICE_REDIS_H

#include <event2/event.h>
#include <hiredis/hiredis.h>
#include <stdbool.h>

#include "lib/err.h"
#include "lib/histogram.h"
#include "config/cluster_def.h"

#define REDIS_ARGS_MAX 5120
#define REDIS_REPLY_MAX (16U << 20)  /* bytes */
#define REDIS_COMMAND_MAX (1U << 20) /* bytes of a command's arguments */
#define REDIS_PENDING_MAX 65536	     /* commands of one client without a reply */

struct redis;

enum redis_outcome {
	REPLY_OK,
	REPLY_ERROR, /* an error reply: reply->str has its text; or an unusable reply */
	REPLY_LATE,  /* sent, no reply by the deadline */
	/*
	 * not sent (no connection, breaker open, too much pending), or connection lost before the
	 * reply
	 */
	REPLY_DOWN,
};

/*
 * done() is called exactly once, never before redis_send() returns. After REPLY_LATE late() is
 * called exactly once, too: when the reply arrives late (REPLY_OK, REPLY_ERROR) or can no longer
 * arrive (REPLY_DOWN). `reply` is valid during the call.
 */
struct redis_handler {
	void (*done)(void *arg, enum redis_outcome outcome, const redisReply *reply);
	void (*late)(void *arg, enum redis_outcome outcome,
		     const redisReply *reply); /* NULL: none */
	void *arg;
};

/* A script's text: sent by EVALSHA, and loaded if the server does not have it. */
struct redis_script {
	const char *text;
	char sha[41];
};
void redis_script_init(struct redis_script *script, const char *text);

/*
 * Reads the password file and certificates; does not connect before the first command. `def` must
 * outlive the client.
 */
int redis_new(struct event_base *base, const struct redis_def *def, struct redis **ret,
	      struct sl_err *err);
/*
 * Ends pending commands with REPLY_DOWN first. NULL is fine. Must not be called in done() or
 * late().
 */
void redis_free(struct redis *redis);
/* Sets the connections' name to "sluice-NODE" (CLIENT LIST). Call it before the first command. */
void redis_name(struct redis *redis, const char *node);
/* Connects now and not with the first command. */
void redis_warm(struct redis *redis);

/*
 * The slot of a key: keys of one slot may be in one command. single, sentinel: 0; cluster: the
 * hash slot of its tag; ring: the server's number.
 */
u32 redis_slot_of(const struct redis *redis, const char *key, size_t len);

/* Whether one server has all keys: modes single and sentinel. */
bool redis_is_single(const struct redis *redis);

/* `script` NULL: argv is the whole command; else argv has the arguments after EVALSHA SHA. */
struct redis_command {
	u32 slot;
	const struct redis_script *script;
	int argc;
	const char *const *argv;
	const size_t *len;
	u64 deadline_ns; /* from now; 0: a second */
	/*
	 * lateness does not count for the breaker. A blocking command (XREAD BLOCK) delays others
	 * of its slot: use a client of its own
	 */
	bool unhurried;
	/*
	 * redis.wait: the reply comes once that many replicas have it. With fewer by the deadline
	 * REPLY_ERROR "NOREPLICAS...": executed, but it may be lost
	 */
	bool durable;
};
/* 0, or -ENOBUFS, -E2BIG: then done() is never called. Copies the arguments. */
int redis_send(struct redis *redis, const struct redis_command *command,
	       struct redis_handler handler);

/* Whether commands for a slot would be sent now. */
bool redis_up(const struct redis *redis, u32 slot);

/* Counted since redis_new(); read by any thread. */
struct redis_stats {
	u64 commands, replies, errors, late, refused;
	u64 connects, redirects, reloads; /* connections made; MOVED and ASK; slot maps read */
	u64 sum_ns, count;		  /* of commands with replies */
	u64 bucket[HISTOGRAM_BUCKETS];	  /* histogram_bound_ns(), not cumulative */
	u64 servers, up, breakers_open;
};
void redis_stats(const struct redis *redis, struct redis_stats *ret);

#define REDIS_ERROR_TEXT 256
struct redis_server_state {
	char name[300]; /* HOST:PORT, unix:PATH */
	bool sentinel, up, breaker_open;
	bool idle;		      /* no command was sent to it yet */
	char error[REDIS_ERROR_TEXT]; /* the current error; "": none */
};
/* The known servers. Returns their number, which may exceed `max`. Any thread. */
u32 redis_server_states(struct redis *redis, struct redis_server_state *ret, u32 max);

#endif
