/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * meters.h - the third stage's second half, a program of its own: every meter of every limit that
 * matches is charged, or none.
 *
 * Limits that drop come first, all their meters together: all are checked, and only if every one
 * has room are they charged. A meter that is used up between the check and the charge (another
 * CPU was faster) refuses as well: the charges before it are refunded. Tagging and shadow limits
 * are then charged by the packets that pass, each all or none within itself; they never refuse.
 *
 * A meter may name others that stand in for it: `full` where the table has no room for its key,
 * `soft` where it refuses. A refund goes to the meter that was charged.
 *
 * Functions are global where a loop calls them: each is then verified once, with an unknown
 * result, and not once for each path to it.
 */
#ifndef SLUICE_BPF_METERS_H
#define SLUICE_BPF_METERS_H

#include "bpf/account.h"
#include "bpf/internal.h"
#include "bpf/ban.h"

/* Which meter was charged in its place. */
enum meter_charged {
	METER_NONE,
	METER_ITSELF,
	METER_FULL,
	METER_SOFT,
};

/* ---- the meters to be charged */

/* Takes the first limit out of a bitmap; SL_LIMITS_MAX where it is empty. */
SL_GLOBAL u32 bitmap_next(struct sl_bitmap *bits)
{
	u32 word;

	if (!bits)
		return SL_LIMITS_MAX;
	for (word = 0; word < SL_BITMAP_WORDS; word++) {
		u64 w = bits->w[word];

		if (w) {
			bits->w[word] = w & (w - 1);
			return word * 64 + lowest_bit(w);
		}
	}
	return SL_LIMITS_MAX;
}

/* A limit on connections counts only what opens one; a meter may count only one family. */
static __always_inline int meter_counts(const struct sl_rules *rules, const struct sl_limit *meter,
					const struct packet *pkt)
{
	return meter->prefix[pkt->family & 1] != SL_PREFIX_NONE && charge_cost(meter, pkt);
}

/* Adds a limit and those of its meters that count the packet, if any does and there is room. */
SL_GLOBAL int meters_add(const struct sl_rules *rules, struct evaluation *ev, u32 index)
{
	u32 i, meter = index, bits = 0, at, match, first;
	const struct sl_limit *limit;
	struct matches *m;

	if (!rules || !ev || index >= SL_LIMITS_MAX)
		return 0;
	m = &ev->matches;
	first = m->charges;
	match = m->limits;
	OPAQUE(match);
	for (i = 0; i < SL_CHARGES_MAX; i++) {
		limit = limit_at(rules, meter);
		if (!limit)
			break;
		if (meter_counts(rules, limit, &ev->pkt)) {
			at = m->charges;
			OPAQUE(at);
			if (at >= SL_CHARGES_MAX) {
				m->too_many = 1;
				break;
			}
			m->meter[at].meter = meter;
			m->meter[at].match = match;
			bits |= 1U << (at & 31);
			m->charges = at + 1;
		}
		meter = limit->next;
	}
	if (!bits)
		return 0;
	/* Its entries are forgotten again: that is checked here, once, for the verifier's sake. */
	if (match >= SL_MATCHES_MAX) {
		m->charges = first;
		m->too_many = 1;
		return 0;
	}
	m->limit[match] = index;
	m->meters[match] = bits;
	m->limits = match + 1;
	if (rules->dropping.w[index / 64] & SL_BIT(index % 64))
		m->dropping |= bits;
	return 1;
}

static __always_inline void meters_reset(struct matches *m)
{
	m->limits = m->charges = 0;
	m->dropping = m->soft = m->full = m->own = 0;
	m->too_many = 0;
}

/* Adds the limits in ev->match, in file order, until one has no room. */
SL_GLOBAL int meters_take(const struct sl_rules *rules, struct evaluation *ev)
{
	u32 n, index;

	if (!rules || !ev)
		return 0;
	for (n = 0; n < SL_LIMITS_MAX && !ev->matches.too_many; n++) {
		index = bitmap_next(&ev->match);
		if (index >= SL_LIMITS_MAX)
			break;
		meters_add(rules, ev, index);
	}
	return 1;
}

