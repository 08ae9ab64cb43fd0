/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * dp_explain.h - what the packet tier would do with a packet now, without doing it.
 *
 * The stages of bpf/ run over the live rule set, with copies of the buckets and leases that
 * they reach (explain_copy.h) and counters of their own; nothing live is written to. So the
 * answer is the program's, not that of a model of it: step, reason, refusing limit.
 */
#ifndef SLUICE_DP_EXPLAIN_H
#define SLUICE_DP_EXPLAIN_H

#include "config/match_keys.h"
#include "packet/dataplane/dataplane.h"

enum explain_fragment {
	EXPLAIN_WHOLE,
	EXPLAIN_FIRST, /* the first fragment of several */
	EXPLAIN_LATER, /* one whose first was not seen */
};

/*
 * A packet, as far as rules can match it: a field for each match key. Numbers in host order.
 * length: as IP states it, at least explain_min_length(); vlan: SL_VLAN_NONE without a tag;
 * interface: its slot.
 */
struct explain_packet {
#define FIELD(id, name, value, type, ...) type name;
	MATCH_KEYS(FIELD)
#undef FIELD
	u8 family; /* enum sl_family */
	u8 icmp_code;
	u8 fragment; /* enum explain_fragment */
};

#define EXPLAIN_LENGTH_MAX 65535
#define EXPLAIN_FRAME_MAX (EXPLAIN_LENGTH_MAX + 18)

/* The least that such a packet's length can be. */
u32 explain_min_length(const struct explain_packet *packet);
/* Of the frame, with Ethernet header and tag; at most EXPLAIN_FRAME_MAX bytes. */
u32 explain_frame_length(const struct explain_packet *packet);
/* Of these, the bytes in front of the IP header. */
u32 explain_link_length(const struct explain_packet *packet);
/* Its bytes: `frame` has room for explain_frame_length(). */
void explain_frame(const struct explain_packet *packet, u8 *frame);

struct explain_result {
	u8 action; /* enum sl_action */
	u8 reason; /* enum sl_reason */
	u8 step;   /* of the order: 1..7; 0: before it (not IP, unreadable) */
	u8 tag;	   /* enum sl_tag_flags that would be put on */
	u8 dscp;
	u32 mark;
	u16 limit; /* the one that refuses, SL_NO_LIMIT: none does */
};

/* How a meter takes part in its limit. */
enum explain_role {
	EXPLAIN_METER_LIMIT,
	EXPLAIN_METER_SOFT,  /* used where the meter before refuses */
	EXPLAIN_METER_GRACE, /* and this with it: for how long at a stretch */
	EXPLAIN_METER_BAN,   /* charges nothing: counts drops, and when over the source is banned */
};

/* A bucket that the packet would be charged to. */
struct explain_meter {
	u16 meter;     /* index into sl_rules.limits */
	u8 role;       /* enum explain_role */
	u8 over;       /* the packet does not fit, leases apart */
	u8 overridden; /* the source has rates of its own here */
	u64 key;
	u64 cost;
	u64 used, capacity; /* units; what leases took counts as used */
	u64 leased;	    /* of these, still unspent on all CPUs together */
	u64 wait_ns;	    /* over: until it fits; ~0 never */
};

#define EXPLAIN_METERS_MAX SL_CHARGES_MAX

/* A limit whose match the packet meets. */
struct explain_limit {
	u16 index;
	u8 verdict;  /* enum sl_limit_verdict, were it the only one */
	bool counts; /* false: its unit does not count such a packet */
	u32 meter_count;
	struct explain_meter meter[EXPLAIN_METERS_MAX];
};

/* What is known of a source's bans: the one that is on, else the latest. */
struct explain_ban {
	bool known;
	bool on;
	struct sl_ban_key key;
	struct sl_ban_state state;
};

/* A push-down that holds a source, or did. */
struct explain_push {
	bool on;
	struct sl_push_key key;
	struct sl_push push;
};

struct explain;

/*
 * Over a data plane that judges by `image`; neither may change or go until explain_free().
 * Time is `now`. 0, or -ENOMEM with a message.
 */
int explain_new(struct dp *dp, const struct sl_image *image, u64 mono_ns, struct explain **ret,
		struct sl_err *err);
void explain_free(struct explain *e); /* NULL is fine */
/* What the frames of an interface slot begin with; SL_LINK_ETHERNET at first. */
void explain_set_link(struct explain *e, u32 iface_slot, enum sl_link link);

/* The verdict that a packet would get on a CPU. 0, or -errno with a message. */
int explain_run(struct explain *e, const struct explain_packet *packet, u32 cpu,
		struct explain_result *ret, struct sl_err *err);

/*
 * The limits that match, in file order, whatever step decides; at most `room` into ret.
 * Returns how many, or -errno with a message.
 */
int explain_limits(struct explain *e, const struct explain_packet *packet, u32 cpu,
		   struct explain_limit *ret, u32 room, struct sl_err *err);

/*
 * How long until the same packet passes on that CPU if nothing else comes: 0 it does now, ~0
 * never. 0, or -errno with a message.
 */
int explain_wait(struct explain *e, const struct explain_packet *packet, u32 cpu, u64 *ret_ns,
		 struct sl_err *err);

/* explain_source.c: what is known of a packet's source, no more than read from the data plane. */

/* Its bans, at any length that `rules` look for. 0, or -errno with a message. */
int explain_bans(struct dp *dp, const struct sl_rules *rules, const struct explain_packet *packet,
		 u64 mono_ns, struct explain_ban *ret, struct sl_err *err);
/* Its push-downs, SL_PUSH_LENGTHS at most. Returns how many, or -errno with a message. */
int explain_pushes(struct dp *dp, const struct explain_packet *packet, u64 mono_ns,
		   struct explain_push ret[SL_PUSH_LENGTHS], struct sl_err *err);

#endif
