/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * table.h - the buckets: sets of keys and words, leases, and the slots that tell whose they are.
 */
#ifndef SLUICE_TABLE_H
#define SLUICE_TABLE_H

#include "key.h"
#include "sizes.h"
#include "types.h"

#define SL_WAYS 4
#define SL_WORD_BUSY (~0ULL)	/* a way whose key is being changed */

struct sl_way {
	u64 key;		/* 0: empty */
	u64 word;
};

struct sl_set {
	struct sl_way way[SL_WAYS];
};
SL_STATIC_ASSERT(sizeof(struct sl_set) == 64, "one cache line");

/* Ways per bucket that the configuration asks for: 1M live keys lose under 0.2% at 2/3 full. */
#define SL_TABLE_SETS(buckets) (((u64)(buckets) * 3 / 2 + SL_WAYS - 1) / SL_WAYS)

/*
 * A lease: a CPU's own small batch of a bucket, in the LRU per-CPU hash `lease` under the
 * bucket's key. One word, changed by compare-and-swap, since an LRU entry's memory can be
 * given to another key under its reader:
 *   bits 63..44  a tag of the key and the limit's rate generation
 *   bits 43..24  when it ends: monotonic time in units of 2^20 ns, modulo 2^20
 *   bits 23..0   units left
 */
#define SL_LEASE_NS 10000000ULL
#define SL_LEASE_TIME_SHIFT 20
#define SL_LEASE_UNITS_MAX 0xffffffULL

/* Which hashes have a lease on this CPU; a miss here saves the look-up (per CPU, one value). */
#define SL_LEASE_HINTS 1024
struct sl_lease_hints {
	u32 until[SL_LEASE_HINTS];	/* monotonic time >> 20, the lease's end; 0 none */
};

/* Per CPU: a reading of both clocks, to bound the time without reading it. */
struct sl_clock_pair {
	u64 jiffies;
	u64 mono_ns;
};

/* A source that was refused: see bpf/refused.h. Per CPU. */
#define SL_REFUSED_BITS 12
struct sl_refused {
	struct sl_addr source;	/* as much of it as sl_limit.alike says */
	u64 until_ns;		/* CLOCK_MONOTONIC */
	u32 tag;		/* which limit, rule set, family */
	u32 cost;
};
SL_STATIC_ASSERT(sizeof(struct sl_refused) == 32, "never over two cache lines");

/* ------------------------------------------------------------------ slots: what outlives a rule set */

enum sl_slot_state {
	SL_SLOT_FREE,
	SL_SLOT_BOUND,
	SL_SLOT_DRAINING,	/* its limit is gone; words of it may still be in the table */
};

/*
 * A limit's slot is its identity in the table, in counters and over restarts. It is bound to
 * the limit's name and to what makes its words comparable (`kind`); where that changes (the
 * algorithm, the unit, a window's length, what it counts per) the limit gets another slot.
 */
struct sl_slot_info {
	char name[SL_NAME_MAX];
	u64 kind;		/* a hash of algorithm, unit, per, prefix, window; compile.c */
	u64 tau[4];		/* GCRA: tau of each rate generation, 0 where never used */
	u32 state;		/* enum sl_slot_state */
	u32 gen;		/* GCRA: the current rate generation, 0..3 */
};
SL_STATIC_ASSERT(sizeof(struct sl_slot_info) == 112, "pinned layout");

/* The value of `state`: one, memory-mapped by the daemon. */
struct sl_state {
	u32 abi_version;
	u32 table_sets;
	u64 utc_offset_ns;	/* UTC - CLOCK_MONOTONIC, published every second */
	struct sl_seed seed;
};
SL_STATIC_ASSERT(sizeof(struct sl_state) == 32, "pinned layout");

#endif
