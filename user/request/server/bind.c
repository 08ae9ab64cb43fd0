// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* bind.c - see bind.h. */
#include "request/server/bind.h"

#include <arpa/inet.h>
#include <errno.h>
#include <event2/util.h>
#include <grp.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "lib/endpoint.h"

#define BACKLOG 4096
#define MODE_DEFAULT 0660

/* ------------------------------------------------------------------ addresses */

/* "ADDRESS:PORT", "[IPV6]:PORT" or "unix:PATH"; -EINVAL with the accepted forms. */
static int bind_parse(const char *text, struct endpoint *ret, struct sl_err *err)
{
	if (!endpoint_parse(text, ret))
		return 0;
	return sl_err_set(err, EINVAL,
			  "found \"%s\"; accepted: ADDRESS:PORT, [IPV6]:PORT, or "
			  "unix:/PATH of at most %zu characters",
			  text, sizeof(ret->un.sun_path) - 1);
}

bool bind_is_loopback(const struct sockaddr *addr)
{
	const struct in6_addr *v6 = &((const struct sockaddr_in6 *)addr)->sin6_addr;

	if (addr->sa_family == AF_INET)
		return ntohl(((const struct sockaddr_in *)addr)->sin_addr.s_addr) >> 24 == 127;
	return addr->sa_family == AF_INET6 &&
	       (IN6_IS_ADDR_LOOPBACK(v6) || (IN6_IS_ADDR_V4MAPPED(v6) && v6->s6_addr[12] == 127));
}

/* An IPv4 peer of an IPv6 socket counts by its IPv4 address. */
static bool peer_prefix(const struct sockaddr *peer, struct sl_prefix *ret)
{
	const struct in6_addr *v6 = &((const struct sockaddr_in6 *)peer)->sin6_addr;
	char text[INET6_ADDRSTRLEN];
	const char *words;

	if (peer->sa_family == AF_INET)
		inet_ntop(AF_INET, &((const struct sockaddr_in *)peer)->sin_addr, text,
			  sizeof(text));
	else if (IN6_IS_ADDR_V4MAPPED(v6))
		inet_ntop(AF_INET, v6->s6_addr + 12, text, sizeof(text));
	else
		inet_ntop(AF_INET6, v6, text, sizeof(text));
	return sl_prefix_parse(text, ret, &words) == 0;
}

bool bind_admits(const struct listen_def *def, const struct sockaddr *peer)
{
	struct sl_prefix prefix;

	if (!def->client_count || peer->sa_family == AF_UNIX || bind_is_loopback(peer))
		return true;
	if (!peer_prefix(peer, &prefix))
		return false;
	for (size_t i = 0; i < def->client_count; i++)
		if (sl_prefix_contains(&def->clients[i], &prefix))
			return true;
	return false;
}

/* ------------------------------------------------------------------ existing sockets */

static bool same_address(const struct endpoint *a, const struct endpoint *b)
{
	if (a->any.sa_family != b->any.sa_family)
		return false;
	if (a->any.sa_family == AF_UNIX)
		return !strcmp(a->un.sun_path, b->un.sun_path);
	if (a->any.sa_family == AF_INET) {
		const struct sockaddr_in *x = (const void *)&a->storage,
					 *y = (const void *)&b->storage;

		return x->sin_port == y->sin_port && x->sin_addr.s_addr == y->sin_addr.s_addr;
	} else {
		const struct sockaddr_in6 *x = (const void *)&a->storage,
					  *y = (const void *)&b->storage;

		return x->sin6_port == y->sin6_port &&
		       !memcmp(&x->sin6_addr, &y->sin6_addr, sizeof(x->sin6_addr));
	}
}

static bool is_bound_to(int fd, int type, const struct endpoint *address)
{
	struct endpoint bound = { .size = sizeof(bound.storage) };
	socklen_t size = sizeof(int);
	int fd_type;

	memset(&bound.storage, 0, sizeof(bound.storage));
	return getsockopt(fd, SOL_SOCKET, SO_TYPE, &fd_type, &size) == 0 && fd_type == type &&
	       getsockname(fd, &bound.any, &bound.size) == 0 && same_address(&bound, address);
}

/*
 * Removes the socket of a daemon that has exited. It is an error if another process still accepts
 * connections there.
 */
