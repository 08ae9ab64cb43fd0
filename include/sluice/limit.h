/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * limit.h - what a limit matches on, its meters, and the index of its overrides.
 */
#ifndef SLUICE_LIMIT_H
#define SLUICE_LIMIT_H

#include "algo.h"
#include "prefix.h"
#include "sizes.h"
#include "stats.h"

/* Dimensions with a 16-bit value: one class number per value, shared classes. */
enum sl_dim16 {
	SL_DIM_DPORT,
	SL_DIM_SPORT,
	SL_DIM_LENGTH, /* as IP states it; longer than 65535 counts as that */
	SL_DIM_VLAN,   /* the outermost tag's VLAN id */
	SL_DIM16_COUNT,
};

/* Dimensions with an 8-bit value: one bitmap per value. */
enum sl_dim8 {
	SL_DIM_PROTO,
	SL_DIM_TCP_FLAGS,
	SL_DIM_ICMP, /* ICMP type */
	SL_DIM_ICMPV6,
	SL_DIM_IFACE, /* interface slot */
	SL_DIM8_COUNT,
};

/* The largest Ethernet frame that is common; where a limit of bytes needs one. */
#define SL_FRAME_LARGE 9018

enum sl_unit {
	SL_UNIT_PACKETS,
	SL_UNIT_BYTES,	     /* bits are bytes with eight times the interval */
	SL_UNIT_CONNECTIONS, /* TCP SYN without ACK */
	SL_UNIT_COUNT,
};

enum sl_per {
	SL_PER_SOURCE = 1 << 0,
	SL_PER_DST = 1 << 1,
	SL_PER_PROTO = 1 << 2,
	SL_PER_DPORT = 1 << 3,
	SL_PER_VLAN = 1 << 4,
	SL_PER_IFACE = 1 << 5,
};

enum sl_mode {
	SL_MODE_ENFORCE,
	SL_MODE_SHADOW,
	SL_MODE_OFF, /* never in a rule set: such a limit is in no bitmap */
};

enum sl_on_full {
	SL_FULL_OPEN,
	SL_FULL_CLOSED,
	SL_FULL_PREFIX, /* the meter `full` instead; open where that is full, too */
};

enum sl_tag_flags {
	SL_TAG_DSCP = 1 << 0,
	SL_TAG_MARK = 1 << 1,
};

#define SL_NO_METER 0xffffU /* no such meter */
#define SL_PREFIX_NONE 255  /* the meter does not count packets of this family */

/*
 * A meter: one bucket for each key. A limit is its head meter, which has the limit's number in
 * every bitmap, and the meters that its meters name:
 *
 *   next	charged together with this one, all or none: the limit's further rates, and the
 *		further prefixes of its hierarchy (one meter for each rate and prefix)
 *   soft	charged where this meter refuses, and the packet passes as SL_LV_SOFT; of its own
 *		`next`, where there is one, this is the soft meter's grace (SL_ALGO_GRACE)
 *   full	on_full: prefix: charged instead of this meter where the table has no room
 *   counter	of a limit of all nodes: charged with it, refuses nothing, and so counts what this
 *		node admits; the daemon charges what others admit to the limit's meters
 *   refusals	of such a limit with count_all: the counter of what this meter refuses; 0: none
 *   overridden	whose slot and prefix-less parameters the buckets of overridden sources use
 *		and weighed under; the parameters they step with are in the override index
 *
 * action, mode, tag, on_full, counters and verdicts are those of the head.
 */
