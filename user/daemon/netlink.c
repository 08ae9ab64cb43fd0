// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * netlink.c - see netlink.h.
 *
 * Of the content of link and address messages only a move to another namespace is read: each
 * causes a rescan a moment later, so that a thousand addresses at boot cause one; at once where a
 * configured interface has appeared, which should be limited before it carries traffic. Lost
 * messages (ENOBUFS) do the same. Routes have a socket of their own, and only default routes count:
 * a router may have a million others that change all the time, and a rescan reads them all.
 */
#include "daemon/netlink.h"

#include <errno.h>
#include <linux/rtnetlink.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>

#include "packet/host/gateways.h"
#include "packet/host/ifaces.h"
#include "packet/host/protect.h"
#include "control/running/rules.h"

static const struct timeval settle = { .tv_usec = 100000 };

static struct event *rescan_timer, *routes_timer;

void netlink_rescan(struct daemon *d)
{
	if (ifaces_rescan(&d->packets) && d->running.policy->failsafe_count)
		rules_refresh(&d->running);
}

static void on_rescan(evutil_socket_t fd, short what, void *arg)
{
	netlink_rescan(arg);
}

/* An interface that goes to another namespace is reported as deleted, with where it is now. */
static void note_moved(struct daemon *d, const char *buf, size_t size)
{
	const struct nlmsghdr *message = (const struct nlmsghdr *)(const void *)buf;
	unsigned int left = (unsigned int)size;

	for (; NLMSG_OK(message, left); message = NLMSG_NEXT(message, left)) {
		const struct ifinfomsg *link = NLMSG_DATA(message);
		int payload = (int)IFLA_PAYLOAD(message);

		if (message->nlmsg_type != RTM_DELLINK)
			continue;
		for (const struct rtattr *at = IFLA_RTA(link); RTA_OK(at, payload);
		     at = RTA_NEXT(at, payload))
			if (at->rta_type == IFLA_NEW_NETNSID)
				ifaces_moved(&d->packets, (u32)link->ifi_index);
	}
}

static void on_message(evutil_socket_t fd, short what, void *arg)
{
	_Alignas(struct nlmsghdr) char buf[16384];
	struct daemon *d = arg;
	ssize_t n;

	do {
		n = recv(fd, buf, sizeof(buf), MSG_DONTWAIT);
		if (n > 0)
			note_moved(d, buf, (size_t)n);
	} while (n > 0 || (n < 0 && (errno == EINTR || errno == ENOBUFS)));
	if (ifaces_appeared(&d->packets))
		netlink_rescan(d);
	else if (!event_pending(rescan_timer, EV_TIMEOUT, NULL))
		event_add(rescan_timer, &settle);
}

static void on_routes_settled(evutil_socket_t fd, short what, void *arg)
{
	struct daemon *d = arg;

	if (protect_find_gateways(&d->packets))
		rules_refresh(&d->running);
}

static bool has_default_route(const char *buf, size_t size)
{
	const struct nlmsghdr *message = (const struct nlmsghdr *)(const void *)buf;
	unsigned int left = (unsigned int)size;

	for (; NLMSG_OK(message, left); message = NLMSG_NEXT(message, left))
		if (gateways_concern(message))
			return true;
	return false;
}

static void on_route(evutil_socket_t fd, short what, void *arg)
{
	_Alignas(struct nlmsghdr) char buf[16384];
	bool look = false;
	ssize_t n;

	do {
		n = recv(fd, buf, sizeof(buf), MSG_DONTWAIT);
		look |= n > 0 ? has_default_route(buf, (size_t)n) : n < 0 && errno == ENOBUFS;
	} while (n > 0 || (n < 0 && (errno == EINTR || errno == ENOBUFS)));
	if (look && !event_pending(routes_timer, EV_TIMEOUT, NULL))
		event_add(routes_timer, &settle);
}

static int listen_to(struct daemon *d, u32 groups, event_callback_fn run, struct sl_err *err)
{
	struct sockaddr_nl addr = { .nl_family = AF_NETLINK, .nl_groups = groups };
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, NETLINK_ROUTE);
	struct event *event;

	if (fd < 0 || bind(fd, (struct sockaddr *)&addr, sizeof(addr)) < 0)
		return sl_err_set(err, errno, "cannot open an rtnetlink socket: %s",
				  strerror(errno));
	event = event_new(d->base, fd, EV_READ | EV_PERSIST, run, d);
	return event && event_add(event, NULL) == 0 ? 0 : sl_err_set(err, ENOMEM, "out of memory");
}

int netlink_start(struct daemon *d, struct sl_err *err)
{
	static const struct timeval now;
	int r;

	rescan_timer = evtimer_new(d->base, on_rescan, d);
	routes_timer = evtimer_new(d->base, on_routes_settled, d);
	if (!rescan_timer || !routes_timer)
		return sl_err_set(err, ENOMEM, "out of memory");
	r = listen_to(d, RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR, on_message, err);
	if (!r)
		r = listen_to(d, RTMGRP_IPV4_ROUTE | RTMGRP_IPV6_ROUTE, on_route, err);
	if (r)
		return r;
	/* An interface may have come, and a route changed, since sluiced first read them, before
	 * these sockets. */
	event_add(rescan_timer, &now);
	event_add(routes_timer, &settle);
	return 0;
}
