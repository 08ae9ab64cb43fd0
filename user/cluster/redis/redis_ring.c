// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * redis_ring.c - several independent servers, keys on a ring (redis_points.h).
 *
 * An unavailable server keeps its keys for OUT_NS: on_store_failure covers a short outage, and no
 * count is lost. Then it leaves the ring and its keys move to the other servers, where counting
 * starts at 0 (nodes restore their own admissions). It returns after it was available for RETRY_NS
 * without interruption. Each client decides alone: until the last one has detected the change,
 * after about the pause between two probes (2 s), a key may be counted at two servers. A move
 * admits at most one additional capacity of each limit that moved.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/redis/redis_points.h"
#include "cluster/redis/redis_private.h"
#include "cluster/redis/redis_slots.h"

#ifndef OUT_NS /* tests use other values */
#define OUT_NS (2 * SL_NS_PER_SEC)
#define RETRY_NS (5 * SL_NS_PER_SEC)
#endif

struct member {
	struct redis_ring *state;
	struct redis_server *server;
	struct redis_timer timer; /* time at which it leaves or rejoins the ring */
	bool away;
};

struct redis_ring {
	struct redis *redis;
	struct ring *ring;
	struct member *member;
};

static struct redis_ring *ring_of(const struct redis *redis)
{
	return redis->topology_state;
}

static void on_member(struct redis_timer *timer)
{
	struct member *member = (void *)((char *)timer - offsetof(struct member, timer));
	struct redis_ring *state = member->state;
	bool *out = &state->ring->out[member - state->member];

	if (*out == member->away)
		return;
	*out = member->away;
	redis_count(&state->redis->stats.reloads, 1);
	redis_server_report(member->server, *out ? REDIS_ERROR_OUT : REDIS_ERROR_NONE, NULL);
}

static struct member *member_of(struct redis_ring *state, const struct redis_server *server)
{
	for (u32 i = 0; state && i < state->ring->servers; i++)
		if (state->member[i].server == server)
			return &state->member[i];
	return NULL;
}

static void member_is(struct redis *redis, struct redis_server *server, bool away)
{
	struct member *member = member_of(ring_of(redis), server);

	/* Each failed probe reports it again. */
	if (!member || member->away == away)
		return;
	member->away = away;
	if (away == ring_of(redis)->ring->out[member - ring_of(redis)->member])
		redis_timer_unset(&redis->timers, &member->timer);
	else
		redis_timer_set(&redis->timers, &member->timer,
				clock_mono_ns() + (away ? OUT_NS : RETRY_NS));
}

static void ring_up(struct redis *redis, struct redis_server *server)
{
	member_is(redis, server, false);
}

static void ring_down(struct redis *redis, struct redis_server *server)
{
	member_is(redis, server, true);
}

/* ------------------------------------------------------------------ the table of operations */

static void ring_close(struct redis *redis)
{
	struct redis_ring *state = ring_of(redis);

	for (size_t i = 0; state->member && i < redis->def->url_count; i++)
		redis_timer_unset(&redis->timers, &state->member[i].timer);
	ring_free(state->ring);
	free(state->member);
	free(state);
	redis->topology_state = NULL;
}

/* HOST:PORT/DATABASE, with or without TLS. */
static int name_all(struct redis_ring *state, char **name)
{
	const struct redis_def *def = state->redis->def;

	for (size_t i = 0; i < def->url_count; i++) {
		struct member *member = &state->member[i];

		member->state = state;
		member->timer.fire = on_member;
		member->server = redis_server_get(state->redis, &def->url[i]);
		if (!member->server ||
		    asprintf(&name[i], "%s/%u", member->server->name, def->url[i].database) < 0) {
			name[i] = NULL;
			return -ENOMEM;
		}
	}
	return 0;
}

static int ring_open(struct redis *redis, struct sl_err *err)
{
	size_t count = redis->def->url_count;
	struct redis_ring *state = calloc(1, sizeof(*state));
	char **name = calloc(count + 1, sizeof(*name));
	int r = -ENOMEM;

	if (!state || !name)
		goto out;
	state->redis = redis;
	redis->topology_state = state;
	state->member = calloc(count, sizeof(*state->member));
	if (state->member && name_all(state, name) == 0)
		r = ring_new((const char *const *)name, (u32)count, &state->ring);
	if (!r)
		r = timer_heap_reserve(&redis->timers.heap, (u32)(64 + count));
	if (r < 0)
		ring_close(redis);
	state = NULL;
out:
	free(state);
	for (size_t i = 0; name && i < count; i++)
		free(name[i]);
	free(name);
	if (r == -EEXIST)
		return sl_err_set(err, EINVAL, "cluster.redis.urls: a server is listed twice");
	if (r == -EINVAL)
		return sl_err_set(err, EINVAL,
				  "cluster.redis.urls: %zu servers; 1 to %u are accepted", count,
				  RING_SERVERS_MAX);
	return r < 0 ? sl_err_set(err, ENOMEM, "out of memory") : 0;
}

static void ring_warm(struct redis *redis)
{
	for (u32 i = 0; i < ring_of(redis)->ring->servers; i++)
		redis_server_open(ring_of(redis)->member[i].server);
}

static u32 ring_server_of(const struct redis *redis, const char *key, size_t len)
{
	const char *tag;
	size_t tag_len;

	redis_tag(key, len, &tag, &tag_len);
	return ring_find(ring_of(redis)->ring, tag, tag_len);
}

static struct redis_server *ring_server(const struct redis *redis, u32 slot)
{
	const struct redis_ring *state = ring_of(redis);

	return slot < state->ring->servers ? state->member[slot].server : NULL;
}

const struct redis_topology redis_ring = {
	.open = ring_open,
	.close = ring_close,
	.warm = ring_warm,
	.slot_of = ring_server_of,
	.server = ring_server,
	.up = ring_up,
	.down = ring_down,
};
