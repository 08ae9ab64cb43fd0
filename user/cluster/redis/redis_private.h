/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * redis_private.h - what the files of the client share; nobody else includes it.
 *
 *     redis.c           the client: commands in, answers out, which server a place is at
 *     redis_single.c, redis_sentinel.c, redis_cluster.c, redis_ring.c
 *                       the topologies: which servers there are, and who has a key
 *     redis_slots.c, redis_points.c
 *                       slots of a cluster and its map; a ring's points
 *     redis_server.c    a server: whether it may be asked (the breaker), and when again
 *     redis_conn.c      its connection: resolve, connect, greet, write, read, end
 *     redis_pipeline.c    what it sends behind callers' commands: scripts, WAIT
 *     redis_greet.c     what a connection says first
 *     redis_reader.c    hiredis' reader, bounded
 *     redis_timer.c     points of time, to the microsecond
 *     redis_resolve.c   names, by a thread
 *     redis_tls.c       TLS and the password
 *
 * A command under way is a struct redis_pending, in exactly one queue: the client's `waiting`
 * (nobody knows yet which server), a server's (it is being connected to), a connection's `sent`
 * or `held` (answered, but not known to be replicated), or the client's `finished` (failed at
 * once: told in the next turn of the loop, since done() never comes before redis_send() returns).
 */
#ifndef SLUICE_REDIS_PRIVATE_H
#define SLUICE_REDIS_PRIVATE_H

#include <event2/bufferevent.h>
#include <netdb.h>
#include <openssl/ssl.h>
#include <pthread.h>
#include <sys/queue.h>
#include <sys/stat.h>

#include "cluster/redis/redis.h"

/* ------------------------------------------------------------------ time */

struct redis_timer {
	u64 at_ns;		/* CLOCK_MONOTONIC */
	u32 place;		/* in the heap, from 1; 0: not set */
	void (*fire)(struct redis_timer *timer);
};

struct redis_timers {
	int fd;
	struct event *event;
	struct redis_timer **heap;
	u32 count, room;
	u64 armed_ns;		/* what the timerfd is set to; 0: nothing */
};

u64 redis_now_ns(void);
int redis_timers_open(struct redis_timers *timers, struct event_base *base);
void redis_timers_close(struct redis_timers *timers);
/* Makes sure that so many can be set; setting one more than that does nothing. */
int redis_timers_reserve(struct redis_timers *timers, u32 count);
void redis_timer_set(struct redis_timers *timers, struct redis_timer *timer, u64 at_ns);
void redis_timer_unset(struct redis_timers *timers, struct redis_timer *timer);

/* ------------------------------------------------------------------ commands */

struct redis_server;
struct redis_conn;

#define REDIS_BAD_MAX 5		/* in a row that were late: nobody else waits for that */
#define REDIS_TRIES_MAX 8	/* sends of one command: MOVED, ASK, NOSCRIPT, TRYAGAIN */

struct redis_pending {
	TAILQ_ENTRY(redis_pending) link;
	struct redis_queue *queue;		/* that it is in */
	struct redis *redis;
	struct redis_server *server;		/* NULL while waiting */
	struct redis_timer deadline;
	struct redis_handler handler;
	const struct redis_script *script;
	char *text;				/* hiredis' */
	size_t len;
	redisReply *reply;			/* held */
	u64 begun_ns, sent_ns, deadline_ns;
	u64 number;				/* on its connection */
	u32 place;
	u8 tries;
	bool own;		/* the client's: not counted, no deadline, no second try */
	bool unhurried, durable;
	bool told;		/* REPLY_LATE was */
	bool sent;		/* was, at least once */
};
TAILQ_HEAD(redis_queue, redis_pending);

void redis_queue_add(struct redis_queue *queue, struct redis_pending *pending);
void redis_queue_remove(struct redis_pending *pending);
/* All of a queue to the end of another. */
void redis_queue_move(struct redis_queue *to, struct redis_queue *from);
/* Tells its caller and frees it. */
void redis_finish(struct redis_pending *pending, enum redis_outcome outcome,
		  const redisReply *reply);
/* REPLY_DOWN, in the next turn of the loop. */
void redis_fail_later(struct redis_pending *pending);
/* To who has its place then, in 2 ms. */
void redis_send_again(struct redis_pending *pending);
/* REPLY_DOWN, at once: a queue that nothing is added to any more. */
void redis_fail_all(struct redis_queue *queue);
/*
 * The client's own commands, to this server whoever it is: redis_ask_server() as a caller's, with a
 * deadline of a second; redis_probe() while the breaker is open.
 */
int redis_ask_server(struct redis_server *server, int argc, const char *const *argv,
		     struct redis_handler handler);
int redis_probe(struct redis_server *server, u64 deadline_ns, struct redis_handler handler);

