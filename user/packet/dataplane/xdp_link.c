/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * xdp_link.c - one RTM_GETLINK for one interface. libbpf's query dumps all interfaces, which is too
 * much once a second on a host with thousands.
 */
#include <errno.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "packet/dataplane/xdp_link.h"

struct link_request {
	struct nlmsghdr header;
	struct ifinfomsg link;
	struct rtattr filter;
	u32 mask;
};

static u32 attribute_u32(struct rtattr *attribute)
{
	u32 value;

	memcpy(&value, RTA_DATA(attribute), sizeof(value));
	return value;
}

static u32 prog_of(struct rtattr *xdp)
{
	int left = (int)RTA_PAYLOAD(xdp);
	u32 only = 0, driver = 0;

	for (struct rtattr *at = RTA_DATA(xdp); RTA_OK(at, left); at = RTA_NEXT(at, left)) {
		if (at->rta_type == IFLA_XDP_PROG_ID)
			only = attribute_u32(at);
		else if (at->rta_type == IFLA_XDP_DRV_PROG_ID)
			driver = attribute_u32(at);
	}
	return driver ? driver : only;
}

static int read_reply(struct nlmsghdr *reply, u32 *ret_id)
{
	struct rtattr *at = IFLA_RTA(NLMSG_DATA(reply));
	int left = (int)IFLA_PAYLOAD(reply);

	if (reply->nlmsg_type == NLMSG_ERROR)
		return ((struct nlmsgerr *)NLMSG_DATA(reply))->error;
	if (reply->nlmsg_type != RTM_NEWLINK)
		return -EPROTO;
	*ret_id = 0;
	for (; RTA_OK(at, left); at = RTA_NEXT(at, left))
		if ((at->rta_type & NLA_TYPE_MASK) == IFLA_XDP)
			*ret_id = prog_of(at);
	return 0;
}

int xdp_link_prog(u32 ifindex, u32 *ret_id)
{
	struct link_request request = {
		.header = { .nlmsg_len = sizeof(request), .nlmsg_type = RTM_GETLINK,
			    .nlmsg_flags = NLM_F_REQUEST },
		.link = { .ifi_family = AF_UNSPEC, .ifi_index = (int)ifindex },
		.filter = { .rta_len = RTA_LENGTH(sizeof(u32)), .rta_type = IFLA_EXT_MASK },
		.mask = RTEXT_FILTER_SKIP_STATS,
	};
	_Alignas(struct nlmsghdr) char reply[32768];
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	ssize_t n = -1;

	if (fd >= 0 && send(fd, &request, sizeof(request), 0) == sizeof(request))
		n = recv(fd, reply, sizeof(reply), 0);
	if (n < 0)
		n = -errno;
	if (fd >= 0)
		close(fd);
	if (n < 0)
		return (int)n;
	if (!NLMSG_OK((struct nlmsghdr *)(void *)reply, (unsigned int)n))
		return -EPROTO;
	return read_reply((struct nlmsghdr *)(void *)reply, ret_id);
}
