/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * charge.h - charges one packet to one meter. Exact accounting steps the bucket state in the
 * shared table; per-CPU accounting spends a lease first (lease.h).
 */
#ifndef SLUICE_BPF_CHARGE_H
#define SLUICE_BPF_CHARGE_H

#include "bpf/elastic.h"
#include "bpf/event.h"
#include "bpf/lease.h"
#include "bpf/newcomer.h"
#include "bpf/override.h"
#include "bpf/refused.h"
#include "bpf/table.h"

/*
 * What a packet costs a limit, in its unit; 0: the limit does not count such a packet. A later
 * fragment whose first was seen opens no connection: its first was charged for that.
 */
static __always_inline u64 charge_cost(const struct sl_limit *limit, const struct packet *pkt)
{
	if (limit->unit == SL_UNIT_BYTES)
		return pkt->length;
	if (limit->unit == SL_UNIT_PACKETS)
		return 1;
	return !(pkt->flags & PKT_FIRST_KNOWN) && may_be_syn(pkt);
}

/*
 * The same of any meter by its number. failsafe_rate counts every UDP packet as a connection:
 * no other limit applies to those ports.
 */
static __always_inline u64 charge_cost_at(const struct sl_limit *limit, const struct packet *pkt,
					  u32 index)
{
	if (index == SL_LIMIT_FAILSAFE && limit->unit == SL_UNIT_CONNECTIONS &&
	    pkt->proto == PROTO_UDP)
		return 1;
	return charge_cost(limit, pkt);
}

/*
 * Overrides. A source with rates of its own is counted under the slot of the meter `overridden`
 * and stepped with ev->meter.params. Both replace the limit's where ev->meter.own_rates is set.
 */
static __always_inline const struct sl_limit *charge_meter(const struct sl_rules *rules,
							   const struct evaluation *ev, u32 index)
{
	const struct sl_limit *limit = limit_at(rules, index);

	if (limit && ev->meter.own_rates)
		return limit_at(rules, limit->overridden);
	return limit;
}

/*
 * Prepares the cost of meter `index`, its rates and its lease for this packet. A cost of 0: the
 * meter does not count the packet.
 */
SL_GLOBAL int charge_rates(const struct sl_rules *rules, struct evaluation *ev, u32 index)
{
	const struct sl_limit *meter;

	if (!rules || !ev)
		return 0;
	meter = limit_at(rules, index);
	if (!meter)
		return 0;
	ev->meter.cost = charge_cost_at(meter, &ev->pkt, index);
	if (override_look(rules, ev, index) & SL_OVERRIDE_SKIP)
		ev->meter.cost = 0;
	meter = charge_meter(rules, ev, index);
	if (!meter)
		return 0;
	if (meter->elastic)
		elastic_look(rules, ev, meter);
	ev->meter.lease = lease_is_here(rules) ? lease_batch(rules, meter, ev) : 0;
	return 1;
}

/* Prepares the key. */
SL_GLOBAL int charge_key(const struct sl_rules *rules, struct evaluation *ev, u32 index)
{
	const struct sl_limit *meter;
	u32 own;

	if (!rules || !ev)
		return 0;
	meter = charge_meter(rules, ev, index);
	if (!meter)
		return 0;
	own = ev->meter.own_rates ? ev->meter.own_len : 0;
	if (!own)
		own = sl_link_own(meter, ev->pkt.family, packet_src(&ev->pkt));
	ev->meter.key = sl_bucket_key_own(rules, meter, own, packet_src(&ev->pkt),
					  packet_dst(&ev->pkt), ev->pkt.family, ev->pkt.proto,
					  ev->pkt.dport, ev->pkt.vlan, env_iface_slot());
	return 1;
}

/*
 * Makes what charge_prepare() prepared that of all link-local sources together. 0: the meter has no
 * such bucket for this packet. A source with rates of its own is not counted there.
 */
SL_GLOBAL int charge_link(const struct sl_rules *rules, struct evaluation *ev, u32 index)
{
	const struct sl_limit *meter;

	if (!rules || !ev)
		return 0;
	meter = limit_at(rules, index);
	if (!meter || !ev->meter.cost || ev->meter.own_rates ||
	    !sl_link_own(meter, ev->pkt.family, packet_src(&ev->pkt)))
		return 0;
	ev->meter.lease = 0;
	ev->meter.params = meter->params;
	sl_scale_params(&ev->meter.params, SL_LINK_SOURCES << 16, 65536 / SL_LINK_SOURCES + 1, 1);
	ev->meter.own_params = 1;
	ev->meter.key = sl_bucket_key_own(rules, meter, SL_LINK_PREFIX, packet_src(&ev->pkt),
					  packet_dst(&ev->pkt), ev->pkt.family, ev->pkt.proto,
					  ev->pkt.dport, ev->pkt.vlan, env_iface_slot());
	return 1;
}

