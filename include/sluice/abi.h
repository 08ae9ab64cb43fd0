/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * abi.h - what the daemon and the XDP program share: every map's key and value, every enum.
 *
 * The layout of pinned maps is pinned with static_asserts: a newer program meets the state
 * that an older one left. Change one of them and SL_ABI_VERSION goes up. It is over 500 lines
 * because it is one contract.
 */
#ifndef SLUICE_ABI_H
#define SLUICE_ABI_H

#include "algo.h"
#include "key.h"
#include "stats.h"
#include "types.h"

#define SL_ABI_VERSION 2

/* ------------------------------------------------------------------ sizes */

#define SL_LIMITS_MAX 256	/* limits of a rule set */
#define SL_ROWS_MAX 1024	/* rows of limits: see struct sl_limit */
#define SL_SLOTS 2048		/* row slots; slot 0 is never used */
#define SL_IFACES_MAX 64	/* interfaces attached at a time */
#define SL_MATCHES_MAX 16	/* limits that one packet is charged to */
#define SL_WORDS_MAX 32		/* rows, so words, that one packet is charged to */
#define SL_CLASS16_MAX 1024	/* distinct answers of the 16-bit dimensions together */
#define SL_PCLASS_MAX 32767	/* distinct answers of the prefix dimensions together */
#define SL_NAME_MAX 64		/* a limit's name, with its final 0 */

/* A limit's bit in every answer of the classifier. */
#define SL_BITMAP_WORDS (SL_LIMITS_MAX / 64)

struct sl_bitmap {
	u64 w[SL_BITMAP_WORDS];
};

/*
 * Rows SL_LIMITS_MAX and up are named by no bitmap. Two of them the order's own steps 1 and 4
 * charge; those from SL_ROW_FURTHER on belong to limits: see struct sl_limit.
 */
enum sl_internal_limit {
	SL_LIMIT_ESSENTIAL = SL_LIMITS_MAX,	/* ARP and neighbour discovery, per source */
	SL_LIMIT_FAILSAFE,			/* new connections to failsafe ports, per source */
	SL_ROW_FURTHER,
};

/* Addresses are 128 bits, left-aligned: an IPv4 address is the top 32 bits of `hi`. */
struct sl_addr {
	u64 hi, lo;
};

/* ------------------------------------------------------------------ the table */

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

/* ------------------------------------------------------------------ the prefix index */

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

enum sl_family {
	SL_V4,
	SL_V6,
	SL_FAMILY_COUNT,
};

/*
 * IPv4, after DXR (Zec, Rizzo and Mikuc, 2012): an entry for each /16 of each dimension. It is
 * a class, where all addresses under it have the same one; or SL_V4_*, and where to look on.
 */
#define SL_V4_NODE 0x40000000U		/* entries below are classes */
#define SL_V4_KIND 0xc0000000U
#define SL_V4_LIST 0x40000000U		/* a list of ranges */
#define SL_V4_BLOCK 0x80000000U		/* of a /16: 16 lines, an entry for each of its /24s */
#define SL_V4_BYTES 0xc0000000U		/* of a /24: 8 lines, a class for each of its addresses */
#define SL_V4_LINE(entry) (((entry) & ~SL_V4_KIND) >> 4)
#define SL_V4_FIRST(entry) ((entry) & 15)	/* LIST: which range of the line is the first */
#define SL_V4_RANGES 16

