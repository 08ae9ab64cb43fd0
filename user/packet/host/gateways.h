/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * gateways.h - this host's default gateways: banning one would cut the host off, and what comes
 * from its address (ICMP, mostly) is easily forged.
 */
#ifndef SLUICE_HOST_GATEWAYS_H
#define SLUICE_HOST_GATEWAYS_H

#include <linux/netlink.h>
#include <stdbool.h>

#include "lib/addr.h"

/* More are not kept; a host has a handful. */
#define GATEWAYS_MAX 64

struct gateway_list {
	struct sl_prefix gateway[GATEWAYS_MAX];	/* in order, each once */
	u32 count;
};

/* Asks the kernel for the gateways of all default routes. 0, or -errno. */
int gateways_read(struct gateway_list *ret);

/* Adds those of one message; others are none of it. For gateways_read() and tests. */
void gateways_add(struct gateway_list *list, const struct nlmsghdr *message);

/* Whether a message is about a default route. */
bool gateways_concern(const struct nlmsghdr *message);

#endif
