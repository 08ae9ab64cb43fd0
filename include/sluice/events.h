/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * events.h - what is between the order's other steps and outlives a rule set: sessions, bans,
 * fragments, elastic scales, whom shadow limits saw.
 */
#ifndef SLUICE_EVENTS_H
#define SLUICE_EVENTS_H

#include "key.h"
#include "sizes.h"
#include "types.h"

/*
 * Step 2: a login session's TCP connection. Open addressing in a table of twice as many: from
 * sl_session_at() on, around the end, up to SL_SESSION_PROBES of them; `used` 0 ends.
 */
#define SL_SESSIONS_MAX 64
#define SL_SESSION_TABLE 128
#define SL_SESSION_PROBES 32
struct sl_session {
	struct sl_addr src, dst; /* remote and local address */
	u16 sport;		 /* the remote port */
	u16 dport;
	u32 used; /* 1 + enum sl_family; 0: nothing is here */
};

/* A bit of this many for each source with a session: other sources are not looked for. */
#define SL_SESSION_SOURCES 1024

static __always_inline u32 sl_session_source(struct sl_addr src)
{
	return ((src.hi ^ src.lo) * 0x9e3779b97f4a7c15ULL) >> 54;
}

static __always_inline u32 sl_session_at(struct sl_addr src, u16 sport)
{
	u64 mixed = (src.hi ^ src.lo ^ sport) * 0x9e3779b97f4a7c15ULL;

	return mixed >> 57;
}

/*
 * Step 6. A limit's ban: after more than the trigger meter's capacity of drops in its (sliding)
 * window a source, grouped as by the meter that refused, is banned for dur_ns[level]. The level
 * is one up from the last ban's, less one for each length of that ban since its end.
 */
#define SL_BAN_LEVELS 16
#define SL_BAN_LENGTHS 4 /* distinct prefix lengths, per family */
struct sl_ban {
	u64 dur_ns[SL_BAN_LEVELS]; /* the last `levels` - 1 is the longest */
	u32 levels;
	u16 trigger;   /* the meter that counts drops */
	u16 spoofable; /* 0: only segments of this host's connections count */
};

/* The hash `bans`. */
struct sl_ban_key {
	struct sl_addr addr; /* masked */
	u32 family;
	u32 len;
};

struct sl_ban_state {
	u64 since_ns, until_ns; /* CLOCK_MONOTONIC */
	u32 level;		/* of this ban: 0 the first */
	u32 slot;		/* of the limit that banned */
	u64 drops;		/* packets that the ban dropped, all CPUs, not exact */
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

/*
 * The array `fragments`: the headers of first fragments, in sets of SL_FRAG_WAYS by a seeded hash
 * of the key. The key is what receivers put fragments together by.
 */
struct sl_frag_key {
	struct sl_addr src, dst;
	u32 id;
	u8 proto; /* IPv6: 0, where only the first fragment's counts */
	u8 family;
	u16 pad;
};
SL_STATIC_ASSERT(sizeof(struct sl_frag_key) == 40, "no holes");

/* IPv6, as `proto` with id 0: a packet that may have been a first of any id. */
#define SL_FRAG_ANY_ID 255

/*
 * How long a first is remembered after the last fragment that passed under it: as long as Linux
 * may wait for the rest (30 s and 60 s, its timers fire up to an eighth later), and two steps:
 * by one step the time is renewed at most, and one is for a CPU that still reads an entry.
 */
#define SL_FRAG_STEP_NS SL_NS_PER_SEC
#define SL_FRAG_V4_NS (30 * SL_NS_PER_SEC * 9 / 8 + 2 * SL_FRAG_STEP_NS)
#define SL_FRAG_V6_NS (60 * SL_NS_PER_SEC * 9 / 8 + 2 * SL_FRAG_STEP_NS)

enum sl_frag_flags {
	SL_FRAG_UNSURE = 1 << 0,      /* it does not decide for the rest of its datagram */
	SL_FRAG_USED = 1 << 1,	      /* later fragments were judged by it */
	SL_FRAG_DROPPED = 1 << 2,     /* it was dropped */
	SL_FRAG_UNDELIVERED = 1 << 3, /* every one of this id was: no receiver has any */
};

/* While an entry lives, only its time and flags change. */
struct sl_frag_first {
	struct sl_frag_key key;
	u64 until_ns;	 /* monotonic */
	u64 link, vlans; /* how it arrived: fragment_link() */
	u16 sport, dport;
	u8 tcp_flags, icmp_type, icmp_code;
	u8 proto;
	u8 l4; /* 1: it had the transport header */
	u8 pad[3];
	u32 flags; /* enum sl_frag_flags, or-ed */
};
SL_STATIC_ASSERT(sizeof(struct sl_frag_first) == 80, "no holes");

#define SL_FRAG_WAYS 8
#define SL_FRAG_SETS 2048
#define SL_FRAGS_MAX (SL_FRAG_WAYS * SL_FRAG_SETS)
struct sl_frag_set {
#ifdef __bpf__
	struct bpf_spin_lock lock; /* of <linux/bpf.h>, which a program includes first */
#else
	u32 lock;
#endif
	u32 pad;
	u64 closed_until_ns; /* a first found no room: until then new ones are unsure */
	struct sl_frag_first way[SL_FRAG_WAYS];
};
SL_STATIC_ASSERT(sizeof(struct sl_frag_set) == 16 + SL_FRAG_WAYS * 80, "no holes");

static __always_inline u32 sl_frag_set_at(const struct sl_frag_key *key, struct sl_seed seed)
{
	struct sl_sip sip;

	sl_sip_start(&sip, seed);
	sl_sip_add(&sip, key->src.hi);
	sl_sip_add(&sip, key->src.lo);
	sl_sip_add(&sip, key->dst.hi);
	sl_sip_add(&sip, key->dst.lo);
	sl_sip_add(&sip, (u64)key->family << 40 | (u64)key->proto << 32 | key->id);
	return sl_sip_finish(&sip) % SL_FRAG_SETS;
}

/*
 * `elastic`, by slot of the head meter: what a limit is multiplied by, and until when; then it
 * is 1 again. scale is 16.16, SL_SCALE_MIN..SL_SCALE_MAX, 0: none; inverse = 2^32 / scale. Both
 * are in 64 bits, so that they are always of one reading.
 */
#define SL_ELASTIC_ONE 65536U
struct sl_elastic {
	u32 scale, inverse;
	u64 valid_until_ns; /* CLOCK_MONOTONIC */
};

/*
 * `shadow_seen`, by slot of the head meter: a bit for each source that a shadow limit would have
 * refused, by its key. Linear counting (Whang, Vander-Zanden and Taylor, 1990) estimates how
 * many there were: -m ln(share of zeros), 1% at a third of m sources.
 */
#define SL_SEEN_WORDS 256
struct sl_seen {
	u64 w[SL_SEEN_WORDS];
};

static __always_inline u32 sl_seen_bit(u64 key)
{
	return key & (SL_SEEN_WORDS * 64 - 1); /* of its hash */
}

#endif