/* ------------------------------------------------------------------ topologies */

enum redis_verdict {
	REDIS_GIVE,		/* the error is the caller's */
	REDIS_MOVE,		/* send it to *ret_to */
	REDIS_ASKING,		/* send it there after ASKING */
	REDIS_AGAIN,		/* send it again in 2 ms, to who has its place then */
};

/*
 * A topology has servers (redis_server_get()), and says which of them has a place. It may ask them
 * with redis_ask_server(). While redis->opening, commands for places whose server is not known
 * wait (until their deadline, and REDIS_BAD_MAX of them at most); redis_topology_settled() sends
 * or fails them.
 */
struct redis_topology {
	/* From redis->def; connects to nobody. */
	int (*open)(struct redis *redis, struct sl_err *err);
	void (*close)(struct redis *redis);
	/* The first command is there, or redis_warm(): find out who is who; NULL: nothing to find out. */
	void (*warm)(struct redis *redis);
	u32 (*place)(const struct redis *redis, const char *key, size_t len);
	/* Who has it; NULL: nobody, or nobody knows. */
	struct redis_server *(*server)(const struct redis *redis, u32 place);
	/* Any error that a command got, before its caller is told; NULL: they are the caller's. */
	enum redis_verdict (*error)(struct redis *redis, struct redis_pending *pending,
				    const char *words, struct redis_server **ret_to);
	/* It can be asked; or not: away, or it says that it is no master. NULL: not wanted. */
	void (*up)(struct redis *redis, struct redis_server *server);
	void (*down)(struct redis *redis, struct redis_server *server);
};

extern const struct redis_topology redis_single, redis_sentinel, redis_cluster, redis_ring;

/* ------------------------------------------------------------------ the client */

TAILQ_HEAD(redis_server_list, redis_server);

struct redis {
	struct event_base *base;
	const struct redis_def *def;
	const struct redis_topology *topology;
	void *topology_state;			/* the topology's */
	struct redis_timers timers;
	struct redis_server_list servers;
	struct redis_server_list gone;		/* to be freed in the next turn */
	struct redis_queue waiting, again, finished;
	struct redis_timer again_timer;
	struct event *later;			/* the next turn */
	bool warm, opening, ending;
	u32 unplaced;				/* commands that nobody could be found for in time */
	u32 pending;
	size_t bytes;				/* of their texts */
	char *password;				/* what the file had when it could be read last */
	SSL_CTX *tls;				/* NULL: no server wants it */
	struct stat tls_read[3];		/* ca, cert, key, as they were read */
	char name[CLUSTER_NODE_MAX + 16];	/* for CLIENT SETNAME; "" none */
	struct redis_stats stats;		/* written by this thread alone */
	pthread_mutex_t lock;			/* `servers` and their states, for redis_server_states() */
};

/* Who is who is known (or cannot be found out): what waits is sent, or fails. */
void redis_topology_settled(struct redis *redis);

static inline void redis_count(u64 *counter, u64 n)
{
	__atomic_store_n(counter, *counter + n, __ATOMIC_RELAXED);
}

/* ------------------------------------------------------------------ a connection */

enum conn_state { CONN_NONE, CONN_RESOLVING, CONN_CONNECTING, CONN_GREETING, CONN_READY };

struct redis_lookup;

struct redis_conn {
	enum conn_state state;
	struct bufferevent *bev;
	struct redis_lookup *lookup;
	u64 life;			/* how many were ended */
	const char *failed;		/* why it is to be ended by the timer */
	struct event *flush;		/* at the end of a turn: WAIT */
	u32 attempts;			/* of a name's addresses the next is taken */
	redisReader *reader;
	redisReplyObjectFunctions objects;
	u32 object_count;		/* of the reply that is being read, */
	size_t bytes;			/* and what came of it */
	struct redis_queue sent, held;
	u64 numbers;			/* commands written */
	u64 durable_ns;			/* durable ones written since the last WAIT: until when they have time */
	const struct redis_script *script[4];	/* that were loaded here, */
	u64 loaded[4];				/* by which command */
	struct redis_timer timer;	/* to be there by; later: to have answered by */
};

void redis_conn_init(struct redis_conn *conn);
/* In each case redis_server_ready() or redis_server_lost() follows, not at once. */
void redis_conn_open(struct redis_conn *conn);
void redis_conn_write(struct redis_conn *conn, struct redis_pending *pending);
/* Ends it: what is pending is answered with REPLY_DOWN, after redis_server_lost(). */
void redis_conn_end(struct redis_conn *conn, const char *why);
/* Ends it without a word. */
void redis_conn_close(struct redis_conn *conn);
/* The same by its timer: for where the caller does not expect that it ends at once. */
void redis_conn_fail_soon(struct redis_conn *conn, const char *why);
/* After NOSCRIPT; false: it is not to be sent again. */
bool redis_conn_load_script(struct redis_conn *conn, struct redis_pending *pending);
/* A durable command was written. */
void redis_conn_request_wait(struct redis_conn *conn, const struct redis_pending *pending);
/* A command of the connection's own, with no deadline. */
int redis_conn_report(struct redis_conn *conn, int argc, const char *const *argv,
		      struct redis_handler handler);
