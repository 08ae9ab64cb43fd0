/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * redis_private.h - shared by the files of the client; included nowhere else.
 *
 *     redis.c           the client: commands in, replies out, routing to servers; a single server
 *     redis_sentinel.c, redis_cluster.c, redis_ring.c
 *                       the topologies: the list of servers, and the server of a key
 *     redis_slots.c, redis_points.c
 *                       slots of a cluster and its map; a ring's points
 *     redis_server.c    a server: the breaker and its probes
 *     redis_conn.c      its connection: resolve, connect, greet, write, read, end
 *     redis_pipeline.c  commands that it adds: SCRIPT LOAD, WAIT
 *     redis_greet.c     the first commands of a connection
 *     redis_reader.c    hiredis' reader, bounded
 *     redis_timer.c     timers, to the microsecond
 *     redis_resolve.c   resolves names in a thread
 *     redis_tls.c       TLS and the password
 *
 * A command under way is a struct redis_pending, in exactly one queue: the client's `waiting`
 * (server not known yet), a server's (connecting), a connection's `sent` or `held` (has its
 * reply, but replication is not confirmed), or the client's `finished` (failed at once: done()
 * comes in the next turn of the loop, since it never comes before redis_send() returns).
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
#include "lib/clock.h"
#include "lib/log.h"
#include "lib/timer_heap.h"

/* ------------------------------------------------------------------ time */

struct redis_timer {
	struct timer timer; /* first; CLOCK_MONOTONIC */
	void (*fire)(struct redis_timer *timer);
};

struct redis_timers {
	int fd;
	struct event *event;
	struct timer_heap heap;
	u64 armed_ns; /* the timerfd's setting; 0: none */
};

int redis_timers_open(struct redis_timers *timers, struct event_base *base);
void redis_timers_close(struct redis_timers *timers);
/* Where timer_heap_reserve() made room for it. */
void redis_timer_set(struct redis_timers *timers, struct redis_timer *timer, u64 at_ns);

static inline void redis_timer_unset(struct redis_timers *timers, struct redis_timer *timer)
{
	timer_heap_unset(&timers->heap, &timer->timer);
}

/* ------------------------------------------------------------------ commands */

struct redis_server;
struct redis_conn;

#define REDIS_BAD_MAX 5	  /* late in a row; also the most that wait for an unknown server */
#define REDIS_TRIES_MAX 8 /* sends of one command: MOVED, ASK, NOSCRIPT, TRYAGAIN */

struct redis_pending {
	TAILQ_ENTRY(redis_pending) link;
	struct redis_queue *queue; /* the queue it is in */
	struct redis *redis;
	struct redis_server *server; /* NULL while waiting */
	struct redis_timer deadline;
	struct redis_handler handler;
	const struct redis_script *script;
	char *text; /* hiredis' */
	size_t len;
	redisReply *reply; /* held */
	u64 begun_ns, sent_ns, deadline_ns;
	u64 number; /* on its connection */
	u32 slot;
	u8 tries;
	bool own; /* of the client itself: not counted, no deadline, no retry */
	bool unhurried, durable;
	bool late; /* done() was called with REPLY_LATE */
	bool sent; /* at least once */
};
TAILQ_HEAD(redis_queue, redis_pending);

void redis_queue_add(struct redis_queue *queue, struct redis_pending *pending);
void redis_queue_remove(struct redis_pending *pending);
/* Appends all of one queue to another. */
void redis_queue_move(struct redis_queue *to, struct redis_queue *from);
/* Calls its done() or late(), and frees it. */
void redis_finish(struct redis_pending *pending, enum redis_outcome outcome,
		  const redisReply *reply);
/* Ends it with REPLY_DOWN in the next turn of the loop. */
void redis_fail_later(struct redis_pending *pending);
/* Routes it again in 2 ms. */
void redis_send_again(struct redis_pending *pending);
/* Ends all with REPLY_DOWN at once: for a queue that gets no more commands. */
void redis_fail_all(struct redis_queue *queue);
/*
 * The client's own commands to a given server: redis_query_server() as a caller's, with a deadline
 * of a second; redis_probe() while the breaker is open.
 */
int redis_query_server(struct redis_server *server, int argc, const char *const *argv,
		       struct redis_handler handler);
