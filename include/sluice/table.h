/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * table.h - the buckets: sets of keys and bucket states, leases, and the limit_ids that own them.
 */
#ifndef SLUICE_TABLE_H
#define SLUICE_TABLE_H

#include "key.h"
#include "sizes.h"
#include "types.h"

#define SL_WAYS 4
#define SL_STATE_BUSY (~0ULL) /* a way whose key is being changed */

/*
 * A way is one of three things, by its key:
 *   0		empty
 *   a bucket	its key and state. The key's lowest bit: it was refused since it was last unused
 *		(an offender)
 *   a record	of evicted offenders: six fingerprints of their keys, and a time by which all
 *		their buckets would have recovered
 */
struct sl_way {
	u64 key;
	u64 bucket_state;
};

#define SL_KEY_REFUSED 1ULL

/* Whether a way's key is that of a bucket, an offender's or not. One operation and a branch. */
static __always_inline int sl_key_is(u64 stored, u64 key)
{
	return (stored ^ key) <= SL_KEY_REFUSED;
}

/*
 * A record:
 *   key    63  1, as in no bucket's key    62..57  until, upper bits    56..0  3 fingerprints
 *   state  63..57  until, lower bits                                    56..0  3 fingerprints
 * A fingerprint is 1..SL_PRINT_MAX, 0 is room; so the state is never SL_STATE_BUSY. The state of
 * a record is filled first: one of 0 is void. `until` is CLOCK_MONOTONIC in units of 2^34 ns
 * (17 s), modulo 2^13 (39 hours), rounded up; more than SL_RECORD_AHEAD ahead is the past.
 */
#define SL_KEY_RECORD SL_BIT(63)
#define SL_PRINT_BITS 19
#define SL_PRINT_MASK (SL_BIT(SL_PRINT_BITS) - 1)
#define SL_PRINT_MAX (SL_PRINT_MASK - 1)
#define SL_PRINTS_HALF 3
#define SL_PRINTS (2 * SL_PRINTS_HALF)
#define SL_PRINTS_MASK (SL_BIT(SL_PRINTS_HALF * SL_PRINT_BITS) - 1)
#define SL_RECORDS 3 /* of a set: one way is always left for a bucket */
#define SL_RECORD_SHIFT 34
#define SL_RECORD_UNTIL_BITS 13
#define SL_RECORD_UNTIL_MASK (SL_BIT(SL_RECORD_UNTIL_BITS) - 1)
#define SL_RECORD_LOW_BITS 7
#define SL_RECORD_AHEAD 7168 /* 34 hours: what takes longer is not recorded */

static __always_inline int sl_key_is_record(u64 key)
{
	return key >> 63;
}

/* From other bits than sl_key_set() takes. The key without SL_KEY_REFUSED. */
static __always_inline u64 sl_print(u64 key)
{
	u64 mixed = (key ^ key >> 29) * 0x9fb21c651e98df25ULL;

	return 1 + ((mixed >> 40) * SL_PRINT_MAX >> 24);
}

/* Units until the record ends, 0 where it has ended or is void. */
static __always_inline u64 sl_record_left(u64 key, u64 bucket_state, u64 mono_ns)
{
	u64 until = (key >> SL_PRINTS_HALF * SL_PRINT_BITS) << SL_RECORD_LOW_BITS |
		    bucket_state >> SL_PRINTS_HALF * SL_PRINT_BITS;
	u64 left = (until - (mono_ns >> SL_RECORD_SHIFT)) & SL_RECORD_UNTIL_MASK;

	return bucket_state && left <= SL_RECORD_AHEAD ? left : 0;
}

/* How long until then. left: units, at least 1. */
static __always_inline u64 sl_record_left_ns(u64 left, u64 mono_ns)
{
	return (left << SL_RECORD_SHIFT) - (mono_ns & (SL_BIT(SL_RECORD_SHIFT) - 1));
}

/* Units until something that is so far off, rounded up. */
static __always_inline u64 sl_record_units(u64 left_ns, u64 mono_ns)
{
	return (left_ns + (mono_ns & (SL_BIT(SL_RECORD_SHIFT) - 1)) + SL_BIT(SL_RECORD_SHIFT) -
		1) >>
	       SL_RECORD_SHIFT;
}

/* Fingerprint n of one half, or 0. */
static __always_inline u64 sl_print_at(u64 half, u32 n)
{
	return half >> n * SL_PRINT_BITS & SL_PRINT_MASK;
}

/* Whether one of them is `print`; with 0, whether there is room. */
static __always_inline int sl_half_has(u64 half, u64 print)
{
	return sl_print_at(half, 0) == print || sl_print_at(half, 1) == print ||
	       sl_print_at(half, 2) == print;
}

