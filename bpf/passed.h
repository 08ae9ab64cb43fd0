/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * passed.h - what packets that pass were charged to: a packet like one that passed is charged to
 * the same buckets, before lists, classification and keys are looked at.
 *
 * Beside the refusal cache (refused.h) each CPU remembers by source, in a direct-mapped table,
 * which meters a packet met and where their buckets are. Unlike a refusal that is no result: each
 * packet is charged to every one of these buckets as without it, all or none, and if one has no
 * room, or has moved, or a CPU lost a race for it, the packet takes the long way. For packets that
 * are like that one (like.h), and until the end of an unconfirmed apply, or 100 ms, the long way
 * meets these meters.
 *
 * Remembered are passes within up to four meters, of any limits, also their further rates and
 * prefixes, limits that tag, and shadow mode; not what a soft meter, a full table or a limit
 * without a rate decided, and not meters that are stepped with other parameters than the rule set's
 * (overrides, elastic).
 *
 * A source is remembered when it has been missed a few times in a row: forged ones are not. The
 * calls of meters.h are what this saves: where a return is mitigated (SRSO) each costs 25 ns.
 *
 * tests/bpf/test_refused.c compares all verdicts, reasons and counters with those of a program
 * without it.
 */
#ifndef SLUICE_BPF_PASSED_H
#define SLUICE_BPF_PASSED_H

#include "bpf/charge.h"
#include "bpf/like.h"

#define PASSED_MAX_NS 100000000ULL
/* Packets in a row of a source that is not remembered, before it is. */
#define PASSED_MISSES 4

static __always_inline struct sl_passed *passed_at(u64 src_hi)
{
	return map_passed((src_hi * 0x9e3779b97f4a7c15ULL) >> (64 - SL_PASSED_BITS));
}

/* ------------------------------------------------------------------ using it */

/* Where bucket `i` was; the set is looked up for each use, which is less than to keep it. */
static __always_inline struct sl_way *passed_way(const struct sl_passed *p, u32 i)
{
	u32 way = p->way[i & (SL_PASSED_METERS - 1)];
	struct sl_set *set = map_table_set(way / SL_WAYS);

	return set ? &set->way[way % SL_WAYS] : NULL;
}

static __always_inline const struct sl_limit *passed_meter(const struct sl_rules *rules,
							   const struct sl_passed *p, u32 i)
{
	return limit_at(rules, p->meter[i & (SL_PASSED_METERS - 1)]);
}

/* Spends `cost` of this CPU's lease of a meter. 0: nothing was spent. */
static __always_inline int passed_lease(struct evaluation *ev, const struct sl_limit *meter,
					struct sl_lease_hint *hint, u64 key, u64 cost)
{
	u64 tag = lease_tag(key, meter), old, units, *lease;

	if (!lease_may_be(&ev->pkt, hint, key))
		return 0;
	lease = lease_find(hint, key);
	if (!lease)
		return 0;
	old = read_once(lease);
	units = lease_units(&meter->params, &ev->pkt, old, tag, meter->lease);
	FORGET(&ev->pkt, units);
	return units >= cost && lease_is_live(&ev->pkt, old) &&
	       __sync_val_compare_and_swap(lease, old, lease_with(old, units - cost)) == old;
}

/*
 * Whether bucket `i` has room: then ev->step[i] is what it is to become. Of a meter with
 * leases also where this CPU's has the units: then they are spent. Not where a lease is to be
 * taken, which the long way does. `leases`: this CPU may have any.
 */