struct sl_limit {
	struct sl_params params;
	u32 slot;  /* 1..SL_LIMIT_IDS-1 */
	u32 lease; /* sl_lease_batch() of the capacity; 0: no leases, the exact path */
	u32 mark;
	u8 unit;		    /* enum sl_unit */
	u8 per;			    /* enum sl_per, or-ed */
	u8 prefix[SL_FAMILY_COUNT]; /* how sources are grouped */
	u8 action;		    /* enum sl_action; SL_ACT_PASS only with by_match */
	u8 mode;		    /* enum sl_mode */
	u8 on_full;		    /* enum sl_on_full */
	u8 tag;			    /* enum sl_tag_flags, or-ed */
	u8 dscp;		    /* 0..63 */
	u8 single_meter; /* 1: a head meter alone; nothing below is used but `overridden` */
	u8 elastic;	 /* 1: scaled by sl_elastic of the head's slot */
	u8 of_overrides; /* 1: another meter names it as `overridden` */
	u16 head;	 /* its limit; of a head its own index */
	u16 next;	 /* these: a meter, or SL_NO_METER */
	u16 soft;
	u16 full;
	u16 overridden;
	u16 ban;			/* head: index into sl_rules.ban, or SL_NO_METER */
	u8 counter;			/* 1: see above */
	u8 count_all;			/* 1: packets that it refuses count, too */
	u8 dst_prefix[SL_FAMILY_COUNT]; /* how destinations are grouped; 0: each */
	u8 by_match;  /* 1: a limit without a rate: each packet that matches meets `action` */
	u8 percpu;    /* 1: other parameters than these may have leases, too */
	u16 refusals; /* a meter, or 0 */
	u8 link;      /* 1: link-local sources count each, and together: sl_link_own() */
	u8 pad1[3];
	u64 pad2[2];
};
SL_STATIC_ASSERT(sizeof(struct sl_limit) == 128, "two cache lines");

/*
 * A limit per source takes a /64 or the like for one, but fe80::/10 is all neighbors of a link.
 * There each address has a bucket, and all of them one of SL_LINK_SOURCES times the limit, so that
 * forged addresses gain nothing. These packets take the longer way of bpf/meters.h; others pay
 * nothing.
 */
#define SL_LINK_PREFIX 10
#define SL_LINK_SOURCES 10

static __always_inline int sl_is_link_local(u32 family, struct sl_addr src)
{
	return family == SL_V6 &&
	       src.hi >> (64 - SL_LINK_PREFIX) == 0xfe80 >> (16 - SL_LINK_PREFIX);
}

/* The length by which a meter counts a source instead of its own; 0: its own. */
static __always_inline u32 sl_link_own(const struct sl_limit *meter, u32 family, struct sl_addr src)
{
	return sl_is_link_local(family, src) && meter->link ? 128 : 0;
}

/* The largest lease: what has room in its state (table.h). */
#define SL_LEASE_UNITS_MAX 0xfffffULL
/* Of bytes the smallest: one frame of the common MTU, else each packet would renew it. */
#define SL_LEASE_MIN_BYTES 1514

/* How long a lease can be spent; and how long a bucket takes to fill that gains 1/200 in this
 * time. */
#define SL_LEASE_TIME_SHIFT 20
#define SL_LEASE_NS (4ULL << SL_LEASE_TIME_SHIFT)
#define SL_LEASE_TAU (200 * SL_LEASE_NS * SL_TICKS_PER_NS)
/* The used part of a slow bucket above which leases are small: of 255, sl_utilization(). */
#define SL_LEASE_USED 8

/* All CPUs together hold at most the capacity divided by this. */
enum sl_lease_share {
	SL_LEASE_SLOW = 4, /* a bucket that takes SL_LEASE_TAU to fill, or longer */
	SL_LEASE_WINDOW = 16,
	SL_LEASE_FAST = 100,
};

static __always_inline enum sl_lease_share sl_lease_share(const struct sl_params *p)
{
	if (!sl_algo_is_bucket(p->algo))
		return SL_LEASE_WINDOW;
	return p->tau < SL_LEASE_TAU ? SL_LEASE_FAST : SL_LEASE_SLOW;
}

/* The most units that each of `cpus` holds. 0: too few for a lease. */
static __always_inline u32 sl_lease_batch(const struct sl_params *p, u32 cpus, u32 unit)
{
	u64 batch = cpus ? p->capacity / ((u64)sl_lease_share(p) * cpus) : 0;

	/* Units left on a CPU stay there until the window ends: at most 1 % of the limit. */
	if (sl_lease_share(p) == SL_LEASE_WINDOW && batch > p->capacity / 100)
		batch = p->capacity / 100;
	if (batch < (unit == SL_UNIT_BYTES ? SL_LEASE_MIN_BYTES : 2))
		return 0;
	/* The first lease is of four packets, with one to pay for: within SL_LEASE_USED. */
	if (sl_lease_share(p) == SL_LEASE_SLOW &&
	    p->capacity <
		    256 / SL_LEASE_USED * 5 * (unit == SL_UNIT_BYTES ? SL_LEASE_MIN_BYTES : 1))
		return 0;
	return batch < SL_LEASE_UNITS_MAX ? batch : SL_LEASE_UNITS_MAX;
}