static __always_inline int sl_record_has(struct sl_way record, u64 print)
{
	return sl_half_has(record.bucket_state, print) || sl_half_has(record.key, print);
}

/* The half with `print` put where there was room, which there is. */
static __always_inline u64 sl_half_add(u64 half, u64 print)
{
	if (!sl_print_at(half, 0))
		return half | print;
	if (!sl_print_at(half, 1))
		return half | print << SL_PRINT_BITS;
	return half | print << 2 * SL_PRINT_BITS;
}

/* Both halves with another end, so many units from now. */
static __always_inline struct sl_way sl_record_ends(struct sl_way way, u64 units, u64 mono_ns)
{
	u64 until = ((mono_ns >> SL_RECORD_SHIFT) + units) & SL_RECORD_UNTIL_MASK;

	way.key = SL_KEY_RECORD | (way.key & SL_PRINTS_MASK) |
		  (until >> SL_RECORD_LOW_BITS) << SL_PRINTS_HALF * SL_PRINT_BITS;
	way.bucket_state =
		(way.bucket_state & SL_PRINTS_MASK) | until << SL_PRINTS_HALF * SL_PRINT_BITS;
	return way;
}

/* A record with one more, or again, whose bucket recovers in so many units. There is room. */
static __always_inline struct sl_way sl_record_add(struct sl_way way, u64 print, u64 units,
						   u64 mono_ns)
{
	u64 left = sl_record_left(way.key, way.bucket_state, mono_ns);

	if (sl_record_has(way, print))
		;
	else if (sl_half_has(way.bucket_state, 0))
		way.bucket_state = sl_half_add(way.bucket_state, print);
	else
		way.key = sl_half_add(way.key, print);
	return sl_record_ends(way, left > units ? left : units, mono_ns);
}

struct sl_set {
	struct sl_way way[SL_WAYS];
};
SL_STATIC_ASSERT(sizeof(struct sl_set) == 64, "one cache line");

/*
 * 32 bytes per bucket that the configuration asks for: two ways of each. One set of 32 is kept for
 * the prefixes of `on_full: prefix`. Those are looked for when the table has no room for a source,
 * and would find none there either.
 */
#define SL_TABLE_SETS(buckets) (((u64)(buckets) + 1) / 2 + 1)

/* Kept are the last sets. Of a table of `sets`; at least one, and `sets` is at least 2. */
static __always_inline u32 sl_table_kept(u32 sets)
{
	return (sets >> 5) + 1;
}

/* Whose keys go there: meters named as `full` have the last slots (packet/compile/limit_ids.c). */
#define SL_LIMIT_ID_KEPT 1792
SL_STATIC_ASSERT(SL_LIMIT_ID_KEPT == (SL_LIMIT_IDS >> 3) * 7,
		 "all ones in the slot's upper three bits");

/* The first (which = 0) and second (1) set of a key, without SL_KEY_REFUSED. No branches. */
static __always_inline u32 sl_table_set(u64 key, u32 which, u32 sets)
{
	u32 kept = sl_table_kept(sets), all = sets - kept;
	u32 is_kept = ((u32)(key >> 60) + 1) >> 3;

	return is_kept * all + sl_key_set(key, which, all - is_kept * (all - kept));
}

/*
 * A lease: a CPU's own small batch of a bucket, in the LRU per-CPU hash `lease` under the
 * bucket's key. 64 bits, changed by compare-and-swap, since an LRU entry's memory can be
 * reused for another key under its reader. This form is what bpftool prints:
 */
struct sl_lease {
	u64 units : 20; /* left; of one that is cached: as it was taken */
	u64 end : 32;	/* CLOCK_MONOTONIC >> SL_LEASE_TIME_SHIFT */
	u64 gen : 2;	/* the limit's rate generation */
	u64 tag : 9;	/* of the key */
	u64 cached : 1; /* 1: what is left is in struct sl_lease_hint */
};
SL_STATIC_ASSERT(sizeof(struct sl_lease) == 8, "changed at once");

/*
 * A cache of `lease` on each CPU, by a hash of the key: the lease taken last, for the hash's
 * look-up costs as much as the packet's other ones together. Also whether others may be in `lease`,
 * and which key came often enough to take one. Times are CLOCK_MONOTONIC >> SL_LEASE_TIME_SHIFT.
 */
