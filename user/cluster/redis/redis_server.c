// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * redis_server.c - the breaker of a server, and its probes.
 *
 *     IDLE -- first command --> OPENING -- greeted --> UP -- 5 late or failed, or lost -->
 * UNAVAILABLE
 *                                  \-- 5 late, or unreachable ----------------------------/  |
 *                                                    UP <-- reply in time --- one probe ---/
 *
 * A probe is a PING over the existing connection, or a new connection. Probes are sent one at a
 * time, after a pause of 50 ms that doubles up to 2 s, with a jitter of a factor 0.5 to 1.5 (so
 * that nodes that lost the same server do not return to it together). The pause starts again at 50
 * ms only after the server was available for WELL_NS: a server that replies only to PING is probed
 * less and less often.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/redis/redis_private.h"
#include "lib/log.h"

#define PAUSE_MIN_NS 50000000ULL
#define PAUSE_MAX_NS (2 * SL_NS_PER_SEC)
#define QUIET_NS (10 * SL_NS_PER_SEC)
#define LOGGED_NS (60 * SL_NS_PER_SEC)
#define JUST_NOW_NS (SL_NS_PER_SEC / 10)
#define WELL_NS (2 * SL_NS_PER_SEC) /* after this time UP earlier failures do not count */

static const struct {
	const char *error; /* the beginning of Redis' error text */
	enum redis_error_class error_class;
} error_classes[] = {
	{ "WRONGPASS", REDIS_ERROR_PASSWORD },
	{ "NOAUTH", REDIS_ERROR_PASSWORD },
	{ "ERR invalid password", REDIS_ERROR_PASSWORD },
	{ "NOPERM", REDIS_ERROR_PERMISSION },
	{ "LOADING", REDIS_ERROR_LOADING },
	{ "READONLY", REDIS_ERROR_READONLY },
	{ "MASTERDOWN", REDIS_ERROR_MASTERDOWN },
	{ "CLUSTERDOWN", REDIS_ERROR_CLUSTERDOWN },
	{ "OOM", REDIS_ERROR_MEMORY },
	{ "BUSY ", REDIS_ERROR_BUSY },
	{ "MISCONF", REDIS_ERROR_DISK },
	{ "NOREPLICAS", REDIS_ERROR_REPLICAS },
};

static const char *const error_class_text[REDIS_ERROR_COUNT] = {
	[REDIS_ERROR_NONE] = "is available",
	[REDIS_ERROR_LOST] = "cannot be reached",
	[REDIS_ERROR_SLOW] = "replies too late; only probes are sent for a while",
	[REDIS_ERROR_PASSWORD] = "refuses cluster.redis.user or the password of password_file",
	[REDIS_ERROR_PERMISSION] = "does not permit its user to run a command (ACL)",
	[REDIS_ERROR_LOADING] = "is loading its data",
	[REDIS_ERROR_READONLY] = "is now a replica and refuses writes",
	[REDIS_ERROR_MASTERDOWN] = "has lost its master",
	[REDIS_ERROR_CLUSTERDOWN] = "reports that its cluster is down",
	[REDIS_ERROR_MEMORY] = "has no memory left (maxmemory)",
	[REDIS_ERROR_BUSY] = "is busy with a script of another client",
	[REDIS_ERROR_DISK] = "refuses writes because it cannot save to disk",
	[REDIS_ERROR_NO_CLUSTER] = "has no slot map (cluster.redis.mode is cluster)",
	[REDIS_ERROR_OUT] = "is out of the ring: the other servers have its keys",
	[REDIS_ERROR_REPLICAS] = "has fewer replicas than cluster.redis.wait requires",
};

enum redis_error_class redis_error_class_of(const char *error_text)
{
	for (size_t i = 0; i < sizeof(error_classes) / sizeof(error_classes[0]); i++)
		if (!strncmp(error_text, error_classes[i].error, strlen(error_classes[i].error)))
			return error_classes[i].error_class;
	return REDIS_ERROR_NONE;
}

/* Redis' error text is untrusted: unprintable characters are replaced. */
static void printable(char *buf, size_t size, const char *error_text)
{
	size_t i;

	for (i = 0; i + 1 < size && error_text[i]; i++)
		buf[i] = error_text[i] >= ' ' && error_text[i] <= '~' ? error_text[i] : '?';
	buf[i] = 0;
}

