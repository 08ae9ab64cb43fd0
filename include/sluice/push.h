/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * push.h - push-downs: what the HTTP tier learned about a source, as the program has it.
 *
 * Unlike bans these are set from outside only. They are in a hash of their own, beside the rule
 * sets: swapping those does not touch them.
 */
#ifndef SLUICE_PUSH_H
#define SLUICE_PUSH_H

#include "algo.h"
#include "events.h"
#include "prefix.h"
#include "sizes.h"

/* In the order in which they are harder on a source; also the order of their reasons. */
enum sl_push_kind {
	SL_PUSH_LIMIT,	/* a token bucket of packets, the source's own */
	SL_PUSH_TAG,	/* SL_PUSH_DSCP and SL_PUSH_MARK */
	SL_PUSH_NO_NEW, /* TCP SYN without ACK is dropped */
	SL_PUSH_DROP,
	SL_PUSH_COUNT,
};

/* What `tag` puts on. */
#define SL_PUSH_DSCP 8 /* CS1: lower effort */
#define SL_PUSH_MARK 0x51

/* The hash `pushes`. */
struct sl_push_key {
	struct sl_addr addr; /* masked */
	u32 family;
	u32 len;
};

struct sl_push {
	struct sl_params params; /* SL_PUSH_LIMIT */
	u64 bucket_state;	 /* its bucket, by compare-and-swap */
	u64 until_ns;		 /* CLOCK_MONOTONIC */
	u64 passed;		 /* packets of the source that it let go on */
	u64 refused;		 /* that it dropped or tagged */
	u64 count, period_ns;	 /* SL_PUSH_LIMIT: the rate as configured */
	u64 note;		 /* a value of its creator, not read here */
	u32 kind;		 /* enum sl_push_kind */
	u32 pad;
};
SL_STATIC_ASSERT(sizeof(struct sl_push) == 128, "two cache lines");
#define SL_PUSHES_MAX 16384

/*
 * `push_now`: whether there is anything to look for, and at which lengths. The filter has a bit
 * for each push-down that may be, by sl_ban_bit(). Written by the daemon.
 */
#define SL_PUSH_LENGTHS 4 /* distinct prefix lengths, per family */
enum sl_push_flags {
	SL_PUSH_ON = 1 << 0,	/* there may be some */
	SL_PUSH_WATCH = 1 << 1, /* sources of established traffic are noted in `met` */
	SL_PUSH_MARKS = 1 << 2, /* with SL_PUSH_ON: there may be one with SL_PUSH_TAG */
};

struct sl_push_now {
	u32 flags;				  /* enum sl_push_flags, or-ed */
	u8 len[SL_FAMILY_COUNT][SL_PUSH_LENGTHS]; /* 0: none */
	u8 pad[52];
	struct sl_ban_filter filter;
};
SL_STATIC_ASSERT(__builtin_offsetof(struct sl_push_now, filter) == 64, "a line of its own");

/*
 * `met`: sources that established traffic was seen from, and when; a fixed number of sets, each
 * a cache line. A way is 32 bits of a seeded hash of the address, and the time in units of
 * 2^SL_ESTABLISHED_SHIFT ns since boot. A new source takes the oldest way of its set.
 */
#define SL_ESTABLISHED_SETS 16384
#define SL_ESTABLISHED_WAYS 8
#define SL_ESTABLISHED_SHIFT 30 /* 1.07 s: how often a source is written at most */
struct sl_established {
	u64 way[SL_ESTABLISHED_WAYS]; /* tag << 32 | time */
};
SL_STATIC_ASSERT(sizeof(struct sl_established) == 64, "one cache line");

/* Where an address is noted, and by which tag. */
static __always_inline u32 sl_established_at(struct sl_addr addr, u32 family, struct sl_seed seed,
					     u32 *ret_tag)
{
	struct sl_pfx_hash h = sl_pfx_hash(addr, 128, family, seed, SL_ESTABLISHED_SETS);

	*ret_tag = h.tag2;
	return h.bucket[0];
}

static __always_inline u32 sl_established_time(u64 mono_ns)
{
	return mono_ns >> SL_ESTABLISHED_SHIFT;
}

#endif