/*
 * Collects the limits of a larger match. If not all have room, those that drop come first: 1 if one
 * of these was left out. Global: rare, and its loops are verified once.
 */
SL_GLOBAL int meters_choose(const struct sl_rules *rules, struct evaluation *ev,
			    const struct sl_bitmap *match)
{
	u32 i, left_out;

	if (!rules || !ev || !match)
		return 0;
	meters_reset(&ev->matches);
	for (i = 0; i < SL_BITMAP_WORDS; i++)
		ev->match.w[i] = match->w[i] & rules->dropping.w[i];
	meters_take(rules, ev);
	left_out = ev->matches.too_many;
	for (i = 0; i < SL_BITMAP_WORDS; i++)
		ev->match.w[i] = match->w[i] & ~rules->dropping.w[i];
	meters_take(rules, ev);
	return left_out;
}

/* Collects what is to be charged. 1: a limit that drops had no room. */
static __always_inline int meters_collect(const struct sl_rules *rules, struct evaluation *ev)
{
	struct sl_bitmap match = ev->match;
	u32 n, index;

	meters_reset(&ev->matches);
	for (n = 0; n < SL_MATCHES_MAX; n++) {
		index = bitmap_next(&ev->match);
		if (index >= SL_LIMITS_MAX)
			return 0;
		meters_add(rules, ev, index);
	}
	if (!ev->matches.too_many && bitmap_next(&ev->match) >= SL_LIMITS_MAX)
		return 0;
	return meters_choose(rules, ev, &match);
}

/* Entry `i` of the meters to be charged; it is below SL_CHARGES_MAX anyway. */
static __always_inline struct charged *meter_entry(struct evaluation *ev, u32 i)
{
	OPAQUE(i);
	return &ev->matches.meter[i & (SL_CHARGES_MAX - 1)];
}

/* The limit that an entry is of. */
static __always_inline const struct sl_limit *meter_limit(const struct sl_rules *rules,
							  struct evaluation *ev, u32 i)
{
	const struct sl_limit *meter = limit_at(rules, meter_entry(ev, i)->meter);

	return meter ? limit_at(rules, meter->head) : NULL;
}

/* ---- one meter */

/*
 * Inline, as the next one: calls go at most 8 deep ("the call stack of 8
 * frames is too deep !"), and the probes of override.h are at the other end.
 */
static __always_inline enum charge meter_charge(const struct sl_rules *rules, struct evaluation *ev,
						u32 meter, enum charge_mode mode)
{
	enum charge result;

	charge_prepare(rules, ev, meter);
	if (!charge_link(rules, ev, meter))
		return charge_limit(rules, ev, meter, mode);
	/* The bucket of all link-local sources, and the source's own: both or none. */
	result = charge_limit(rules, ev, meter, mode);
	charge_prepare(rules, ev, meter);
	if (result != CHARGE_PASS)
		return result;
	result = charge_limit(rules, ev, meter, mode);
	if (result == CHARGE_PASS || mode != CHARGE_COMMIT)
		return result;
	charge_link(rules, ev, meter);
	charge_refund(rules, ev, meter);
	charge_prepare(rules, ev, meter);
	return result;
}

static __always_inline int meter_refund_one(const struct sl_rules *rules, struct evaluation *ev,
					    u32 meter)
{
	charge_prepare(rules, ev, meter);
	if (charge_link(rules, ev, meter)) {
		charge_refund(rules, ev, meter);
		charge_prepare(rules, ev, meter);
	}
	return charge_refund(rules, ev, meter);
}

static __always_inline u32 meter_soft(const struct sl_rules *rules, u32 meter)
{
	const struct sl_limit *limit = limit_at(rules, meter);

	return limit ? limit->soft : SL_NO_METER;
}

