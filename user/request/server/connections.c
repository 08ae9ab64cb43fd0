// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * connections.c - see connections.h.
 *
 * One lock, taken when a connection begins and ends, not for a request. Lists are walked from
 * their heads, and entries that were visited go to the tail: so SAMPLE steps bound the cost of an
 * accept, and all have their turn. Addresses are in a balanced tree: clients choose them, and no
 * choice makes it slow.
 */
#include "request/server/connections.h"

#include <arpa/inet.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <netinet/in.h>
#include <pthread.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "request/server/bind.h"

#define SAMPLE 64

TAILQ_HEAD(connection_list, connection);

/* An address on a listener, while it has connections. */
struct address {
	unsigned char key[16];
	u32 listener;
	u64 count;
	struct connection_list list;
};

struct connection {
	struct connection_wait wait; /* first: connection_wait() */
	TAILQ_ENTRY(connection) of_listener, of_address;
	struct connections *all;
	struct door *door;
	struct address *address; /* NULL: this host */
	int fd;
	bool evicted; /* removed from all lists */
};

/* A listener's part. */
struct door {
	struct connection_bounds bounds;
	struct connection_stats stats;
	struct connection_list list;
};

struct connections {
	pthread_mutex_t lock;
	void *addresses; /* tsearch(3) */
	u64 open, max;
	size_t count;
	struct door door[];
};

struct connections *connections_new(const struct connection_bounds *bounds, size_t count, u64 max)
{
	struct connections *all = calloc(1, sizeof(*all) + count * sizeof(all->door[0]));

	if (!all)
		return NULL;
	pthread_mutex_init(&all->lock, NULL);
	all->max = max;
	all->count = count;
	for (size_t i = 0; i < count; i++) {
		all->door[i].bounds = bounds[i];
		TAILQ_INIT(&all->door[i].list);
	}
	return all;
}

void connections_free(struct connections *connections)
{
	if (!connections)
		return;
	pthread_mutex_destroy(&connections->lock);
	free(connections);
}

void connections_stats(struct connections *connections, size_t listener,
		       struct connection_stats *ret)
{
	pthread_mutex_lock(&connections->lock);
	*ret = connections->door[listener].stats;
	pthread_mutex_unlock(&connections->lock);
}

/* ------------------------------------------------------------------ addresses */

static int compare(const void *a, const void *b)
{
	const struct address *one = a, *other = b;

	if (one->listener != other->listener)
		return one->listener < other->listener ? -1 : 1;
	return memcmp(one->key, other->key, sizeof(one->key));
}

/* False if the peer is of this host. */
static bool make_key(const struct sockaddr *peer, unsigned char *key)
{
	const struct in6_addr *v6 = &((const struct sockaddr_in6 *)peer)->sin6_addr;

	if ((peer->sa_family != AF_INET && peer->sa_family != AF_INET6) || bind_is_loopback(peer))
		return false;
	memset(key, 0, 16);
	if (peer->sa_family == AF_INET6 && !IN6_IS_ADDR_V4MAPPED(v6)) {
		memcpy(key, v6, 8);
		return true;
	}
	key[10] = key[11] = 0xff;
	memcpy(key + 12,
	       peer->sa_family == AF_INET6
		       ? (const void *)(v6->s6_addr + 12)
		       : (const void *)&((const struct sockaddr_in *)peer)->sin_addr,
	       4);
	return true;
}

static struct address *address_of(struct connections *all, u32 listener, const unsigned char *key)
{
	struct address *address = calloc(1, sizeof(*address));
	struct address **found;

	if (!address)
		return NULL;
	memcpy(address->key, key, sizeof(address->key));
	address->listener = listener;
	TAILQ_INIT(&address->list);
	found = tsearch(address, &all->addresses, compare);
	if (!found || *found != address)
		free(address);
	return found ? *found : NULL;
}

static void address_release(struct connections *all, struct address *address)
{
	if (!address || address->count)
		return;
	tdelete(address, &all->addresses, compare);
	free(address);
}

/* ------------------------------------------------------------------ eviction */

static void leave(struct connection *connection)
{
	struct connections *all = connection->all;
	struct address *address = connection->address;

	TAILQ_REMOVE(&connection->door->list, connection, of_listener);
	connection->door->stats.open--;
	all->open--;
	if (!address)
		return;
	TAILQ_REMOVE(&address->list, connection, of_address);
	address->count--;
}

static struct connection_wait seen(struct connection *connection)
{
	return (struct connection_wait){
		.state = __atomic_load_n(&connection->wait.state, __ATOMIC_RELAXED),
		.since_ns = __atomic_load_n(&connection->wait.since_ns, __ATOMIC_RELAXED),
	};
}

