/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * lease.h - per-CPU accounting: a lease is a small batch of units that a CPU takes from the bucket
 * in the shared table at once, and spends alone.
 *
 * A source that is counted by CPU has an entry in the LRU per-CPU hash `lease`. The lease taken
 * last is cached in an array (struct sl_lease_hint), and goes back to the hash when another key
 * takes its place. Where the cache is lost, its units are: the bucket decides, and nothing is spent
 * twice.
 *
 * Every unit was charged to the bucket before it is spent. So beyond rate x time + burst a source
 * can have only what the bucket refilled while CPUs held units:
 *
 *  - Of a bucket that takes 0.84 s or more to fill, a lease can be spent for 4.2 ms; after that
 *    all CPUs together keep at most 1/200 of the burst, and the rest is void. All units above that
 *    were charged within the last 4.2 ms, in which the bucket refills 1/200. The sum is 1/100,
 *    however large leases are and on however many CPUs.
 *  - Of a bucket that fills faster all CPUs together hold at most 1/100, and units stay.
 *  - A window never exceeds its limit: what was charged in it is spent in it, or void.
 *
 * Void units are lost to the source. So of slow buckets leases that are together more than 1/200
 * are taken only while 1/32 of the burst is used at most: no more can be lost, and near the limit
 * each unit is counted exactly, or in small batches. Leases of a window are together at most a
 * sixteenth of it, each at most 1/100. A lease has four packets at first, more where it was used up
 * early, fewer where some were left at its end.
 *
 * A key takes a lease on a CPU where it came LEASE_FROM times within 10 ms more often than others
 * that share its hint: forged sources, each with a packet or two, make no entry. Only CPUs whose
 * number is below sl_rules.lease_cpus take any.
 *
 * At its end the bucket, which has what other CPUs took, decides again. Units that stay are this
 * CPU's: a renewal tops them up, and where the bucket has none left they are spent.
 */
#ifndef SLUICE_BPF_LEASE_H
#define SLUICE_BPF_LEASE_H

#include "bpf/evaluation.h"
#include "bpf/table.h"

/* struct sl_lease */
#define LEASE_TIME_MASK 0xffffffffULL
#define LEASE_UNITS_BITS 20
#define LEASE_TAG_SHIFT 52
#define LEASE_CACHED SL_BIT(63)
/* Only an interrupt of this CPU can come between; where one does twice, the bucket decides. */
#define LEASE_TRIES 2
#define LEASE_FROM 4
#define LEASE_FROM_NS 10000000ULL
/* The next lease is larger if one was used up so long before its end, up to a size. */
#define LEASE_EARLY 3
#define LEASE_SIZE_MAX (4 * 17)

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

/* Units of a lease with the parameters in hand, instead of the meter's. */
SL_GLOBAL u32 lease_own_batch(const struct sl_rules *rules, const struct sl_limit *meter,
			      const struct evaluation *ev)
{
	if (!rules || !meter || !ev || !meter->percpu)
		return 0;
	return sl_lease_batch(&ev->meter.params, rules->lease_cpus, meter->unit);
}

/* The most units of a lease, on any CPU that may have one; 0: no leases. */
static __always_inline u32 lease_batch(const struct sl_rules *rules, const struct sl_limit *meter,
				       const struct evaluation *ev)
{
	return ev->meter.own_params ? lease_own_batch(rules, meter, ev) : meter->lease;
}

/* Whether this CPU is one of those that the batches were computed for. */
static __always_inline int lease_is_here(const struct sl_rules *rules)
{
	return env_cpu() < rules->lease_cpus;
}

static __always_inline u64 lease_tag(u64 key, const struct sl_limit *limit)
{
	return ((key >> 46 ^ key >> 20 ^ key) & 0x1ff) << 2 | (limit->params.gen & 3);
}

static __always_inline u64 lease_state(u64 tag, u64 end_ns, u64 units)
{
	return tag << LEASE_TAG_SHIFT |
	       ((end_ns >> SL_LEASE_TIME_SHIFT) & LEASE_TIME_MASK) << LEASE_UNITS_BITS | units;
}

/* Whether a lease, of any key, has not ended. Ends are known modulo 52 days. */
static __always_inline int lease_is_live(const struct packet *pkt, u64 lease)
{
	u64 end = (lease >> LEASE_UNITS_BITS) & LEASE_TIME_MASK;
	u64 now = pkt->now.mono_ns >> SL_LEASE_TIME_SHIFT;

	/* At most five of its units ahead; everything else is behind. */
	return ((end - now) & LEASE_TIME_MASK) - 1 <= SL_LEASE_NS >> SL_LEASE_TIME_SHIFT;
}

/*
 * Units left in a lease, at most `batch`; 0 where it is another key's, or cached. At its end the
 * units of a bucket are cut to sl_lease_kept(); those of a window count while it goes on.
 */
