// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * redis.c - the client: commands in, replies out; see redis.h, and redis_private.h for the list of
 * its files.
 *
 * Memory is bounded by REDIS_PENDING_MAX commands and BYTES_MAX of their text. The text is kept
 * until the reply so that a command can be sent again (MOVED, ASK, NOSCRIPT).
 */
#include "cluster/redis/redis.h"

#include <errno.h>
#include <openssl/sha.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/redis/redis_private.h"
#include "lib/histogram.h"

#define BYTES_MAX (64U << 20)
#define DEADLINE_NS SL_NS_PER_SEC
#define AGAIN_NS 2000000ULL

/* ------------------------------------------------------------------ one command */

void redis_queue_add(struct redis_queue *queue, struct redis_pending *pending)
{
	TAILQ_INSERT_TAIL(queue, pending, link);
	pending->queue = queue;
}

void redis_queue_remove(struct redis_pending *pending)
{
	if (pending->queue)
		TAILQ_REMOVE(pending->queue, pending, link);
	pending->queue = NULL;
}

void redis_queue_move(struct redis_queue *to, struct redis_queue *from)
{
	struct redis_pending *pending;

	while ((pending = TAILQ_FIRST(from))) {
		redis_queue_remove(pending);
		redis_queue_add(to, pending);
	}
}

static void pending_free(struct redis_pending *pending)
{
	struct redis *redis = pending->redis;

	redis_timer_unset(&redis->timers, &pending->deadline);
	redis_queue_remove(pending);
	redis->bytes -= pending->len;
	if (!pending->own)
		redis->pending--;
	redisFreeCommand(pending->text);
	free(pending);
}

static void count_reply(struct redis *redis, const struct redis_pending *pending,
			enum redis_outcome outcome)
{
	struct redis_stats *stats = &redis->stats;
	u64 took_ns = clock_mono_ns() - pending->begun_ns;
	u32 bucket = 0;

	redis_count(&stats->replies, 1);
	if (outcome == REPLY_ERROR)
		redis_count(&stats->errors, 1);
	/* The reply time of a blocking command is not measured. */
	if (pending->unhurried)
		return;
	while (bucket < HISTOGRAM_BUCKETS - 1 && took_ns > histogram_bound_ns(bucket))
		bucket++;
	redis_count(&stats->bucket[bucket], 1);
	redis_count(&stats->sum_ns, took_ns);
	redis_count(&stats->count, 1);
}

void redis_finish(struct redis_pending *pending, enum redis_outcome outcome,
		  const redisReply *reply)
{
	struct redis_handler handler = pending->handler;
	redisReply *held = pending->reply;
	bool late = pending->late;

	if (!pending->own) {
		if (outcome == REPLY_OK || outcome == REPLY_ERROR)
			count_reply(pending->redis, pending, outcome);
		else if (!late)
			redis_count(&pending->redis->stats.refused, 1);
	}
	pending_free(pending);
	if (!late && handler.done)
		handler.done(handler.arg, outcome, reply);
	else if (late && handler.late)
		handler.late(handler.arg, outcome, reply);
	if (held)
		freeReplyObject(held);
}

void redis_fail_later(struct redis_pending *pending)
{
	static const struct timeval now;
	struct redis *redis = pending->redis;

	redis_timer_unset(&redis->timers, &pending->deadline);
	redis_queue_remove(pending);
	redis_queue_add(&redis->finished, pending);
	/* A timeout instead of event_active(): an immediate retry must not occupy the loop. */
	evtimer_add(redis->later, &now);
}

void redis_fail_all(struct redis_queue *queue)
{
	struct redis_pending *pending;

	while ((pending = TAILQ_FIRST(queue)))
		redis_finish(pending, REPLY_DOWN, NULL);
}

static void on_later(evutil_socket_t fd, short what, void *arg)
{
	struct redis *redis = arg;
	struct redis_queue finished = TAILQ_HEAD_INITIALIZER(finished);
	struct redis_server *server;

	redis_queue_move(&finished, &redis->finished);
	redis_fail_all(&finished);
	while ((server = TAILQ_FIRST(&redis->gone))) {
		TAILQ_REMOVE(&redis->gone, server, link);
		redis_server_free(server);
	}
}