static __always_inline u32 meter_next(const struct sl_rules *rules, u32 meter)
{
	const struct sl_limit *limit = limit_at(rules, meter);

	return limit ? limit->next : SL_NO_METER;
}

/* The meter for a full table, where it counts this family. */
static __always_inline u32 meter_full(const struct sl_rules *rules, const struct packet *pkt,
				      u32 meter)
{
	const struct sl_limit *limit = limit_at(rules, meter), *full;
	u32 index = limit ? limit->full : SL_NO_METER;

	full = limit_at(rules, index);
	return full && full->prefix[pkt->family & 1] != SL_PREFIX_NONE ? index : SL_NO_METER;
}

/* Charges a soft meter and its grace, both or none. A full table refuses. */
static __always_inline enum charge meter_charge_soft(const struct sl_rules *rules,
						     struct evaluation *ev, u32 soft,
						     enum charge_mode mode)
{
	enum charge result = meter_charge(rules, ev, soft, mode);
	u32 grace = meter_next(rules, soft);

	if (result != CHARGE_PASS)
		return CHARGE_OVER;
	if (grace == SL_NO_METER)
		return CHARGE_PASS;
	if (meter_charge(rules, ev, grace, mode) == CHARGE_PASS)
		return CHARGE_PASS;
	if (mode == CHARGE_COMMIT)
		meter_refund_one(rules, ev, soft);
	return CHARGE_OVER;
}

/* What a full table means for entry `i`. */
static __always_inline enum charge meter_when_full(const struct sl_rules *rules,
						   struct evaluation *ev, u32 i)
{
	const struct sl_limit *limit = meter_limit(rules, ev, i);
	struct matches *m = &ev->matches;

	if (limit && limit->on_full == SL_FULL_CLOSED && (m->dropping & (1U << (i & 31))))
		return CHARGE_FULL;
	m->full |= 1U << (i & 31);
	return CHARGE_PASS;
}

/* What passed.h may need to know of entry `i`. */
static __always_inline void meter_note(struct evaluation *ev, u32 i)
{
	meter_entry(ev, i)->key = ev->meter.key;
	if (ev->meter.own_rates || ev->meter.own_params ||
	    sl_is_link_local(ev->pkt.family, packet_src(&ev->pkt)))
		ev->matches.own |= 1U << (i & 31);
}

/*
 * Charges entry `i`, or the meter that stands in for it. Returns CHARGE_PASS, or why it refuses,
 * also CHARGE_FULL. A limit without a rate is always over; a pass never is.
 */
SL_GLOBAL enum charge meter_try(const struct sl_rules *rules, struct evaluation *ev, u32 i,
				enum charge_mode mode)
{
	enum meter_charged taken = METER_ITSELF;
	const struct sl_limit *limit;
	enum charge result;
	u32 meter, other;

	if (!rules || !ev)
		return CHARGE_PASS;
	meter = meter_entry(ev, i)->meter;
	limit = limit_at(rules, meter);
	if (limit && limit->by_match) {
		meter_entry(ev, i)->taken = METER_NONE;
		return limit->action == SL_ACT_PASS && limit->mode == SL_MODE_ENFORCE ? CHARGE_PASS
										      : CHARGE_OVER;
	}
	result = meter_charge(rules, ev, meter, mode);
	meter_note(ev, i);
	other = meter_full(rules, &ev->pkt, meter);
	if (result == CHARGE_FULL && other != SL_NO_METER) {
		result = meter_charge(rules, ev, other, mode);
		taken = METER_FULL;
	}
	if (result == CHARGE_FULL) {
		result = meter_when_full(rules, ev, i);
		taken = METER_NONE;
	}
	other = meter_soft(rules, meter);
	if ((result == CHARGE_OVER || result == CHARGE_CONTENDED) && other != SL_NO_METER &&
	    meter_charge_soft(rules, ev, other, mode) == CHARGE_PASS) {
		result = CHARGE_PASS;
		taken = METER_SOFT;
	}
	/* A refusal charges nothing; but meters_drop() needs to see METER_FULL. */
	meter_entry(ev, i)->taken =
		result == CHARGE_PASS || taken == METER_FULL ? taken : METER_NONE;
	return result;
}