static __always_inline u64 lease_units(const struct sl_params *params, const struct packet *pkt,
				       u64 lease, u64 tag, u32 batch)
{
	u64 end = (lease >> LEASE_UNITS_BITS) & LEASE_TIME_MASK;
	u64 now = pkt->now.mono_ns >> SL_LEASE_TIME_SHIFT;
	u64 units = lease & SL_LEASE_UNITS_MAX;

	if (lease >> LEASE_TAG_SHIFT != tag)
		return 0;
	if (!lease_is_live(pkt, lease)) {
		if (!sl_is_window(params))
			batch = sl_lease_kept(params, batch);
		else if (((now - end) & LEASE_TIME_MASK) >= pkt->now.utc_ns % params->window_ns >>
			 SL_LEASE_TIME_SHIFT)
			return 0;
	}
	return units < batch ? units : batch;
}

/* The same lease with other units: also where it held more than a batch. */
static __always_inline u64 lease_with(u64 lease, u64 units)
{
	return (lease & ~SL_LEASE_UNITS_MAX) | units;
}

/* ---- hints */

static __always_inline struct sl_lease_hint *lease_hint(u64 key)
{
	struct sl_lease_hints *hints = map_lease_hints();

	return hints ? &hints->hint[sl_lease_hint_at(key)] : NULL;
}

static __always_inline u32 lease_hint_tag(u64 key)
{
	return key >> 32;
}

/*
 * Whether this CPU may have a lease that has not ended, which saves look-ups. In `until`, the clock
 * was read.
 */
static __always_inline int lease_may_be(const struct packet *pkt, struct sl_lease_hint *hint,
					u64 key)
{
	if (!hint || hint->key == key || !hint->until)
		return hint && hint->key == key;
	if ((s32)(hint->until - (u32)(pkt->now.mono_ns >> SL_LEASE_TIME_SHIFT)) >= 0)
		return 1;
	hint->until = 0;
	return 0;
}

/* This CPU's lease of a key, in its one place, or NULL. */
static __always_inline u64 *lease_find(struct sl_lease_hint *hint, u64 key)
{
	return hint && hint->key == key ? &hint->lease : map_lease(key);
}

/* Whether the count of a hint is not over. A lease begins it anew, at its end. */
static __always_inline int lease_counts(const struct packet *pkt, const struct sl_lease_hint *hint)
{
	u32 now = pkt->now.mono_ns >> SL_LEASE_TIME_SHIFT;

	return hint->count &&
	       (s32)(now - hint->since) <= (s32)(LEASE_FROM_NS >> SL_LEASE_TIME_SHIFT);
}

/* Whether the key came LEASE_FROM times within 10 ms, or had a lease until 10 ms ago. */
static __always_inline int lease_is_due(const struct packet *pkt, const struct sl_lease_hint *hint,
					u64 key)
{
	return hint && hint->tag == lease_hint_tag(key) && hint->count >= LEASE_FROM &&
	       lease_counts(pkt, hint);
}

/* Counts a packet that was charged to the bucket alone. A majority has the hint (Boyer and
 * Moore). */
static __always_inline void lease_count(const struct packet *pkt, struct sl_lease_hint *hint,
					u64 key)
{
	if (!hint)
		return;
	if (!lease_counts(pkt, hint)) {
		hint->tag = lease_hint_tag(key);
		hint->since = pkt->now.mono_ns >> SL_LEASE_TIME_SHIFT;
		hint->count = 1;
	} else if (hint->tag != lease_hint_tag(key)) {
		hint->count--;
	} else if (hint->count < LEASE_FROM) {
		hint->count++;
	}
}

/* The bucket has too little for a lease: the key has to qualify again. */
static __always_inline void lease_none(struct sl_lease_hint *hint)
{
	if (hint)
		hint->count = 0;
}

/* ---- using it */

/*
 * Spends `cost` of a lease of a bucket that is in its hint, as for nearly each packet that leases
 * are for. In few steps, and without an atomic one: no other CPU has this memory. 0: nothing was
 * spent, and there may be a lease.
 */
static __always_inline int lease_spend_here(const struct sl_limit *limit, const struct packet *pkt,
					    struct sl_lease_hint *hint, u64 key, u64 cost)
{
	u64 lease, units;

	if (!hint || hint->key != key || !sl_is_bucket(&limit->params))
		return 0;
	lease = hint->lease;
	units = lease & SL_LEASE_UNITS_MAX;
	if (units > limit->lease)
		units = limit->lease;
	/* Of the tag only the generation can be another. */
	if (units < cost || ((lease >> LEASE_TAG_SHIFT ^ limit->params.gen) & 3) ||
	    !lease_is_live(pkt, lease))
		return 0;
	hint->lease = lease_with(lease, units - cost);
	return 1;
}

/*
 * Spends ev->meter.cost of this CPU's lease, or refunds it. 0: there is no lease, or it holds too
 * little; with LEASE_REFUND also too much: then the bucket gets it. LEASE_PEEK spends nothing.
 */
