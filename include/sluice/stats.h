/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * stats.h - counters of packets: actions, reasons, verdicts, errors. All
 * counters are u64 and per CPU; readers sum them.
 */
#ifndef SLUICE_STATS_H
#define SLUICE_STATS_H

#include "types.h"

enum sl_action {
	SL_ACT_PASS,
	SL_ACT_DROP,
	SL_ACT_TAG,
	SL_ACT_COUNT,
};

/*
 * Why. Each packet is counted once under one reason and one action. The names in
 * user/packet/dataplane/names.c are the metric's label `reason`.
 */
enum sl_reason {
	SL_R_NO_MATCH,	      /* no limit matched */
	SL_R_WITHIN,	      /* within every limit that matched */
	SL_R_OVER,	      /* over a limit */
	SL_R_SOFT,	      /* over a limit, within its soft throttle: pass */
	SL_R_ARP,	      /* order 1 */
	SL_R_ND,	      /* order 1: neighbor discovery, hop limit 255 */
	SL_R_ESSENTIAL_OVER,  /* order 1: over `essential` */
	SL_R_SESSION,	      /* order 2 */
	SL_R_EXEMPT,	      /* order 3 */
	SL_R_FAILSAFE,	      /* order 4 */
	SL_R_FAILSAFE_OVER,   /* order 4: a new connection over failsafe_rate */
	SL_R_BLOCK,	      /* order 5 */
	SL_R_BAN,	      /* order 6 */
	SL_R_TABLE_FULL,      /* offenders took all room in both sets: on_full decided */
	SL_R_CONTENDED,	      /* eight compare-and-swaps lost: as over */
	SL_R_TOO_MANY_LIMITS, /* more than SL_MATCHES_MAX matched: the rest were not charged */
	SL_R_NOT_IP,	      /* an EtherType that is neither IP nor ARP */
	SL_R_VLAN_DEPTH,      /* more than four tags: drop */
	SL_R_TRUNCATED,	      /* unread: shorter than its headers state */
	SL_R_MALFORMED,	      /* unread: a header that contradicts itself */
	SL_R_EXTHDR,	      /* unread: IPv6 extension headers that are not read on */
	SL_R_FRAGMENT,	      /* `fragments: pass` or `drop` decided; drop: or as its first */
	SL_R_NO_RULES,	      /* no rule set, or not all of the program, is loaded: pass */
	SL_R_PUSH_LIMIT,      /* order 6: push-downs, as enum sl_push_kind has them */
	SL_R_PUSH_TAG,
	SL_R_PUSH_NO_NEW,
	SL_R_PUSH_DROP,
	SL_R_PATH_MTU, /* order 7: a path-MTU message, within its limits */
	SL_R_PATH_MTU_OVER,
	SL_R_MATCH, /* order 7: a limit without a rate dropped, passed or tagged it */
	SL_R_COUNT,
};

/* The verdict of one limit on a packet. */
enum sl_limit_verdict {
	SL_LV_PASS,
	SL_LV_DROP,
	SL_LV_TAG,
	SL_LV_SHADOW, /* would have been dropped or tagged */
	SL_LV_SOFT,   /* between the limit and its soft ceiling */
	SL_LV_COUNT,
};

/* Room for more, so that a later version can go on with the pinned counters. */
#define SL_REASONS_ROOM 32
SL_STATIC_ASSERT(SL_R_COUNT <= SL_REASONS_ROOM, "room for each");

/* Values of iface_stats (per CPU, one per interface slot). */
struct sl_iface_stats {
	u64 packets[SL_REASONS_ROOM][SL_ACT_COUNT];
	u64 bytes[SL_ACT_COUNT];
};
SL_STATIC_ASSERT(sizeof(struct sl_iface_stats) == 792, "pinned layout");

/* Values of limit_stats (per CPU, one per limit slot). */
struct sl_limit_stats {
	u64 packets[SL_LV_COUNT];
	u64 bytes[SL_LV_COUNT];
	u64 full;	   /* packets that met a full table */
	u64 evicted;	   /* live buckets, never refused, that made room for others */
	u64 evicted_units; /* units those buckets had used */
	u64 refund_lost;   /* refunds that came too late */
	u64 recorded;	   /* offenders that made room and left a fingerprint */
};
SL_STATIC_ASSERT(sizeof(struct sl_limit_stats) == 120, "pinned layout");

/* Map operations that can fail; sluice_map_errors_total{map,op}, names in names.c. */
enum sl_map_error {
	SL_ME_PREFIX_LOOKUP,
	SL_ME_CLASS_LOOKUP,
	SL_ME_OVERRIDE_LOOKUP,
	SL_ME_ELASTIC_LOOKUP,
	SL_ME_TABLE_LOOKUP,
	SL_ME_LEASE_UPDATE,
	SL_ME_STATS_LOOKUP,
	SL_ME_STATE_LOOKUP,
	SL_ME_META_ADJUST, /* bpf_xdp_adjust_meta: no room for the mark */
	SL_ME_TAG_STORE,   /* DSCP could not be written */
	SL_ME_STAGE_JUMP,  /* the program's other half is not there: the packet passed */
	SL_ME_BAN_UPDATE,  /* bans: full, mostly */
	SL_ME_FRAGMENT_UPDATE,
	SL_ME_COUNT,
};

/* The value of global_stats (per CPU). */
struct sl_global_stats {
	u64 errors[SL_ME_COUNT];
	u64 inserted;  /* buckets installed in the table */
	u64 contended; /* steps that gave up after eight compare-and-swaps */
	u64 leases;    /* leases taken */
};

#endif