struct sl_v4_top {
	u32 entry[SL_PDIM_COUNT << 16];	/* dimension << 16 | address >> 16 */
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
		struct sl_v4_range range[SL_V4_RANGES];	/* LIST */
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
	u64 tag;		/* 0 with `class` 0: empty */
	u32 tag2;
	u32 class;		/* index into the classes: best match up to this length */
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

/*
 * Where an IPv6 prefix lives. It is told by 96 seeded bits. The length is in both products: in
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

/* What the addresses of one class are in. Deadlines are CLOCK_MONOTONIC ns; 0 never, ~0 for good. */
struct sl_pclass {
	struct sl_bitmap limits;	/* limits whose src (dst) condition these meet */
	u64 block_until;		/* src: by a block up to /8 or /16 wide */
	u64 wide_block_until;		/* src: by a wider one, which failsafe ports escape */
	u64 exempt_until;		/* src */
	u64 flags;			/* enum sl_pclass_flags */
};
SL_STATIC_ASSERT(sizeof(struct sl_pclass) == 64, "one cache line");

enum sl_pclass_flags {
	SL_PC_LOCAL = 1 << 0,		/* dst: an address of this host */
	SL_PC_NO_BAN = 1 << 1,		/* src: a gateway or the like, that bans do not touch */
};

/* ------------------------------------------------------------------ a rule set */

/* Dimensions with a 16-bit value: one class number per value, shared classes. */
enum sl_dim16 {
	SL_DIM_DPORT,
	SL_DIM_SPORT,
	SL_DIM_LENGTH,		/* frames longer than 65535 count as that */
	SL_DIM_VLAN,		/* the outermost tag's VLAN id */
	SL_DIM16_COUNT,
};

/* Dimensions with an 8-bit value: one bitmap per value. */
enum sl_dim8 {
	SL_DIM_PROTO,
	SL_DIM_TCP_FLAGS,
	SL_DIM_ICMP,		/* ICMP type */
	SL_DIM_ICMPV6,
	SL_DIM_IFACE,		/* interface slot */
	SL_DIM8_COUNT,
};

enum sl_unit {
	SL_UNIT_PACKETS,
	SL_UNIT_BYTES,		/* bits are bytes with eight times the interval */
	SL_UNIT_CONNECTIONS,	/* TCP SYN without ACK */
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
	SL_MODE_OFF,		/* never in a rule set: such a limit is in no bitmap */
};

enum sl_on_full {
	SL_FULL_OPEN,
	SL_FULL_CLOSED,
	SL_FULL_PREFIX,		/* the row `full` is charged instead; open where that is full, too */
};

enum sl_tag_flags {
	SL_TAG_DSCP = 1 << 0,
	SL_TAG_MARK = 1 << 1,
};

#define SL_NO_ROW 0xffffU	/* no such row */
#define SL_PREFIX_NONE 255	/* the row does not count packets of this family */

/*
 * A row: one word for each key. A limit is its head row, which has the limit's number in
 * every bitmap, and the rows that its rows name:
 *
 *   next	charged together with this one, all or none: the limit's further rates, and the
 *		further prefixes of its ladder (one row for each rate and prefix)
 *   soft	takes what this row refuses, and the packet passes as SL_LV_SOFT; of its own
 *		`next`, where there is one, this is the soft row's grace (SL_ALGO_GRACE)
 *   full	on_full: prefix: charged instead of this row where the table has no room
 *   overridden	whose slot and prefix-less parameters the words of overridden sources are kept
 *		and weighed under; the parameters they step with are in the override index
 *
 * action, mode, tag, on_full, counters and verdicts are those of the head.
 */
struct sl_limit {
	struct sl_params params;
	u32 slot;		/* 1..SL_SLOTS-1 */
	u32 lease;		/* units a CPU takes at a time; 0: no leases, the exact path */
	u32 mark;
	u8 unit;		/* enum sl_unit */
	u8 per;			/* enum sl_per, or-ed */
	u8 prefix[SL_FAMILY_COUNT];	/* how sources are grouped */
	u8 action;		/* enum sl_action: SL_ACT_DROP or SL_ACT_TAG */
	u8 mode;		/* enum sl_mode */
	u8 on_full;		/* enum sl_on_full */
	u8 tag;			/* enum sl_tag_flags, or-ed */
	u8 dscp;		/* 0..63 */
	u8 plain;		/* 1: a head row alone; nothing below is used but `overridden` */
	u8 elastic;		/* 1: scaled by sl_elastic of the head's slot */
	u8 of_overrides;	/* 1: what another row names as `overridden` */
	u16 head;		/* this row's limit; of a head its own index */
	u16 next;		/* these: a row, or SL_NO_ROW */
	u16 soft;
	u16 full;
	u16 overridden;
	u16 ban;		/* head: index into sl_rules.ban, or SL_NO_ROW */
	/* Sources that are alike in so many bits meet the same rates here: bpf/refused.h. */
	u8 alike[SL_FAMILY_COUNT];
	u16 pad1;
	u64 pad2[3];
};
SL_STATIC_ASSERT(sizeof(struct sl_limit) == 128, "two cache lines");

/*
 * The override index: of every row that overrides apply to, which one holds for a source. A
 * hash of prefixes as that of the IPv6 prefix index, markers and all, for both families; the
 * row is part of what is hashed. An entry has in itself what the step needs, so that one
 * cache miss both finds and parameterises.
 */
#define SL_OVERRIDE_WAYS 2
enum sl_override_flags {
	SL_OVERRIDE_USED = 1 << 0,
	SL_OVERRIDE_NONE = 1 << 1,	/* a marker that no override covers */
	SL_OVERRIDE_SKIP = 1 << 2,	/* this row does not count the source */
	SL_OVERRIDE_SPILLED = 1 << 3,	/* way 0: some key of this bucket is in its second one */
};

struct sl_override {
	u64 tag;
	u64 mult, tau;		/* as in struct sl_params */
	u64 rest;		/* capacity: 46 bits, shift: 6, own: 8, flags: 4 */
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
 * The length of an override that is longer than what the row groups by: its source has a bucket
 * of its own. 0 where the row's own grouping holds.
 */
static __always_inline u32 sl_override_own(u64 rest)
{
	return rest >> 4 & 255;
}

/* Where the override of `row` for a prefix lives; addr is masked. */
static __always_inline struct sl_pfx_hash sl_override_hash(struct sl_addr addr, u32 len,
							   u32 family, u32 row,
							   struct sl_seed seed, u32 buckets)
{
	seed.k0 += (row + 1) * 0x9e3779b97f4a7c15ULL;
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
#define SL_DIMS_P(d) (1U << (16 + (d)))	/* prefixes that limits match on, or lists */
#define SL_DIMS_LOCAL (1U << 24)	/* failsafe ports are set */
#define SL_DIMS_SESSIONS (1U << 25)	/* failsafe sessions are known */
#define SL_DIMS_BANS (1U << 26)		/* some limit bans, or did */
#define SL_DIMS_L4 (1U << 27)		/* some limit asks for what later fragments do not have */
#define SL_DIMS_MATCH 0x00ffffffU	/* any that a limit's match can use */

#define SL_NO_LIMIT SL_NO_ROW

/* Prefix maps there are: of the rules in force, of those to fall back to, of the next ones. */
#define SL_PFX_SLOTS 3

/* ---- what is between the order's other steps: sessions, bans, fragments, elastic */

/*
 * Step 2: a login session's TCP connection. Open addressing in a table of twice as many: from
 * sl_session_at() on, around the end, up to SL_SESSION_PROBES of them; `used` 0 ends.
 */
#define SL_SESSIONS_MAX 64
#define SL_SESSION_TABLE 128
#define SL_SESSION_PROBES 32
struct sl_session {
	struct sl_addr src, dst;	/* remote and local address */
	u16 sport;			/* the remote port */
	u16 dport;
	u32 used;			/* 1 + enum sl_family; 0: nothing is here */
};

static __always_inline u32 sl_session_at(struct sl_addr src, u16 sport)
{
	u64 mixed = (src.hi ^ src.lo ^ sport) * 0x9e3779b97f4a7c15ULL;

	return mixed >> 57;
}

/*
 * Step 6. A limit's ban: after more than the trigger row's capacity of drops in its (sliding)
 * window a source, grouped as by the row that refused, is banned for dur_ns[level]. The level
 * is one up from the last ban's, less one for each length of that ban since its end.
 */
#define SL_BAN_LEVELS 16
#define SL_BAN_LENGTHS 4		/* distinct prefix lengths, per family */
struct sl_ban {
	u64 dur_ns[SL_BAN_LEVELS];	/* the last `levels` - 1 is the longest */
	u32 levels;
	u16 trigger;			/* the row that counts drops */
	u16 spoofable;			/* 0: of fragments, those only that proved their flags count */
};

/* The hash `bans`. */
struct sl_ban_key {
	struct sl_addr addr;		/* masked */
	u32 family;
	u32 len;
};

struct sl_ban_state {
	u64 since_ns, until_ns;		/* CLOCK_MONOTONIC */
	u32 level;			/* of this ban: 0 the first */
	u32 slot;			/* of the limit that banned */
	u64 drops;			/* packets that the ban dropped, all CPUs, not exact */
};
SL_STATIC_ASSERT(sizeof(struct sl_ban_state) == 32, "pinned layout");
#define SL_BANS_MAX 65536

/* Which bans there may be: a bit each, set by sl_ban_bit(). Most packets look no further. */
#define SL_BAN_FILTER_WORDS 2048
struct sl_ban_filter {
	u64 w[SL_BAN_FILTER_WORDS];
};

static __always_inline u32 sl_ban_bit(struct sl_addr masked, u32 len)
{
	u64 mixed = (masked.hi ^ sl_rotl(masked.lo, 29) ^ len) * 0x9e3779b97f4a7c15ULL;

	mixed ^= mixed >> 32;
	return (mixed * 0xd6e8feb86659fd93ULL) >> 47;
}
SL_STATIC_ASSERT(SL_BAN_FILTER_WORDS * 64 == 1 << (64 - 47), "a bit for each value");

#include "push.h"

/* The LRU hash `fragments`: what the first fragment of a datagram said. */
struct sl_frag_key {
	struct sl_addr src, dst;
	u32 id;
	u8 proto;			/* 0 in IPv6, where only the first fragment's counts */
	u8 family;
	u16 pad;
};
SL_STATIC_ASSERT(sizeof(struct sl_frag_key) == 40, "no holes");

#define SL_FRAG_NS (30 * SL_NS_PER_SEC)	/* how long a receiver waits for the rest */
struct sl_frag_state {
	u64 until_ns;
	u16 sport, dport;
	u8 tcp_flags, icmp_type, icmp_code;
	u8 proto;
	u8 l4;				/* 1: it had the transport header */
	u8 dropped;
	u8 unsure;			/* 1: two firsts of one id said different things */
	u8 pad[5];
};
SL_STATIC_ASSERT(sizeof(struct sl_frag_state) == 24, "no holes");
#define SL_FRAGS_MAX 16384

/*
 * `elastic`, by slot of the head row: what a limit is multiplied by, and until when; then it
 * is 1 again. scale is 16.16, 1.0 and up; inverse = 2^32 / scale. The two are one word, so
 * that they are always of one reading.
 */
#define SL_ELASTIC_ONE 65536U
struct sl_elastic {
	u32 scale, inverse;
	u64 valid_until_ns;		/* CLOCK_MONOTONIC */
};

/*
 * `shadow_seen`, by slot of the head row: a bit for each source that a shadow limit would have
 * refused, by its key. Linear counting (Whang, Vander-Zanden and Taylor, 1990) estimates how
 * many there were: -m ln(share of zeros), 1% at a third of m sources.
 */
#define SL_SEEN_WORDS 256
struct sl_seen {
	u64 w[SL_SEEN_WORDS];
};

static __always_inline u32 sl_seen_bit(u64 key)
{
	return key & (SL_SEEN_WORDS * 64 - 1);	/* of its hash */
}

/* A rule set: all that a packet is judged by, swapped by one pointer. */
struct sl_rules {
	u64 generation;
	u64 revert_at_ns;	/* CLOCK_MONOTONIC: from then on the fallback rules; 0 never */
	u32 dims;
	u32 pfx_slot;		/* which prefix maps are this rule set's: 0..SL_PFX_SLOTS-1 */
	u32 pfx_buckets;
	u32 limits_count;
	u8 on_parse_error;	/* SL_ACT_PASS or SL_ACT_DROP */
	u8 fragments;		/* enum sl_fragments */
	u8 pad[6];
	struct sl_seed seed;