/* Refunds the charge of meter_try(). */
SL_GLOBAL int meter_refund(const struct sl_rules *rules, struct evaluation *ev, u32 i)
{
	enum meter_charged taken;
	u32 meter, other;

	if (!rules || !ev)
		return 0;
	meter = meter_entry(ev, i)->meter;
	taken = meter_entry(ev, i)->taken;
	if (taken == METER_ITSELF)
		return meter_refund_one(rules, ev, meter);
	if (taken == METER_FULL)
		return meter_refund_one(rules, ev, meter_full(rules, &ev->pkt, meter));
	if (taken != METER_SOFT)
		return 0;
	other = meter_soft(rules, meter);
	meter_refund_one(rules, ev, other);
	other = meter_next(rules, other);
	return other == SL_NO_METER ? 1 : meter_refund_one(rules, ev, other);
}

/*
 * Entry `i` refused: counted, where other nodes are to know it (`refusals`). The wider meter of a
 * full table counts on this node alone.
 */
SL_GLOBAL int meter_refused(const struct sl_rules *rules, struct evaluation *ev, u32 i)
{
	const struct sl_limit *meter;

	if (!rules || !ev)
		return 0;
	ev->matches.refused = i;
	meter = limit_at(rules, meter_entry(ev, i)->meter);
	if (!meter || !meter->refusals || meter_entry(ev, i)->taken == METER_FULL)
		return 0;
	return meter_charge(rules, ev, meter->refusals, CHARGE_COMMIT) == CHARGE_PASS;
}

/* ---- several */

/* Charges all entries in `bits`, or none: then matches.refused is the first that refused. */
SL_GLOBAL enum charge meters_charge(const struct sl_rules *rules, struct evaluation *ev, u32 bits)
{
	enum charge result;
	u32 i, k;

	if (!rules || !ev)
		return CHARGE_PASS;
	for (i = 0; i < SL_CHARGES_MAX && (bits & (bits - 1)); i++) {
		if (!(bits & (1U << i)))
			continue;
		result = meter_try(rules, ev, i, CHARGE_PEEK);
		if (result == CHARGE_PASS)
			continue;
		meter_refused(rules, ev, i);
		return result;
	}
	for (i = 0; i < SL_CHARGES_MAX; i++) {
		if (!(bits & (1U << i)))
			continue;
		result = meter_try(rules, ev, i, CHARGE_COMMIT);
		if (result != CHARGE_PASS)
			break;
		if (meter_entry(ev, i)->taken == METER_SOFT)
			ev->matches.soft |= 1U << i;
	}
	if (i == SL_CHARGES_MAX)
		return CHARGE_PASS;
	meter_refused(rules, ev, i);
	FORGET(&ev->pkt, i);
	for (k = 0; k < SL_CHARGES_MAX && k < i; k++)
		if (bits & (1U << k))
			meter_refund(rules, ev, k);
	return result;
}

/* Remembers the refusal, where no limit before the one that refused can become the one that
 * does. */
SL_GLOBAL int meters_remember(const struct sl_rules *rules, struct evaluation *ev)
{
	const struct charged *refused;
	u32 i;

	if (!rules || !ev)
		return 0;
	refused = meter_entry(ev, ev->matches.refused);
	for (i = 0; i < SL_CHARGES_MAX && i < ev->matches.refused; i++)
		if ((ev->matches.dropping & (1U << i)) &&
		    meter_entry(ev, i)->match != refused->match)
			return 0;
	i = refused->meter;
	charge_prepare(rules, ev, i);
	return charge_remember(rules, ev, i);
}

/* A limit that drops refused: it alone counts the packet. */
static __always_inline enum stage_result meters_drop(const struct sl_rules *rules,
						     struct evaluation *ev, enum charge result)
{
	const struct sl_limit *limit = meter_limit(rules, ev, ev->matches.refused);
	struct sl_limit_stats *stats;