SL_GLOBAL int lease_use(const struct sl_limit *limit, struct evaluation *ev, enum lease_mode mode)
{
	u64 tag, old, new, units, cost, *lease;
	struct sl_lease_hint *hint;
	u32 i;

	if (!limit || !ev || !ev->meter.lease)
		return 0;
	hint = lease_hint(ev->meter.key);
	if (mode != LEASE_LEFT && !(hint && (hint->until || hint->key == ev->meter.key)))
		return 0;
	clock_read(&ev->pkt);
	if (mode != LEASE_LEFT && !lease_may_be(&ev->pkt, hint, ev->meter.key))
		return 0;
	cost = ev->meter.cost;
	tag = lease_tag(ev->meter.key, limit);
	lease = lease_find(hint, ev->meter.key);
	for (i = 0; lease && i < LEASE_TRIES; i++) {
		old = read_once(lease);
		units = lease_units(meter_params(limit, ev), &ev->pkt, old, tag, ev->meter.lease);
		if (mode != LEASE_LEFT && !lease_is_live(&ev->pkt, old))
			return 0;
		if (mode == LEASE_REFUND
			    ? old >> LEASE_TAG_SHIFT != tag || units + cost > ev->meter.lease
			    : units < cost)
			return 0;
		if (mode == LEASE_PEEK)
			return 1;
		new = lease_with(old, mode == LEASE_REFUND ? units + cost : units - cost);
		if (__sync_val_compare_and_swap(lease, old, new) == old)
			return 1;
	}
	return 0;
}

/*
 * The units left in the lease, which a renewal need not take. If the lease has not ended, they do
 * not suffice for this packet; the packet spends them.
 */
SL_GLOBAL u32 lease_left(const struct sl_limit *limit, const struct evaluation *ev)
{
	u64 *lease, units;
	u32 kept;

	if (!limit || !ev || !ev->meter.lease)
		return 0;
	lease = lease_find(lease_hint(ev->meter.key), ev->meter.key);
	if (!lease)
		return 0;
	units = lease_units(meter_params(limit, ev), &ev->pkt, read_once(lease),
			    lease_tag(ev->meter.key, limit), ev->meter.lease);
	kept = sl_lease_kept(meter_params(limit, ev), ev->meter.lease);
	return units >= ev->meter.cost && units > kept ? kept : units;
}

/* The size of the key's next lease. */
SL_GLOBAL u32 lease_size(const struct evaluation *ev)
{
	struct sl_lease_hint *hint;
	u64 left, size;

	if (!ev)
		return 0;
	hint = lease_hint(ev->meter.key);
	if (!hint || hint->key != ev->meter.key)
		return 0;
	size = hint->size;
	left = (u32)(hint->lease >> LEASE_UNITS_BITS) -
	       (u32)(ev->pkt.now.mono_ns >> SL_LEASE_TIME_SHIFT);
	if (lease_is_live(&ev->pkt, hint->lease))
		return size + (left >= LEASE_EARLY && size < LEASE_SIZE_MAX);
	left = hint->lease & SL_LEASE_UNITS_MAX ? 4 : 0;
	return size > left ? size - left : 0;
}

/* Units of a lease of this size: each is taken four times, so that little is left on a CPU. */
static __always_inline u32 lease_of_size(const struct sl_limit *limit, u32 size)
{
	return (limit->unit == SL_UNIT_BYTES ? SL_LEASE_MIN_BYTES : 1) * LEASE_FROM
	       << (size / 4 & 31);
}

/* Stores a lease in the hash. Where it cannot be its units are lost: less passes, never more. */
SL_GLOBAL int lease_put(u64 key, u64 word)
{
	u64 *lease = map_lease(key);

	if (lease)
		__sync_lock_test_and_set(lease, word);
	else if (map_lease_insert(key, word))
		count_map_error(SL_ME_LEASE_UPDATE);
	return 1;
}

/* Fills the lease with ev->meter.taken units, and caches it; 1 done. */
SL_GLOBAL int lease_store(const struct sl_limit *limit, const struct evaluation *ev)
{
	struct sl_global_stats *stats = map_global_stats();
	struct sl_lease_hint *hint;
	u64 key, end, left;

	if (!limit || !ev)
		return 0;
	key = ev->meter.key;
	hint = lease_hint(key);
	if (!hint)
		return 0;
	end = ev->pkt.now.mono_ns + SL_LEASE_NS;
	if (sl_is_window(&limit->params)) {
		left = limit->params.window_ns - ev->pkt.now.utc_ns % limit->params.window_ns;
		if (left < SL_LEASE_NS)
			end = ev->pkt.now.mono_ns + left;
	}
	if (hint->key != key) {
		if (hint->lease & SL_LEASE_UNITS_MAX)
			lease_put(hint->key, hint->lease);
		hint->key = key;
		/* Not before the end of the one that was here. */
		hint->until = (ev->pkt.now.mono_ns + SL_LEASE_NS) >> SL_LEASE_TIME_SHIFT;
	}
	hint->size = ev->meter.size;
	hint->lease = lease_state(lease_tag(key, limit), end, ev->meter.taken);
	lease_put(key, hint->lease | LEASE_CACHED);
	if (hint->tag == lease_hint_tag(key))
		hint->since = end >> SL_LEASE_TIME_SHIFT;
	if (stats)
		stats->leases++;
	return 1;
}

#endif