/*
 * The clients of all workers lose a server at the same time: of one server a text is logged once,
 * and no more than LOG_TEXTS_MAX, until it had no error for ten seconds, or a minute is over. (Two
 * servers with one number share that, which is harmless.)
 */
static struct {
	u64 error_ns; /* the last one of any client; atomic */
	u64 since_ns;
	struct log_texts texts;
} logged[256];

static u32 logged_number(const struct redis_server *server)
{
	u32 number = 0;

	for (const char *c = server->name; *c; c++)
		number = number * 31 + (u8)*c;
	return number % 256;
}

/* `last_ns`: the error before this one, of any client; another thread's may be a little later. */
static bool may_log(const struct redis_server *server, u64 last_ns)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	char line[sizeof(server->name) + sizeof(server->error)];
	u32 number = logged_number(server);
	bool may;

	snprintf(line, sizeof(line), "%s%s", server->name, server->error);
	pthread_mutex_lock(&lock);
	if ((s64)(server->error_ns - last_ns) > (s64)QUIET_NS ||
	    (s64)(server->error_ns - logged[number].since_ns) > (s64)LOGGED_NS) {
		logged[number].texts.count = 0;
		logged[number].since_ns = server->error_ns;
	}
	may = log_texts_add(&logged[number].texts, line);
	pthread_mutex_unlock(&lock);
	return may;
}

void redis_server_report(struct redis_server *server, enum redis_error_class error_class,
			 const char *error_text)
{
	char safe[160], error[sizeof(server->error)] = "";
	u64 last_ns = 0;

	server->error_ns = clock_mono_ns();
	if (error_class != REDIS_ERROR_NONE) {
		last_ns = __atomic_exchange_n(&logged[logged_number(server)].error_ns,
					      server->error_ns, __ATOMIC_RELAXED);
		printable(safe, sizeof(safe), error_text ? error_text : "");
		snprintf(error, sizeof(error), "%s%s%s", error_class_text[error_class],
			 *safe ? ": " : "", safe);
	}
	if (error_class == server->error_class && !strcmp(error, server->error))
		return;
	pthread_mutex_lock(&server->redis->lock);
	server->error_class = error_class;
	strcpy(server->error, error);
	pthread_mutex_unlock(&server->redis->lock);
	if (error_class == REDIS_ERROR_NONE) {
		if (server->error_logged)
			log_info("redis %s: available again", server->name);
		server->error_logged = false;
		server->error_texts.count = 0;
	} else if (log_texts_add(&server->error_texts, error) && may_log(server, last_ns)) {
		log_warn("redis %s: %s", server->name, error);
		server->error_logged = true;
	}
}

/* An error that PING does not detect is cleared when it has not occurred for a while. */
static bool seen_by_ping(enum redis_error_class error_class)
{
	return error_class != REDIS_ERROR_PERMISSION && error_class != REDIS_ERROR_MEMORY &&
	       error_class != REDIS_ERROR_DISK && error_class != REDIS_ERROR_REPLICAS &&
	       error_class != REDIS_ERROR_CLUSTERDOWN;
}

/* ------------------------------------------------------------------ the breaker */

static u64 jitter(u64 pause_ns)
{
	u32 random;

	evutil_secure_rng_get_bytes(&random, sizeof(random));
	return pause_ns / 2 + (u64)((double)random / 4294967296.0 * (double)pause_ns);
}

static void set_state(struct redis_server *server, enum server_state state)
{
	struct redis_stats *stats = &server->redis->stats;

	if (!server->sentinel) {
		redis_count(&stats->up, (state == SERVER_UP) - (u64)(server->state == SERVER_UP));
		redis_count(&stats->breakers_open,
			    (state == SERVER_UNAVAILABLE) -
				    (u64)(server->state == SERVER_UNAVAILABLE));
	}
	pthread_mutex_lock(&server->redis->lock);
	server->state = state;
	pthread_mutex_unlock(&server->redis->lock);
}