/* ------------------------------------------------------------------ deadlines */

static void on_deadline(struct redis_timer *timer)
{
	struct redis_pending *pending =
		(void *)((char *)timer - offsetof(struct redis_pending, deadline));
	struct redis *redis = pending->redis;
	struct redis_server *server = pending->own || pending->unhurried ? NULL : pending->server;
	struct redis_handler handler = pending->handler;
	bool waited = pending->queue == &redis->waiting;
	u64 late_ns = pending->deadline_ns;

	if (!pending->sent) {
		/* The command was not written and will not be executed. */
		redis_finish(pending, REPLY_DOWN, NULL);
	} else {
		if (!pending->own)
			redis_count(&redis->stats.late, 1);
		pending->late = true;
		if (handler.done)
			handler.done(handler.arg, REPLY_LATE, NULL);
	}
	if (server)
		redis_server_bad(server, late_ns);
	else if (waited && ++redis->unplaced == REDIS_BAD_MAX)
		redis_topology_settled(redis);
}

/* ------------------------------------------------------------------ routing */

/* Sends it to the server that has its slot now. */
static void dispatch(struct redis *redis, struct redis_pending *pending)
{
	struct redis_server *server = redis->topology->server(redis, pending->slot);

	if (server)
		redis_server_send(server, pending);
	else if (redis->opening && !pending->late)
		redis_queue_add(&redis->waiting, pending);
	else
		redis_fail_later(pending);
}

void redis_topology_settled(struct redis *redis)
{
	struct redis_pending *pending;

	redis->opening = false;
	while ((pending = TAILQ_FIRST(&redis->waiting))) {
		redis_queue_remove(pending);
		dispatch(redis, pending);
	}
}

static void on_again(struct redis_timer *timer)
{
	struct redis *redis = (void *)((char *)timer - offsetof(struct redis, again_timer));
	struct redis_queue again = TAILQ_HEAD_INITIALIZER(again);
	struct redis_pending *pending;

	redis_queue_move(&again, &redis->again);
	while ((pending = TAILQ_FIRST(&again))) {
		redis_queue_remove(pending);
		dispatch(redis, pending);
	}
}

void redis_send_again(struct redis_pending *pending)
{
	struct redis *redis = pending->redis;

	redis_queue_remove(pending);
	redis_queue_add(&redis->again, pending);
	if (!redis->again_timer.timer.position)
		redis_timer_set(&redis->timers, &redis->again_timer, clock_mono_ns() + AGAIN_NS);
}

/* ------------------------------------------------------------------ sending */

/* With a script: EVALSHA SHA and its arguments. */
static int format(struct redis_pending *pending, const struct redis_command *command)
{
	int count = command->argc + (command->script ? 2 : 0), argc = 0, size;
	size_t bytes = 0;

	if (command->argc < 0 || count == 0 || count > REDIS_ARGS_MAX)
		return -E2BIG;

	const char *argv[count];
	size_t len[count];

	if (command->script) {
		argv[argc] = "EVALSHA";
		len[argc++] = 7;
		argv[argc] = command->script->sha;
		len[argc++] = sizeof(command->script->sha) - 1;
	}
	for (int i = 0; i < command->argc; i++, argc++) {
		argv[argc] = command->argv[i];
		len[argc] = command->len ? command->len[i] : strlen(command->argv[i]);
		bytes += len[argc];
		if (bytes > REDIS_COMMAND_MAX)
			return -E2BIG;
	}
	size = redisFormatCommandArgv(&pending->text, argc, argv, len);
	if (size < 0)
		return -ENOBUFS;
	pending->len = (size_t)size;
	return 0;
}

static int pending_new(struct redis *redis, const struct redis_command *command,
		       struct redis_handler handler, struct redis_pending **ret)
{
	struct redis_pending *pending = calloc(1, sizeof(*pending));
	int r;

	if (!pending)
		return -ENOBUFS;
	r = format(pending, command);
	if (r < 0) {
		free(pending);
		return r;
	}
	pending->redis = redis;
	pending->handler = handler;
	pending->script = command->script;
	pending->slot = command->slot;
	pending->unhurried = command->unhurried;
	pending->durable = command->durable && redis->def->wait;
	pending->deadline.fire = on_deadline;
	pending->begun_ns = clock_mono_ns();
	pending->deadline_ns = command->deadline_ns ? command->deadline_ns : DEADLINE_NS;
	redis->bytes += pending->len;
	*ret = pending;
	return 0;
}

