// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * control.c - see control.h.
 *
 * No client can block the loop or exhaust memory: a request is at most 1 MiB, or 128 MiB for
 * clients that may load whole files; a client that does not read its responses is not read from;
 * idle clients are disconnected. At most 64 clients: 32 with read access, 48 of these and of
 * control.group, 16 of one user; root may use all.
 *
 * Requests are served one at a turn, of the clients that have one in order; between two turns the
 * loop serves all else. Clients with read access have turns of their own, and after each the loop
 * is free of them for as long as it took: all of them together have half of the main thread's time
 * at most.
 */
#include "control/commands/control.h"

#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/listener.h>
#include <grp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "control/commands/commands.h"
#include "lib/clock.h"
#include "lib/file.h"
#include "lib/log.h"

#define CLIENTS_MAX 64
#define CLIENTS_BUT_ROOT_MAX 48
#define CLIENTS_READERS_MAX 32
#define CLIENTS_USER_MAX 16 /* of one user other than root */
#define REQUEST_MAX (1 << 20)
#define REQUEST_MAX_ALL (128 << 20) /* a file of 64 MiB, as JSON */
#define RESPONSES_PAUSE (1 << 20)   /* unread response bytes at which reading pauses */
#define NO_GROUP ((gid_t)-1)

static const struct timeval read_timeout = { .tv_sec = 60 };
static const struct timeval write_timeout = { .tv_sec = 20 };
static const struct timeval accept_pause = { .tv_sec = 1 };

TAILQ_HEAD(client_list, client);

/* Clients with a whole request, and the timer of the next turn. */
struct turns {
	struct client_list waiting;
	struct event *timer;
	u64 from_ns; /* CLOCK_MONOTONIC: no turn before */
};

static struct {
	struct evconnlistener *listener;
	struct event *resume;
	struct client_list list;
	int clients;
	gid_t group, read_group;
	struct turns turns[PEER_ALL + 1]; /* by rights */
} control = { .group = NO_GROUP, .read_group = NO_GROUP };

struct client {
	TAILQ_ENTRY(client) link;
	struct commands *ctx;
	struct bufferevent *bev;
	struct peer peer;
	size_t searched; /* bytes already searched for the end of line */
	size_t line;	 /* length of the whole request that waits for its turn */
	TAILQ_ENTRY(client) turn;
	bool waits;
	bool last; /* disconnect after the pending responses */
};

/* ------------------------------------------------------------------ peer */

static bool in_group(gid_t group, gid_t primary, const gid_t *groups, size_t count)
{
	if (group == NO_GROUP)
		return false;
	if (group == primary)
		return true;
	for (size_t i = 0; i < count; i++)
		if (groups[i] == group)
			return true;
	return false;
}

/* The peer as of connect(), from the kernel: name lookups could block. */
static void find_peer(int fd, struct peer *ret)
{
	struct ucred cred;
	socklen_t size = sizeof(cred);
	gid_t *groups = NULL;
	size_t count = 0;

	memset(ret, 0, sizeof(*ret));
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &size) < 0)
		return;
	ret->uid = cred.uid;
	ret->pid = cred.pid;
	size = 0;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, NULL, &size) < 0 && errno == ERANGE)
		groups = malloc(size);
	if (groups && getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, groups, &size) == 0)
		count = size / sizeof(*groups);
	if (cred.uid == 0 || cred.uid == geteuid() ||
	    in_group(control.group, cred.gid, groups, count))
		ret->rights = PEER_ALL;
	else if (in_group(control.read_group, cred.gid, groups, count))
		ret->rights = PEER_READ;
	free(groups);
}

/* ------------------------------------------------------------------ clients */

static void client_free(struct client *client)
{
	TAILQ_REMOVE(&control.list, client, link);
	if (client->waits)
		TAILQ_REMOVE(&control.turns[client->peer.rights].waiting, client, turn);
	control.clients--;
	bufferevent_free(client->bev);
	free(client);
}

static void client_respond(struct client *client, json_t *answer)
{
	struct evbuffer *out = bufferevent_get_output(client->bev);
	char *text = json_dumps(answer, JSON_COMPACT);

	if (text)
		evbuffer_add_printf(out, "%s\n", text);
	else
		client->last = true;
	free(text);
	json_decref(answer);
}

