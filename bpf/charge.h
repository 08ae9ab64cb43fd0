/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * charge.h - one limit, one packet: does it fit, and if so take it.
 *
 * Exact accounting steps the word in the shared table. Per-CPU accounting puts a lease before
 * it: a small batch of units that this CPU took from the table at once and spends on its own,
 * from an LRU per-CPU hash. All leases of a key together hold at most 1% of its capacity
 * (sl_limit.lease), and one is only taken for a key that has used a quarter of its limit: a
 * spoofed flood makes no entry. So whatever the number of CPUs
 *
 *     admitted over any interval <= rate x time + burst x 1.01
 *
 * for what is admitted is what was taken from the table, give or take what leases hold.
 *
 * A lease ends after 10 ms, or with its window: then the table is asked again, which knows
 * what other CPUs took. Units left in it stay this CPU's and were paid for: a renewal tops
 * them up, and where the table has none to give they are spent first. A source on a single
 * queue so gets all of its limit. Left in a window that is over they are void.
 */
#ifndef SLUICE_BPF_CHARGE_H
#define SLUICE_BPF_CHARGE_H

#include "bpf/elastic.h"
#include "bpf/override.h"
#include "bpf/refused.h"
#include "bpf/table.h"

#define LEASE_FROM_WEIGHT 64
#define LEASE_TIME_MASK 0xfffffULL
#define LEASE_UNITS_BITS 24
#define LEASE_TAG_SHIFT 44
#define LEASE_TRIES 4

enum charge_mode {
	CHARGE_PEEK,		/* the answer, and nothing taken */
	CHARGE_TAKE,
	CHARGE_LEFT,		/* leases only: take, also from one that has ended */
	CHARGE_GIVE_BACK,	/* leases only: undo what CHARGE_TAKE took */
};

/*
 * What a packet costs a limit, in its unit; 0: the limit does not count such a packet.
 * failsafe_rate counts every UDP packet as a connection: those ports escape all other limits.
 */
static __always_inline u64 charge_cost(const struct sl_rules *rules, const struct sl_limit *limit,
				       const struct packet *pkt)
{
	if (limit->unit == SL_UNIT_BYTES)
		return pkt->length;
	if (limit->unit == SL_UNIT_PACKETS)
		return 1;
	if (limit == &rules->limits[SL_LIMIT_FAILSAFE] && pkt->proto == PROTO_UDP)
		return 1;
	return (pkt->flags & (PKT_L4 | PKT_LATER)) == PKT_L4 && pkt->proto == PROTO_TCP &&
	       (pkt->tcp_flags & (TCP_SYN | TCP_ACK)) == TCP_SYN;
}

/*
 * Overrides. What a source has of its own is kept under the slot of the row `overridden`, by
 * the exact path, and stepped with pkt->params: that row and those parameters stand in for the
 * limit's wherever pkt->own_rates is set.
 */
static __always_inline const struct sl_limit *charge_row(const struct sl_rules *rules,
							 const struct packet *pkt, u32 index)
{
	const struct sl_limit *limit = limit_at(rules, index);

	if (limit && pkt->own_rates)
		return limit_at(rules, limit->overridden);
	return limit;
}

static __always_inline const struct sl_params *charge_params(const struct sl_limit *row,
							     const struct packet *pkt)
{
	return pkt->own_params ? &pkt->params : &row->params;
}

/*
 * What row `index` is charged: pkt->cost, and its rates for this packet. A cost of 0: the row
 * does not count the packet.
 */
SL_GLOBAL int charge_rates(const struct sl_rules *rules, struct packet *pkt, u32 index)
{
	const struct sl_limit *row;

	if (!rules || !pkt)
		return 0;
	row = limit_at(rules, index);
	if (!row)
		return 0;
	pkt->cost = charge_cost(rules, row, pkt);
	if (override_look(rules, pkt, index) & SL_OVERRIDE_SKIP)
		pkt->cost = 0;
	if (!row->elastic)
		return 1;
	row = charge_row(rules, pkt, index);
	if (row)
		elastic_look(rules, pkt, row);
	return 1;
}

/* And where: pkt->key. */
SL_GLOBAL int charge_key(const struct sl_rules *rules, struct packet *pkt, u32 index)
{
	const struct sl_limit *row;

	if (!rules || !pkt)
		return 0;
	row = charge_row(rules, pkt, index);
	if (!row)
		return 0;
	pkt->key = sl_bucket_key_own(rules, row, pkt->own_rates ? pkt->own_len : 0, pkt->src,
				     pkt->dst, pkt->family, pkt->proto, pkt->dport, pkt->vlan,
				     env_iface_slot());
	return 1;
}

