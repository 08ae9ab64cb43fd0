/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* xdp_link.h - which XDP program a network interface has. */
#ifndef SLUICE_XDP_LINK_H
#define SLUICE_XDP_LINK_H

#include "sluice/types.h"

/*
 * The id of the program on the interface in the current network namespace: the only one, or
 * libxdp's dispatcher; 0: none. Needs no privilege. If there are several (on the card and in the
 * driver), the driver's. -errno: the kernel did not reply.
 */
int xdp_link_prog(u32 ifindex, u32 *ret_id);

#endif