int redis_send(struct redis *redis, const struct redis_command *command,
	       struct redis_handler handler)
{
	struct redis_pending *pending;
	u32 timers = redis->timers.heap.count + 1 + 4 * (redis->stats.servers + 1);
	int r;

	if (redis->ending || redis->pending >= REDIS_PENDING_MAX || redis->bytes > BYTES_MAX ||
	    timer_heap_reserve(&redis->timers.heap, timers) < 0) {
		redis_count(&redis->stats.refused, 1);
		return -ENOBUFS;
	}
	r = pending_new(redis, command, handler, &pending);
	if (r < 0)
		return r;
	redis->pending++;
	redis_count(&redis->stats.commands, 1);
	redis_timer_set(&redis->timers, &pending->deadline,
			pending->begun_ns + pending->deadline_ns);
	redis_warm(redis);
	dispatch(redis, pending);
	return 0;
}

static struct redis_pending *own_new(struct redis *redis, int argc, const char *const *argv,
				     struct redis_handler handler)
{
	const struct redis_command command = { .argc = argc, .argv = argv };
	struct redis_pending *pending;

	if (redis->ending || pending_new(redis, &command, handler, &pending) < 0)
		return NULL;
	pending->own = true;
	return pending;
}

static void set_deadline(struct redis_pending *pending, u64 deadline_ns)
{
	pending->deadline_ns = deadline_ns;
	redis_timer_set(&pending->redis->timers, &pending->deadline,
			pending->begun_ns + deadline_ns);
}

int redis_conn_report(struct redis_conn *conn, int argc, const char *const *argv,
		      struct redis_handler handler)
{
	struct redis_pending *pending =
		own_new(redis_conn_server(conn)->redis, argc, argv, handler);

	if (!pending)
		return -ENOBUFS;
	redis_conn_write(conn, pending);
	return 0;
}

int redis_query_server(struct redis_server *server, int argc, const char *const *argv,
		       struct redis_handler handler)
{
	struct redis_pending *pending = own_new(server->redis, argc, argv, handler);

	if (!pending)
		return -ENOBUFS;
	set_deadline(pending, DEADLINE_NS);
	redis_server_send(server, pending);
	return 0;
}

int redis_probe(struct redis_server *server, u64 deadline_ns, struct redis_handler handler)
{
	static const char *const ping[] = { "PING" };
	struct redis_pending *pending = own_new(server->redis, 1, ping, handler);

	if (!pending)
		return -ENOBUFS;
	set_deadline(pending, deadline_ns);
	redis_conn_write(&server->conn, pending);
	return 0;
}

/* ------------------------------------------------------------------ the client */

void redis_script_init(struct redis_script *script, const char *text)
{
	static const char digit[] = "0123456789abcdef";
	unsigned char hash[SHA_DIGEST_LENGTH];

	SHA1((const unsigned char *)text, strlen(text), hash);
	for (int i = 0; i < SHA_DIGEST_LENGTH; i++) {
		script->sha[2 * i] = digit[hash[i] >> 4];
		script->sha[2 * i + 1] = digit[hash[i] & 15];
	}
	script->sha[40] = 0;
	script->text = text;
}

/*
 * ------------------------------------------------------------------ a single server has all keys
 */

static int single_open(struct redis *redis, struct sl_err *err)
{
	struct redis_server *server = redis_server_get(redis, &redis->def->url[0]);

	if (!server)
		return sl_err_set(err, ENOMEM, "out of memory");
	redis->topology_state = server;
	return 0;
}

static void single_close(struct redis *redis)
{
	redis->topology_state = NULL;
}

static void single_warm(struct redis *redis)
{
	redis_server_open(redis->topology_state);
}

static u32 single_server_of(const struct redis *redis, const char *key, size_t len)
{
	return 0;
}

static struct redis_server *single_server(const struct redis *redis, u32 slot)
{
	return redis->topology_state;
}

static const struct redis_topology single = {
	.open = single_open,
	.close = single_close,
	.warm = single_warm,
	.slot_of = single_server_of,
	.server = single_server,
};