void redis_greet(struct redis_conn *conn);
void redis_conn_greeted(struct redis_conn *conn);
struct redis_server *redis_conn_server(struct redis_conn *conn);
redisReader *redis_reader_new(struct redis_conn *conn);		/* NULL: no memory */

/* A name's addresses, found by a thread. done() comes from the loop; cancel: it does not. */
int redis_lookup_start(struct event_base *base, const char *host, u16 port,
		       void (*done)(void *arg, const struct addrinfo *list, const char *error),
		       void *arg, struct redis_lookup **ret);
void redis_lookup_cancel(struct redis_lookup *lookup);		/* NULL is fine */

int redis_tls_open(struct redis *redis, struct sl_err *err);
/* NULL: no memory. */
SSL *redis_tls_new(struct redis *redis, const char *host);
/* Why the last handshake failed; of the thread. */
void redis_tls_why(SSL *ssl, char *buf, size_t size);
/* -errno and words where there is one that cannot be read, and none was read before. */
int redis_password_read(struct redis *redis, struct sl_err *err);

/* ------------------------------------------------------------------ a server */

enum server_state {
	SERVER_IDLE,	/* nobody wanted anything of it yet */
	SERVER_OPENING, /* the first connection is being made: commands queue, for some time */
	SERVER_UP,
	SERVER_UNAVAILABLE, /* the breaker is open: commands fail; probed after a pause */
};

/* What a server is reported for, once until something else is. */
enum redis_error_class {
	REDIS_ERROR_NONE,
	REDIS_ERROR_LOST, /* no connection */
	REDIS_ERROR_SLOW,
	REDIS_ERROR_PASSWORD,
	REDIS_ERROR_PERMISSION,
	REDIS_ERROR_LOADING,
	REDIS_ERROR_READONLY,
	REDIS_ERROR_MASTERDOWN,
	REDIS_ERROR_CLUSTERDOWN,
	REDIS_ERROR_MEMORY,
	REDIS_ERROR_BUSY,
	REDIS_ERROR_DISK,
	REDIS_ERROR_REPLICAS,
	REDIS_ERROR_NO_CLUSTER,
	REDIS_ERROR_OUT,
	REDIS_ERROR_COUNT
};

struct redis_server {
	TAILQ_ENTRY(redis_server) link;
	struct redis *redis;
	char *host;
	u16 port;
	u32 database;
	bool unix_socket, tls;
	bool sentinel;
	bool role_requested;			/* is a server only as long as it is a master */
	bool gone;
	char name[300];			/* HOST:PORT */
	enum server_state state;
	struct redis_queue queue;	/* while OPENING */
	struct redis_conn conn;
	struct redis_timer pause;	/* until the next probe */
	u64 pause_ns;
	u64 up_ns;			/* when it became so */
	u64 late_ns;			/* the deadline that was missed when the breaker opened */
	u32 bad;			/* commands in a row that were late or failed */
	bool probing;
	enum redis_error_class error_class;	/* what it suffers from, */
	u64 error_ns;			/* when it showed last, */
	bool told;			/* and whether the log has it */
	u32 mark;			/* the topology's: e.g. which were in the last map */
};

/* Found, or made; NULL: no memory. */
struct redis_server *redis_server_get(struct redis *redis, const struct redis_url *url);
/* Is not among the servers that are counted, and may have no password. Once, when it is new. */
void redis_server_set_sentinel(struct redis_server *server);
/* Not wanted any more: what is pending there is answered with REPLY_DOWN. */
void redis_server_drop(struct redis_server *server);
void redis_server_free(struct redis_server *server);
void redis_server_send(struct redis_server *server, struct redis_pending *pending);
void redis_server_open(struct redis_server *server);		/* if it is IDLE */
bool redis_server_may(const struct redis_server *server);	/* whether commands would be sent */

/* From its connection. */
void redis_server_ready(struct redis_server *server);
void redis_server_lost(struct redis_server *server, const char *why);
/* A command was answered in time; or was late, or got an error that says the server is not well. */
void redis_server_good(struct redis_server *server);
void redis_server_bad(struct redis_server *server, u64 deadline_ns);
/* Which trouble an error is; REDIS_ERROR_NONE: it is the command's own. */
enum redis_error_class redis_error_class_of(const char *words);
/* Logs it where it is news. */
void redis_server_report(struct redis_server *server, enum redis_error_class error_class,
			 const char *words);

#endif