/*
 * Prepares both. The functions below do not call it themselves, and it is two functions, because
 * the stack of the key's would add to theirs.
 */
static __always_inline void charge_prepare(const struct sl_rules *rules, struct evaluation *ev,
					   u32 index)
{
	charge_rates(rules, ev, index);
	charge_key(rules, ev, index);
}

/* ---- the table */

static __always_inline u64 charge_step(const struct sl_params *params, const struct sl_now *now,
				       u64 bucket_state, u64 cost)
{
	return table_step(params, now->mono_ns, now->utc_ns, bucket_state, cost);
}

/*
 * The bucket state after `cost`, or SL_STATE_BUSY where that is over. A bound of the time is
 * enough to refuse; before a pass the clock is read.
 */
static __always_inline u64 charge_lazily(const struct sl_params *params, struct packet *pkt,
					 u64 bucket_state, u64 cost)
{
	u64 late_ns = clock_bound_ns(pkt);
	struct sl_now late;

	if (late_ns) {
		late = clock_at(late_ns);
		if (charge_step(params, &late, bucket_state, cost) == SL_STATE_BUSY)
			return SL_STATE_BUSY;
		clock_read(pkt);
	}
	return charge_step(params, &pkt->now, bucket_state, cost);
}

/*
 * `count: all`: counts a packet that the limit refuses. A bucket that changes at the same time has
 * counted another one: one of the two is lost.
 */
SL_GLOBAL int charge_fill(const struct sl_limit *limit, struct evaluation *ev, struct sl_way *way,
			  u64 bucket_state)
{
	if (!limit || !ev || !way)
		return 0;
	clock_read(&ev->pkt);
	return __sync_val_compare_and_swap(&way->bucket_state, bucket_state,
					   sl_fill(bucket_state, meter_params(limit, ev),
						   packet_time(&ev->pkt), ev->meter.cost)) ==
	       bucket_state;
}

/*
 * How much of the meter in hand is used. A function of its own, so that the verifier follows it
 * once and not in each round of charge_lease().
 */
SL_GLOBAL u32 charge_used(const struct sl_limit *limit, const struct evaluation *ev,
			  u64 bucket_state)
{
	if (!limit || !ev)
		return 0;
	return sl_utilization(bucket_state, meter_params(limit, ev), packet_time(&ev->pkt));
}

/*
 * The bucket state after the packet and a lease of ev->meter.taken units, or SL_STATE_BUSY: there
 * is no lease. A large one only where little of the limit is used then: lease.h.
 */
SL_GLOBAL u64 charge_lease(const struct sl_limit *limit, struct evaluation *ev, u64 bucket_state)
{
	const struct sl_params *params;
	u32 units, most, left, i;
	u64 more;

	if (!limit || !ev)
		return SL_STATE_BUSY;
	params = meter_params(limit, ev);
	left = lease_left(limit, ev);
	ev->meter.size = lease_size(ev);
	most = ev->meter.lease;
	for (i = 0; i < 2; i++) {
		units = lease_of_size(limit, ev->meter.size);
		if (units > most) {
			units = most;
			ev->meter.size -= ev->meter.size > 0;
		}
		if (units < left)
			units = left;
		ev->meter.taken = units;
		more = charge_step(params, &ev->pkt.now, bucket_state,
				   ev->meter.cost + units - left);
		most = sl_lease_kept(params, ev->meter.lease);
		if (more != SL_STATE_BUSY && (units <= most || units == left ||
					      charge_used(limit, ev, more) <= SL_LEASE_USED))
			return more;
		if (most < (limit->unit == SL_UNIT_BYTES ? SL_LEASE_MIN_BYTES : 2))
			break;
	}
	return SL_STATE_BUSY;
}

/* One attempt at the bucket in the table, or at an unused one. */
SL_GLOBAL enum attempt charge_bucket(const struct sl_rules *rules, const struct sl_limit *limit,
				     struct evaluation *ev, enum charge_mode mode)
{
	u64 key, cost, old = 0, new, more = SL_STATE_BUSY, left_ns;
	struct sl_way *way;
	enum attempt result;