/* ------------------------------------------------------------------ the client */

static const struct redis_topology *const topologies[] = {
	[REDIS_MODE_SINGLE] = &single,
	[REDIS_MODE_SENTINEL] = &redis_sentinel,
	[REDIS_MODE_CLUSTER] = &redis_cluster,
	[REDIS_MODE_RING] = &redis_ring,
};

int redis_new(struct event_base *base, const struct redis_def *def, struct redis **ret,
	      struct sl_err *err)
{
	struct redis *redis = calloc(1, sizeof(*redis));
	int r = 0;

	if (!redis)
		return sl_err_set(err, ENOMEM, "out of memory");
	redis->base = base;
	redis->def = def;
	redis->timers.fd = -1;
	pthread_mutex_init(&redis->lock, NULL);
	TAILQ_INIT(&redis->servers);
	TAILQ_INIT(&redis->gone);
	TAILQ_INIT(&redis->waiting);
	TAILQ_INIT(&redis->again);
	TAILQ_INIT(&redis->finished);
	redis->again_timer.fire = on_again;
	redis->later = evtimer_new(base, on_later, redis);
	if (!redis->later || redis_timers_open(&redis->timers, base) < 0 ||
	    timer_heap_reserve(&redis->timers.heap, 64) < 0)
		r = sl_err_set(err, ENOMEM, "cluster.redis: out of memory or file descriptors");
	redis->topology = topologies[def->mode];
	if (!r)
		r = redis_password_read(redis, err);
	if (!r)
		r = redis_tls_open(redis, err);
	if (!r)
		r = redis->topology->open(redis, err);
	if (r < 0)
		redis_free(redis);
	else
		*ret = redis;
	return r;
}

void redis_free(struct redis *redis)
{
	struct redis_server *server;

	if (!redis)
		return;
	redis->ending = true;
	redis->opening = false;
	/*
	 * First ends the commands of callers, while all objects exist; no more commands are
	 * accepted.
	 */
	TAILQ_FOREACH(server, &redis->servers, link) {
		redis_conn_close(&server->conn);
		redis_fail_all(&server->queue);
	}
	redis_fail_all(&redis->waiting);
	redis_fail_all(&redis->again);
	redis_fail_all(&redis->finished);
	if (redis->topology_state)
		redis->topology->close(redis);
	while ((server = TAILQ_FIRST(&redis->servers))) {
		pthread_mutex_lock(&redis->lock);
		TAILQ_REMOVE(&redis->servers, server, link);
		pthread_mutex_unlock(&redis->lock);
		redis_server_free(server);
	}
	if (redis->later) {
		on_later(-1, 0, redis);
		event_free(redis->later);
	}
	redis_timers_close(&redis->timers);
	if (redis->password) {
		explicit_bzero(redis->password, strlen(redis->password));
		free(redis->password);
	}
	SSL_CTX_free(redis->tls);
	pthread_mutex_destroy(&redis->lock);
	free(redis);
}

void redis_name(struct redis *redis, const char *node)
{
	snprintf(redis->name, sizeof(redis->name), "sluice-%s", node);
}

void redis_warm(struct redis *redis)
{
	if (redis->warm)
		return;
	redis->warm = true;
	if (redis->topology->warm)
		redis->topology->warm(redis);
}

u32 redis_slot_of(const struct redis *redis, const char *key, size_t len)
{
	return redis->topology->slot_of(redis, key, len);
}

bool redis_is_single(const struct redis *redis)
{
	return redis->def->mode == REDIS_MODE_SINGLE || redis->def->mode == REDIS_MODE_SENTINEL;
}

bool redis_up(const struct redis *redis, u32 slot)
{
	const struct redis_server *server = redis->topology->server(redis, slot);

	return server ? redis_server_may(server) : redis->opening || !redis->warm;
}

void redis_stats(const struct redis *redis, struct redis_stats *ret)
{
	const u64 *from = (const u64 *)&redis->stats;
	u64 *to = (u64 *)ret;

	/* Each number is consistent, but they are not read at the same moment. */
	for (size_t i = 0; i < sizeof(*ret) / sizeof(*to); i++)
		to[i] = __atomic_load_n(&from[i], __ATOMIC_RELAXED);
}