static void client_refuse(struct client *client, const char *words)
{
	struct sl_err err;

	sl_err_set(&err, EINVAL, "%s", words);
	client->last = true;
	bufferevent_disable(client->bev, EV_READ);
	client_respond(client, commands_error(&err));
}

static size_t request_max(const struct client *client)
{
	return client->peer.rights == PEER_ALL ? REQUEST_MAX_ALL : REQUEST_MAX;
}

/* Whether there is a whole line; bytes are searched only once. */
static bool has_request(struct client *client, struct evbuffer *in)
{
	struct evbuffer_ptr from, end;

	evbuffer_ptr_set(in, &from, client->searched, EVBUFFER_PTR_SET);
	end = evbuffer_search_eol(in, &from, NULL, EVBUFFER_EOL_LF);
	client->searched = end.pos < 0 ? evbuffer_get_length(in) : 0;
	client->line = end.pos < 0 ? 0 : (size_t)end.pos;
	return end.pos >= 0;
}

/* Runs the turn after next: the loop looks at all else before. */
static void turns_run_on(struct turns *turns)
{
	u64 now_ns = clock_mono_ns(),
	    us = turns->from_ns > now_ns ? (turns->from_ns - now_ns) / 1000 : 0;
	struct timeval wait = { .tv_sec = (time_t)(us / 1000000),
				.tv_usec = (suseconds_t)(us % 1000000) };

	if (!TAILQ_EMPTY(&turns->waiting) && !evtimer_pending(turns->timer, NULL))
		event_add(turns->timer, &wait);
}

/* Waits for a turn, or for more bytes. */
static void client_go_on(struct client *client)
{
	struct evbuffer *in = bufferevent_get_input(client->bev);
	struct turns *turns = &control.turns[client->peer.rights];

	if (client->last || client->waits)
		return;
	if (evbuffer_get_length(bufferevent_get_output(client->bev)) >= RESPONSES_PAUSE) {
		bufferevent_disable(client->bev, EV_READ);
	} else if (has_request(client, in)) {
		bufferevent_disable(client->bev, EV_READ);
		client->waits = true;
		TAILQ_INSERT_TAIL(&turns->waiting, client, turn);
		turns_run_on(turns);
	} else if (evbuffer_get_length(in) > request_max(client)) {
		client_refuse(client,
			      "request too long: one line of at most 1 MiB, or 128 MiB with "
			      "root or control.group rights");
	} else {
		bufferevent_enable(client->bev, EV_READ);
	}
}

static void client_serve(struct client *client)
{
	struct evbuffer *in = bufferevent_get_input(client->bev);
	char *line = malloc(client->line + 1);

	if (!line) {
		client_refuse(client, "out of memory");
		return;
	}
	evbuffer_remove(in, line, client->line);
	evbuffer_drain(in, 1);
	line[client->line] = '\0';
	client_respond(client, commands_respond(client->ctx, &client->peer, line, client->line));
	free(line);
	client_go_on(client);
}

static void on_turn(evutil_socket_t fd, short what, void *arg)
{
	struct turns *turns = arg;
	struct client *client = TAILQ_FIRST(&turns->waiting);
	u64 began_ns = clock_mono_ns(), now_ns;

	if (!client)
		return;
	TAILQ_REMOVE(&turns->waiting, client, turn);
	client->waits = false;
	client_serve(client);
	now_ns = clock_mono_ns();
	if (turns == &control.turns[PEER_READ])
		turns->from_ns = now_ns + (now_ns - began_ns);
	event_del(turns->timer);
	turns_run_on(turns);
}

static void on_read(struct bufferevent *bev, void *arg)
{
	client_go_on(arg);
}

/* All output was written. */
static void on_written(struct bufferevent *bev, void *arg)
{
	struct client *client = arg;

	if (client->last) {
		client_free(client);
		return;
	}
	client_go_on(client);
}