/* Idle before pending, then the longest wait. */
static struct connection *first_to_go(struct connection *a, struct connection *b)
{
	struct connection_wait x, y = seen(b);

	if (y.state == CONNECTION_BUSY)
		return a;
	if (!a)
		return b;
	x = seen(a);
	if (x.state != y.state)
		return x.state < y.state ? a : b;
	return x.since_ns <= y.since_ns ? a : b;
}

/* Visits the next SAMPLE entries of a list, each once; `link` is the list's. */
#define sample(list, link)                                                                         \
	({                                                                                         \
		struct connection *found_ = NULL, *last_ = TAILQ_LAST(list, connection_list);      \
		for (int i_ = 0; last_ && i_ < SAMPLE; i_++) {                                     \
			struct connection *at_ = TAILQ_FIRST(list);                                \
			TAILQ_REMOVE(list, at_, link);                                             \
			TAILQ_INSERT_TAIL(list, at_, link);                                        \
			found_ = first_to_go(found_, at_);                                         \
			if (at_ == last_)                                                          \
				break;                                                             \
		}                                                                                  \
		found_;                                                                            \
	})

static bool evict(struct connection *victim)
{
	if (!victim)
		return false;
	victim->door->stats.evicted++;
	victim->evicted = true;
	leave(victim);
	/* Its address may have no connections left: the caller checks that. */
	shutdown(victim->fd, SHUT_RDWR);
	return true;
}

/* The list of the listener with the most. */
static struct connection_list *longest_list(struct connections *all)
{
	struct door *most = &all->door[0];

	for (size_t i = 1; i < all->count; i++)
		if (all->door[i].stats.open > most->stats.open)
			most = &all->door[i];
	return &most->list;
}

static bool make_room(struct connections *all, struct door *door, struct address *address)
{
	struct connection *victim = NULL;
	struct address *theirs;

	if (address && door->bounds.max_per_address &&
	    address->count >= door->bounds.max_per_address) {
		if (evict(sample(&address->list, of_address)))
			return true;
		door->stats.refused_address++;
		return false;
	}
	if (door->bounds.max && door->stats.open >= door->bounds.max)
		victim = sample(&door->list, of_listener);
	else if (all->max && all->open >= all->max)
		victim = sample(longest_list(all), of_listener);
	else
		return true;
	theirs = victim ? victim->address : NULL;
	if (!evict(victim)) {
		door->stats.refused++;
		return false;
	}
	if (theirs != address)
		address_release(all, theirs);
	return true;
}

/* ------------------------------------------------------------------ a connection */

static void enter(struct connection *connection, struct connections *all, struct door *door,
		  struct address *address)
{
	connection->all = all;
	connection->door = door;
	connection->address = address;
	TAILQ_INSERT_TAIL(&door->list, connection, of_listener);
	door->stats.open++;
	all->open++;
	if (!address)
		return;
	TAILQ_INSERT_TAIL(&address->list, connection, of_address);
	address->count++;
}

struct connection *connection_begin(struct connections *connections, size_t listener, int fd,
				    const struct sockaddr *peer)
{
	struct connection *connection = calloc(1, sizeof(*connection));
	struct door *door = &connections->door[listener];
	struct address *address = NULL;
	unsigned char key[16];
	bool of_others = make_key(peer, key), fits;

	if (!connection)
		return NULL;
	connection->fd = fd;
	connection->wait.state = CONNECTION_PENDING;
	connection_set(connection, CONNECTION_IDLE);
	pthread_mutex_lock(&connections->lock);
	if (of_others)
		address = address_of(connections, (u32)listener, key);
	fits = (!of_others || address) && make_room(connections, door, address);
	if (fits)
		enter(connection, connections, door, address);
	else
		address_release(connections, address);
	pthread_mutex_unlock(&connections->lock);
	if (fits)
		return connection;
	free(connection);
	return NULL;
}

void connection_end(struct connection *connection)
{
	struct connections *all = connection ? connection->all : NULL;

	if (!connection)
		return;
	pthread_mutex_lock(&all->lock);
	if (!connection->evicted) {
		leave(connection);
		address_release(all, connection->address);
	}
	pthread_mutex_unlock(&all->lock);
	free(connection);
}

void connection_read(struct event *readable, struct bufferevent *bev, bool on)
{
	if (readable && on)
		event_add(readable, NULL);
	else if (readable)
		event_del(readable);
	else if (on)
		bufferevent_enable(bev, EV_READ);
	else
		bufferevent_disable(bev, EV_READ);
}
