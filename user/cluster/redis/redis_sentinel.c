// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * redis_sentinel.c - one master, whose address comes from sentinels.
 *
 * Sentinels are queried in turn at the start, when the master is lost or is no longer a master
 * (ROLE when connecting, READONLY later), and every few seconds otherwise: a master that is cut off
 * from its sentinels, but not from this node, shows no error. The first reply counts; a stale one
 * leads to a server that is not a master, and the query is repeated.
 */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/redis/redis_private.h"
#include "lib/log.h"

#define AGAIN_MIN_NS 100000000ULL
#define AGAIN_MAX_NS SL_NS_PER_SEC
#define WELL_NS (5 * SL_NS_PER_SEC)

struct sentinels {
	struct redis *redis;
	struct redis_server **server;
	size_t count, next;
	size_t left;		     /* not yet queried in this round; 0: no round */
	struct redis_server *master; /* NULL: not known yet */
	struct redis_timer timer;    /* of the next round */
	u64 again_ns;
	bool unknown;	     /* one of this round has no master of that name */
	bool absence_logged; /* the missing master was logged */
};

static void try_next(struct sentinels *sentinels);

static bool is_up(const struct sentinels *sentinels)
{
	return sentinels->master && sentinels->master->state == SERVER_UP;
}

/* Called at the end of a round, with or without a master: schedules the next. */
static void wait_for_round(struct sentinels *sentinels)
{
	u64 pause_ns = WELL_NS;

	if (!is_up(sentinels)) {
		pause_ns = sentinels->again_ns * 2;
		if (pause_ns < AGAIN_MIN_NS)
			pause_ns = AGAIN_MIN_NS;
		if (pause_ns > AGAIN_MAX_NS)
			pause_ns = AGAIN_MAX_NS;
		sentinels->again_ns = pause_ns;
	}
	redis_timer_set(&sentinels->redis->timers, &sentinels->timer, clock_mono_ns() + pause_ns);
}

static void begin_round(struct sentinels *sentinels)
{
	if (sentinels->left)
		return;
	sentinels->left = sentinels->count;
	sentinels->unknown = false;
	try_next(sentinels);
}

static void on_timer(struct redis_timer *timer)
{
	begin_round((struct sentinels *)((char *)timer - offsetof(struct sentinels, timer)));
}

static void set_master(struct sentinels *sentinels, const char *host, u16 port)
{
	const struct redis_url *first = &sentinels->redis->def->url[0];
	const struct redis_url url = {
		.host = (char *)host, .port = port, .tls = first->tls, .database = first->database
	};
	struct redis_server *master = redis_server_get(sentinels->redis, &url);
	struct redis_server *before = sentinels->master;

	if (!master || master == before)
		return;
	master->role_requested = true;
	sentinels->master = master;
	sentinels->absence_logged = false;
	if (before) {
		log_info("redis: the master of \"%s\" is now %s, previously %s",
			 sentinels->redis->def->master, master->name, before->name);
		redis_server_drop(before);
	}
	redis_server_open(master);
}

/* Parses a host and a port of a sentinel's reply. */
static bool read_master(const redisReply *reply, const char **ret_host, u16 *ret_port)
{
	const redisReply *host, *port;
	unsigned long number;
	char *end;

	if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 2)
		return false;
	host = reply->element[0];
	port = reply->element[1];
	if (host->type != REDIS_REPLY_STRING || port->type != REDIS_REPLY_STRING || !host->len ||
	    host->len > 255 || strlen(host->str) != host->len || !isdigit((u8)*port->str))
		return false;
	for (size_t i = 0; i < host->len; i++)
		if (!isalnum((u8)host->str[i]) && !strchr(".:-_%", host->str[i]))
			return false;
	number = strtoul(port->str, &end, 10);
	if (*end || !number || number > 65535)
		return false;
	*ret_host = host->str;
	*ret_port = (u16)number;
	return true;
}

