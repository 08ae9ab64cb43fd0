// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * listen.c - accepting connections; see listen.h.
 *
 * One socket per address, in the loop of every worker: each accepts one connection per wake-up,
 * so that a burst spreads over workers. A socket per worker (SO_REUSEPORT) would spread it
 * better, but closing one refuses the connections in its queue, which a hand-over must not do.
 */
#include "request/server/listen.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "request/server/bind.h"
#include "request/server/connections.h"
#include "request/server/tls.h"
#include "lib/log.h"

#define FDS_RESERVED 128 /* descriptors other than connections */

struct listener {
	int fd;
	size_t index;
	const struct listen_def *def;
	char name[BIND_NAME_MAX];
};

struct listeners {
	struct listener *listener;
	size_t count;
	struct connections *connections;
};

/* A listener on a worker's loop. */
struct listen_socket {
	struct worker *worker;
	const struct listener *listener;
	struct event *event;
};

struct listen_sockets {
	bool failing; /* logged once, until a connection is accepted again */
	struct listen_socket *listen;
	size_t count;
	struct event *resume;
};

/* ------------------------------------------------------------------ a connection */

static void find_peer(int fd, const struct sockaddr *addr, const struct listen_def *def,
		      struct peer_info *ret)
{
	struct ucred cred;
	socklen_t size = sizeof(cred);

	*ret = (struct peer_info){ .uid = (uid_t)-1, .listener = def };
	if (addr->sa_family == AF_UNIX) {
		ret->local = ret->unix_socket = true;
		if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &size) == 0)
			ret->uid = cred.uid;
	} else {
		ret->local = bind_is_loopback(addr);
	}
}

static void serve(struct listen_socket *listen, int fd, const struct sockaddr *addr)
{
	const struct frontend *frontend =
		listen->worker->tier->frontend[listen->listener->def->kind];
	struct worker *worker = listen->worker;
	struct bufferevent *bev;
	struct peer_info peer;
	int on = 1;

	find_peer(fd, addr, listen->listener->def, &peer);
	if (!bind_admits(listen->listener->def, addr)) {
		close(fd);
		return;
	}
	peer.connection = connection_begin(worker->tier->listeners->connections,
					   listen->listener->index, fd, addr);
	if (!peer.connection) {
		close(fd);
		return;
	}
	if (addr->sa_family != AF_UNIX)
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	peer.waited =
		frontend->drain && !__atomic_load_n(&worker->tier->draining, __ATOMIC_RELAXED);
	__atomic_store_n(&worker->connections, worker->connections + 1, __ATOMIC_RELAXED);
	__atomic_store_n(&worker->waited, worker->waited + peer.waited, __ATOMIC_RELAXED);
	if (listen->listener->def->tls) {
		tls_accept(worker, fd, &peer, frontend);
		return;
	}
	bev = bufferevent_socket_new(worker->base, fd, BEV_OPT_CLOSE_ON_FREE);
	if (bev) {
		frontend->accept(worker, bev, &peer);
	} else {
		worker_connection_end(worker, &peer);
		close(fd);
	}
}

/* Out of descriptors or memory: a pause instead of a spin. */
static void pause_sockets(struct listen_sockets *sockets)
{
	static const struct timeval pause = { .tv_usec = 100000 };

	for (size_t i = 0; i < sockets->count; i++)
		event_del(sockets->listen[i].event);
	event_add(sockets->resume, &pause);
}

static void on_connection(evutil_socket_t listening, short what, void *arg)
{
	struct listen_socket *listen = arg;
	struct sockaddr_storage addr = { .ss_family = AF_UNIX };
	socklen_t size = sizeof(addr);
	int fd;

	fd = accept4(listening, (struct sockaddr *)&addr, &size, SOCK_NONBLOCK | SOCK_CLOEXEC);
	if (fd >= 0) {
		if (!size)
			addr.ss_family = AF_UNIX;
		listen->worker->sockets->failing = false;
		serve(listen, fd, (struct sockaddr *)&addr);
	} else if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS) {
		if (!listen->worker->sockets->failing)
			log_error("http: cannot accept connections: %s", strerror(errno));
		listen->worker->sockets->failing = true;
		pause_sockets(listen->worker->sockets);
	}
}

static void on_resume(evutil_socket_t fd, short what, void *arg)
{
	struct worker *worker = arg;
	struct listen_sockets *sockets = worker->sockets;

	for (size_t i = 0; i < sockets->count; i++)
		event_add(sockets->listen[i].event, NULL);
}

/* ------------------------------------------------------------------ a worker's sockets */

static int sockets_make(struct worker *worker, struct listen_sockets *sockets)
{
	const struct listeners *all = worker->tier->listeners;

	sockets->listen = calloc(all->count + 1, sizeof(*sockets->listen));
	sockets->resume = evtimer_new(worker->base, on_resume, worker);
	if (!sockets->listen || !sockets->resume)
		return -ENOMEM;
	for (size_t i = 0; i < all->count; i++) {
		const struct frontend *frontend =
			worker->tier->frontend[all->listener[i].def->kind];
		struct listen_socket *listen = &sockets->listen[sockets->count];

		if (frontend && frontend->receive && !worker->index &&
		    frontend->receive(worker, all->listener[i].fd, all->listener[i].def) < 0)
			return -ENOMEM;
		if (!frontend || !frontend->accept)
			continue;
		*listen = (struct listen_socket){ worker, &all->listener[i], NULL };
		listen->event = event_new(worker->base, all->listener[i].fd, EV_READ | EV_PERSIST,
					  on_connection, listen);
		if (!listen->event || event_add(listen->event, NULL) < 0)
			return -ENOMEM;
		sockets->count++;
	}
	return 0;
}

