/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * rules.h - a rule set: all that a packet is judged by; and the key of the bucket it is charged to.
 */
#ifndef SLUICE_RULES_H
#define SLUICE_RULES_H

#include "events.h"
#include "key.h"
#include "limit.h"
#include "prefix.h"
#include "sizes.h"

/* Which fields of a packet are not known. */
enum sl_hidden {
	SL_HIDDEN_L4,	 /* ports, TCP flags, ICMP type */
	SL_HIDDEN_PROTO, /* the protocol, too */
	SL_HIDDEN_COUNT,
};

/* A rule set: all that a packet is judged by, swapped by one pointer. */
struct sl_rules {
	u64 generation;
	u64 revert_at_ns; /* CLOCK_MONOTONIC: from then on the fallback rules; 0 never */
	u32 dims;
	u32 pfx_slot; /* which prefix maps are this rule set's: 0..SL_PFX_SLOTS-1 */
	u32 pfx_buckets;
	u32 limits_count;
	u8 on_parse_error;	      /* SL_ACT_PASS or SL_ACT_DROP */
	u8 fragments;		      /* enum sl_fragments */
	u8 by_match;		      /* 1: some limit has no rate */
	u8 gateways[SL_FAMILY_COUNT]; /* how many there are below */
	u8 pad[3];
	struct sl_seed seed;

	struct sl_bitmap all;	   /* limits that are not off */
	struct sl_bitmap dropping; /* of those, enforced with action drop */
	struct sl_bitmap refusing; /* enforced drops without a rate: not in `dropping` */
	struct sl_bitmap passing;  /* enforced passes */
	/*
	 * Limits without a rate that name a hidden field: a packet that hides it meets none of the
	 * passes, and a later fragment none of the drops that its first fragment must have met.
	 */
	struct sl_bitmap unproven[SL_HIDDEN_COUNT];
	struct sl_lengths lengths[SL_PDIM_COUNT];
	struct sl_bitmap none16[SL_DIM16_COUNT]; /* for a packet without that field */
	struct sl_bitmap none8[SL_DIM8_COUNT];
	struct sl_bitmap dim8[SL_DIM8_COUNT][256];
	struct sl_bitmap class16[SL_CLASS16_MAX];
	u16 dim16[SL_DIM16_COUNT][65536]; /* value -> index into class16 */
	u8 failsafe_tcp[8192];		  /* a bit per port */
	u8 failsafe_udp[8192];
	u16 limit_of_id[SL_LIMIT_IDS]; /* index into limits, or SL_NO_LIMIT */
	struct sl_session session[SL_SESSION_TABLE];
	u64 session_source[SL_SESSION_SOURCES / 64]; /* bits of sl_session_source() */
	u8 ban_len[SL_FAMILY_COUNT][SL_BAN_LENGTHS]; /* lengths of bans, SL_PREFIX_NONE ends */
	struct sl_ban ban[SL_LIMITS_MAX];
	struct sl_lengths override_lengths[SL_LIMITS_MAX][SL_FAMILY_COUNT];
	struct sl_addr gateway[SL_FAMILY_COUNT][SL_GATEWAYS_MAX];
	u32 override_buckets;
	u32 lease_cpus; /* CPUs 0 to that may have leases; 0: none */
	struct sl_limit limits[SL_METERS_MAX];
};
SL_STATIC_ASSERT(sizeof(struct sl_rules) < (1 << 20), "one kmalloc-free map value");

/* ------------------------------------------------------------------ a bucket's key */

/* All ones where `bit` (a power of two) is in `bits`, else 0. */
static __always_inline u32 sl_mask_of(u32 bits, u32 bit)
{
	return -((bits / bit) & 1);
}

/* A VLAN id where there is no tag. */
#define SL_VLAN_NONE 0xffffU

/*
 * The key of the bucket that a packet is charged to by `limit`. Only what the limit counts
 * `per` goes in; sources and destinations left-aligned as above, numbers in host order. The
 * last 8 bytes have the family and which parts are in it, so no two shapes of key can be confused.
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
		/* 0, as in an older program's rules, is 128 */
		dst = sl_addr_mask(dst, ((limit->dst_prefix[family & 1] - 1) & 127) + 1);
		sl_sip_add(&sip, dst.hi);
		sl_sip_add(&sip, dst.lo);
	}
	sl_sip_add(&sip, last);
	return sl_key(limit->slot, sl_sip_finish(&sip));
}

/*
 * The key of the bucket that counts a limit's drops of one source, for its bans: the source cut
 * to `len` of the meter that refused. The length is in it: a /48 and the /64 of the same
 * address are two sources, each with drops of its own.
 */
static __always_inline u64 sl_ban_trigger_key(const struct sl_rules *rules,
					      const struct sl_limit *trigger, struct sl_addr masked,
					      u32 family, u32 len)
{
	struct sl_sip sip;

	sl_sip_start(&sip, rules->seed);
	sl_sip_add(&sip, masked.hi);
	sl_sip_add(&sip, masked.lo);
	sl_sip_add(&sip, 1ULL << 32 | family << 8 | len);
	return sl_key(trigger->slot, sl_sip_finish(&sip));
}

static __always_inline u64 sl_bucket_key(const struct sl_rules *rules, const struct sl_limit *limit,
					 struct sl_addr src, struct sl_addr dst, u32 family,
					 u32 proto, u32 dport, u32 vlan, u32 iface)
{
	return sl_bucket_key_own(rules, limit, 0, src, dst, family, proto, dport, vlan, iface);
}

#endif
