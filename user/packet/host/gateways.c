// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* gateways.c - see gateways.h. */
#include "packet/host/gateways.h"

#include <arpa/inet.h>
#include <string.h>

#include "lib/rtnetlink.h"

static void add_address(struct gateway_list *list, int family, const void *data, size_t size)
{
	struct sl_prefix prefix = { .family = family == AF_INET ? SL_V4 : SL_V6 };
	const u8 *byte = data;
	u32 i;

	if (size != (family == AF_INET ? 4 : 16))
		return;
	for (i = 0; i < size; i++) {
		if (i < 8)
			prefix.addr.hi |= (u64)byte[i] << (56 - 8 * i);
		else
			prefix.addr.lo |= (u64)byte[i] << (120 - 8 * i);
	}
	prefix.len = (u8)(size * 8);
	if (!prefix.addr.hi && !prefix.addr.lo)
		return;
	for (i = 0; i < list->count && memcmp(&list->gateway[i], &prefix, sizeof(prefix)) < 0; i++)
		;
	if (i < list->count && !memcmp(&list->gateway[i], &prefix, sizeof(prefix)))
		return;
	if (list->count == GATEWAYS_MAX)
		return;
	memmove(&list->gateway[i + 1], &list->gateway[i],
		(list->count - i) * sizeof(list->gateway[0]));
	list->gateway[i] = prefix;
	list->count++;
}

static void add_attributes(struct gateway_list *list, int family, const struct rtattr *at,
			   int left);

/* Several next hops of one route. */
static void add_hops(struct gateway_list *list, int family, const void *data, int left)
{
	const struct rtnexthop *hop = data;

	while (RTNH_OK(hop, left)) {
		add_attributes(list, family, RTNH_DATA(hop), hop->rtnh_len - (int)RTNH_LENGTH(0));
		left -= RTNH_ALIGN(hop->rtnh_len);
		hop = RTNH_NEXT(hop);
	}
}

static void add_attributes(struct gateway_list *list, int family, const struct rtattr *at, int left)
{
	for (; RTA_OK(at, left); at = RTA_NEXT(at, left)) {
		const struct rtvia *via = RTA_DATA(at);
		size_t size = RTA_PAYLOAD(at);

		switch (at->rta_type) {
		case RTA_GATEWAY:
			add_address(list, family, RTA_DATA(at), size);
			break;
		case RTA_VIA: /* an IPv4 route by an IPv6 gateway */
			if (size > sizeof(*via))
				add_address(list, via->rtvia_family, via->rtvia_addr,
					    size - sizeof(*via));
			break;
		case RTA_MULTIPATH:
			add_hops(list, family, RTA_DATA(at), (int)size);
			break;
		}
	}
}

bool gateways_concern(const struct nlmsghdr *message)
{
	const struct rtmsg *route = NLMSG_DATA(message);

	return (message->nlmsg_type == RTM_NEWROUTE || message->nlmsg_type == RTM_DELROUTE) &&
	       message->nlmsg_len >= NLMSG_LENGTH(sizeof(*route)) && !route->rtm_dst_len &&
	       (route->rtm_family == AF_INET || route->rtm_family == AF_INET6);
}

void gateways_add(struct gateway_list *list, const struct nlmsghdr *message)
{
	const struct rtmsg *route = NLMSG_DATA(message);

	if (message->nlmsg_type == RTM_NEWROUTE && gateways_concern(message) &&
	    route->rtm_type == RTN_UNICAST)
		add_attributes(list, route->rtm_family, RTM_RTA(route), (int)RTM_PAYLOAD(message));
}

static int take_answer(const struct nlmsghdr *message, void *arg)
{
	gateways_add(arg, message);
	return 0;
}

static int ask_routes(int family, struct gateway_list *list)
{
	struct {
		struct nlmsghdr header;
		struct rtmsg route;
	} request = {
		.header = { .nlmsg_len = sizeof(request),
			    .nlmsg_type = RTM_GETROUTE,
			    .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP },
		.route = { .rtm_family = (unsigned char)family },
	};

	return rtnetlink_request(&request.header, take_answer, list);
}

int gateways_read(struct gateway_list *ret)
{
	struct gateway_list list = { .count = 0 };
	int r = ask_routes(AF_INET, &list);

	if (!r)
		r = ask_routes(AF_INET6, &list);
	if (!r)
		*ret = list;
	return r;
}