/*
 * Both. Called before each of the functions below, and not by them, and two functions: the
 * key's stack would come on top of the others'.
 */
static __always_inline void charge_prepare(const struct sl_rules *rules, struct packet *pkt,
					   u32 index)
{
	charge_rates(rules, pkt, index);
	charge_key(rules, pkt, index);
}

/* ---- leases */

static __always_inline u64 lease_tag(u64 key, const struct sl_limit *limit)
{
	return (((key >> 20) ^ key) & 0x3ffff) << 2 | (limit->params.gen & 3);
}

static __always_inline u64 lease_word(u64 tag, u64 end_ns, u64 units)
{
	return tag << LEASE_TAG_SHIFT |
	       ((end_ns >> SL_LEASE_TIME_SHIFT) & LEASE_TIME_MASK) << LEASE_UNITS_BITS | units;
}

/*
 * Units that a lease word still holds; 0 where it is another key's. One that has ended counts
 * only if `ended` is asked for, and its window (if it has one) goes on. Ends are known modulo
 * 18 minutes: in a longer window the units of an older one can count, once for each CPU; that
 * is within the 1%.
 */
static __always_inline u64 lease_units(const struct sl_limit *limit, const struct packet *pkt,
				       u64 word, u64 tag, int ended)
{
	u64 end = (word >> LEASE_UNITS_BITS) & LEASE_TIME_MASK;
	u64 now = pkt->now.mono_ns >> SL_LEASE_TIME_SHIFT;
	u64 window = ~0ULL;

	if (word >> LEASE_TAG_SHIFT != tag)
		return 0;
	/* At most 10 of its units ahead; everything else is behind. */
	if (((end - now) & LEASE_TIME_MASK) - 1 <= SL_LEASE_NS >> SL_LEASE_TIME_SHIFT)
		return word & SL_LEASE_UNITS_MAX;
	if (sl_is_window(&limit->params))
		window = pkt->now.utc_ns % limit->params.window_ns >> SL_LEASE_TIME_SHIFT;
	if (!ended || ((now - end) & LEASE_TIME_MASK) >= window)
		return 0;
	return word & SL_LEASE_UNITS_MAX;
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

/* Whether this CPU may have a lease that has not ended; a hint, for look-ups cost. */
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
 * Spends `cost` of this CPU's lease, or adds to it, giving back. 1 done, 0 there is none or it
 * holds too little. With CHARGE_PEEK nothing is spent.
 */
SL_GLOBAL int lease_use(const struct sl_limit *limit, struct packet *pkt, u64 key, u64 cost,
			u32 mode)
{
	u64 tag, old, units, *word;
	u32 i;

	if (!limit || !pkt)
		return 0;
	if (mode != CHARGE_LEFT && !lease_may_be(pkt, key))
		return 0;
	clock_read(pkt);
	word = lease_find(limit, key, &tag);
	for (i = 0; word && i < LEASE_TRIES; i++) {
		old = read_once(word);
		units = lease_units(limit, pkt, old, tag, mode == CHARGE_LEFT);
		if (mode == CHARGE_GIVE_BACK ? !units || units + cost > SL_LEASE_UNITS_MAX :
					       units < cost)
			return 0;
		if (mode == CHARGE_PEEK)
			return 1;
		if (__sync_val_compare_and_swap(word, old,
						mode == CHARGE_GIVE_BACK ? old + cost :
									   old - cost) == old)
			return 1;
	}
	return 0;
}

/* What a renewal need not take: the units left, at most a whole lease. */
SL_GLOBAL u32 lease_left(const struct sl_limit *limit, const struct packet *pkt, u64 key)
{
	u64 tag, units, *word;

	if (!limit || !pkt)
		return 0;
	word = lease_find(limit, key, &tag);
	if (!word)
		return 0;
	units = lease_units(limit, pkt, read_once(word), tag, 1);
	return units < limit->lease ? units : limit->lease;
}

/* Makes it a whole lease; 1 done. What cannot be stored is lost: less passes, never more. */
SL_GLOBAL int lease_store(const struct sl_limit *limit, const struct packet *pkt, u64 key)
{
	struct sl_global_stats *stats = map_global_stats();
	u64 end, old, new, left, tag, *word;
	u32 *hint = lease_hint(key);

	if (!limit || !pkt)
		return 0;
	end = pkt->now.mono_ns + SL_LEASE_NS;
	if (sl_is_window(&limit->params)) {
		left = limit->params.window_ns - pkt->now.utc_ns % limit->params.window_ns;
		if (left < SL_LEASE_NS)
			end = pkt->now.mono_ns + left;
	}
	word = lease_find(limit, key, &tag);
	new = lease_word(tag, end, limit->lease);
	if (word) {
		old = read_once(word);
		if (__sync_val_compare_and_swap(word, old, new) != old)
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

/* ---- the table */

static __always_inline u64 charge_step(const struct sl_params *params, const struct sl_now *now,
				       u64 word, u64 cost)
{
	return table_step(params, now->mono_ns, now->utc_ns, word, cost);
}

/*
 * The word after `cost`, or SL_WORD_BUSY where that is over. A bound of the time is enough
 * to be over; to pass, the clock is read.
 */
static __always_inline u64 charge_lazily(const struct sl_params *params, struct packet *pkt,
					 u64 word, u64 cost)
{
	u64 late_ns = clock_bound_ns(pkt);
	struct sl_now late;

	if (late_ns) {
		late = clock_at(late_ns);
		if (charge_step(params, &late, word, cost) == SL_WORD_BUSY)
			return SL_WORD_BUSY;
		clock_read(pkt);
	}
	return charge_step(params, &pkt->now, word, cost);
}

/* One try: the word in the table, or one that was never seen. */
static __always_inline u32 charge_word(const struct sl_rules *rules, const struct sl_limit *limit,
				       struct packet *pkt, u32 mode)
{
	u64 key = pkt->key, cost = pkt->cost;
	struct sl_way *way = table_find(key, NULL);
	u64 old = 0, new, more = SL_WORD_BUSY;

	if (way) {
		old = read_once(&way->word);
		if (old == SL_WORD_BUSY || read_once(&way->key) != key)
			return CHARGE_RETRY;
	}
	new = charge_lazily(charge_params(limit, pkt), pkt, old, cost);
	if (new == SL_WORD_BUSY) {
		if (!limit->lease)
			return CHARGE_OVER;
		if (mode == CHARGE_PEEK)
			return lease_left(limit, pkt, key) >= cost ? CHARGE_PASS : CHARGE_OVER;
		return lease_use(limit, pkt, key, cost, CHARGE_LEFT) ? CHARGE_PASS : CHARGE_OVER;
	}
	if (mode == CHARGE_PEEK)
		return CHARGE_PASS;
	if (!way)
		return table_install(rules, pkt, limit, key, new);
	if (limit->lease && table_weight(rules, pkt, key, old) >= LEASE_FROM_WEIGHT)
		more = charge_step(charge_params(limit, pkt), &pkt->now, old,
				   cost + limit->lease - lease_left(limit, pkt, key));
	if (more != SL_WORD_BUSY)
		new = more;
	if (__sync_val_compare_and_swap(&way->word, old, new) != old || read_once(&way->key) != key)
		return CHARGE_RETRY;
	if (more != SL_WORD_BUSY)
		lease_store(limit, pkt, key);
	return CHARGE_PASS;
}

/*
 * The row and key of a packet under a plain limit with overrides; NULL: not to be had here.
 * Both lines, the override's and the bucket's, are misses, and between them is more than the
 * processor looks ahead: so the bucket is guessed, as the last packet's, and touched first.
 */
static __always_inline const struct sl_limit *charge_guess(const struct sl_rules *rules,
							   const struct sl_limit *head,
							   struct packet *pkt, u64 *ret_key)
{
	const struct sl_limit *to = limit_at(rules, head->overridden), *row;
	const struct sl_override_bucket *at;
	u32 guess = pkt->own_guess;

	if (!to)
		return NULL;
	at = override_begin(rules, head, pkt, head->head);
	row = guess ? to : head;
	*ret_key = sl_bucket_key(rules, row, pkt->src, pkt->dst, pkt->family, pkt->proto, pkt->dport,
				 pkt->vlan, env_iface_slot());
	table_touch(*ret_key);
	override_end(rules, head, pkt, head->head, at);
	pkt->own_guess = pkt->own_rates;
	if (guess != pkt->own_rates || (pkt->own_rates && pkt->own_len)) {
		charge_key(rules, pkt, head->head);
		*ret_key = pkt->key;
	}
	return pkt->own_rates ? to : head;
}

/*
 * The usual cases, without a call (a call costs as much as twenty instructions here: its
 * return is a mitigation): the key is in the table, and is over, or can be charged at once.
 * CHARGE_RETRY where it takes charge_limit() to say; pkt->key and pkt->cost are then prepared
 * and nothing was taken.
 */
static __always_inline u32 charge_quickly(const struct sl_rules *rules,
					  const struct sl_limit *limit, struct packet *pkt)
{
	u64 key, word, cost = charge_cost(rules, limit, pkt);
	const struct sl_params *params = &limit->params;
	const struct sl_limit *head = limit;
	struct sl_result res;
	struct sl_way *way;

	pkt->cost = cost;
	if (refused_before(rules, limit, pkt, cost))
		return CHARGE_OVER;
	if (limit->overridden != SL_NO_ROW) {
		limit = charge_guess(rules, head, pkt, &key);
		if (!limit)
			return CHARGE_RETRY;
		if (pkt->own_rates)
			params = &pkt->params;
	} else {
		key = sl_bucket_key(rules, limit, pkt->src, pkt->dst, pkt->family, pkt->proto,
				    pkt->dport, pkt->vlan, env_iface_slot());
	}
	pkt->key = key;
	if (limit->lease && lease_may_be(pkt, key))
		return CHARGE_RETRY;
	way = table_find(key, NULL);
	if (!way)
		return CHARGE_RETRY;
	word = read_once(&way->word);
	if (word == SL_WORD_BUSY || read_once(&way->key) != key)
		return CHARGE_RETRY;
	clock_read(pkt);
	res = sl_step(word, params, pkt->now, cost);
	if (res.verdict == SL_OVER) {
		if (limit->lease && lease_use(limit, pkt, key, cost, CHARGE_LEFT))
			return CHARGE_PASS;
		refused_store(rules, head, pkt, cost, res.wait_ns);
		return CHARGE_OVER;
	}
	/* From a quarter on, a lease may be had. */
	if (limit->lease && res.quarter)
		return CHARGE_RETRY;
	if (__sync_val_compare_and_swap(&way->word, word, res.word) != word ||
	    read_once(&way->key) != key)
		return CHARGE_RETRY;
	return CHARGE_PASS;
}

/*
 * Asks limit `index` about the packet, prepared. Verified once, by itself: inlining it for each of 16
 * limits would take most of the verifier's million instructions. Returns enum charge.
 */
SL_GLOBAL u32 charge_limit(const struct sl_rules *rules, struct packet *pkt, u32 index, u32 mode)
{
	const struct sl_limit *limit;
	struct sl_global_stats *stats;
	u32 i, said;

	if (!rules || !pkt)
		return CHARGE_PASS;
	limit = charge_row(rules, pkt, index);
	if (!limit || !pkt->cost)
		return CHARGE_PASS;
	if (limit->lease && lease_use(limit, pkt, pkt->key, pkt->cost, mode))
		return CHARGE_PASS;
	for (i = 0; i < TABLE_TRIES; i++) {
		said = charge_word(rules, limit, pkt, mode);
		if (said != CHARGE_RETRY)
			return said;
	}
	stats = map_global_stats();
	if (stats)
		stats->contended++;
	return CHARGE_CONTENDED;
}

/* Puts `cost` back into a key's word. 0 where the word has moved on: the charge is lost. */
SL_GLOBAL int table_give_back(const struct sl_limit *limit, const struct packet *pkt, u64 key,
			      u64 cost)
{
	struct sl_way *way;
	u64 old, new;
	u32 i;

	if (!limit || !pkt)
		return 0;
	for (i = 0; i < TABLE_TRIES; i++) {
		way = table_find(key, NULL);
		if (!way)
			return 0;
		old = read_once(&way->word);
		if (old == SL_WORD_BUSY || read_once(&way->key) != key)
			continue;
		new = sl_refund(old, charge_params(limit, pkt), pkt->now, cost);
		if (new == old)
			return 0;
		if (__sync_val_compare_and_swap(&way->word, old, new) == old)
			return 1;
	}
	return 0;
}

/* Undoes a charge of this packet, prepared again. One that cannot be undone is counted. */
SL_GLOBAL int charge_give_back(const struct sl_rules *rules, struct packet *pkt, u32 index)
{
	const struct sl_limit *limit;
	struct sl_limit_stats *stats;
	u64 key, cost;

	if (!rules || !pkt)
		return 0;
	limit = charge_row(rules, pkt, index);
	if (!limit || !pkt->cost)
		return 0;
	key = pkt->key;
	cost = pkt->cost;
	if (limit->lease && lease_use(limit, pkt, key, cost, CHARGE_GIVE_BACK))
		return 1;
	clock_read(pkt);
	if (table_give_back(limit, pkt, key, cost))
		return 1;
	stats = map_limit_stats(limit->slot);
	if (stats)
		stats->giveback_lost++;
	return 0;
}

#endif
