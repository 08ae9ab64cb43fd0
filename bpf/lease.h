/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * lease.h - per-CPU accounting: a lease is a small batch of units that this CPU takes from the
 * bucket in the shared table at once, and spends on its own.
 *
 * Leases are in an LRU per-CPU hash. All leases of a key together hold at most 1% of its capacity
 * (sl_limit.lease), and one is only taken for a key that has used a quarter of its limit: a
 * spoofed flood makes no entry. So whatever the number of CPUs
 *
 *     admitted over any interval <= rate x time + burst x 1.01
 *
 * because the admitted units were taken from the table, apart from what leases hold.
 *
 * A lease ends after 10 ms, or with its window; then the bucket, which has what other CPUs took,
 * decides again. Units left in it were charged and stay this CPU's: a renewal tops them up, and
 * where the bucket has none left they are spent. So a source on a single queue gets all of its
 * limit. Units of a window that has ended are void.
 */
#ifndef SLUICE_BPF_LEASE_H
#define SLUICE_BPF_LEASE_H

#include "bpf/table.h"

#define LEASE_TIME_MASK 0xfffffULL
#define LEASE_UNITS_BITS 24
#define LEASE_TAG_SHIFT 44
#define LEASE_TRIES 4

enum charge_mode {
	CHARGE_PEEK, /* the result only: nothing is charged */
	CHARGE_COMMIT,
};

enum lease_mode {
	LEASE_PEEK = CHARGE_PEEK,
	LEASE_SPEND = CHARGE_COMMIT,
	LEASE_LEFT,   /* spend, also from a lease that has ended */
	LEASE_REFUND, /* refund what LEASE_SPEND spent */
};

static __always_inline u64 lease_tag(u64 key, const struct sl_limit *limit)
{
	return (((key >> 20) ^ key) & 0x3ffff) << 2 | (limit->params.gen & 3);
}

static __always_inline u64 lease_state(u64 tag, u64 end_ns, u64 units)
{
	return tag << LEASE_TAG_SHIFT |
	       ((end_ns >> SL_LEASE_TIME_SHIFT) & LEASE_TIME_MASK) << LEASE_UNITS_BITS | units;
}

/*
 * Units left in a lease; 0 where it is another key's. A lease that has ended counts only with
 * `ended`, and only while its window (if it has one) goes on. Ends are known modulo
 * 18 minutes: in a longer window the units of an older one can count, once for each CPU; that
 * is within the 1%.
 */
static __always_inline u64 lease_units(const struct sl_limit *limit, const struct packet *pkt,
				       u64 bucket_state, u64 tag, int ended)
{
	u64 end = (bucket_state >> LEASE_UNITS_BITS) & LEASE_TIME_MASK;
	u64 now = pkt->now.mono_ns >> SL_LEASE_TIME_SHIFT;
	u64 window = ~0ULL;

	if (bucket_state >> LEASE_TAG_SHIFT != tag)
		return 0;
	/* At most 10 of its units ahead; everything else is behind. */
	if (((end - now) & LEASE_TIME_MASK) - 1 <= SL_LEASE_NS >> SL_LEASE_TIME_SHIFT)
		return bucket_state & SL_LEASE_UNITS_MAX;
	if (sl_is_window(&limit->params))
		window = pkt->now.utc_ns % limit->params.window_ns >> SL_LEASE_TIME_SHIFT;
	if (!ended || ((now - end) & LEASE_TIME_MASK) >= window)
		return 0;
	return bucket_state & SL_LEASE_UNITS_MAX;
}

/* This CPU's lease of a key, or NULL. */
static __always_inline u64 *lease_find(const struct sl_limit *limit, u64 key, u64 *ret_tag)
{
	*ret_tag = lease_tag(key, limit);
	return map_lease(key);
}

static __always_inline u32 *lease_hint(u64 key)
{
	struct sl_lease_hints *hints = map_lease_hints();

	return hints ? &hints->until[key & (SL_LEASE_HINTS - 1)] : NULL;
}

/* Whether this CPU may have a lease that has not ended; a hint that saves look-ups. */
static __always_inline int lease_may_be(struct packet *pkt, u64 key)
{
	u32 *hint = lease_hint(key);

	if (!hint || !*hint)
		return 0;
	clock_read(pkt);
	if ((s32)(*hint - (u32)(pkt->now.mono_ns >> SL_LEASE_TIME_SHIFT)) >= 0)
		return 1;
	*hint = 0;
	return 0;
}

/*
 * Spends `cost` of this CPU's lease, or refunds it. 0: there is no lease, or it holds too little.
 * LEASE_PEEK spends nothing.
 */
SL_GLOBAL int lease_use(const struct sl_limit *limit, struct packet *pkt, u64 key, u64 cost,
			enum lease_mode mode)
{
	u64 tag, old, units, *bucket_state;
	u32 i;

	if (!limit || !pkt)
		return 0;
	if (mode != LEASE_LEFT && !lease_may_be(pkt, key))
		return 0;
	clock_read(pkt);
	bucket_state = lease_find(limit, key, &tag);
	for (i = 0; bucket_state && i < LEASE_TRIES; i++) {
		old = read_once(bucket_state);
		units = lease_units(limit, pkt, old, tag, mode == LEASE_LEFT);
		if (mode == LEASE_REFUND ? !units || units + cost > SL_LEASE_UNITS_MAX
					 : units < cost)
			return 0;
		if (mode == LEASE_PEEK)
			return 1;
		if (__sync_val_compare_and_swap(bucket_state, old,
						mode == LEASE_REFUND ? old + cost : old - cost) ==
		    old)
			return 1;
	}
	return 0;
}

/* What a renewal need not take: the units left, at most a whole lease. */
SL_GLOBAL u32 lease_left(const struct sl_limit *limit, const struct packet *pkt, u64 key)
{
	u64 tag, units, *bucket_state;

	if (!limit || !pkt)
		return 0;
	bucket_state = lease_find(limit, key, &tag);
	if (!bucket_state)
		return 0;
	units = lease_units(limit, pkt, read_once(bucket_state), tag, 1);
	return units < limit->lease ? units : limit->lease;
}

/* Fills the lease; 1 done. Units that cannot be stored are lost: less passes, never more. */
SL_GLOBAL int lease_store(const struct sl_limit *limit, const struct packet *pkt, u64 key)
{
	struct sl_global_stats *stats = map_global_stats();
	u64 end, old, new, left, tag, *bucket_state;
	u32 *hint = lease_hint(key);

	if (!limit || !pkt)
		return 0;
	end = pkt->now.mono_ns + SL_LEASE_NS;
	if (sl_is_window(&limit->params)) {
		left = limit->params.window_ns - pkt->now.utc_ns % limit->params.window_ns;
		if (left < SL_LEASE_NS)
			end = pkt->now.mono_ns + left;
	}
	bucket_state = lease_find(limit, key, &tag);
	new = lease_state(tag, end, limit->lease);
	if (bucket_state) {
		old = read_once(bucket_state);
		if (__sync_val_compare_and_swap(bucket_state, old, new) != old)
			return 0;
	} else if (map_lease_insert(key, new)) {
		count_map_error(SL_ME_LEASE_UPDATE);
		return 0;
	}
	if (hint)
		*hint = (end >> SL_LEASE_TIME_SHIFT) ? end >> SL_LEASE_TIME_SHIFT : 1;
	if (stats)
		stats->leases++;
	return 1;
}

#endif
