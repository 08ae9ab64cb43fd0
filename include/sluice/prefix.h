/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * prefix.h - the prefix index: from an address to its class.
 */
#ifndef SLUICE_PREFIX_H
#define SLUICE_PREFIX_H

#include "key.h"
#include "sizes.h"
#include "types.h"

/*
 * Longest-prefix match for `src` and `dst`. IPv4: the address space cut into ranges, found in
 * one to three loads. IPv6: one hash table of all prefixes, searched by bisection over the
 * lengths in use (Waldvogel et al., SIGCOMM 1997), with markers that carry their own best
 * match.
 */
enum sl_pdim {
	SL_PDIM_SRC,
	SL_PDIM_DST,
	SL_PDIM_COUNT,
};

/*
 * IPv4, after DXR (Zec, Rizzo and Mikuc, 2012): an entry for each /16 of each dimension. It is
 * a class, where all addresses under it have the same one; or SL_V4_*, and where to look on.
 */
#define SL_V4_NODE 0x40000000U /* entries below are classes */
#define SL_V4_KIND 0xc0000000U
#define SL_V4_LIST 0x40000000U	/* a list of ranges */
#define SL_V4_BLOCK 0x80000000U /* of a /16: 16 lines, an entry for each of its /24s */
#define SL_V4_BYTES 0xc0000000U /* of a /24: 8 lines, a class for each of its addresses */
#define SL_V4_LINE(entry) (((entry) & ~SL_V4_KIND) >> 4)
#define SL_V4_FIRST(entry) ((entry)&15) /* LIST: which range of the line is the first */
#define SL_V4_RANGES 16

struct sl_v4_top {
	u32 entry[SL_PDIM_COUNT << 16]; /* dimension << 16 | address >> 16 */
};
SL_STATIC_ASSERT(sizeof(struct sl_v4_top) == 512 * 1024, "stays in a core's own cache");

/*
 * From `start` on (the lower 16 bits of an address) to the next one's. A list's first holds
 * from the beginning: instead of a start it has the number of those that follow. Lists are
 * packed, several to a line, and never go over a line's end.
 */
struct sl_v4_range {
	u16 start;
	u16 class;
};

struct sl_v4_line {
	union {
		struct sl_v4_range range[SL_V4_RANGES]; /* LIST */
		u32 entry[16];				/* BLOCK */
		u16 class[32];				/* BYTES */
	};
};
SL_STATIC_ASSERT(sizeof(struct sl_v4_line) == 64, "one cache line");

/* The class of an address, by its lower 16 bits, in the list that begins at range `first`. */
static __always_inline u32 sl_v4_list_class(const struct sl_v4_line *line, u32 first, u32 low)
{
	u32 count = line->range[first & (SL_V4_RANGES - 1)].start;
	u32 class = line->range[first & (SL_V4_RANGES - 1)].class;
	u32 i;

	for (i = 1; i < SL_V4_RANGES; i++) {
		const struct sl_v4_range *range = &line->range[(first + i) & (SL_V4_RANGES - 1)];

		if (i > count || range->start > low)
			break;
		class = range->class;
	}
	return class;
}

#define SL_LENGTHS_MAX 129

/* IPv6: lengths in use, ascending. */
struct sl_lengths {
	u8 count;
	u8 len[SL_LENGTHS_MAX];
	u8 pad[6];
};

#define SL_PFX_WAYS 4
struct sl_pfx_entry {
	u64 tag; /* 0 with `class` 0: empty */
	u32 tag2;
	u32 class; /* index into the classes: best match up to this length */
};

/* Entry 0's class bit 31: some key of this bucket lives in its second bucket. */
#define SL_PFX_SPILLED 0x80000000U
#define SL_PFX_CLASS_MASK 0x7fffffffU
struct sl_pfx_bucket {
	struct sl_pfx_entry e[SL_PFX_WAYS];
};
SL_STATIC_ASSERT(sizeof(struct sl_pfx_bucket) == 64, "one cache line");

struct sl_pfx_hash {
	u64 tag;
	u32 tag2;
	u32 bucket[2];
};

/*
 * Where an IPv6 prefix lives. 96 seeded bits identify it. The length is in both products: in
 * the second alone it is added to the address, and (x-1)/128 would be taken for x/127.
 * `buckets` is the number of buckets; addr is masked.
 */
static __always_inline struct sl_pfx_hash sl_pfx_hash(struct sl_addr addr, u32 len, u32 dim,
						      struct sl_seed seed, u32 buckets)
{
	u64 meta = len | dim << 8 | 1U << 9;
	u64 a = (addr.hi ^ meta) * 0x9e3779b97f4a7c15ULL;
	u64 b;
	struct sl_pfx_hash h;

	a ^= a >> 32;
	b = (addr.lo + seed.k0 + meta) * 0xd6e8feb86659fd93ULL;
	b ^= b >> 32;
	h.tag = (a + sl_rotl(b, 23)) * 0xff51afd7ed558ccdULL;
	h.tag ^= (h.tag >> 33) ^ seed.k1;
	h.tag2 = (a ^ b) >> 7;
	a = (h.tag ^ seed.k0) * 0xc4ceb9fe1a85ec53ULL;
	h.bucket[0] = ((a >> 32) * buckets) >> 32;
	h.bucket[1] = ((a & 0xffffffffULL) * buckets) >> 32;
	return h;
}

/*
 * The lists and conditions that all addresses of one class meet. Deadlines are CLOCK_MONOTONIC ns;
 * 0: not in such a list, ~0: for as long as the list has it.
 */
struct sl_pclass {
	struct sl_bitmap limits; /* limits whose src (dst) condition these meet */
	u64 block_until;	 /* src: by a block up to /8 or /16 wide */
	u64 wide_block_until;	 /* src: by a wider one, which failsafe ports escape */
	u64 exempt_until;	 /* src */
	u64 flags;		 /* enum sl_pclass_flags */
};
SL_STATIC_ASSERT(sizeof(struct sl_pclass) == 64, "one cache line");

enum sl_pclass_flags {
	SL_PC_LOCAL = 1 << 0,  /* dst: an address of this host */
	SL_PC_NO_BAN = 1 << 1, /* src: a gateway or the like, that bans do not touch */
};

#endif
