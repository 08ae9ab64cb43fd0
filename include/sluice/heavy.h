/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * heavy.h - the heaviest sources, in bounded memory: per CPU and verdict, sets of eight entries.
 *
 * Space-Saving (Metwally, Agrawal, El Abbadi, 2005) within a set, over a sample of the packets: a
 * source without an entry replaces the one with the smallest weight, and inherits that weight as
 * what it may have had before (`missed`). So of a source with an entry
 *
 *     packets <= true count <= packets + missed        (of the sampled packets),
 *
 * `missed` is at most a set's packets / 8, and a source that sends more than an eighth of a set's
 * packets has an entry, whatever the others send. Over all entries packets + missed is what was
 * sampled, to the packet; of sources that replace each other the entries are those that came last.
 * So a prefix's entries estimate what it sent: a tenth of the flood has about a tenth of them.
 *
 * Counts are of a window of 2^32 ns and of the one before. Of a CPU's packets in a window the
 * first SL_HEAVY_EXACT are all counted, of the next as many every second one, and so on up to one
 * of SL_HEAVY_EVERY; the distance to the next is drawn at random, and a sample counts for as many
 * packets as the distance is on average.
 */
#ifndef SLUICE_HEAVY_H
#define SLUICE_HEAVY_H

#include "types.h"

#define SL_HEAVY_WAYS 8
#define SL_HEAVY_SETS_BITS 8
#define SL_HEAVY_SETS (1 << SL_HEAVY_SETS_BITS) /* of a verdict */
#define SL_HEAVY_EXACT 4096
#define SL_HEAVY_EVERY 64
#define SL_HEAVY_WINDOW_BITS 32
#define SL_HEAVY_WINDOW_NS SL_BIT(SL_HEAVY_WINDOW_BITS)
/* IPv6 sources are counted by /64: a host has as many addresses as it wants there. */
#define SL_HEAVY_V6_LEN 64

enum sl_heavy_list {
	SL_HEAVY_DROPPED,
	SL_HEAVY_PASSED, /* with or without a tag */
	SL_HEAVY_LISTS,
};

struct sl_heavy_count {
	u64 bytes;
	u32 packets; /* since the source has its entry */
	u32 missed;  /* at most so many before, in this window */
	u32 opened;  /* of `packets`: TCP SYNs without ACK */
	u32 pad;
};

struct sl_heavy {
	struct sl_addr source;
	struct sl_heavy_count now, before; /* of `window`, and of the one before it */
	u32 window;			   /* sl_heavy_window(); 0: the entry is empty */
	u16 limit_id;			   /* that decided last; 0: none did */
	u8 family_iface; /* bit 7: IPv6; below: the interface slot of the last packet */
	u8 reason;	 /* enum sl_reason, of the last packet */
};
SL_STATIC_ASSERT(sizeof(struct sl_heavy) == 72, "pinned layout");

/* Per CPU; SL_HEAVY_SETS of them for each list. */
struct sl_heavy_set {
	struct sl_heavy way[SL_HEAVY_WAYS];
};

/* When the next packet of a list is counted: per CPU. */
struct sl_heavy_sampling {
	u32 left;   /* packets to skip */
	u32 weight; /* of the next sample */
	u32 window;
	u32 samples; /* in `window` */
};

static __always_inline u32 sl_heavy_window(u64 mono_ns)
{
	return (u32)(mono_ns >> SL_HEAVY_WINDOW_BITS) + 1;
}

/* The packets of an entry in this window and the last, at most; saturating. */
static __always_inline u64 sl_heavy_rank(const struct sl_heavy *way, u32 window)
{
	u64 now = (u64)way->now.packets + way->now.missed;

	if (way->window == window)
		return now + way->before.packets + way->before.missed;
	return way->window && way->window + 1 == window ? now : 0;
}

/* Moves an entry's counts to `window`. */
static __always_inline void sl_heavy_turn(struct sl_heavy *way, u32 window)
{
	struct sl_heavy_count none = { 0 };

	if (way->window == window)
		return;
	way->before = way->window + 1 == window ? way->now : none;
	way->now = none;
	way->window = window;
}

/* For the source that takes an entry over: all that the one before it had is `missed`, window by
 * window. */
static __always_inline void sl_heavy_inherit(struct sl_heavy_count *count)
{
	count->missed += count->packets;
	count->packets = 0;
	count->bytes = 0;
	count->opened = 0;
}

/* Draws the next distance; `random` is uniform in 32 bits. */
static __always_inline void sl_heavy_next(struct sl_heavy_sampling *s, u32 window, u32 random)
{
	u32 doublings;

	if (s->window != window) {
		s->window = window;
		s->samples = 0;
	}
	s->samples++;
	doublings = s->samples / SL_HEAVY_EXACT;
	s->weight = doublings >= 6 ? SL_HEAVY_EVERY : 1U << doublings;
	/* Uniform in 1..2 * weight - 1, of which `weight` is the mean; less the one that is
	 * counted. */
	s->left = (u64)random * (2 * s->weight - 1) >> 32;
}
SL_STATIC_ASSERT(SL_HEAVY_EVERY == 1 << 6, "as in sl_heavy_next()");

#endif