/*
 * How much of `batch` a CPU keeps when its lease ends. It takes no more than that while more of the
 * limit is used than SL_LEASE_USED. CPUs keep 1/200 of a slow bucket in all; of other limits they
 * keep everything.
 */
static __always_inline u32 sl_lease_kept(const struct sl_params *p, u32 batch)
{
	return sl_lease_share(p) == SL_LEASE_SLOW ? batch / 50 : batch;
}

/*
 * The override index: of every meter that overrides apply to, which one holds for a source. A
 * hash of prefixes as that of the IPv6 prefix index, markers and all, for both families; the
 * meter is part of what is hashed. An entry has in itself what the step needs, so that one
 * cache miss both finds and parameterises.
 */
#define SL_OVERRIDE_WAYS 2
enum sl_override_flags {
	SL_OVERRIDE_USED = 1 << 0,
	SL_OVERRIDE_NONE = 1 << 1,    /* a marker that no override covers */
	SL_OVERRIDE_SKIP = 1 << 2,    /* this meter does not count the source */
	SL_OVERRIDE_SPILLED = 1 << 3, /* way 0: some key of this bucket is in its second one */
};

struct sl_override {
	u64 tag;
	u64 mult, tau; /* as in struct sl_params */
	u64 rest;      /* capacity: 46 bits, shift: 6, own: 8, flags: 4 */
};

struct sl_override_bucket {
	struct sl_override e[SL_OVERRIDE_WAYS];
};
SL_STATIC_ASSERT(sizeof(struct sl_override_bucket) == 64, "one cache line");

static __always_inline u64 sl_override_rest(u64 capacity, u32 shift, u32 own, u32 flags)
{
	return capacity << 18 | (u64)(shift & 63) << 12 | (u64)(own & 255) << 4 | (flags & 15);
}

static __always_inline u64 sl_override_capacity(u64 rest)
{
	return rest >> 18;
}

static __always_inline u32 sl_override_shift(u64 rest)
{
	return rest >> 12 & 63;
}

/*
 * The length of an override that is longer than what the meter groups by: its source has a bucket
 * of its own. 0 where the meter's own grouping holds.
 */
static __always_inline u32 sl_override_own(u64 rest)
{
	return rest >> 4 & 255;
}

/* Where the override of `meter` for a prefix lives; addr is masked. */
static __always_inline struct sl_pfx_hash sl_override_hash(struct sl_addr addr, u32 len, u32 family,
							   u32 meter, struct sl_seed seed,
							   u32 buckets)
{
	seed.k0 += (meter + 1) * 0x9e3779b97f4a7c15ULL;
	return sl_pfx_hash(addr, len, family, seed, buckets);
}

enum sl_fragments {
	SL_FRAG_LIMIT,
	SL_FRAG_PASS,
	SL_FRAG_DROP,
};

/* Bits of sl_rules.dims: dimensions that some limit uses; the others cost nothing. */
#define SL_DIMS_16(d) (1U << (d))
#define SL_DIMS_8(d) (1U << (8 + (d)))
#define SL_DIMS_P(d) (1U << (16 + (d))) /* prefixes that limits match on, or lists */
#define SL_DIMS_LOCAL (1U << 24)	/* failsafe ports are set */
#define SL_DIMS_SESSIONS (1U << 25)	/* failsafe sessions are known */
#define SL_DIMS_BANS (1U << 26)		/* some limit bans, or did */
#define SL_DIMS_L4 (1U << 27)		/* a limit matches on what later fragments do not have */
#define SL_DIMS_CONNECTIONS (1U << 28)	/* a limit counts what opens a connection */
#define SL_DIMS_OVERRIDES (1U << 29)	/* a limit has overrides */
#define SL_DIMS_PER_DPORT (1U << 30)	/* a limit counts per destination port */
#define SL_DIMS_MATCH 0x00ffffffU	/* any that a limit's match can use */

#define SL_NO_LIMIT SL_NO_METER

/* Prefix maps there are: of the rules in force, of those to fall back to, of the next ones. */
#define SL_PFX_SLOTS 3

#endif