int redis_probe(struct redis_server *server, u64 deadline_ns, struct redis_handler handler);

/* ------------------------------------------------------------------ topologies */

enum redis_verdict {
	REDIS_GIVE,   /* the error goes to the caller */
	REDIS_MOVE,   /* send it to *ret_to */
	REDIS_ASKING, /* send it there after ASKING */
	REDIS_AGAIN,  /* route it again in 2 ms */
};

/*
 * A topology owns servers (redis_server_get()), and maps slots to them. It may send them commands
 * with redis_query_server(). While redis->opening, commands for slots whose server is not known
 * wait (until their deadline, and at most REDIS_BAD_MAX of them); redis_topology_settled() sends
 * or fails them.
 */
struct redis_topology {
	/* From redis->def; does not connect. */
	int (*open)(struct redis *redis, struct sl_err *err);
	void (*close)(struct redis *redis);
	/*
	 * At the first command or redis_warm(): discovers the servers; NULL: nothing to discover.
	 */
	void (*warm)(struct redis *redis);
	u32 (*slot_of)(const struct redis *redis, const char *key, size_t len);
	/* The server of the slot; NULL: none, or unknown. */
	struct redis_server *(*server)(const struct redis *redis, u32 slot);
	/* Receives each error before the caller; NULL: all errors go to the caller. */
	enum redis_verdict (*error)(struct redis *redis, struct redis_pending *pending,
				    const char *error_text, struct redis_server **ret_to);
	/* The server became available, or not: lost, or not a master. NULL: not needed. */
	void (*up)(struct redis *redis, struct redis_server *server);
	void (*down)(struct redis *redis, struct redis_server *server);
};

extern const struct redis_topology redis_sentinel, redis_cluster, redis_ring;

/* ------------------------------------------------------------------ the client */

TAILQ_HEAD(redis_server_list, redis_server);

struct redis {
	struct event_base *base;
	const struct redis_def *def;
	const struct redis_topology *topology;
	void *topology_state; /* of the topology */
	struct redis_timers timers;
	struct redis_server_list servers;
	struct redis_server_list gone; /* freed in the next turn */
	struct redis_queue waiting, again, finished;
	struct redis_timer again_timer;
	struct event *later; /* fires in the next turn */
	bool warm, opening, ending;
	u32 unplaced; /* commands without a server by their deadline */
	u32 pending;
	size_t bytes;			  /* of their texts */
	char *password;			  /* the file's content when it was last readable */
	SSL_CTX *tls;			  /* NULL: no server uses TLS */
	struct stat tls_read[3];	  /* ca, cert, key when they were read */
	char name[CLUSTER_NODE_MAX + 16]; /* for CLIENT SETNAME; "" none */
	struct redis_stats stats;	  /* written by this thread alone */
	pthread_mutex_t lock; /* `servers` and their states, for redis_server_states() */
};

/* The servers are known, or cannot be discovered: sends or fails the waiting commands. */
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
	u64 life;	     /* number of connections ended before */
	const char *failed;  /* why the timer is to end it */
	struct event *flush; /* at the end of a turn: WAIT */
	u32 attempts;	     /* selects the next of a name's addresses */
	redisReader *reader;
	redisReplyObjectFunctions objects;
	u32 object_count; /* elements of the reply being read */
	size_t bytes;	  /* bytes received of it */
	struct redis_queue sent, held;
	u64 numbers;			      /* commands written */
	u64 durable_ns;			      /* deadline of durable commands since the last WAIT */
	const struct redis_script *script[4]; /* scripts loaded on this connection */
	u64 loaded[4];			      /* numbers of the loading commands */
	struct redis_timer timer; /* deadline for connecting; later for the next reply */
};

void redis_conn_init(struct redis_conn *conn);
/* redis_server_ready() or redis_server_lost() always follows, but not at once. */
void redis_conn_open(struct redis_conn *conn);
void redis_conn_write(struct redis_conn *conn, struct redis_pending *pending);
/* Ends it: calls redis_server_lost(), then ends pending commands with REPLY_DOWN. */
void redis_conn_end(struct redis_conn *conn, const char *why);
/* Ends it without calling the server or logging. */
void redis_conn_close(struct redis_conn *conn);
/*
 * Like redis_conn_end(), but from its timer: for callers that need the connection to exist on
 * return.
 */
