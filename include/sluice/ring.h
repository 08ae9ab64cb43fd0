/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * ring.h - the ring buffer `events`: what happened to whom, for people. A sample of the dropped
 * packets, and the state changes that the program makes by itself. Nothing here is needed for a
 * verdict: an event may be missing, and is then counted.
 *
 * A dropped packet is an event where it is a sample of heavy.h, and each CPU sends at most
 * `per_turn` events of a kind in a turn of 2^27 ns. What is above that is counted as limited;
 * what meets a full ring (no daemon reads it) as lost.
 */
#ifndef SLUICE_RING_H
#define SLUICE_RING_H

#include "sizes.h"
#include "types.h"

#define SL_RING_BYTES (1 << 20)
#define SL_RING_FRAME 128    /* bytes of a frame that an event has */
#define SL_RING_TURN_BITS 27 /* 134 ms */

enum sl_event_kind {
	SL_EVENT_DROP, /* a packet was dropped */
	SL_EVENT_OVER, /* a limit refused a source, the first time since its bucket was unused */
	SL_EVENT_BAN,  /* a ban began */
	SL_EVENT_KINDS,
};

struct sl_event {
	struct sl_addr source, dst;
	u64 mono_ns;
	u64 bucket_key; /* over: of the bucket that refused */
	u32 length;	/* of the frame */
	u32 weight;	/* drop: of as many packets, on average; else 1 */
	u16 limit_id;	/* 0: no limit */
	u16 sport, dport;
	u16 captured; /* bytes of `frame` */
	u8 kind;      /* enum sl_event_kind */
	u8 family;    /* enum sl_family */
	u8 proto;     /* 0: unknown */
	u8 reason;    /* enum sl_reason */
	u8 action;    /* enum sl_action */
	u8 iface_slot;
	u8 len;	 /* ban: the prefix length of `source`; else 0 */
	u8 link; /* enum sl_link */
	u8 frame[SL_RING_FRAME];
};
SL_STATIC_ASSERT(sizeof(struct sl_event) == 72 + SL_RING_FRAME, "pinned layout");

/* The value of `event_switch`: one, written by the daemon. */
struct sl_event_switch {
	u32 per_turn; /* events of a kind, a CPU and a turn; 0: off */
	u32 pad;
};

/* The value of `event_stats`, per CPU. */
struct sl_event_stats {
	u64 turn[SL_EVENT_KINDS]; /* the current turn, and how many were sent in it */
	u64 used[SL_EVENT_KINDS];
	u64 sent[SL_EVENT_KINDS];
	u64 limited[SL_EVENT_KINDS];
	u64 lost[SL_EVENT_KINDS];
};

/* 1: one more event of a kind fits into this turn; the others are counted. */
static __always_inline int sl_event_fits(struct sl_event_stats *stats, enum sl_event_kind kind,
					 u64 mono_ns, u32 per_turn)
{
	u64 turn = mono_ns >> SL_RING_TURN_BITS;

	if (stats->turn[kind] != turn) {
		stats->turn[kind] = turn;
		stats->used[kind] = 0;
	}
	if (stats->used[kind] >= per_turn) {
		stats->limited[kind]++;
		return 0;
	}
	stats->used[kind]++;
	return 1;
}

#endif