static void on_event(struct bufferevent *bev, short what, void *arg)
{
	struct client *client = arg;

	/* The client may have shut down writing and still read. */
	if ((what & BEV_EVENT_EOF) && evbuffer_get_length(bufferevent_get_output(bev))) {
		client->last = true;
		return;
	}
	client_free(client);
}

static bool is_root(const struct peer *peer)
{
	return peer->uid == 0 || peer->uid == geteuid();
}

/* True if one more client fits: clients with fewer rights cannot exclude those with more. */
static bool has_place(const struct peer *peer)
{
	int others = 0, readers = 0, same = 0;
	struct client *client;

	TAILQ_FOREACH(client, &control.list, link) {
		others += !is_root(&client->peer);
		readers += client->peer.rights != PEER_ALL;
		same += client->peer.uid == peer->uid;
	}
	if (control.clients >= CLIENTS_MAX)
		return false;
	if (is_root(peer))
		return true;
	return others < CLIENTS_BUT_ROOT_MAX && same < CLIENTS_USER_MAX &&
	       (peer->rights == PEER_ALL || readers < CLIENTS_READERS_MAX);
}

/* Sends the reason without blocking, and closes the connection. */
static void turn_away(int fd, const char *words)
{
	struct sl_err err;
	char *text;
	json_t *answer;

	sl_err_set(&err, EINVAL, "%s", words);
	answer = commands_error(&err);
	text = json_dumps(answer, JSON_COMPACT);
	if (text) {
		struct iovec piece[] = { { text, strlen(text) }, { "\n", 1 } };
		struct msghdr message = { .msg_iov = piece, .msg_iovlen = 2 };

		sendmsg(fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
	}
	free(text);
	json_decref(answer);
	close(fd);
}

static void on_accept(struct evconnlistener *listener, evutil_socket_t fd, struct sockaddr *addr,
		      int size, void *arg)
{
	struct client *client;
	struct peer peer;

	find_peer(fd, &peer);
	if (peer.rights == PEER_NONE) {
		turn_away(fd, "permission denied: the control socket needs root or membership in "
			      "control.group or control.read_group");
		return;
	}
	if (!has_place(&peer)) {
		turn_away(fd,
			  "too many clients: at most 64 at a time, 48 of users other than root, 16 "
			  "of one user");
		return;
	}
	client = calloc(1, sizeof(*client));
	if (client)
		client->bev = bufferevent_socket_new(evconnlistener_get_base(listener), fd,
						     BEV_OPT_CLOSE_ON_FREE);
	if (!client || !client->bev) {
		close(fd);
		free(client);
		return;
	}
	client->ctx = arg;
	client->peer = peer;
	control.clients++;
	TAILQ_INSERT_TAIL(&control.list, client, link);
	bufferevent_setcb(client->bev, on_read, on_written, on_event, client);
	bufferevent_set_timeouts(client->bev, &read_timeout, &write_timeout);
	bufferevent_setwatermark(client->bev, EV_READ, 0, request_max(client) + 1);
	bufferevent_set_max_single_read(client->bev, REQUEST_MAX);
	bufferevent_enable(client->bev, EV_READ | EV_WRITE);
}

/* Usually out of file descriptors: pause instead of spinning. */
static void on_accept_error(struct evconnlistener *listener, void *arg)
{
	log_error("control socket: cannot accept a connection: %s", strerror(errno));
	evconnlistener_disable(listener);
	event_add(control.resume, &accept_pause);
}

static void on_resume(evutil_socket_t fd, short what, void *arg)
{
	evconnlistener_enable(control.listener);
}

/* ------------------------------------------------------------------ the socket */

static int make_address(const char *path, struct sockaddr_un *ret, struct sl_err *err)
{
	memset(ret, 0, sizeof(*ret));
	ret->sun_family = AF_UNIX;
	if (strlen(path) >= sizeof(ret->sun_path))
		return sl_err_set(err, ENAMETOOLONG,
				  "control socket %s: the path is too long, at most %zu characters",
				  path, sizeof(ret->sun_path) - 1);
	strcpy(ret->sun_path, path);
	return 0;
}

/* Removes the socket of a dead daemon. Any other file of that name stays, and is an error. */
static int clear_name(int fd, const struct sockaddr_un *addr, struct sl_err *err)
{
	struct stat st;

	if (lstat(addr->sun_path, &st) < 0)
		return 0;
	if (!S_ISSOCK(st.st_mode))
		return sl_err_set(err, EEXIST, "%s exists and is not a socket", addr->sun_path);
	if (connect(fd, (const struct sockaddr *)addr, sizeof(*addr)) == 0 || errno != ECONNREFUSED)
		return sl_err_set(err, EADDRINUSE,
				  "another sluiced listens on %s; a second one needs its own "
				  "control.socket, state_dir and pin_dir",
				  addr->sun_path);
	unlink(addr->sun_path);
	return 0;
}

static gid_t find_group(const char *key, const char *name)
{
	struct group *group = name ? getgrnam(name) : NULL;

	if (name && !group)
		log_warn("control.%s: there is no group '%s': only root has its rights; create the "
			 "group and restart sluiced",
			 key, name);
	return group ? group->gr_gid : NO_GROUP;
}

/*
 * A file has one group. With a read_group both groups must be able to connect, so the socket is
 * open to all users, and find_peer() checks their rights.
 */
static int set_access(const char *path, struct sl_err *err)
{
	mode_t mode = control.read_group != NO_GROUP ? 0666 : 0660;

	if (chown(path, (uid_t)-1, control.group) < 0 || chmod(path, mode) < 0)
		return sl_err_set(err, errno, "cannot set the owner and mode of %s: %s", path,
				  strerror(errno));
	return 0;
}

static int bind_socket(const char *path, int *ret_fd, struct sl_err *err)
{
	const int type = SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC;
	struct sockaddr_un addr;
	int probe, fd, r;
	mode_t mask;

	r = make_address(path, &addr, err);
	if (!r)
		r = file_make_parent(path, 0755, err);
	if (r == -EACCES)
		return sl_err_set(
			err, EACCES,
			"cannot make the directory of control.socket %s: %s; run sluiced as root, "
			"or set control.socket to a path of its user",
			path, strerror(EACCES));
	if (r < 0)
		return r;
	probe = socket(AF_UNIX, type, 0);
	r = clear_name(probe, &addr, err);
	close(probe);
	if (r < 0)
		return r;
	fd = socket(AF_UNIX, type, 0);
	mask = umask(0177); /* no access until its group is set */
	r = fd < 0 || bind(fd, (struct sockaddr *)&addr, sizeof(addr)) < 0 ? -errno : 0;
	umask(mask);
	if (r < 0)
		sl_err_set(err, -r, "cannot bind the control socket %s: %s", path, strerror(-r));
	else
		r = set_access(path, err);
	if (r < 0 && fd >= 0)
		close(fd);
	else
		*ret_fd = fd;
	return r;
}

int control_start(struct commands *ctx, const struct policy *policy, struct sl_err *err)
{
	int fd, r;

	TAILQ_INIT(&control.list);
	control.group = find_group("group", policy->control_group);
	control.read_group = find_group("read_group", policy->control_read_group);
	r = bind_socket(ctx->socket_path, &fd, err);
	if (r < 0)
		return r;
	control.resume = evtimer_new(ctx->base, on_resume, ctx);
	for (enum peer_rights rights = PEER_READ; rights <= PEER_ALL; rights++) {
		struct turns *turns = &control.turns[rights];

		*turns = (struct turns){ .timer = evtimer_new(ctx->base, on_turn, turns) };
		TAILQ_INIT(&turns->waiting);
		if (!turns->timer)
			return sl_err_no_memory(err);
	}
	control.listener =
		evconnlistener_new(ctx->base, on_accept, ctx, LEV_OPT_CLOSE_ON_FREE, 64, fd);
	if (!control.listener || !control.resume)
		return sl_err_set(err, errno, "cannot listen on %s: %s", ctx->socket_path,
				  strerror(errno));
	evconnlistener_set_error_cb(control.listener, on_accept_error);
	return 0;
}

void control_stop(struct commands *ctx)
{
	if (!control.listener)
		return;
	evconnlistener_free(control.listener);
	control.listener = NULL;
	unlink(ctx->socket_path);
}