	if (!limit)
		return STAGE_PASS;
	count_limit(limit->slot, SL_LV_DROP, ev->pkt.length);
	ev->limit_id = limit->slot;
	if (result == CHARGE_FULL) {
		ev->pkt.reason = SL_R_TABLE_FULL;
		stats = map_limit_stats(limit->slot);
		if (stats)
			stats->full++;
		return STAGE_DROP;
	}
	ev->pkt.reason = result == CHARGE_CONTENDED ? SL_R_CONTENDED : SL_R_OVER;
	/* With a full table the prefix is charged: no offense of a single source. */
	if (result == CHARGE_OVER && meter_entry(ev, ev->matches.refused)->taken != METER_FULL) {
		ban_refused(limit, ev, limit->head, meter_entry(ev, ev->matches.refused)->meter);
		meters_remember(rules, ev);
	}
	return STAGE_DROP;
}

/* Remembers that a shadow limit would have refused this source. */
SL_GLOBAL int seen_note(const struct sl_rules *rules, struct evaluation *ev, u32 i)
{
	const struct sl_limit *limit;
	struct sl_seen *seen;
	u32 bit, word;

	if (!rules || !ev)
		return 0;
	limit = meter_limit(rules, ev, i);
	seen = limit ? map_seen(limit->slot) : NULL;
	if (!seen)
		return 0;
	charge_prepare(rules, ev, meter_entry(ev, i)->meter);
	bit = sl_seen_bit(ev->meter.key);
	word = bit / 64;
	OPAQUE(word);
	word &= SL_SEEN_WORDS - 1;
	if (!(read_once(&seen->w[word]) & SL_BIT(bit % 64)))
		__sync_fetch_and_or(&seen->w[word], SL_BIT(bit % 64));
	return 1;
}

/* The verdict of one limit on a packet that passes. */
static __always_inline enum sl_limit_verdict
meters_verdict(const struct sl_limit *limit, struct evaluation *ev, u32 bits, enum charge result)
{
	struct sl_limit_stats *stats;

	if (result != CHARGE_PASS)
		return limit_verdict_of(limit, &ev->pkt, result);
	if (limit->by_match && ev->pkt.reason == SL_R_WITHIN)
		ev->pkt.reason = SL_R_MATCH;
	if (bits & ev->matches.full) {
		stats = map_limit_stats(limit->slot);
		if (stats)
			stats->full++;
		ev->pkt.reason = SL_R_TABLE_FULL;
	}
	if (!(bits & ev->matches.soft))
		return SL_LV_PASS;
	if (limit->mode == SL_MODE_SHADOW)
		return SL_LV_SOFT;
	ev->pkt.reason = SL_R_SOFT;
	if (limit->action == SL_ACT_TAG)
		tag_with(limit, &ev->pkt);
	return SL_LV_SOFT;
}

/* Counts a packet that passes, under the verdict of limit number `n`. */
SL_GLOBAL int meters_count(const struct sl_rules *rules, struct evaluation *ev, u32 n,
			   enum charge result)
{
	const struct sl_limit *limit;
	enum sl_limit_verdict verdict;
	u32 bits;

	if (!rules || !ev)
		return 0;
	OPAQUE(n);
	n &= SL_MATCHES_MAX - 1;
	bits = ev->matches.meters[n];
	limit = limit_at(rules, ev->matches.limit[n]);
	if (!limit)
		return 0;
	verdict = meters_verdict(limit, ev, bits, result);
	count_limit(limit->slot, verdict, ev->pkt.length);
	if (verdict == SL_LV_SHADOW)
		seen_note(rules, ev, lowest_bit(bits));
	return 1;
}

/* The packet passes: charge limits that tag or only watch, and count it with each. */
static __always_inline void meters_pass(const struct sl_rules *rules, struct evaluation *ev)
{
	enum charge result;
	u32 n, bits;

	for (n = 0; n < SL_MATCHES_MAX && n < ev->matches.limits; n++) {
		bits = ev->matches.meters[n];
		result = CHARGE_PASS;
		if (!(bits & ev->matches.dropping))
			result = meters_charge(rules, ev, bits);
		meters_count(rules, ev, n, result);
	}
}