static void on_reply(void *arg, enum redis_outcome outcome, const redisReply *reply)
{
	struct sentinels *sentinels = arg;
	const char *host;
	u16 port;

	if (sentinels->redis->ending || !sentinels->left)
		return;
	if (outcome != REPLY_OK || !read_master(reply, &host, &port)) {
		sentinels->unknown |= outcome == REPLY_OK;
		sentinels->left--;
		sentinels->next = (sentinels->next + 1) % sentinels->count;
		if (sentinels->left) {
			try_next(sentinels);
			return;
		}
		if (!sentinels->absence_logged && !is_up(sentinels))
			log_warn("redis: none of %zu sentinels names the master of \"%s\"%s",
				 sentinels->count, sentinels->redis->def->master,
				 sentinels->unknown ? ": check cluster.redis.master" : "");
		sentinels->absence_logged = true;
	} else {
		sentinels->left = 0;
		set_master(sentinels, host, port);
	}
	wait_for_round(sentinels);
	redis_topology_settled(sentinels->redis);
}

static void try_next(struct sentinels *sentinels)
{
	struct redis *redis = sentinels->redis;
	const char *const query[] = { "SENTINEL", "get-master-addr-by-name", redis->def->master };
	const struct redis_handler handler = { .done = on_reply, .arg = sentinels };

	if (redis_query_server(sentinels->server[sentinels->next], 3, query, handler) < 0) {
		sentinels->left = 0;
		wait_for_round(sentinels);
	}
}

/* ------------------------------------------------------------------ operations */

static void sentinel_close(struct redis *redis)
{
	struct sentinels *sentinels = redis->topology_state;

	redis_timer_unset(&redis->timers, &sentinels->timer);
	free(sentinels->server);
	free(sentinels);
	redis->topology_state = NULL;
}

static int sentinel_open(struct redis *redis, struct sl_err *err)
{
	const struct redis_def *def = redis->def;
	struct sentinels *sentinels = calloc(1, sizeof(*sentinels));

	if (!sentinels)
		return sl_err_set(err, ENOMEM, "out of memory");
	redis->topology_state = sentinels;
	sentinels->redis = redis;
	sentinels->timer.fire = on_timer;
	sentinels->server = calloc(def->url_count, sizeof(struct redis_server *));
	for (size_t i = 0; sentinels->server && i < def->url_count; i++) {
		struct redis_url url = def->url[i];
		struct redis_server *server;

		url.database = 0;
		server = redis_server_get(redis, &url);
		if (!server)
			break;
		redis_server_set_sentinel(server);
		sentinels->server[sentinels->count++] = server;
	}
	return sentinels->count == def->url_count ? 0 : sl_err_set(err, ENOMEM, "out of memory");
}

static void sentinel_warm(struct redis *redis)
{
	redis->opening = true;
	begin_round(redis->topology_state);
}

static u32 sentinel_server_of(const struct redis *redis, const char *key, size_t len)
{
	return 0;
}

static struct redis_server *sentinel_server(const struct redis *redis, u32 slot)
{
	const struct sentinels *sentinels = redis->topology_state;

	return sentinels->master;
}

static void sentinel_up(struct redis *redis, struct redis_server *server)
{
	struct sentinels *sentinels = redis->topology_state;

	if (server == sentinels->master)
		sentinels->again_ns = 0;
}

/* Runs in the next turn of the loop, not in a callback of the connection. */
static void sentinel_down(struct redis *redis, struct redis_server *server)
{
	struct sentinels *sentinels = redis->topology_state;

	if (server == sentinels->master && !sentinels->left)
		redis_timer_set(&redis->timers, &sentinels->timer,
				clock_mono_ns() + sentinels->again_ns);
}

const struct redis_topology redis_sentinel = {
	.open = sentinel_open,
	.close = sentinel_close,
	.warm = sentinel_warm,
	.slot_of = sentinel_server_of,
	.server = sentinel_server,
	.up = sentinel_up,
	.down = sentinel_down,
};