	struct sl_bitmap all;			/* limits that are not off */
	struct sl_bitmap dropping;		/* of those, enforced with action drop */
	struct sl_lengths lengths[SL_PDIM_COUNT];
	struct sl_bitmap none16[SL_DIM16_COUNT];	/* for a packet without that field */
	struct sl_bitmap none8[SL_DIM8_COUNT];
	struct sl_bitmap dim8[SL_DIM8_COUNT][256];
	struct sl_bitmap class16[SL_CLASS16_MAX];
	u16 dim16[SL_DIM16_COUNT][65536];	/* value -> index into class16 */
	u8 failsafe_tcp[8192];			/* a bit per port */
	u8 failsafe_udp[8192];
	u16 limit_of_slot[SL_SLOTS];		/* index into limits, or SL_NO_LIMIT */
	struct sl_session session[SL_SESSION_TABLE];
	u8 ban_len[SL_FAMILY_COUNT][SL_BAN_LENGTHS];	/* lengths of bans, SL_PREFIX_NONE ends */
	struct sl_ban ban[SL_LIMITS_MAX];
	struct sl_lengths override_lengths[SL_LIMITS_MAX][SL_FAMILY_COUNT];
	u32 override_buckets;
	u32 pad1;
	struct sl_limit limits[SL_ROWS_MAX];
};
SL_STATIC_ASSERT(sizeof(struct sl_rules) < (1 << 20), "one kmalloc-free map value");

/* ------------------------------------------------------------------ a bucket's key */

/* All ones where `bit` (a power of two) is in `bits`, else 0. */
static __always_inline u32 sl_mask_of(u32 bits, u32 bit)
{
	return -((bits / bit) & 1);
}

/*
 * The key of the bucket that a packet is charged to by `limit`. Only what the limit counts
 * `per` goes in; sources and destinations left-aligned as above, numbers in host order. The
 * last word names the family and what was put in, so no two shapes of key can be confused.
 * own: sources are grouped by so many bits instead of the limit's; 0 by the limit's.
 */
static __always_inline u64 sl_bucket_key_own(const struct sl_rules *rules,
					     const struct sl_limit *limit, u32 own,
					     struct sl_addr src, struct sl_addr dst, u32 family,
					     u32 proto, u32 dport, u32 vlan, u32 iface)
{
	u32 per = limit->per;
	u64 last = per | (own & 3) << 6 | (own & 0xfc) << 8;
	struct sl_sip sip;

	sl_sip_start(&sip, rules->seed);
	if (per & SL_PER_SOURCE) {
		u32 len = own ? own : limit->prefix[family & 1];

		src = sl_addr_mask(src, family == SL_V4 && len > 32 ? 32 : len);
		sl_sip_add(&sip, src.hi);
		if (src.lo) {
			sl_sip_add(&sip, src.lo);
			last |= 1 << 9;
		}
	}
	if (per & (SL_PER_SOURCE | SL_PER_DST))
		last |= (u64)family << 8;
	/* Without branches: to the verifier each would double the paths after it. */
	last |= (u64)(proto & sl_mask_of(per, SL_PER_PROTO)) << 16;
	last |= (u64)(dport & sl_mask_of(per, SL_PER_DPORT)) << 24;
	last |= (u64)(vlan & sl_mask_of(per, SL_PER_VLAN)) << 40;
	last |= (u64)(iface & sl_mask_of(per, SL_PER_IFACE)) << 56;
	if (per & SL_PER_DST) {
		sl_sip_add(&sip, dst.hi);
		sl_sip_add(&sip, dst.lo);
	}
	sl_sip_add(&sip, last);
	return sl_key(limit->slot, sl_sip_finish(&sip));
}

/*
 * The key of the word that counts a limit's drops of one source, for its bans: the source cut
 * to `len` as the row that refused has it. The length is in it: a /48 and the /64 of the same
 * address are two sources, each with drops of its own.
 */
static __always_inline u64 sl_ban_trigger_key(const struct sl_rules *rules,
					      const struct sl_limit *trigger,
					      struct sl_addr masked, u32 family, u32 len)
{
	struct sl_sip sip;