int listen_worker_start(struct worker *worker)
{
	const struct frontend *const *frontend = worker->tier->frontend;
	int r = 0;

	for (size_t kind = 0; !r && kind < LISTEN_KIND_COUNT; kind++)
		if (frontend[kind] && frontend[kind]->start)
			r = frontend[kind]->start(worker);
	worker->sockets = calloc(1, sizeof(*worker->sockets));
	if (!r)
		r = worker->sockets ? sockets_make(worker, worker->sockets) : -ENOMEM;
	if (r < 0)
		log_error("http: a worker cannot listen: %s", strerror(-r));
	return r;
}

static void sockets_shut(struct listen_sockets *sockets)
{
	if (sockets->resume)
		event_del(sockets->resume);
	for (size_t i = 0; i < sockets->count; i++)
		event_del(sockets->listen[i].event);
}

void listen_worker_drain(struct worker *worker)
{
	const struct frontend *const *frontend = worker->tier->frontend;

	tls_worker_drain(worker);
	for (size_t kind = 0; kind < LISTEN_KIND_COUNT; kind++)
		if (frontend[kind] && frontend[kind]->drain)
			frontend[kind]->drain(worker);
}

void listen_worker_finish(struct worker *worker)
{
	const struct frontend *const *frontend = worker->tier->frontend;

	sockets_shut(worker->sockets);
	for (size_t kind = 0; kind < LISTEN_KIND_COUNT; kind++)
		if (frontend[kind] && frontend[kind]->finish)
			frontend[kind]->finish(worker);
}

void listen_worker_stop(struct worker *worker)
{
	const struct frontend *const *frontend = worker->tier->frontend;
	struct listen_sockets *sockets = worker->sockets;

	tls_worker_stop(worker);
	for (size_t kind = 0; kind < LISTEN_KIND_COUNT; kind++)
		if (frontend[kind] && frontend[kind]->stop)
			frontend[kind]->stop(worker);
	if (!sockets)
		return;
	for (size_t i = 0; i < sockets->count; i++)
		event_free(sockets->listen[i].event);
	if (sockets->resume)
		event_free(sockets->resume);
	free(sockets->listen);
	free(sockets);
	worker->sockets = NULL;
}

/* ------------------------------------------------------------------ the sockets */

static u64 connections_max(void)
{
	struct rlimit limit;
	u64 most = 1024;

	if (getrlimit(RLIMIT_NOFILE, &limit) == 0)
		most = limit.rlim_cur;
	return most > 2 * FDS_RESERVED ? most - FDS_RESERVED : most / 2 + 1;
}

static int make_connections(struct listeners *all)
{
	struct connection_bounds *bounds = calloc(all->count + 1, sizeof(*bounds));

	for (size_t i = 0; bounds && i < all->count; i++) {
		const struct listen_def *def = all->listener[i].def;

		bounds[i] = (struct connection_bounds){ def->max_connections,
							def->max_connections_per_address };
	}
	if (bounds)
		all->connections = connections_new(bounds, all->count, connections_max());
	free(bounds);
	return all->connections ? 0 : -ENOMEM;
}

int listen_open(struct http_tier *tier, const int *fd, size_t count, struct sl_err *err)
{
	const struct http_def *def = tier->started;
	struct listeners *all = calloc(1, sizeof(*all));
	bool *taken = calloc(count + 1, sizeof(*taken));
	int r = 0;

	if (all)
		all->listener = calloc(def->listen_count + 1, sizeof(*all->listener));
	if (!all || !taken || !all->listener)
		r = sl_err_set(err, ENOMEM, "out of memory");
	for (size_t i = 0; !r && i < def->listen_count; i++) {
		struct listener *listener = &all->listener[all->count];

		listener->def = &def->listen[i];
		listener->index = i;
		r = bind_listener(listener->def, fd, count, taken, &listener->fd, listener->name,
				  err);
		all->count += !r;
	}
	for (size_t i = 0; i < count; i++)
		if (!taken || !taken[i])
			close(fd[i]);
	free(taken);
	if (r < 0) {
		listen_close(all, false);
		return r;
	}
	r = make_connections(all);
	if (r < 0) {
		listen_close(all, false);
		return sl_err_set(err, ENOMEM, "out of memory");
	}
	tier->listeners = all;
	return 0;
}

void listen_close(struct listeners *listeners, bool kept)
{
	if (!listeners)
		return;
	for (size_t i = 0; i < listeners->count; i++)
		bind_release(listeners->listener[i].def, listeners->listener[i].fd, kept);
	connections_free(listeners->connections);
	free(listeners->listener);
	free(listeners);
}

size_t listen_count(const struct listeners *listeners)
{
	return listeners ? listeners->count : 0;
}

int listen_fd(const struct listeners *listeners, size_t index, const char **ret_name)
{
	*ret_name = listeners->listener[index].name;
	return listeners->listener[index].fd;
}

const struct listen_def *listen_stats(const struct listeners *listeners, size_t index,
				      struct connection_stats *ret)
{
	connections_stats(listeners->connections, index, ret);
	return listeners->listener[index].def;
}
