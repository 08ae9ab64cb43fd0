/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * connections.h - open connections: bounds per listener and per address, and the order of
 * eviction.
 *
 * One table for all listeners and all threads. A connection above the bound evicts one that waits
 * for its client: first those without a request (idle), then those in the middle of a request or
 * a handshake (pending); of each the one that has waited longest in a sample, as Redis evicts
 * keys. Connections whose request is being decided (busy) stay; if all are busy, the new one is
 * refused.
 *
 * Evicting shuts the socket down: its owner, on any thread, reads the end of the connection and
 * frees it as if the client had disconnected. Frontends only set the state of their connections.
 *
 * An address is one of IPv4, a /64 of IPv6. Connections of this host (loopback, Unix sockets) have
 * the listener's bound only.
 */
#ifndef SLUICE_HTTP_CONNECTIONS_H
#define SLUICE_HTTP_CONNECTIONS_H

#include <stdbool.h>
#include <sys/socket.h>
#include <time.h>

#include "lib/clock.h"
#include "lib/units.h"

enum connection_state {
	CONNECTION_IDLE,    /* no request: evicted first */
	CONNECTION_PENDING, /* waits for the client: handshake, request's rest, unread reply */
	CONNECTION_BUSY,    /* the daemon has to respond */
};

struct connection_bounds {
	u64 max, max_per_address; /* 0: none */
};

/* Of one listener, since it was opened. */
struct connection_stats {
	u64 open, evicted;
	u64 refused, refused_address; /* all others were busy: of the listener, of the address */
};

struct connection;
struct connections;

/*
 * For `count` listeners, identified by their index, with at most `max` connections together.
 * NULL: no memory.
 */
struct connections *connections_new(const struct connection_bounds *bounds, size_t count, u64 max);
/* After the last connection_end(). NULL is fine. */
void connections_free(struct connections *connections);
void connections_stats(struct connections *connections, size_t listener,
		       struct connection_stats *ret);

/* ---- from any thread ---- */

/*
 * An entry for `fd`, idle, if needed by evicting another. NULL: refused, or no memory. The caller
 * owns `fd`, and keeps it open until connection_end().
 */
struct connection *connection_begin(struct connections *connections, size_t listener, int fd,
				    const struct sockaddr *peer);
/* Before its descriptor is closed. NULL is fine. */
void connection_end(struct connection *connection);

/* The part that its owner writes for each request, and others read without a lock. */
struct connection_wait {
	u32 state;    /* enum connection_state */
	u64 since_ns; /* in that state */
};

static inline struct connection_wait *connection_wait(struct connection *connection)
{
	return (struct connection_wait *)connection;
}

/* Reads from a client, or stops: by an event, or without one (TLS) by the bufferevent. */
struct event;
struct bufferevent;
void connection_read(struct event *readable, struct bufferevent *bev, bool on);

/* Sets its state. Called by its owner; NULL is fine. */
static inline void connection_set(struct connection *connection, enum connection_state state)
{
	struct connection_wait *wait = connection_wait(connection);

	if (!connection || wait->state == state)
		return;
	__atomic_store_n(&wait->since_ns, clock_mono_ns(), __ATOMIC_RELAXED);
	__atomic_store_n(&wait->state, state, __ATOMIC_RELAXED);
}

#endif