	sl_sip_start(&sip, rules->seed);
	sl_sip_add(&sip, masked.hi);
	sl_sip_add(&sip, masked.lo);
	sl_sip_add(&sip, 1ULL << 32 | family << 8 | len);
	return sl_key(trigger->slot, sl_sip_finish(&sip));
}

static __always_inline u64 sl_bucket_key(const struct sl_rules *rules,
					 const struct sl_limit *limit, struct sl_addr src,
					 struct sl_addr dst, u32 family, u32 proto, u32 dport,
					 u32 vlan, u32 iface)
{
	return sl_bucket_key_own(rules, limit, 0, src, dst, family, proto, dport, vlan, iface);
}

/* A VLAN id where there is no tag. */
#define SL_VLAN_NONE 0xffffU

/* ------------------------------------------------------------------ the mark's way to skb->mark */

/* XDP metadata before the frame; bpf/mark.bpf.c turns it into skb->mark. */
struct sl_meta {
	u32 magic;
	u32 mark;
};
#define SL_META_MAGIC 0x736c7563U

/* ------------------------------------------------------------------ the program's own constants */

/* Read-only data of the program, set per interface before it is loaded. */
struct sl_config {
	u32 iface_slot;
	u32 fake_clock;		/* tests: take the time from the map test_clock */
	u32 table_sets;
	u32 parity;		/* 0 or 1: which of its slot's two places in `stages` */
};

/*
 * `stages`: the programs that an instance jumps to by itself. An interface slot has two places
 * for each, and an instance is put into those that the running one does not use: the packet
 * in hand is in memory of the instance's own, so one must never run into the other's.
 */
enum sl_stage {
	SL_STAGE_ACCOUNT,	/* the second half of a packet's way */
	SL_STAGE_AGAIN,		/* the first: the rules were swapped between the halves */
	SL_STAGE_COUNT,
};
#define SL_STAGES_MAX (SL_STAGE_COUNT * 2 * SL_IFACES_MAX)

static __always_inline u32 sl_stage_at(u32 stage, u32 iface_slot, u32 parity)
{
	return (stage * 2 + parity) * SL_IFACES_MAX + iface_slot;
}

/* test_clock: what sl_config.fake_clock makes the program read. */
struct sl_test_clock {
	u64 mono_ns;
};

#endif