static void pause_longer(struct redis_server *server)
{
	server->probing = false;
	server->pause_ns = server->pause_ns ? server->pause_ns * 2 : PAUSE_MIN_NS;
	if (server->pause_ns > PAUSE_MAX_NS)
		server->pause_ns = PAUSE_MAX_NS;
	redis_timer_set(&server->redis->timers, &server->pause,
			clock_mono_ns() + jitter(server->pause_ns));
}

static void go_down(struct redis_server *server)
{
	struct redis_queue queue = TAILQ_HEAD_INITIALIZER(queue);

	if (server->state == SERVER_UP && clock_mono_ns() - server->up_ns > WELL_NS)
		server->pause_ns = 0;
	set_state(server, SERVER_UNAVAILABLE);
	pause_longer(server);
	redis_queue_move(&queue, &server->queue);
	if (server->redis->topology->down)
		server->redis->topology->down(server->redis, server);
	redis_fail_all(&queue);
}

static void come_up(struct redis_server *server)
{
	struct redis_pending *pending;

	redis_timer_unset(&server->redis->timers, &server->pause);
	server->probing = false;
	server->bad = 0;
	server->up_ns = clock_mono_ns();
	set_state(server, SERVER_UP);
	if (seen_by_ping(server->error_class))
		redis_server_report(server, REDIS_ERROR_NONE, NULL);
	while (server->state == SERVER_UP && (pending = TAILQ_FIRST(&server->queue))) {
		redis_queue_remove(pending);
		redis_server_send(server, pending);
	}
	if (server->redis->topology->up)
		server->redis->topology->up(server->redis, server);
}

static void on_probe(void *arg, enum redis_outcome outcome, const redisReply *reply)
{
	struct redis_server *server = arg;

	/* REPLY_DOWN: the connection ended, and redis_server_lost() has handled it. */
	if (server->state != SERVER_UNAVAILABLE || !server->probing || outcome == REPLY_DOWN)
		return;
	if (outcome == REPLY_LATE ||
	    (outcome == REPLY_ERROR && redis_error_class_of(reply->str) != REDIS_ERROR_PERMISSION &&
	     redis_error_class_of(reply->str) != REDIS_ERROR_NONE))
		pause_longer(server);
	else
		come_up(server);
}

static void on_pause(struct redis_timer *timer)
{
	struct redis_server *server =
		(void *)((char *)timer - offsetof(struct redis_server, pause));
	const struct redis_handler handler = { .done = on_probe, .arg = server };

	server->probing = true;
	if (server->conn.state == CONN_NONE)
		redis_conn_open(&server->conn);
	else if (server->conn.state != CONN_READY ||
		 redis_probe(server, server->late_ns, handler) < 0)
		pause_longer(server);
}

void redis_server_good(struct redis_server *server)
{
	server->bad = 0;
	if (server->error_class != REDIS_ERROR_NONE && server->state == SERVER_UP &&
	    clock_mono_ns() - server->error_ns > QUIET_NS)
		redis_server_report(server, REDIS_ERROR_NONE, NULL);
}

void redis_server_bad(struct redis_server *server, u64 deadline_ns)
{
	if ((server->state != SERVER_UP && server->state != SERVER_OPENING) ||
	    ++server->bad < REDIS_BAD_MAX)
		return;
	server->late_ns = deadline_ns;
	/* A reported error is logged as the reason; otherwise the loss that follows has its own. */
	if (server->error_class == REDIS_ERROR_NONE && server->state == SERVER_UP)
		redis_server_report(server, REDIS_ERROR_SLOW, NULL);
	go_down(server);
}

void redis_server_ready(struct redis_server *server)
{
	come_up(server);
}

void redis_server_lost(struct redis_server *server, const char *why)
{
	/* An error that was reported just now is more precise than the loss that it leads to. */
	if (server->error_class == REDIS_ERROR_NONE || server->error_class == REDIS_ERROR_SLOW ||
	    clock_mono_ns() - server->error_ns > JUST_NOW_NS)
		redis_server_report(server, REDIS_ERROR_LOST, why);
	if (server->state == SERVER_IDLE)
		return;
	if (server->state != SERVER_UNAVAILABLE)
		go_down(server);
	else if (server->probing || !server->pause.timer.position)
		pause_longer(server);
}

/* ------------------------------------------------------------------ a server */

