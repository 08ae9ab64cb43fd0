/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * links.h - the interfaces of this network namespace: their XDP programs, and which of them stand
 * on others (a bridge on its ports, a VLAN device, a macvlan or a bond on the devices below).
 *
 * From rtnetlink, not from /sys, which may show another namespace. Needs no privilege. A device in
 * another namespace is not seen, even if it stands on one of this namespace.
 */
#ifndef SLUICE_LIB_LINKS_H
#define SLUICE_LIB_LINKS_H

#include <stdbool.h>
#include <stddef.h>

#include "sluice/types.h"

struct link {
	u32 ifindex;
	char name[16];
	char kind[16]; /* "veth", "bridge", "vlan"...; "": of hardware */
	u16 type;      /* ARPHRD_* */
	u32 master;    /* the bridge, bond... whose port it is; 0: none */
	u32 link;      /* the device that it stands on, of a veth its peer; 0: none here */
	u32 mtu;
	u8 remote[4]; /* of a tunnel over IPv4; 0: none */
	u32 xdp_mode; /* XDP_ATTACHED_* */
	/*
	 * Its program: the only one, or libxdp's dispatcher; 0: none. If there are several (on the
	 * card and in the driver), the driver's.
	 */
	u32 xdp_prog;
	u64 lost; /* frames, by the card before XDP; 0 without statistics */
};

/* One interface, with statistics or without. 0, or -errno: -ENODEV if it does not exist. */
int link_get(u32 ifindex, bool statistics, struct link *ret);

struct links {
	struct link *all;
	size_t count;
};

/* All interfaces, without statistics. 0 or -errno; on success the caller frees with
 * links_free(). */
int links_get(struct links *ret);
void links_free(struct links *links);
/* NULL: there is none with this number. */
const struct link *links_find(const struct links *links, u32 ifindex);

const struct link *links_by_name(const struct links *links, const char *name);

/* Whether `upper` stands on `lower` itself, with nothing between. The peers of a veth do not. */
bool link_stands_on(const struct link *upper, const struct link *lower);
/* The same with devices between them. */
bool links_is_above(const struct links *links, u32 upper, u32 lower);
/* How many levels of devices are below; 0: none. */
u32 links_depth(const struct links *links, u32 ifindex);

#endif