void redis_conn_fail_soon(struct redis_conn *conn, const char *why);
/* After NOSCRIPT; false: the command cannot be sent again. */
bool redis_conn_load_script(struct redis_conn *conn, struct redis_pending *pending);
/* A durable command was written. */
void redis_conn_request_wait(struct redis_conn *conn, const struct redis_pending *pending);
/* Sends a command of the connection itself, without a deadline. */
int redis_conn_report(struct redis_conn *conn, int argc, const char *const *argv,
		      struct redis_handler handler);
void redis_greet(struct redis_conn *conn);
void redis_conn_greeted(struct redis_conn *conn);
struct redis_server *redis_conn_server(struct redis_conn *conn);
redisReader *redis_reader_new(struct redis_conn *conn); /* NULL: no memory */

/* Resolves a name in a thread. done() is called from the loop, but not after cancel. */
int redis_lookup_start(struct event_base *base, const char *host, u16 port,
		       void (*done)(void *arg, const struct addrinfo *list, const char *error),
		       void *arg, struct redis_lookup **ret);
void redis_lookup_cancel(struct redis_lookup *lookup); /* NULL is fine */

int redis_tls_open(struct redis *redis, struct sl_err *err);
/* NULL: no memory. */
SSL *redis_tls_new(struct redis *redis, const char *host);
/*
 * Why a connection ended: its verification of the server's certificate, or `error` of OpenSSL (an
 * alert of the server; 0: none). "" if neither has a reason.
 */
void redis_tls_why(SSL *ssl, unsigned long error, char *buf, size_t size);
/* -errno and a message if the file is unreadable and was never read. */
int redis_password_read(struct redis *redis, struct sl_err *err);

/* ------------------------------------------------------------------ a server */

enum server_state {
	SERVER_IDLE,	/* no command yet */
	SERVER_OPENING, /* first connection under way: commands queue, for a limited time */
	SERVER_UP,
	SERVER_UNAVAILABLE, /* the breaker is open: commands fail; probed after a pause */
};

/* Errors of a server. */
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
	bool role_requested; /* used only as long as it is a master */
	bool gone;
	char name[300]; /* HOST:PORT */
	enum server_state state;
	struct redis_queue queue; /* while OPENING */
	struct redis_conn conn;
	struct redis_timer pause; /* until the next probe */
	u64 pause_ns;
	u64 up_ns;   /* time at which it became UP */
	u64 late_ns; /* the missed deadline that opened the breaker */
	u32 bad;     /* late or failed commands in a row */
	bool probing;
	enum redis_error_class error_class; /* the current error, */
	char error[REDIS_ERROR_TEXT];	    /* in words, */
	u64 error_ns;			    /* when it occurred last, */
	struct log_texts error_texts;	    /* those since the server was available, */
	bool error_logged;		    /* and whether one was logged */
	u32 mark; /* used by the topology, e.g. for servers in the last map */
};

/* Finds or creates it; NULL: no memory. */
struct redis_server *redis_server_get(struct redis *redis, const struct redis_url *url);
/* Not counted among the servers, and may lack a password. Call once, when it is new. */
void redis_server_set_sentinel(struct redis_server *server);
/* Removes it: pending commands end with REPLY_DOWN. */
void redis_server_drop(struct redis_server *server);
void redis_server_free(struct redis_server *server);
void redis_server_send(struct redis_server *server, struct redis_pending *pending);
void redis_server_open(struct redis_server *server);	  /* if it is IDLE */
bool redis_server_may(const struct redis_server *server); /* whether commands would be sent */

/* Called by its connection. */
void redis_server_ready(struct redis_server *server);
void redis_server_lost(struct redis_server *server, const char *why);
/* A command had its reply in time (good), or it was late or failed by the server's state (bad). */
void redis_server_good(struct redis_server *server);
void redis_server_bad(struct redis_server *server, u64 deadline_ns);
/* The class of an error; REDIS_ERROR_NONE: it concerns only the command. */
enum redis_error_class redis_error_class_of(const char *error_text);
/* Sets the current error. Logs each text once until the server is available again. */
void redis_server_report(struct redis_server *server, enum redis_error_class error_class,
			 const char *error_text);

#endif
