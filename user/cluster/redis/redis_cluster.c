// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * redis_cluster.c - Redis Cluster: 16384 hash slots, each at one of several masters.
 *
 * The slot map is read (CLUSTER SLOTS) from any server that replies: those that are up, in random
 * order, then the configured urls, then all other known servers. It is read at the start, and again
 * when it is stale: after a MOVED (which also corrects its slot at once), an unavailable master, or
 * CLUSTERDOWN. As long as a slot has no server, or an unavailable one, it is read again after a
 * pause that doubles from 100 ms to 1 s, with jitter. This detects a failover, which the old master
 * cannot announce. Until then commands for such slots fail at once; all others continue.
 *
 * Servers that are no longer in the map are dropped a second later, except those named by an ASK: a
 * server that is receiving its first slots is not in a map yet.
 *
 * Not supported: reading from replicas (their counters lag), and more than one database (a cluster
 * has one).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/redis/redis_private.h"
#include "cluster/redis/redis_slots.h"

#define PAUSE_MIN_NS 100000000ULL
#define PAUSE_MAX_NS SL_NS_PER_SEC
#define QUIET_NS                                                                                   \
	(5 * SL_NS_PER_SEC) /* after this time without a read the pause starts again at 100 ms */
#define SWEEP_NS SL_NS_PER_SEC
#define ASK_NS (5 * SL_NS_PER_SEC) /* no server is dropped for this time after an ASK */
#define SERVERS_MAX (2 * REDIS_MASTERS_MAX)

struct cluster {
	struct redis *redis;
	struct redis_server *slot[REDIS_SLOTS];		/* NULL: no server, or unknown */
	struct redis_server *master[REDIS_MASTERS_MAX]; /* of the last map */
	u32 masters;
	struct redis_timer refresh, sweep;
	u64 pause_ns, read_ns, ask_ns;
	struct redis_server *asking; /* the map was requested from this server; or NULL */
	u32 round;		     /* servers with this mark were tried in this round, or stay */
	bool whole;		     /* every slot had a server in the last map */
};

static struct cluster *cluster_of(const struct redis *redis)
{
	return redis->topology_state;
}

static void try_next(struct cluster *c);

/* ------------------------------------------------------------------ when the map is read */

static void refresh_later(struct cluster *c)
{
	u64 now = clock_mono_ns();
	u32 random;

	if (c->asking || c->refresh.timer.position || c->redis->ending)
		return;
	if (now - c->read_ns > QUIET_NS)
		c->pause_ns = PAUSE_MIN_NS;
	evutil_secure_rng_get_bytes(&random, sizeof(random));
	redis_timer_set(&c->redis->timers, &c->refresh,
			now + c->pause_ns / 2 + random % c->pause_ns);
	c->pause_ns *= 2;
	if (c->pause_ns > PAUSE_MAX_NS)
		c->pause_ns = PAUSE_MAX_NS;
}

static void on_refresh(struct redis_timer *timer)
{
	struct cluster *c = (void *)((char *)timer - offsetof(struct cluster, refresh));

	c->round++;
	try_next(c);
}

/* Whether reading the map again may help. */
static bool has_error(const struct cluster *c)
{
	if (!c->whole)
		return true;
	for (u32 i = 0; i < c->masters; i++)
		if (!redis_server_may(c->master[i]))
			return true;
	return false;
}

/* ------------------------------------------------------------------ applying a map */

static void forget_map(struct cluster *c)
{
	memset(c->slot, 0, sizeof(c->slot));
	c->masters = 0;
	c->whole = false;
}