static int clear_path(const struct endpoint *address, int type, struct sl_err *err)
{
	const char *path = address->un.sun_path;
	struct stat st;
	int probe, r = 0;

	if (lstat(path, &st) < 0)
		return 0;
	if (!S_ISSOCK(st.st_mode))
		return sl_err_set(err, EEXIST, "%s exists and is not a socket", path);
	probe = socket(AF_UNIX, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (connect(probe, &address->any, address->size) == 0 || errno != ECONNREFUSED)
		r = sl_err_set(err, EADDRINUSE, "another process is listening on %s", path);
	else
		unlink(path);
	close(probe);
	return r;
}

static int set_access(const struct listen_def *def, const char *path, struct sl_err *err)
{
	struct group *group = def->group ? getgrnam(def->group) : NULL;

	if (def->group && !group)
		return sl_err_set(err, ENOENT, "%s: unknown group \"%s\"", def->address,
				  def->group);
	if ((group && chown(path, (uid_t)-1, group->gr_gid) < 0) ||
	    chmod(path, def->mode ? def->mode : MODE_DEFAULT) < 0)
		return sl_err_set(err, errno, "cannot set the group and mode of %s: %s", path,
				  strerror(errno));
	return 0;
}

/* ------------------------------------------------------------------ a socket */

static int make_socket(const struct listen_def *def, int type, const struct endpoint *address,
		       int *ret_fd, struct sl_err *err)
{
	int fd = socket(address->any.sa_family, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	bool un = address->any.sa_family == AF_UNIX;
	int on = 1, r = 0;
	mode_t mask;

	if (fd >= 0 && !un)
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	/* At boot sluiced starts before the network: the address may come later. */
	if (fd >= 0 && !un)
		setsockopt(fd, IPPROTO_IP, IP_FREEBIND, &on, sizeof(on));
	if (fd >= 0 && address->any.sa_family == AF_INET6)
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on));
	mask = umask(0177); /* no other user may connect to a Unix socket until its group is set */
	if (fd < 0 || bind(fd, &address->any, address->size) < 0)
		r = sl_err_set(
			err, errno, "cannot bind %s: %s%s", def->address, strerror(errno),
			errno == EADDRINUSE
				? ": another program has it ('ss -lnp' names which); stop that one, "
				  "or choose another address"
				: "");
	umask(mask);
	if (!r && un)
		r = set_access(def, address->un.sun_path, err);
	if (!r && type == SOCK_STREAM && listen(fd, BACKLOG) < 0)
		r = sl_err_set(err, errno, "cannot listen on %s: %s", def->address,
			       strerror(errno));
	if (r < 0 && fd >= 0)
		close(fd);
	else
		*ret_fd = fd;
	return r;
}

static void make_name(const struct listen_def *def, char *name)
{
	snprintf(name, BIND_NAME_MAX, "http-%s", def->address);
	for (char *c = name; *c; c++)
		if (*c == ':' || *c <= ' ' || *c >= 127)
			*c = '_';
}

int bind_listener(const struct listen_def *def, const int *fd, size_t count, bool *taken,
		  int *ret_fd, char *name, struct sl_err *err)
{
	int type = def->kind == LISTEN_SYSLOG ? SOCK_DGRAM : SOCK_STREAM;
	struct endpoint address;
	int r = bind_parse(def->address, &address, err);

	if (r < 0)
		return r;
	make_name(def, name);
	for (size_t i = 0; i < count; i++) {
		if (taken[i] || !is_bound_to(fd[i], type, &address))
			continue;
		taken[i] = true;
		/* From a socket unit the queue may be shorter, and the socket may block. */
		if (type == SOCK_STREAM)
			listen(fd[i], BACKLOG);
		evutil_make_socket_nonblocking(fd[i]);
		*ret_fd = fd[i];
		return 0;
	}
	if (address.any.sa_family == AF_UNIX)
		r = clear_path(&address, type, err);
	return r < 0 ? r : make_socket(def, type, &address, ret_fd, err);
}

void bind_release(const struct listen_def *def, int fd, bool kept)
{
	struct sl_err ignored;
	struct endpoint address;

	if (!kept && bind_parse(def->address, &address, &ignored) == 0 &&
	    address.any.sa_family == AF_UNIX)
		unlink(address.un.sun_path);
	close(fd);
}