static __always_inline int passed_peek(const struct sl_rules *rules, struct evaluation *ev,
				       const struct sl_passed *p, u32 i, int leases)
{
	const struct sl_limit *meter = passed_meter(rules, p, i);
	struct sl_lease_hint *hint;
	struct sl_result res;
	u64 key, old, units;
	struct sl_way *way;

	OPAQUE(i);
	i &= SL_PASSED_METERS - 1;
	key = p->key[i];
	if (!meter)
		return 0;
	units = meter->unit == SL_UNIT_BYTES ? ev->pkt.length : 1;
	ev->step[i].counted = 0;
	if (leases && meter->lease) {
		hint = lease_hint(key);
		if (lease_spend_here(meter, &ev->pkt, hint, key, units) ||
		    passed_lease(ev, meter, hint, key, units)) {
			ev->charged |= 1U << i;
			return 1;
		}
		if (lease_is_due(&ev->pkt, hint, key))
			return 0;
		ev->step[i].counted = 1;
	}
	way = passed_way(p, i);
	if (!way)
		return 0;
	old = read_once(&way->bucket_state);
	if (old == SL_STATE_BUSY || !sl_key_is(read_once(&way->key), key))
		return 0;
	res = sl_step(old, &meter->params, packet_time(&ev->pkt), units);
	if (res.verdict == SL_OVER)
		return 0;
	ev->step[i].old = old;
	ev->step[i].new = res.bucket_state;
	return 1;
}

/* Charges it. 0: another CPU changed it meanwhile, and nothing was charged. */
static __always_inline int passed_commit(struct evaluation *ev, const struct sl_passed *p, u32 i)
{
	struct sl_way *way;

	OPAQUE(i);
	i &= SL_PASSED_METERS - 1;
	if (ev->charged & (1U << i))
		return 1;
	way = passed_way(p, i);
	if (!way ||
	    __sync_val_compare_and_swap(&way->bucket_state, ev->step[i].old, ev->step[i].new) !=
		    ev->step[i].old ||
	    !sl_key_is(read_once(&way->key), p->key[i]))
		return 0;
	ev->charged |= 1U << i;
	if (ev->step[i].counted)
		lease_count(&ev->pkt, lease_hint(p->key[i]), p->key[i]);
	return 1;
}

/* Refunds what was charged. */
SL_GLOBAL int passed_undo(const struct sl_rules *rules, struct evaluation *ev,
			  const struct sl_passed *p)
{
	const struct sl_limit *meter;
	u32 i;

	if (!rules || !ev || !p)
		return 0;
	for (i = 0; i < SL_PASSED_METERS; i++) {
		meter = passed_meter(rules, p, i);
		if (!meter || !(ev->charged & (1U << i)))
			continue;
		ev->meter.key = p->key[i];
		ev->meter.cost = meter->unit == SL_UNIT_BYTES ? ev->pkt.length : 1;
		ev->meter.own_rates = 0;
		ev->meter.own_params = 0;
		ev->meter.lease = lease_is_here(rules) ? meter->lease : 0;
		charge_refund(rules, ev, p->meter[i]);
	}
	return 0;
}

/*
 * A packet that like_applies() to: 1, it passes as an earlier one, is charged to all of that one's
 * meters, and counted under their limits.
 */
static __always_inline int passed_before(struct evaluation *ev)
{
	const struct sl_passed *p = passed_at(ev->pkt.src.hi);
	const struct sl_rules *rules;
	int leases;
	u32 i;

	if (!p || !like_is(&p->like, &ev->pkt, ev->epoch))
		return 0;
	rules = map_rules(0);
	if (!rules || (u32)rules->generation != p->generation)
		return 0;
	clock_read(&ev->pkt);
	if (ev->pkt.now.mono_ns >= p->like.until_ns)
		return 0;
	ev->charged = 0;
	leases = lease_is_here(rules);
	for (i = 0; i < SL_PASSED_METERS && i < p->meters; i++)
		if (!passed_peek(rules, ev, p, i, leases))
			return ev->charged ? passed_undo(rules, ev, p) : 0;
	for (i = 0; i < SL_PASSED_METERS && i < p->meters; i++)
		if (!passed_commit(ev, p, i))
			return ev->charged ? passed_undo(rules, ev, p) : 0;
	for (i = 0; i < SL_PASSED_METERS && i < p->meters; i++)
		if (p->heads & (1U << i))
			count_limit(sl_key_limit_id(p->key[i]), SL_LV_PASS, ev->pkt.length);
	return 1;
}