static void adopt(struct cluster *c, const struct redis_slot_map *map)
{
	struct redis *redis = c->redis;

	forget_map(c);
	for (u32 i = 0; i < map->masters; i++) {
		struct redis_url url = { .host = (char *)map->master[i].host,
					 .port = map->master[i].port,
					 .tls = redis->def->url[0].tls };

		c->master[i] = redis_server_get(redis, &url);
		if (!c->master[i])
			return;
		c->masters++;
		redis_server_open(c->master[i]);
	}
	for (u32 slot = 0; slot < REDIS_SLOTS; slot++)
		if (map->owner[slot])
			c->slot[slot] = c->master[map->owner[slot] - 1];
	c->whole = map->served == REDIS_SLOTS;
	redis_count(&redis->stats.reloads, 1);
	redis_timer_set(&redis->timers, &c->sweep, clock_mono_ns() + SWEEP_NS);
}

static bool is_idle(const struct redis_server *server)
{
	return TAILQ_EMPTY(&server->queue) && TAILQ_EMPTY(&server->conn.sent) &&
	       TAILQ_EMPTY(&server->conn.held);
}

/* Drops servers that have no slot and no pending command. */
static void on_sweep(struct redis_timer *timer)
{
	struct cluster *c = (void *)((char *)timer - offsetof(struct cluster, sweep));
	struct redis_server *server, *next;
	u64 now = clock_mono_ns();
	bool left = false;

	if (c->asking || now - c->ask_ns < ASK_NS) {
		redis_timer_set(&c->redis->timers, timer, now + SWEEP_NS);
		return;
	}
	c->round++;
	for (u32 slot = 0; slot < REDIS_SLOTS; slot++)
		if (c->slot[slot])
			c->slot[slot]->mark = c->round;
	for (u32 i = 0; i < c->masters; i++)
		c->master[i]->mark = c->round;
	for (server = TAILQ_FIRST(&c->redis->servers); server; server = next) {
		next = TAILQ_NEXT(server, link);
		if (server->mark == c->round)
			continue;
		if (is_idle(server))
			redis_server_drop(server);
		else
			left = true;
	}
	if (left)
		redis_timer_set(&c->redis->timers, timer, now + SWEEP_NS);
}

/* Ends the round: a map was received, or no server is left to try. */
static void settle(struct cluster *c)
{
	redis_topology_settled(c->redis);
	if (has_error(c))
		refresh_later(c);
}

static void on_map(void *arg, enum redis_outcome outcome, const redisReply *reply)
{
	struct cluster *c = arg;
	struct redis_server *server = c->asking;
	struct redis_slot_map *map = NULL;
	bool good = false;

	c->asking = NULL;
	if (c->redis->ending)
		return;
	if (outcome == REPLY_ERROR) {
		enum redis_error_class error_class = redis_error_class_of(reply->str);

		redis_server_report(server,
				    error_class == REDIS_ERROR_NONE ? REDIS_ERROR_NO_CLUSTER
								    : error_class,
				    reply->str);
	}
	if (outcome == REPLY_OK)
		map = malloc(sizeof(*map));
	/* A server without a slot map has left the cluster, or has not joined it yet. */
	if (map && !redis_slots_read(reply, server->host, map) && map->served)
		good = true;
	if (good) {
		adopt(c, map);
		c->read_ns = clock_mono_ns();
		settle(c);
	} else {
		try_next(c);
	}
	free(map);
}

/* ------------------------------------------------------------------ the servers of a round */

/*
 * Selects at random a server that is up and not yet tried, so that many clients spread their
 * load.
 */
static struct redis_server *next_up(struct cluster *c)
{
	struct redis_server *server, *found = NULL;
	u32 count = 0, random;

	TAILQ_FOREACH(server, &c->redis->servers, link) {
		if (server->mark == c->round || server->state != SERVER_UP)
			continue;
		evutil_secure_rng_get_bytes(&random, sizeof(random));
		if (random % ++count == 0)
			found = server;
	}
	return found;
}

static struct redis_server *next_other(struct cluster *c)
{
	const struct redis_def *def = c->redis->def;
	struct redis_server *server;

	for (size_t i = 0; i < def->url_count; i++) {
		server = redis_server_get(c->redis, &def->url[i]);
		if (server && server->mark != c->round && redis_server_may(server))
			return server;
	}
	TAILQ_FOREACH(server, &c->redis->servers, link)
		if (server->mark != c->round && redis_server_may(server))
			return server;
	return NULL;
}

