// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* handover.c - see handover.h. */
#include "daemon/handover.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "daemon/daemon.h"
#include "daemon/http_tier.h"
#include "daemon/start.h"
#include "lib/clock.h"
#include "lib/file.h"
#include "lib/log.h"
#include "packet/host/state.h"
#include "request/server/listen.h"
#include "request/server/worker.h"

#define EXIT_WAIT_NS (30 * SL_NS_PER_SEC) /* more than draining takes */
#define RACE_WAIT_NS SL_NS_PER_SEC	  /* the other one may be about to exit */

union control {
	struct cmsghdr head;
	char room[CMSG_SPACE(HANDOVER_FDS_MAX * sizeof(int))];
};

static int make_socket(const char *path, struct sockaddr_un *ret)
{
	memset(ret, 0, sizeof(*ret));
	ret->sun_family = AF_UNIX;
	if (strlen(path) >= sizeof(ret->sun_path)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	strcpy(ret->sun_path, path);
	return socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
}

/* ------------------------------------------------------------------ the new one */

static bool receive(int fd, struct handover *handover)
{
	union control control;
	char byte;
	struct iovec piece = { &byte, 1 };
	struct msghdr message = { .msg_iov = &piece,
				  .msg_iovlen = 1,
				  .msg_control = &control,
				  .msg_controllen = sizeof(control) };

	if (recvmsg(fd, &message, MSG_CMSG_CLOEXEC) != 1)
		return false;
	for (struct cmsghdr *at = CMSG_FIRSTHDR(&message); at; at = CMSG_NXTHDR(&message, at)) {
		if (at->cmsg_level != SOL_SOCKET || at->cmsg_type != SCM_RIGHTS)
			continue;
		handover->count = (at->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		memcpy(handover->fd, CMSG_DATA(at), handover->count * sizeof(int));
	}
	return true;
}

static bool take(struct handover *handover, const char *state_dir)
{
	char *path = file_join(state_dir, "handover.sock");
	struct timeval most = { .tv_sec = 5 };
	struct sockaddr_un address;
	int fd = path ? make_socket(path, &address) : -1;
	bool taken = false;

	if (fd >= 0) {
		setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &most, sizeof(most));
		taken = connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0 &&
			receive(fd, handover);
		close(fd);
	}
	free(path);
	return taken;
}

int handover_lock(struct handover *handover, const char *state_dir, bool replace,
		  struct sl_err *err)
{
	u64 begin_ns = clock_mono_ns(), wait_ns;
	int lock_fd, r = state_lock(state_dir, &lock_fd, err);

	if (r != -EBUSY || !replace)
		return r;
	wait_ns = take(handover, state_dir) ? EXIT_WAIT_NS : RACE_WAIT_NS;
	while ((r = state_lock(state_dir, &lock_fd, err)) == -EBUSY &&
	       clock_mono_ns() - begin_ns < wait_ns)
		usleep(1000);
	return r;
}

/* ------------------------------------------------------------------ the old one */

static bool give(const struct daemon *d, int fd)
{
	const struct listeners *listeners = d->http ? d->http->listeners : NULL;
	union control control = { .room = "" };
	char byte = 0;
	struct iovec piece = { &byte, 1 };
	struct msghdr message = { .msg_iov = &piece, .msg_iovlen = 1 };
	size_t count = listen_count(listeners);
	const char *name;

	if (count > HANDOVER_FDS_MAX)
		count = HANDOVER_FDS_MAX;
	if (count) {
		message.msg_control = &control;
		message.msg_controllen = CMSG_SPACE(count * sizeof(int));
		control.head = (struct cmsghdr){ .cmsg_len = CMSG_LEN(count * sizeof(int)),
						 .cmsg_level = SOL_SOCKET,
						 .cmsg_type = SCM_RIGHTS };
	}
	for (size_t i = 0; i < count; i++)
		((int *)CMSG_DATA(&control.head))[i] = listen_fd(listeners, i, &name);
	return sendmsg(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT) == 1;
}

static void on_taker(evutil_socket_t listening, short what, void *arg)
{
	struct daemon *d = arg;
	struct ucred peer = { .uid = (uid_t)-1 };
	socklen_t size = sizeof(peer);
	int fd = accept4(listening, NULL, NULL, SOCK_CLOEXEC);

	if (fd < 0)
		return;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
	    (peer.uid == 0 || peer.uid == geteuid()) && give(d, fd)) {
		d->handover.given = true;
		log_info("process %d takes the place of this one, exiting", (int)peer.pid);
		if (!d->packets.stopping)
			start_end(d);
	}
	close(fd);
}

void handover_offer(struct daemon *d)
{
	struct handover *handover = &d->handover;
	struct sockaddr_un address;
	mode_t mask;
	int fd = -1;

	handover->path = file_join(d->running.state_dir, "handover.sock");
	if (handover->path)
		fd = make_socket(handover->path, &address);
	mask = umask(0177);
	/* The lock of state_dir is this daemon's: what is there was left by one that was killed. */
	if (fd >= 0 && ((unlink(handover->path) < 0 && errno != ENOENT) ||
			bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0 ||
			listen(fd, 1) < 0 || evutil_make_socket_nonblocking(fd) < 0)) {
		close(fd);
		fd = -1;
	}
	umask(mask);
	if (fd >= 0)
		handover->event = event_new(d->base, fd, EV_READ | EV_PERSIST, on_taker, d);
	if (!handover->event || event_add(handover->event, NULL) < 0)
		log_warn(
			"sluiced --replace cannot take the place of this one: %s/handover.sock: %s",
			d->running.state_dir, strerror(errno));
}

void handover_stop(struct handover *handover)
{
	if (handover->event) {
		unlink(handover->path);
		close(event_get_fd(handover->event));
		event_free(handover->event);
		handover->event = NULL;
	}
	free(handover->path);
	handover->path = NULL;
}