	if (!rules || !limit || !ev)
		return ATTEMPT_PASS;
	key = ev->meter.key;
	cost = ev->meter.cost;
	way = table_find(key, NULL);
	if (way) {
		old = read_once(&way->bucket_state);
		if (old == SL_STATE_BUSY || !sl_key_is(read_once(&way->key), key))
			return ATTEMPT_AGAIN;
	} else {
		clock_read(&ev->pkt);
		left_ns = table_recorded(&ev->pkt, key);
		if (left_ns == SL_STATE_BUSY)
			return ATTEMPT_AGAIN;
		if (left_ns)
			old = sl_spent(meter_params(limit, ev), packet_time(&ev->pkt), left_ns);
		if (old) {
			ev->meter.bucket_state = old;
			return ATTEMPT_RETURNED;
		}
	}
	new = charge_lazily(meter_params(limit, ev), &ev->pkt, old, cost);
	if (new == SL_STATE_BUSY) {
		result = ATTEMPT_OVER;
		if (ev->meter.lease && mode == CHARGE_PEEK)
			result = lease_left(limit, ev) >= cost ? ATTEMPT_PASS : ATTEMPT_OVER;
		else if (ev->meter.lease && lease_use(limit, ev, LEASE_LEFT))
			result = ATTEMPT_PASS;
		if (way && result == ATTEMPT_OVER) {
			event_note_over(ev, way, key, limit->slot);
			table_mark_refused(way, key);
			if (limit->count_all)
				charge_fill(limit, ev, way, old);
		}
		return result;
	}
	if (mode == CHARGE_PEEK)
		return ATTEMPT_PASS;
	if (!way) {
		ev->meter.bucket_state = new;
		return ATTEMPT_NEW;
	}
	if (ev->meter.lease && lease_is_due(&ev->pkt, lease_hint(key), key)) {
		more = charge_lease(limit, ev, old);
		if (more == SL_STATE_BUSY)
			lease_none(lease_hint(key));
		else
			new = more;
	}
	if (__sync_val_compare_and_swap(&way->bucket_state, old, new) != old ||
	    !sl_key_is(read_once(&way->key), key))
		return ATTEMPT_AGAIN;
	if (more != SL_STATE_BUSY)
		lease_store(limit, ev);
	else if (ev->meter.lease)
		lease_count(&ev->pkt, lease_hint(key), key);
	return ATTEMPT_PASS;
}

/*
 * How long a refusal lasts after which sl_step() would wait so long; 0: not known. A bucket from
 * before a change of the rate drains at that rate until a packet passes (algo_gcra.h).
 */
static __always_inline u64 charge_lasts(const struct sl_params *p, u64 bucket_state, u64 wait_ns)
{
	if (sl_algo_is_bucket(p->algo) && (bucket_state & SL_GCRA_GEN_MASK) != p->gen)
		return 0;
	return wait_ns;
}

/*
 * The usual cases without a call, which costs as much as twenty instructions here (its return is
 * a mitigation): the key is in the table, and is over or can be charged at once. ATTEMPT_AGAIN:
 * charge_limit() decides; key and cost are prepared and nothing was charged.
 *
 * With overrides, both cache lines, the override's and the bucket's, are misses, too far apart
 * for the processor to overlap. So the meter is guessed from the last packet, and its bucket is
 * touched first.
 */
static __always_inline enum attempt charge_quickly(const struct sl_rules *rules,
						   const struct sl_limit *limit,
						   struct evaluation *ev, u32 index, u64 cost)
{
	const struct sl_override_bucket *override = NULL;
	const struct sl_params *params = &limit->params;
	u32 overridden = limit->overridden, guess = 0;
	const struct sl_limit *meter = limit;
	struct sl_result res;
	struct sl_way *way;
	u64 key, bucket_state;