bool redis_server_may(const struct redis_server *server)
{
	return !server->gone && server->state != SERVER_UNAVAILABLE;
}

void redis_server_open(struct redis_server *server)
{
	if (server->state != SERVER_IDLE || server->gone)
		return;
	set_state(server, SERVER_OPENING);
	redis_conn_open(&server->conn);
}

void redis_server_send(struct redis_server *server, struct redis_pending *pending)
{
	pending->server = server;
	redis_server_open(server);
	if (server->gone || server->state == SERVER_UNAVAILABLE ||
	    pending->tries >= REDIS_TRIES_MAX) {
		redis_fail_later(pending);
		return;
	}
	if (server->state == SERVER_UP)
		redis_conn_write(&server->conn, pending);
	else
		redis_queue_add(&server->queue, pending);
}

static bool is_url(const struct redis_server *server, const struct redis_url *url)
{
	return !strcmp(server->host, url->host) && server->port == url->port &&
	       server->database == url->database && server->unix_socket == url->unix_socket &&
	       server->tls == url->tls;
}

struct redis_server *redis_server_get(struct redis *redis, const struct redis_url *url)
{
	bool bare = strchr(url->host, ':') && !url->unix_socket;
	struct redis_server *server;

	TAILQ_FOREACH(server, &redis->servers, link)
		if (is_url(server, url))
			return server;
	server = calloc(1, sizeof(*server));
	if (!server)
		return NULL;
	server->host = strdup(url->host);
	if (!server->host) {
		free(server);
		return NULL;
	}
	server->redis = redis;
	server->port = url->port;
	server->database = url->database;
	server->unix_socket = url->unix_socket;
	server->tls = url->tls;
	server->pause.fire = on_pause;
	TAILQ_INIT(&server->queue);
	redis_conn_init(&server->conn);
	if (url->unix_socket)
		snprintf(server->name, sizeof(server->name), "unix:%s", url->host);
	else
		snprintf(server->name, sizeof(server->name), bare ? "[%s]:%u" : "%s:%u", url->host,
			 url->port);
	pthread_mutex_lock(&redis->lock);
	TAILQ_INSERT_TAIL(&redis->servers, server, link);
	pthread_mutex_unlock(&redis->lock);
	redis_count(&redis->stats.servers, 1);
	return server;
}

void redis_server_set_sentinel(struct redis_server *server)
{
	if (!server->sentinel)
		redis_count(&server->redis->stats.servers, (u64)-1);
	server->sentinel = true;
}

u32 redis_server_states(struct redis *redis, struct redis_server_state *ret, u32 max)
{
	const struct redis_server *server;
	u32 count = 0;

	pthread_mutex_lock(&redis->lock);
	TAILQ_FOREACH(server, &redis->servers, link) {
		struct redis_server_state *state = &ret[count];

		if (count == max)
			break;
		snprintf(state->name, sizeof(state->name), "%s", server->name);
		state->sentinel = server->sentinel;
		state->up = server->state == SERVER_UP;
		state->breaker_open = server->state == SERVER_UNAVAILABLE;
		state->idle = server->state == SERVER_IDLE;
		strcpy(state->error, server->error);
		count++;
	}
	pthread_mutex_unlock(&redis->lock);
	return count;
}

/* Freed in the next turn of the loop, because a reply of this server may be in process. */
void redis_server_drop(struct redis_server *server)
{
	static const struct timeval now;
	struct redis *redis = server->redis;

	/* redis_free() drops all of them. */
	if (server->gone || redis->ending)
		return;
	server->gone = true;
	pthread_mutex_lock(&redis->lock);
	TAILQ_REMOVE(&redis->servers, server, link);
	pthread_mutex_unlock(&redis->lock);
	TAILQ_INSERT_TAIL(&redis->gone, server, link);
	if (!server->sentinel)
		redis_count(&redis->stats.servers, (u64)-1);
	evtimer_add(redis->later, &now);
}

void redis_server_free(struct redis_server *server)
{
	struct redis *redis = server->redis;

	redis_conn_close(&server->conn);
	redis_fail_all(&server->queue);
	set_state(server, SERVER_IDLE);
	redis_timer_unset(&redis->timers, &server->pause);
	free(server->host);
	free(server);
}
