// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * otherwise.c - LD_PRELOAD: some calls answer as on another machine, by environment variables. For
 * what this machine does not have, or what cannot be had in a namespace.
 *
 *     OTHERWISE_RELEASE=5.10.0     uname: the kernel's
 *     OTHERWISE_NTP="5 64"         adjtimex: what it returns, and the status
 *     OTHERWISE_DRIVER=NAME        ethtool: the driver's name
 *     OTHERWISE_LRO=1              ethtool: LRO is on
 *     OTHERWISE_LOST=7             rtnetlink: rx_missed_errors of the link
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <linux/ethtool.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/timex.h>
#include <sys/utsname.h>

int uname(struct utsname *name)
{
	int (*real)(struct utsname *) = (int (*)(struct utsname *))dlsym(RTLD_NEXT, "uname");
	const char *release = getenv("OTHERWISE_RELEASE");
	int r = real(name);

	if (release)
		snprintf(name->release, sizeof(name->release), "%s", release);
	return r;
}

int adjtimex(struct timex *clock)
{
	int (*real)(struct timex *) = (int (*)(struct timex *))dlsym(RTLD_NEXT, "adjtimex");
	const char *text = getenv("OTHERWISE_NTP");
	int r = real(clock);

	if (text)
		sscanf(text, "%d %d", &r, &clock->status);
	return r;
}

int ioctl(int fd, unsigned long request, ...)
{
	int (*real)(int, unsigned long, void *) =
		(int (*)(int, unsigned long, void *))dlsym(RTLD_NEXT, "ioctl");
	const char *driver = getenv("OTHERWISE_DRIVER");
	va_list args;
	void *data;
	int r;

	va_start(args, request);
	data = va_arg(args, void *);
	va_end(args);
	r = real(fd, request, data);
	if (request == SIOCETHTOOL && !r) {
		struct ethtool_value *value = (void *)((struct ifreq *)data)->ifr_data;

		if (value->cmd == ETHTOOL_GFLAGS && getenv("OTHERWISE_LRO"))
			value->data |= ETH_FLAG_LRO;
		if (value->cmd == ETHTOOL_GDRVINFO && driver)
			snprintf(((struct ethtool_drvinfo *)value)->driver, 32, "%s", driver);
	}
	return r;
}

ssize_t recv(int fd, void *buf, size_t size, int flags)
{
	ssize_t (*real)(int, void *, size_t, int) =
		(ssize_t(*)(int, void *, size_t, int))dlsym(RTLD_NEXT, "recv");
	const char *lost = getenv("OTHERWISE_LOST");
	ssize_t n = real(fd, buf, size, flags);
	struct nlmsghdr *head = buf;

	if (lost && n > (ssize_t)sizeof(*head) && head->nlmsg_type == RTM_NEWLINK) {
		int left = (int)IFLA_PAYLOAD(head);

		for (struct rtattr *a = IFLA_RTA(NLMSG_DATA(head)); RTA_OK(a, left);
		     a = RTA_NEXT(a, left))
			if (a->rta_type == IFLA_STATS64) {
				__u64 count = strtoull(lost, NULL, 10);

				memcpy((char *)RTA_DATA(a) +
					       offsetof(struct rtnl_link_stats64, rx_missed_errors),
				       &count, sizeof(count));
			}
	}
	return n;
}