	ev->meter.cost = cost;
	ev->meter.own_rates = 0;
	ev->meter.own_params = 0;
	ev->meter.wait_ns = 0;
	if (overridden != SL_NO_METER) {
		override = override_begin(rules, limit, ev, index);
		guess = ev->hints.own_rates;
		meter = limit_at(rules, guess ? overridden : index);
		if (!meter)
			return ATTEMPT_AGAIN;
	}
	key = sl_bucket_key(rules, meter, packet_src(&ev->pkt), packet_dst(&ev->pkt),
			    ev->pkt.family, ev->pkt.proto, ev->pkt.dport, ev->pkt.vlan,
			    env_iface_slot());
	ev->meter.key = key;
	if (overridden != SL_NO_METER) {
		table_touch(key);
		override_end(rules, limit, ev, index, override);
		ev->hints.own_rates = ev->meter.own_rates;
		if (guess != ev->meter.own_rates || (ev->meter.own_rates && ev->meter.own_len)) {
			charge_key(rules, ev, index);
			key = ev->meter.key;
			meter = limit_at(rules, ev->meter.own_rates ? overridden : index);
			if (!meter)
				return ATTEMPT_AGAIN;
		}
		if (ev->meter.own_rates)
			params = &ev->meter.params;
	}
	ev->meter.lease = lease_is_here(rules) ? lease_batch(rules, meter, ev) : 0;
	if (ev->meter.lease && lease_use(meter, ev, LEASE_SPEND))
		return ATTEMPT_PASS;
	way = table_find(key, NULL);
	if (!way)
		return charge_newcomer(meter, ev);
	bucket_state = read_once(&way->bucket_state);
	if (bucket_state == SL_STATE_BUSY || !sl_key_is(read_once(&way->key), key))
		return ATTEMPT_AGAIN;
	clock_read(&ev->pkt);
	res = sl_step(bucket_state, params, packet_time(&ev->pkt), cost);
	if (res.verdict == SL_OVER) {
		if (ev->meter.lease && lease_use(meter, ev, LEASE_LEFT))
			return ATTEMPT_PASS;
		event_note_over(ev, way, key, limit->slot);
		table_mark_refused(way, key);
		if (meter->count_all)
			charge_fill(meter, ev, way, bucket_state);
		else if (!ev->meter.lease || cost == 1)
			ev->meter.wait_ns = charge_lasts(params, bucket_state, res.wait_ns);
		return ATTEMPT_OVER;
	}
	if (ev->meter.lease && lease_is_due(&ev->pkt, lease_hint(key), key))
		return ATTEMPT_AGAIN;
	if (__sync_val_compare_and_swap(&way->bucket_state, bucket_state, res.bucket_state) !=
		    bucket_state ||
	    !sl_key_is(read_once(&way->key), key))
		return ATTEMPT_AGAIN;
	if (ev->meter.lease)
		lease_count(&ev->pkt, lease_hint(key), key);
	return ATTEMPT_PASS;
}

/*
 * Installs the key that charge_bucket() did not find; not there, because stacks add up. An
 * offender that returns gets a bucket that has used all of its limit; the next attempt charges it.
 */
static __always_inline enum attempt charge_install(const struct sl_rules *rules,
						   const struct sl_limit *limit,
						   struct evaluation *ev, enum attempt found)
{
	u64 key = found == ATTEMPT_RETURNED ? ev->meter.key | SL_KEY_REFUSED : ev->meter.key;
	u32 at = table_victim(rules, &ev->pkt, limit, key);
	enum attempt done = table_install(rules, &ev->pkt, at, key, ev->meter.bucket_state);

	if (found == ATTEMPT_NEW)
		return done;
	return done == ATTEMPT_FULL ? ATTEMPT_OVER : ATTEMPT_AGAIN;
}

/*
 * Charges meter `index`, prepared. Global: verified once, and not for each of 16 meters.
 */
SL_GLOBAL enum charge charge_limit(const struct sl_rules *rules, struct evaluation *ev, u32 index,
				   enum charge_mode mode)
{
	const struct sl_limit *limit;
	struct sl_global_stats *stats;
	enum attempt result;
	u32 i;

	if (!rules || !ev)
		return CHARGE_PASS;
	limit = charge_meter(rules, ev, index);
	if (!limit || !ev->meter.cost)
		return CHARGE_PASS;
	if (ev->meter.lease && lease_use(limit, ev, (enum lease_mode)mode))
		return CHARGE_PASS;
	for (i = 0; i < TABLE_TRIES; i++) {
		result = charge_bucket(rules, limit, ev, mode);
		if (result == ATTEMPT_NEW || result == ATTEMPT_RETURNED)
			result = charge_install(rules, limit, ev, result);
		if (result != ATTEMPT_AGAIN)
			return (enum charge)result;
	}
	stats = map_global_stats();
	if (stats)
		stats->contended++;
	return CHARGE_CONTENDED;
}

