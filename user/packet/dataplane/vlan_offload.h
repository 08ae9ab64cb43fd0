/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* vlan_offload.h - whether a network card removes VLAN tags from frames before XDP sees them. */
#ifndef SLUICE_VLAN_OFFLOAD_H
#define SLUICE_VLAN_OFFLOAD_H

#include "sluice/types.h"

/* A set of these; 0: frames come with their tags. */
enum vlan_offload {
	VLAN_OFFLOAD_CTAG = 1 << 0, /* 802.1Q: rx-vlan-hw-parse */
	VLAN_OFFLOAD_STAG = 1 << 1, /* 802.1ad: rx-vlan-stag-hw-parse */
};

/* The offloads that are on. 0 or -errno; *ret is untouched on errors. */
int vlan_offload_get(const char *ifname, u32 *ret);
/* Switches those in `which` on or off; the others stay. 0 or -errno. */
int vlan_offload_set(const char *ifname, u32 which, u32 on);

#endif
