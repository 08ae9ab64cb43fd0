// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * netlink.c - see netlink.h.
 *
 * What a message says is not looked at: any of them means "look again", a moment later, so
 * that a thousand addresses at boot are one look. Lost messages (ENOBUFS) mean the same.
 */
#include "daemon/netlink.h"

#include <errno.h>
#include <linux/rtnetlink.h>
#include <string.h>
#include <sys/socket.h>

#include "daemon/ifaces.h"
#include "daemon/rules.h"

static const struct timeval settle = { .tv_usec = 100000 };

static struct event *rescan_timer;

void netlink_rescan(struct daemon *d)
{
	if (ifaces_rescan(d) && d->running->failsafe_count)
		rules_refresh(d);
}

static void on_rescan(evutil_socket_t fd, short what, void *arg)
{
	netlink_rescan(arg);
}

static void on_message(evutil_socket_t fd, short what, void *arg)
{
	char buf[16384];
	ssize_t n;

	do {
		n = recv(fd, buf, sizeof(buf), MSG_DONTWAIT);
	} while (n > 0 || (n < 0 && (errno == EINTR || errno == ENOBUFS)));
	if (!event_pending(rescan_timer, EV_TIMEOUT, NULL))
		event_add(rescan_timer, &settle);
}

int netlink_start(struct daemon *d, struct sl_err *err)
{
	struct sockaddr_nl addr = {
		.nl_family = AF_NETLINK,
		.nl_groups = RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR,
	};
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, NETLINK_ROUTE);
	struct event *event;

	if (fd < 0 || bind(fd, (struct sockaddr *)&addr, sizeof(addr)) < 0)
		return sl_err_set(err, errno, "cannot listen to rtnetlink: %s", strerror(errno));
	rescan_timer = evtimer_new(d->base, on_rescan, d);
	event = event_new(d->base, fd, EV_READ | EV_PERSIST, on_message, d);
	if (!rescan_timer || !event || event_add(event, NULL) < 0)
		return sl_err_set(err, ENOMEM, "out of memory");
	return 0;
}
