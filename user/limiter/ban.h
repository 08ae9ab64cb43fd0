/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * ban.h - a ban in the request tier: until when a value is refused, and how often it was.
 *
 * As in the packet tier (bpf/ban.h): the first ban has level 0 and lasts the spec's period, each
 * level factor times as long, up to the longest. For each time that its value went without a ban
 * for as long as the last one lasted, the next one is a level lower.
 *
 * The bucket state: the end in units of 16 ns of CLOCK_MONOTONIC, above 4 bits of level.
 */
#ifndef SLUICE_LIMITER_BAN_H
#define SLUICE_LIMITER_BAN_H

#include "limiter/spec.h"

#define BAN_LEVELS 16

/* Rounded up: Retry-After comes true. */
static inline u64 ban_state(u64 until_ns, u32 level)
{
	return ((until_ns + BAN_LEVELS - 1) & ~(u64)(BAN_LEVELS - 1)) | level;
}

static inline u64 ban_until_ns(u64 state)
{
	return state & ~(u64)(BAN_LEVELS - 1);
}

static inline u32 ban_level(u64 state)
{
	return state & (BAN_LEVELS - 1);
}

/* 0: it is over, or there is none. */
static inline u64 ban_left_ns(u64 state, u64 mono_ns)
{
	return ban_until_ns(state) > mono_ns ? ban_until_ns(state) - mono_ns : 0;
}

/* How long a ban of this level lasts. */
u64 ban_length_ns(const struct spec *spec, u32 level);
/* The state of a ban that begins now, after `last`, which is over, or 0. */
u64 ban_next(const struct spec *spec, u64 last, u64 mono_ns);

#endif