/* The packet passed within all its meters: they are remembered. */
SL_GLOBAL int meters_remember_passed(const struct sl_rules *rules, struct evaluation *ev)
{
	u32 i, heads = 0;

	if (!rules || !ev || ev->matches.own || ev->matches.charges > SL_PASSED_METERS ||
	    !passed_begin(rules, ev))
		return 0;
	for (i = 0; i < SL_PASSED_METERS && i < ev->matches.charges; i++) {
		const struct sl_limit *meter = limit_at(rules, meter_entry(ev, i)->meter);

		if (!meter || meter_entry(ev, i)->taken != METER_ITSELF ||
		    !passed_add(rules, ev, meter_entry(ev, i)->meter, meter_entry(ev, i)->key))
			return 0;
		heads += meter->head == meter_entry(ev, i)->meter;
		FORGET(&ev->pkt, heads);
	}
	/* Each limit is counted with its head: all of them count this packet. */
	return heads == ev->matches.limits && passed_end(rules, ev);
}

/* All limits in ev->match. */
static __always_inline enum stage_result meters_all(const struct sl_rules *rules,
						    struct evaluation *ev)
{
	int left_out = meters_collect(rules, ev);
	enum charge result;

	/* It hides which limits it belongs to: it must not escape one that is left out. */
	if (left_out && is_l4_hidden(ev->pkt.flags)) {
		ev->pkt.reason = SL_R_TOO_MANY_LIMITS;
		return STAGE_DROP;
	}
	if (!ev->matches.limits) {
		ev->pkt.reason = SL_R_NO_MATCH;
		return STAGE_PASS;
	}
	ev->pkt.reason = ev->matches.too_many ? SL_R_TOO_MANY_LIMITS : SL_R_WITHIN;
	result = meters_charge(rules, ev, ev->matches.dropping);
	if (result != CHARGE_PASS)
		return meters_drop(rules, ev, result);
	meters_pass(rules, ev);
	if (ev->pkt.reason == SL_R_WITHIN && !ev->pkt.tag && passed_is_due(ev))
		meters_remember_passed(rules, ev);
	return ev->pkt.tag ? STAGE_TAG : STAGE_PASS;
}

/* The single-meter limit that charge_quickly() prepared and could not decide. */
static __always_inline enum stage_result meters_single(const struct sl_rules *rules,
						       struct evaluation *ev, u32 index)
{
	const struct sl_limit *limit = limit_at(rules, index);
	enum charge result = charge_limit(rules, ev, index, CHARGE_COMMIT);
	enum sl_limit_verdict verdict;

	if (!limit)
		return STAGE_PASS;
	verdict = limit_verdict_of(limit, &ev->pkt, result);
	count_limit(limit->slot, verdict, ev->pkt.length);
	ev->limit_id = limit->slot;
	if (verdict == SL_LV_DROP) {
		if (result == CHARGE_OVER)
			charge_remember(rules, ev, index);
		return STAGE_DROP;
	}
	if (result == CHARGE_PASS && passed_is_due(ev))
		passed_single(rules, ev, index);
	return ev->pkt.tag ? STAGE_TAG : STAGE_PASS;
}

/* Returns enum stage_result; sets pkt->reason, and the tags to write in pkt->tag. */
static __always_inline enum stage_result meters(env_ctx *ctx, const struct sl_rules *rules,
						struct evaluation *ev)
{
	u32 single = ev->single;
	enum stage_result action;

	if (single < SL_LIMITS_MAX)
		return meters_single(rules, ev, single);
	if (single < SL_METERS_MAX)
		return internal_account(rules, ev, single);
	action = meters_all(rules, ev);
	ban_note_drop(ctx, rules, ev);
	return action;
}

#endif
