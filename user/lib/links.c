/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * links.c - see links.h. libbpf's query always dumps all interfaces, which is too much once a
 * second on a host with thousands: link_get() requests one.
 */
#include "lib/links.h"

#include <errno.h>
#include <linux/if_link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "lib/array.h"
#include "lib/rtnetlink.h"

/* The kernel nests no deeper than 8; this also ends the recursion at a ring. */
#define LEVELS_MAX 8

struct request {
	struct nlmsghdr header;
	struct ifinfomsg link;
	struct rtattr filter;
	u32 mask;
};

static u32 attribute_u32(const struct rtattr *attribute)
{
	u32 value;

	memcpy(&value, RTA_DATA(attribute), sizeof(value));
	return value;
}

static void attribute_text(const struct rtattr *attribute, char *buf, size_t size)
{
	size_t length = RTA_PAYLOAD(attribute);

	if (length >= size)
		length = size - 1;
	memcpy(buf, RTA_DATA(attribute), length);
	buf[length] = '\0';
}

static void read_xdp(const struct rtattr *xdp, struct link *ret)
{
	int left = (int)RTA_PAYLOAD(xdp);
	u32 only = 0, driver = 0;

	for (const struct rtattr *at = RTA_DATA(xdp); RTA_OK(at, left); at = RTA_NEXT(at, left))
		switch (at->rta_type & NLA_TYPE_MASK) {
		case IFLA_XDP_ATTACHED:
			ret->xdp_mode = *(const u8 *)RTA_DATA(at);
			break;
		case IFLA_XDP_PROG_ID:
			only = attribute_u32(at);
			break;
		case IFLA_XDP_DRV_PROG_ID:
			driver = attribute_u32(at);
			break;
		}
	ret->xdp_prog = driver ? driver : only;
}

static void read_kind(const struct rtattr *info, struct link *ret)
{
	int left = (int)RTA_PAYLOAD(info);

	for (const struct rtattr *at = RTA_DATA(info); RTA_OK(at, left); at = RTA_NEXT(at, left))
		if ((at->rta_type & NLA_TYPE_MASK) == IFLA_INFO_KIND)
			attribute_text(at, ret->kind, sizeof(ret->kind));
}

static void read_statistics(const struct rtattr *attribute, struct link *ret)
{
	struct rtnl_link_stats64 stats = {};
	size_t size = RTA_PAYLOAD(attribute);

	memcpy(&stats, RTA_DATA(attribute), size < sizeof(stats) ? size : sizeof(stats));
	ret->lost = stats.rx_missed_errors + stats.rx_fifo_errors + stats.rx_over_errors;
}

static void read_link(const struct nlmsghdr *message, struct link *ret)
{
	const struct ifinfomsg *info = NLMSG_DATA(message);
	int left = (int)IFLA_PAYLOAD(message);
	bool elsewhere = false;

	*ret = (struct link){ .ifindex = (u32)info->ifi_index, .type = info->ifi_type };
	for (const struct rtattr *at = IFLA_RTA(info); RTA_OK(at, left); at = RTA_NEXT(at, left))
		switch (at->rta_type & NLA_TYPE_MASK) {
		case IFLA_IFNAME:
			attribute_text(at, ret->name, sizeof(ret->name));
			break;
		case IFLA_MASTER:
			ret->master = attribute_u32(at);
			break;
		case IFLA_LINK:
			ret->link = attribute_u32(at);
			break;
		case IFLA_LINK_NETNSID:
			elsewhere = true;
			break;
		case IFLA_BROADCAST:
			if (RTA_PAYLOAD(at) == sizeof(ret->remote))
				memcpy(ret->remote, RTA_DATA(at), sizeof(ret->remote));
			break;
		case IFLA_MTU:
			ret->mtu = attribute_u32(at);
			break;
		case IFLA_XDP:
			read_xdp(at, ret);
			break;
		case IFLA_LINKINFO:
			read_kind(at, ret);
			break;
		case IFLA_STATS64:
			read_statistics(at, ret);
			break;
		}
	/* The number is of the other namespace. */
	if (elsewhere)
		ret->link = 0;
}

static int add(const struct nlmsghdr *message, void *arg)
{
	struct links *links = arg;
	struct link *grown;

	if (message->nlmsg_type != RTM_NEWLINK)
		return 0;
	grown = array_grow(links->all, links->count, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	links->all = grown;
	read_link(message, &grown[links->count++]);
	return 0;
}

/* ifindex 0: all. */
static int request(u32 ifindex, bool statistics, struct links *ret)
{
	struct request request = {
		.header = { .nlmsg_len = sizeof(request),
			    .nlmsg_type = RTM_GETLINK,
			    .nlmsg_flags = NLM_F_REQUEST | (ifindex ? 0 : NLM_F_DUMP) },
		.link = { .ifi_family = AF_UNSPEC, .ifi_index = (int)ifindex },
		.filter = { .rta_len = RTA_LENGTH(sizeof(u32)), .rta_type = IFLA_EXT_MASK },
		.mask = statistics ? 0 : RTEXT_FILTER_SKIP_STATS,
	};
	int r;

	*ret = (struct links){ 0 };
	r = rtnetlink_request(&request.header, add, ret);
	if (r < 0)
		links_free(ret);
	return r;
}

int link_get(u32 ifindex, bool statistics, struct link *ret)
{
	struct links one;
	int r;

	if (!ifindex)
		return -ENODEV;
	r = request(ifindex, statistics, &one);
	if (r < 0)
		return r;
	if (one.count)
		*ret = one.all[0];
	r = one.count ? 0 : -EPROTO;
	links_free(&one);
	return r;
}

int links_get(struct links *ret)
{
	return request(0, false, ret);
}

void links_free(struct links *links)
{
	free(links->all);
	*links = (struct links){ 0 };
}

const struct link *links_find(const struct links *links, u32 ifindex)
{
	for (size_t i = 0; i < links->count; i++)
		if (links->all[i].ifindex == ifindex)
			return &links->all[i];
	return NULL;
}

const struct link *links_by_name(const struct links *links, const char *name)
{
	for (size_t i = 0; i < links->count; i++)
		if (!strcmp(links->all[i].name, name))
			return &links->all[i];
	return NULL;
}

bool link_stands_on(const struct link *upper, const struct link *lower)
{
	if (lower->master && lower->master == upper->ifindex)
		return true;
	return upper->link == lower->ifindex && lower->link != upper->ifindex &&
	       upper->ifindex != lower->ifindex;
}

static bool is_above(const struct links *links, const struct link *upper, u32 lower, u32 levels)
{
	for (size_t i = 0; levels && i < links->count; i++)
		if (link_stands_on(upper, &links->all[i]) &&
		    (links->all[i].ifindex == lower ||
		     is_above(links, &links->all[i], lower, levels - 1)))
			return true;
	return false;
}

bool links_is_above(const struct links *links, u32 upper, u32 lower)
{
	const struct link *link = links_find(links, upper);

	return link && is_above(links, link, lower, LEVELS_MAX);
}

static u32 depth(const struct links *links, const struct link *link, u32 levels)
{
	u32 most = 0, below;

	for (size_t i = 0; levels && i < links->count; i++) {
		if (!link_stands_on(link, &links->all[i]))
			continue;
		below = 1 + depth(links, &links->all[i], levels - 1);
		if (below > most)
			most = below;
	}
	return most;
}

u32 links_depth(const struct links *links, u32 ifindex)
{
	const struct link *link = links_find(links, ifindex);

	return link ? depth(links, link, LEVELS_MAX) : 0;
}
