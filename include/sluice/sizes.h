/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * sizes.h - how much of everything there is, and addresses: what the other parts of abi.h share.
 */
#ifndef SLUICE_SIZES_H
#define SLUICE_SIZES_H

#include "types.h"

#define SL_LIMITS_MAX 256   /* limits of a rule set */
#define SL_METERS_MAX 1024  /* meters of limits: see struct sl_limit */
#define SL_LIMIT_IDS 2048   /* limit_ids of meters; slot 0 is never used */
#define SL_IFACES_MAX 64    /* interfaces attached at a time */
#define SL_MATCHES_MAX 16   /* limits that one packet is charged to */
#define SL_CHARGES_MAX 32   /* meters that one packet is charged to */
#define SL_CLASS16_MAX 1024 /* distinct bitmaps of the 16-bit dimensions together */
#define SL_PCLASS_MAX 32767 /* distinct bitmaps of the prefix dimensions together */
#define SL_NAME_MAX 64	    /* a limit's name, with its final 0 */

/* A bit for each limit, in every bitmap of the classifier. */
#define SL_BITMAP_WORDS (SL_LIMITS_MAX / 64)

struct sl_bitmap {
	u64 w[SL_BITMAP_WORDS];
};

/*
 * Meters SL_LIMITS_MAX and up are named by no bitmap. The first of them the order's own steps
 * charge; those from SL_METER_FURTHER on belong to limits: see struct sl_limit.
 */
enum sl_internal_limit {
	SL_LIMIT_ESSENTIAL = SL_LIMITS_MAX, /* ARP and neighbor discovery, per address */
	SL_LIMIT_FAILSAFE,		    /* new connections to failsafe ports, per source */
	SL_LIMIT_FAILSAFE_TCP,		    /* other TCP to them without a socket, per source */
	SL_LIMIT_FAILSAFE_SUM,		    /* the same in sum */
	SL_LIMIT_FAILSAFE_SOCKET,	    /* and with a socket, per source */
	SL_LIMIT_PATH_MTU,		    /* path-MTU messages for no socket here, in sum */
	SL_LIMIT_PATH_MTU_SOCKET,	    /* for one, per peer or port: path_mtu_limit() */
	SL_LIMIT_ESSENTIAL_LINK,	    /* neighbor discovery, in sum */
	SL_LIMIT_ESSENTIAL_GATEWAY,	    /* essentials of this host's gateways, per address */
};
#define SL_METER_FURTHER (SL_LIMIT_ESSENTIAL_GATEWAY + 1)

/* Gateways of a family with essential buckets of their own. */
#define SL_GATEWAYS_MAX 8

/* Addresses are 128 bits, left-aligned: an IPv4 address is the top 32 bits of `hi`. */
struct sl_addr {
	u64 hi, lo;
};

enum sl_family {
	SL_V4,
	SL_V6,
	SL_FAMILY_COUNT,
};

static __always_inline struct sl_addr sl_addr_mask(struct sl_addr a, u32 len)
{
	if (len <= 64) {
		a.lo = 0;
		a.hi = len ? a.hi & (~0ULL << ((64 - len) & 63)) : 0;
	} else {
		a.lo = a.lo & (~0ULL << ((128 - len) & 63));
	}
	return a;
}

#endif
