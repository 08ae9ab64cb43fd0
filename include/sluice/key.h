/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * key.h - from what a limit counts per (a source, a destination, ...) to a bucket's key, and
 * from the key to its two places in the table.
 *
 * A key is 12 bits of limit slot and 51 bits of SipHash-1-3 (Aumasson and Bernstein, 2012; the 1-3
 * variant as in the Rust and Python hash tables) under a random, pinned seed. An outsider cannot
 * compute which keys collide, and every stored key has the number of its limit. Two keys of one
 * limit coincide with probability n^2 / 2^52: one pair in a table of a million sources has a chance
 * of 1 in 4500. The lowest bit is the table's: table.h.
 *
 * The two candidate sets follow from the key alone, so a table can be resized or read by a
 * newer program without knowing the addresses.
 */
#ifndef SLUICE_KEY_H
#define SLUICE_KEY_H

#include "types.h"

#define SL_KEY_HASH_BITS 52
#define SL_KEY_HASH_MASK (SL_BIT(SL_KEY_HASH_BITS) - 2)

struct sl_seed {
	u64 k0, k1;
};

static __always_inline u64 sl_rotl(u64 x, u32 n)
{
	return x << n | x >> (64 - n);
}

struct sl_sip {
	u64 v0, v1, v2, v3;
};

static __always_inline void sl_sip_round(struct sl_sip *s)
{
	s->v0 += s->v1;
	s->v2 += s->v3;
	s->v1 = sl_rotl(s->v1, 13) ^ s->v0;
	s->v3 = sl_rotl(s->v3, 16) ^ s->v2;
	s->v0 = sl_rotl(s->v0, 32);
	s->v2 += s->v1;
	s->v0 += s->v3;
	s->v1 = sl_rotl(s->v1, 17) ^ s->v2;
	s->v3 = sl_rotl(s->v3, 21) ^ s->v0;
	s->v2 = sl_rotl(s->v2, 32);
}

static __always_inline void sl_sip_start(struct sl_sip *s, struct sl_seed seed)
{
	s->v0 = seed.k0 ^ 0x736f6d6570736575ULL;
	s->v1 = seed.k1 ^ 0x646f72616e646f6dULL;
	s->v2 = seed.k0 ^ 0x6c7967656e657261ULL;
	s->v3 = seed.k1 ^ 0x7465646279746573ULL;
}

/* One 8-byte word of the message. */
static __always_inline void sl_sip_add(struct sl_sip *s, u64 word)
{
	s->v3 ^= word;
	sl_sip_round(s);
	s->v0 ^= word;
}

static __always_inline u64 sl_sip_finish(struct sl_sip *s)
{
	s->v2 ^= 0xff;
	sl_sip_round(s);
	sl_sip_round(s);
	sl_sip_round(s);
	return s->v0 ^ s->v1 ^ s->v2 ^ s->v3;
}

/* A bucket's key, its lowest bit 0. slot is 1..2047, so a key is never 0: 0 is an empty way. */
static __always_inline u64 sl_key(u32 slot, u64 hash)
{
	return (u64)slot << SL_KEY_HASH_BITS | (hash & SL_KEY_HASH_MASK);
}

static __always_inline u32 sl_key_limit_id(u64 key)
{
	return key >> SL_KEY_HASH_BITS;
}

/* The first (which = 0) and second (1) candidate set of a key in a table of `sets` sets. */
static __always_inline u32 sl_key_set(u64 key, u32 which, u32 sets)
{
	u64 mixed = key * 0x9e3779b97f4a7c15ULL;

	mixed ^= mixed >> 32;
	mixed *= which ? 0xd6e8feb86659fd93ULL : 0xff51afd7ed558ccdULL;
	return ((mixed >> 32) * sets) >> 32;
}

#endif