static void try_next(struct cluster *c)
{
	static const char *const argv[] = { "CLUSTER", "SLOTS" };
	const struct redis_handler handler = { .done = on_map, .arg = c };
	struct redis_server *server;

	while ((server = next_up(c)) || (server = next_other(c))) {
		server->mark = c->round;
		if (redis_query_server(server, 2, argv, handler) == 0) {
			c->asking = server;
			return;
		}
	}
	settle(c);
	refresh_later(c);
}

/* ------------------------------------------------------------------ the table of operations */

static int cluster_open(struct redis *redis, struct sl_err *err)
{
	struct cluster *c = calloc(1, sizeof(*c));

	if (!c)
		return sl_err_set(err, ENOMEM, "out of memory");
	c->redis = redis;
	c->pause_ns = PAUSE_MIN_NS;
	c->refresh.fire = on_refresh;
	c->sweep.fire = on_sweep;
	redis->topology_state = c;
	return 0;
}

static void cluster_close(struct redis *redis)
{
	struct cluster *c = cluster_of(redis);

	redis_timer_unset(&redis->timers, &c->refresh);
	redis_timer_unset(&redis->timers, &c->sweep);
	redis->topology_state = NULL;
	free(c);
}

static void cluster_warm(struct redis *redis)
{
	redis->opening = true;
	on_refresh(&cluster_of(redis)->refresh);
}

static u32 cluster_slot_of(const struct redis *redis, const char *key, size_t len)
{
	return redis_slot(key, len);
}

static struct redis_server *cluster_server(const struct redis *redis, u32 slot)
{
	return slot < REDIS_SLOTS ? cluster_of(redis)->slot[slot] : NULL;
}

static enum redis_verdict redirect(struct cluster *c, const struct redis_redirect *redirect,
				   struct redis_server **ret_to)
{
	struct redis *redis = c->redis;
	struct redis_url url = { .host = (char *)redirect->to.host,
				 .port = redirect->to.port,
				 .tls = redis->def->url[0].tls };

	/* Bounds the servers that redirections can create. */
	if (redis->stats.servers >= SERVERS_MAX)
		return REDIS_GIVE;
	*ret_to = redis_server_get(redis, &url);
	if (!*ret_to)
		return REDIS_GIVE;
	if (redirect->ask) {
		c->ask_ns = clock_mono_ns();
		return REDIS_ASKING;
	}
	c->slot[redirect->slot] = *ret_to;
	refresh_later(c);
	return REDIS_MOVE;
}

static enum redis_verdict cluster_error(struct redis *redis, struct redis_pending *pending,
					const char *error_text, struct redis_server **ret_to)
{
	struct cluster *c = cluster_of(redis);
	struct redis_redirect where;

	if (!redis_redirect_read(error_text, pending->server->host, &where))
		return redirect(c, &where, ret_to);
	if (!strncmp(error_text, "TRYAGAIN", 8))
		return REDIS_AGAIN;
	switch (redis_error_class_of(error_text)) {
	case REDIS_ERROR_CLUSTERDOWN:
	case REDIS_ERROR_READONLY:
	case REDIS_ERROR_MASTERDOWN:
	case REDIS_ERROR_LOADING:
		refresh_later(c);
		break;
	default:
		break;
	}
	return REDIS_GIVE;
}

static void cluster_up(struct redis *redis, struct redis_server *server)
{
	struct cluster *c = cluster_of(redis);

	if (c && !c->whole)
		refresh_later(c);
}

static void cluster_down(struct redis *redis, struct redis_server *server)
{
	struct cluster *c = cluster_of(redis);

	if (c)
		refresh_later(c);
}

const struct redis_topology redis_cluster = {
	.open = cluster_open,
	.close = cluster_close,
	.warm = cluster_warm,
	.slot_of = cluster_slot_of,
	.server = cluster_server,
	.error = cluster_error,
	.up = cluster_up,
	.down = cluster_down,
};