#define SL_LEASE_HINTS 512
struct sl_lease_hint {
	u64 key, lease; /* the lease here; 0 none */
	u32 until;	/* when the last one that went to `lease` ends; 0 none */
	u32 tag;	/* of the key that is counted */
	u32 since;	/* when its count began */
	u32 count;	/* its packets less those of others */
	u32 size;	/* of the lease here: so often doubled */
	u32 pad;
};

struct sl_lease_hints {
	struct sl_lease_hint hint[SL_LEASE_HINTS];
};

/* One source's keys of several limits differ in their limit_ids alone. */
static __always_inline u32 sl_lease_hint_at(u64 key)
{
	return ((key >> 1) + (key >> 52) * 37) & (SL_LEASE_HINTS - 1);
}

/* Per CPU: a reading of both clocks, to bound the time without reading it. */
struct sl_clock_pair {
	u64 jiffies;
	u64 mono_ns;
};

/* Which fields of a packet are read on its way to its verdict: bpf/like.h. */
enum sl_reads {
	SL_READ_FLAGS = 1 << 0, /* of TCP; type of ICMP */
	SL_READ_VLAN = 1 << 1,
	SL_READ_DPORT = 1 << 2,
	SL_READ_SPORT = 1 << 3,	 /* code of ICMP */
	SL_READ_LENGTH = 1 << 4, /* as IP states it */
	SL_READ_DST = 1 << 5,
	SL_READ_SRC_LOW = 1 << 6, /* of IPv6 sources more than 64 bits */
};

/* Which packets something remembered holds for, and until when: bpf/like.h. */
struct sl_like {
	struct sl_addr src, dst;
	u64 fields;   /* sport, dport, VLAN, flags, protocol: like_fields() */
	u64 until_ns; /* CLOCK_MONOTONIC */
	u32 epoch;    /* of sl_epoch.count 32 bits: nothing is older than 100 ms */
	u16 l3_length;
	u8 link;  /* interface slot; bit 7: IPv6 */
	u8 reads; /* enum sl_reads, or-ed: fields that must be the same */
};

/* A refusal that may be repeated: see bpf/refused.h. Per CPU. */
#define SL_REFUSED_BITS 12
struct sl_refused {
	struct sl_like like;
	u16 least;    /* bytes: of frames that are as long or longer */
	u16 limit_id; /* where it is counted */
	u32 pad;
};
SL_STATIC_ASSERT(sizeof(struct sl_refused) == 64, "one cache line");

/* What a packet that passed was charged to: see bpf/passed.h. Per CPU. */
#define SL_PASSED_BITS 11
#define SL_PASSED_METERS 4
struct sl_passed {
	struct sl_like like;
	u32 rival; /* a hash of the last source that is not this one */
	u8 misses; /* of it, since then */
	u8 meters; /* how many */
	u8 heads;  /* bits: meters whose limit is counted, under their limit_id */
	u8 pad;
	u64 key[SL_PASSED_METERS];   /* of their buckets */
	u32 way[SL_PASSED_METERS];   /* where these were in the table: set * SL_WAYS + way */
	u16 meter[SL_PASSED_METERS]; /* their numbers in the rule set `generation` */
	u32 generation;		     /* 32 bits of it */
	u32 pad2;
};
SL_STATIC_ASSERT(sizeof(struct sl_passed) == 128, "two cache lines");

/* ------------------------------------------------------------------ limit_ids outlive rules */

enum sl_limit_id_state {
	SL_LIMIT_ID_FREE,
	SL_LIMIT_ID_BOUND,
	SL_LIMIT_ID_DRAINING, /* its limit is gone; its buckets may still be in the table */
};

/*
 * A limit's slot is its identity in the table, in counters and over restarts. It is bound to
 * the limit's name and to what makes its states comparable (`kind`); where that changes (the
 * algorithm, the unit, a window's length, what it counts per) the limit gets another slot.
 */
struct sl_limit_id_info {
	char name[SL_NAME_MAX];
	u64 kind;   /* a hash of algorithm, unit, per, prefix, window; compile.c */
	u64 tau[4]; /* GCRA: tau of each rate generation, 0 where never used */
	u32 state;  /* enum sl_limit_id_state */
	u32 gen;    /* GCRA: the current rate generation, 0..3 */
};
SL_STATIC_ASSERT(sizeof(struct sl_limit_id_info) == 112, "pinned layout");

/* The value of `state`: one, memory-mapped by the daemon. */
struct sl_state {
	u32 abi_version;
	u32 table_sets;
	u64 utc_offset_ns; /* UTC - CLOCK_MONOTONIC, published every second */
	struct sl_seed seed;
};
SL_STATIC_ASSERT(sizeof(struct sl_state) == 32, "pinned layout");

#endif