/* ------------------------------------------------------------------ making an entry */

/* A packet passed within its limits: whether its source was missed often enough to be
 * remembered. */
static __always_inline int passed_is_due(const struct evaluation *ev)
{
	u32 rival = (ev->pkt.src.hi * 0x9e3779b97f4a7c15ULL) >> 16;
	struct sl_passed *p = passed_at(ev->pkt.src.hi);

	if (!p || !env_refusal_cache())
		return 0;
	if (p->rival != rival) {
		p->rival = rival;
		p->misses = 0;
		return 0;
	}
	/* What cannot be remembered is tried again after 256. */
	return ++p->misses == PASSED_MISSES;
}

/* Where the table has a key, as struct sl_passed.way; ~0: nowhere. */
static __always_inline u32 passed_find(const struct packet *pkt, u64 key)
{
	u32 i, index, found = ~0U;
	struct sl_set *set;

	for (i = 0; i < 2 * SL_WAYS; i++) {
		index = sl_table_set(key, i / SL_WAYS, env_table_sets());
		set = map_table_set(index);
		if (set && sl_key_is(read_once(&set->way[i % SL_WAYS].key), key))
			found = index * SL_WAYS + i % SL_WAYS;
		FORGET(pkt, found);
	}
	return found;
}

/* Adds meter `index`, which the packet was charged to; 1 done. `key`: of its bucket. */
SL_GLOBAL int passed_add(const struct sl_rules *rules, struct evaluation *ev, u32 index, u64 key)
{
	const struct sl_limit *meter;
	struct sl_passed *p;
	u32 i, way;

	if (!rules || !ev)
		return 0;
	p = passed_at(ev->pkt.src.hi);
	meter = limit_at(rules, index);
	way = passed_find(&ev->pkt, key);
	if (!p || !meter || meter->elastic || way == ~0U)
		return 0;
	i = p->meters;
	OPAQUE(i);
	if (i >= SL_PASSED_METERS)
		return 0;
	p->key[i] = key;
	p->way[i] = way;
	p->meter[i] = index;
	p->like.reads |= like_reads(rules, &ev->pkt, index);
	if (meter->head == index)
		p->heads |= 1U << i;
	p->meters = i + 1;
	return 1;
}

/* Begins an entry for the packet: passed_add() for each meter, then passed_end(). 1 done. */
SL_GLOBAL int passed_begin(const struct sl_rules *rules, struct evaluation *ev)
{
	const struct sl_push_now *push = map_push_now();
	struct sl_passed *p;

	if (!rules || !ev || !push || !like_may_be_kept(rules, ev, push))
		return 0;
	p = passed_at(ev->pkt.src.hi);
	if (!p)
		return 0;
	like_store(&p->like, ev, 0);
	p->meters = 0;
	p->heads = 0;
	p->generation = rules->generation;
	return 1;
}

/* From now on it holds. */
SL_GLOBAL int passed_end(const struct sl_rules *rules, struct evaluation *ev)
{
	const struct sl_push_now *push = map_push_now();
	struct sl_passed *p;

	if (!rules || !ev || !push)
		return 0;
	p = passed_at(ev->pkt.src.hi);
	if (!p)
		return 0;
	clock_read(&ev->pkt);
	p->misses = 0;
	p->like.until_ns = like_until(rules, push, &ev->pkt, ev->pkt.now.mono_ns + PASSED_MAX_NS);
	return 1;
}

/* A packet that one meter alone was charged for, with its own parameters. */
SL_GLOBAL int passed_single(const struct sl_rules *rules, struct evaluation *ev, u32 index)
{
	if (!rules || !ev || ev->meter.own_rates || ev->meter.own_params)
		return 0;
	return passed_begin(rules, ev) && passed_add(rules, ev, index, ev->meter.key) &&
	       passed_end(rules, ev);
}

#endif
