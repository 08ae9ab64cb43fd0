/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * list.h - blocks and exemptions that change one by one: a hash beside the rule sets. Swapping
 * those does not touch it. A packet's source meets these and those of the rule set's index alike.
 */
#ifndef SLUICE_LIST_H
#define SLUICE_LIST_H

#include "sizes.h"

/* The hash `listed`: a prefix. */
struct sl_list_key {
	struct sl_addr addr; /* masked */
	u32 family;
	u32 len;
};

/* From when and until when, CLOCK_MONOTONIC ns; until 0: never, ~0: no end. */
struct sl_list_term {
	u64 from_ns;
	u64 until_ns;
};

struct sl_listed {
	struct sl_list_term block;
	struct sl_list_term exempt;
};
#define SL_LISTED_MAX 524288

/* A block of a shorter prefix does not shut failsafe ports: docs/packet-walk.md. */
#define SL_LIST_NARROW_V4 8
#define SL_LIST_NARROW_V6 16

/*
 * `list_filter`: at which lengths a source is looked for, so that a packet pays for those near its
 * address, not for all in use. Written by the daemon; bits of removed entries stay until it
 * builds the filter again, and cost a look-up.
 *
 * IPv4: a word for each /16, a bit for each length of an entry in it or around it. IPv6: two words
 * for each of a number of sets of /32s, and one for lengths below 32.
 */
#define SL_LIST_V4_WORDS 65536
#define SL_LIST_V6_SETS 32768
#define SL_LIST_V6_FIRST 32

struct sl_list_filter {
	u64 count;   /* entries that there may be */
	u64 wide_v6; /* IPv6: a bit for each length below 32 in use */
	u64 pad[6];
	u64 v4[SL_LIST_V4_WORDS];   /* 1 << length */
	u64 v6[SL_LIST_V6_SETS][2]; /* 1 << length - 32, over both words */
};

/* The set of an IPv6 address, by its first 32 bits. */
static __always_inline u32 sl_list_set(struct sl_addr addr)
{
	return (u32)((addr.hi >> 32) * 0x9e3779b1U) >> 17;
}

#endif
