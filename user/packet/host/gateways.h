/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * gateways.h - this host's default gateways. A ban of one would cut the host off, and packets with
 * its address (mostly ICMP) are easily forged.
 */
#ifndef SLUICE_HOST_GATEWAYS_H
#define SLUICE_HOST_GATEWAYS_H

#include <linux/netlink.h>
#include <stdbool.h>

#include "lib/addr.h"

/* A host has a few; more are ignored. */
#define GATEWAYS_MAX 64

struct gateway_list {
	struct sl_prefix gateway[GATEWAYS_MAX]; /* in order, each once */
	u32 count;
};

/* Reads the gateways of all default routes from the kernel. 0, or -errno. */
int gateways_read(struct gateway_list *ret);

/* Adds the gateways of one message; ignores other messages. For gateways_read() and tests. */
void gateways_add(struct gateway_list *list, const struct nlmsghdr *message);

/* Whether a message is about a default route. */
bool gateways_concern(const struct nlmsghdr *message);

#endif