/* How long a refusal lasts, as a function of its own; 0: the charge passes. At most 100 ms. */
SL_GLOBAL u64 charge_wait(const struct sl_params *p, u64 mono_ns, u64 utc_ns, u64 bucket_state,
			  u64 cost)
{
	struct sl_now now = { .mono_ns = mono_ns, .utc_ns = utc_ns };
	struct sl_result res;

	if (!p)
		return 0;
	res = sl_step(bucket_state, p, now, cost);
	return res.verdict == SL_PASS
		       ? 0
		       : earlier_ns(charge_lasts(p, bucket_state, res.wait_ns), REFUSED_MAX_NS);
}

/* When a scale of this meter's limit ends that is in force; ~0: there is none. */
static __always_inline u64 charge_scale_until(const struct sl_rules *rules,
					      const struct sl_limit *meter)
{
	const struct sl_limit *head = limit_at(rules, meter->head);
	const struct sl_elastic *elastic = head && meter->elastic ? map_elastic(head->slot) : NULL;

	return elastic ? *(const volatile u64 *)&elastic->valid_until_ns : ~0ULL;
}

/*
 * Remembers that meter `index` refused the packet, after any way to that result. Its bucket is read
 * again. A lease that is large enough could serve the packet once it is topped up: then its units
 * count as if they were in the bucket.
 */
SL_GLOBAL int charge_remember(const struct sl_rules *rules, struct evaluation *ev, u32 index)
{
	const struct sl_limit *limit;
	u64 bucket_state, cost, wait_ns;
	struct sl_way *way;

	if (!rules || !ev)
		return 0;
	limit = charge_meter(rules, ev, index);
	if (!limit || limit->soft != SL_NO_METER)
		return 0;
	way = table_find(ev->meter.key, NULL);
	if (!way)
		return 0;
	bucket_state = read_once(&way->bucket_state);
	if (bucket_state == SL_STATE_BUSY || !sl_key_is(read_once(&way->key), ev->meter.key))
		return 0;
	clock_read(&ev->pkt);
	cost = ev->meter.cost;
	if (ev->meter.lease >= cost)
		cost -= lease_left(limit, ev);
	wait_ns = charge_wait(meter_params(limit, ev), ev->pkt.now.mono_ns, ev->pkt.now.utc_ns,
			      bucket_state, cost);
	if (wait_ns < REFUSED_MIN_NS)
		return 0;
	return refused_store(
		rules, ev, index,
		earlier_ns(ev->pkt.now.mono_ns + wait_ns, charge_scale_until(rules, limit)));
}

/* sl_refund() of the contract, as a function of its own. */
SL_GLOBAL u64 table_refund(const struct sl_params *p, u64 mono_ns, u64 utc_ns, u64 bucket_state,
			   u64 cost)
{
	struct sl_now now = { .mono_ns = mono_ns, .utc_ns = utc_ns };

	return p ? sl_refund(bucket_state, p, now, cost) : bucket_state;
}

/* Refunds `cost` to a bucket. 0: the bucket no longer holds that charge, and the refund is lost. */
SL_GLOBAL int table_put_refund(const struct sl_limit *limit, const struct evaluation *ev, u64 key,
			       u64 cost)
{
	struct sl_way *way;
	u64 old, new;
	u32 i;

	if (!limit || !ev)
		return 0;
	for (i = 0; i < TABLE_TRIES; i++) {
		way = table_find(key, NULL);
		if (!way)
			return 0;
		old = read_once(&way->bucket_state);
		if (old == SL_STATE_BUSY || !sl_key_is(read_once(&way->key), key))
			continue;
		new = table_refund(meter_params(limit, ev), ev->pkt.now.mono_ns, ev->pkt.now.utc_ns,
				   old, cost);
		if (new == old)
			return 0;
		if (__sync_val_compare_and_swap(&way->bucket_state, old, new) == old)
			return 1;
	}
	return 0;
}

/* Refunds a charge of this packet, prepared again. Lost refunds are counted. */
SL_GLOBAL int charge_refund(const struct sl_rules *rules, struct evaluation *ev, u32 index)
{
	const struct sl_limit *limit;
	struct sl_limit_stats *stats;
	u64 key, cost;

	if (!rules || !ev)
		return 0;
	limit = charge_meter(rules, ev, index);
	if (!limit || !ev->meter.cost)
		return 0;
	key = ev->meter.key;
	cost = ev->meter.cost;
	if (ev->meter.lease && lease_use(limit, ev, LEASE_REFUND))
		return 1;
	clock_read(&ev->pkt);
	if (table_put_refund(limit, ev, key, cost))
		return 1;
	stats = map_limit_stats(limit->slot);
	if (stats)
		stats->refund_lost++;
	return 0;
}

#endif
