/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * rows.h - the third stage's second half, a program of its own: every row of every limit that
 * matches is charged, or none.
 *
 * Limits that drop come first, all their rows together: all are looked at, and only if every
 * one has room are they charged. One that turns out full between the look and the charge
 * (another CPU was faster) is a refusal as well: what was charged before it is given back.
 * Tagging and shadow limits are then charged by what passed, each all or none within itself;
 * they never refuse anything.
 *
 * A row may name others that stand in for it: `full` where the table has no room for its key,
 * `soft` where it refuses. Whichever was charged is what is given back.
 *
 * Functions are global where a loop calls them: each is then verified once, with an unknown
 * answer, and not once for each path that led there.
 */
#ifndef SLUICE_BPF_ROWS_H
#define SLUICE_BPF_ROWS_H

#include "bpf/account.h"
#include "bpf/internal.h"
#include "bpf/ban.h"

/* Which row was charged for one. */
enum row_taken {
	ROW_NONE,
	ROW_ITSELF,
	ROW_FULL,
	ROW_SOFT,
};

/* ---- which rows there are */

/* Takes the first limit out of a bitmap; SL_LIMITS_MAX where it is empty. */
SL_GLOBAL u32 bitmap_take(struct sl_bitmap *bits)
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

/* A limit on connections counts only what opens one; a row of a ladder, maybe, only IPv4. */
static __always_inline int row_counts(const struct sl_rules *rules, const struct sl_limit *row,
				      const struct packet *pkt)
{
	return row->prefix[pkt->family & 1] != SL_PREFIX_NONE && charge_cost(row, pkt);
}

/* Adds a limit and those of its rows that count the packet, if any does. */
SL_GLOBAL int rows_add(const struct sl_rules *rules, struct packet *pkt, u32 index)
{
	u32 i, row = index, bits = 0, at, match;
	const struct sl_limit *limit;
	struct matches *m;

	if (!rules || !pkt || index >= SL_LIMITS_MAX)
		return 0;
	m = &pkt->matches;
	match = m->limits;
	OPAQUE(match);
	if (match >= SL_MATCHES_MAX)
		return 0;
	for (i = 0; i < SL_WORDS_MAX; i++) {
		limit = limit_at(rules, row);
		if (!limit)
			break;
		if (row_counts(rules, limit, pkt)) {
			at = m->words;
			OPAQUE(at);
			if (at >= SL_WORDS_MAX) {
				m->too_many = 1;
				break;
			}
			m->row[at].row = row;
			m->row[at].match = match;
			bits |= 1U << (at & 31);
			m->words = at + 1;
		}
		row = limit->next;
	}
	if (!bits)
		return 0;
	m->limit[match] = index;
	m->rows[match] = bits;
	m->limits = match + 1;
	if (rules->dropping.w[index / 64] & SL_BIT(index % 64))
		m->dropping |= bits;
	return 1;
}

static __always_inline void rows_collect(const struct sl_rules *rules, struct packet *pkt)
{
	struct matches *m = &pkt->matches;
	u32 n, index;

	m->limits = m->words = 0;
	m->dropping = m->soft = m->full = 0;
	m->too_many = 0;
	for (n = 0; n < SL_MATCHES_MAX; n++) {
		index = bitmap_take(&pkt->match);
		if (index >= SL_LIMITS_MAX)
			return;
		rows_add(rules, pkt, index);
	}
	m->too_many |= bitmap_take(&pkt->match) < SL_LIMITS_MAX;
}

/* Entry `i` of the rows to be charged; it is below SL_WORDS_MAX anyway. */
static __always_inline struct charged *row_entry(struct packet *pkt, u32 i)
{
	OPAQUE(i);
	return &pkt->matches.row[i & (SL_WORDS_MAX - 1)];
}

/* The limit that an entry is of. */
static __always_inline const struct sl_limit *row_limit(const struct sl_rules *rules,
							struct packet *pkt, u32 i)
{
	const struct sl_limit *row = limit_at(rules, row_entry(pkt, i)->row);

	return row ? limit_at(rules, row->head) : NULL;
}

/* ---- one row */

/*
 * Returns enum charge. Inline, as the next one: calls go at most 8 deep ("the call stack of 8
 * frames is too deep !"), and the probes of override.h are at the other end.
 */
static __always_inline u32 row_charge(const struct sl_rules *rules, struct packet *pkt, u32 row,
				      u32 mode)
{
	charge_prepare(rules, pkt, row);
	return charge_limit(rules, pkt, row, mode);
}

static __always_inline int row_uncharge(const struct sl_rules *rules, struct packet *pkt, u32 row)
{
	charge_prepare(rules, pkt, row);
	return charge_give_back(rules, pkt, row);
}

static __always_inline u32 row_soft(const struct sl_rules *rules, u32 row)
{
	const struct sl_limit *limit = limit_at(rules, row);

	return limit ? limit->soft : SL_NO_ROW;
}

static __always_inline u32 row_next(const struct sl_rules *rules, u32 row)
{
	const struct sl_limit *limit = limit_at(rules, row);

	return limit ? limit->next : SL_NO_ROW;
}

/* The row for when the table is full, where it counts this family. */
static __always_inline u32 row_full(const struct sl_rules *rules, const struct packet *pkt, u32 row)
{
	const struct sl_limit *limit = limit_at(rules, row), *full;
	u32 index = limit ? limit->full : SL_NO_ROW;

	full = limit_at(rules, index);
	return full && full->prefix[pkt->family & 1] != SL_PREFIX_NONE ? index : SL_NO_ROW;
}

/* A soft row and its grace, both or none. What there is no room for is not soft. */
static __always_inline u32 row_charge_soft(const struct sl_rules *rules, struct packet *pkt,
					   u32 soft, u32 mode)
{
	u32 said = row_charge(rules, pkt, soft, mode), grace = row_next(rules, soft);

	if (said != CHARGE_PASS)
		return CHARGE_OVER;
	if (grace == SL_NO_ROW)
		return CHARGE_PASS;
	if (row_charge(rules, pkt, grace, mode) == CHARGE_PASS)
		return CHARGE_PASS;
	if (mode == CHARGE_TAKE)
		row_uncharge(rules, pkt, soft);
	return CHARGE_OVER;
}

/* What a full table means for entry `i`. */
static __always_inline u32 row_when_full(const struct sl_rules *rules, struct packet *pkt, u32 i)
{
	const struct sl_limit *limit = row_limit(rules, pkt, i);
	struct matches *m = &pkt->matches;

	if (limit && limit->on_full == SL_FULL_CLOSED && (m->dropping & (1U << (i & 31))))
		return CHARGE_FULL;
	m->full |= 1U << (i & 31);
	return CHARGE_PASS;
}

/*
 * Asks entry `i`, by whichever row stands in for it. CHARGE_PASS, or why it refuses, also
 * CHARGE_FULL.
 */
SL_GLOBAL u32 row_ask(const struct sl_rules *rules, struct packet *pkt, u32 i, u32 mode)
{
	u32 said, row, other, taken = ROW_ITSELF;

	if (!rules || !pkt)
		return CHARGE_PASS;
	row = row_entry(pkt, i)->row;
	said = row_charge(rules, pkt, row, mode);
	other = row_full(rules, pkt, row);
	if (said == CHARGE_FULL && other != SL_NO_ROW) {
		said = row_charge(rules, pkt, other, mode);
		taken = ROW_FULL;
	}
	if (said == CHARGE_FULL) {
		said = row_when_full(rules, pkt, i);
		taken = ROW_NONE;
	}
	other = row_soft(rules, row);
	if ((said == CHARGE_OVER || said == CHARGE_CONTENDED) && other != SL_NO_ROW &&
	    row_charge_soft(rules, pkt, other, mode) == CHARGE_PASS) {
		said = CHARGE_PASS;
		taken = ROW_SOFT;
	}
	/* Where it refuses nothing was taken; but who refused is asked for by rows_drop(). */
	row_entry(pkt, i)->taken = said == CHARGE_PASS || taken == ROW_FULL ? taken : ROW_NONE;
	return said;
}

/* Gives back what row_ask() took. */
SL_GLOBAL int row_give_back(const struct sl_rules *rules, struct packet *pkt, u32 i)
{
	u32 row, taken, other;

	if (!rules || !pkt)
		return 0;
	row = row_entry(pkt, i)->row;
	taken = row_entry(pkt, i)->taken;
	if (taken == ROW_ITSELF)
		return row_uncharge(rules, pkt, row);
	if (taken == ROW_FULL)
		return row_uncharge(rules, pkt, row_full(rules, pkt, row));
	if (taken != ROW_SOFT)
		return 0;
	other = row_soft(rules, row);
	row_uncharge(rules, pkt, other);
	other = row_next(rules, other);
	return other == SL_NO_ROW ? 1 : row_uncharge(rules, pkt, other);
}

/* ---- several */

/* Charges all entries in `bits`, or none: then matches.refused is the first that said no. */
SL_GLOBAL u32 rows_take(const struct sl_rules *rules, struct packet *pkt, u32 bits)
{
	u32 i, k, said;

	if (!rules || !pkt)
		return CHARGE_PASS;
	for (i = 0; i < SL_WORDS_MAX && (bits & (bits - 1)); i++) {
		if (!(bits & (1U << i)))
			continue;
		said = row_ask(rules, pkt, i, CHARGE_PEEK);
		if (said == CHARGE_PASS)
			continue;
		pkt->matches.refused = i;
		return said;
	}
	for (i = 0; i < SL_WORDS_MAX; i++) {
		if (!(bits & (1U << i)))
			continue;
		said = row_ask(rules, pkt, i, CHARGE_TAKE);
		if (said != CHARGE_PASS)
			break;
		if (row_entry(pkt, i)->taken == ROW_SOFT)
			pkt->matches.soft |= 1U << i;
	}
	if (i == SL_WORDS_MAX)
		return CHARGE_PASS;
	pkt->matches.refused = i;
	FORGET(pkt, i);
	for (k = 0; k < SL_WORDS_MAX && k < i; k++)
		if (bits & (1U << k))
			row_give_back(rules, pkt, k);
	return said;
}

/* A limit that drops said no: it alone counts that. */
static __always_inline u32 rows_drop(const struct sl_rules *rules, struct packet *pkt, u32 said)
{
	const struct sl_limit *limit = row_limit(rules, pkt, pkt->matches.refused);
	struct sl_limit_stats *stats;

	if (!limit)
		return SL_ACT_PASS;
	count_limit(limit->slot, SL_LV_DROP, pkt->length);
	if (said == CHARGE_FULL) {
		pkt->reason = SL_R_TABLE_FULL;
		stats = map_limit_stats(limit->slot);
		if (stats)
			stats->full++;
		return SL_ACT_DROP;
	}
	pkt->reason = said == CHARGE_CONTENDED ? SL_R_CONTENDED : SL_R_OVER;
	/* What others of its prefix used up while the table is full is no source's offence. */
	if (said == CHARGE_OVER && row_entry(pkt, pkt->matches.refused)->taken != ROW_FULL)
		ban_refused(limit, pkt, limit->head,
			    row_entry(pkt, pkt->matches.refused)->row);
	return SL_ACT_DROP;
}

/* Remembers that a shadow limit would have refused this source. */
SL_GLOBAL int seen_note(const struct sl_rules *rules, struct packet *pkt, u32 i)
{
	const struct sl_limit *limit;
	struct sl_seen *seen;
	u32 bit, word;

	if (!rules || !pkt)
		return 0;
	limit = row_limit(rules, pkt, i);
	seen = limit ? map_seen(limit->slot) : NULL;
	if (!seen)
		return 0;
	charge_prepare(rules, pkt, row_entry(pkt, i)->row);
	bit = sl_seen_bit(pkt->key);
	word = bit / 64;
	OPAQUE(word);
	word &= SL_SEEN_WORDS - 1;
	if (!(read_once(&seen->w[word]) & SL_BIT(bit % 64)))
		__sync_fetch_and_or(&seen->w[word], SL_BIT(bit % 64));
	return 1;
}

/* What limit number `n` said of a packet that passes: enum sl_limit_verdict. */
static __always_inline u32 rows_verdict(const struct sl_limit *limit, struct packet *pkt, u32 bits,
					u32 said)
{
	struct sl_limit_stats *stats;

	if (said != CHARGE_PASS)
		return limit_said(limit, pkt, said);
	if (bits & pkt->matches.full) {
		stats = map_limit_stats(limit->slot);
		if (stats)
			stats->full++;
		pkt->reason = SL_R_TABLE_FULL;
	}
	if (!(bits & pkt->matches.soft))
		return SL_LV_PASS;
	if (limit->mode == SL_MODE_SHADOW)
		return SL_LV_SOFT;
	pkt->reason = SL_R_SOFT;
	if (limit->action == SL_ACT_TAG)
		tag_with(limit, pkt);
	return SL_LV_SOFT;
}

/* Counts a packet that passes with limit number `n`, by what that said. */
SL_GLOBAL int rows_count(const struct sl_rules *rules, struct packet *pkt, u32 n, u32 said)
{
	const struct sl_limit *limit;
	u32 bits, verdict;

	if (!rules || !pkt)
		return 0;
	OPAQUE(n);
	n &= SL_MATCHES_MAX - 1;
	bits = pkt->matches.rows[n];
	limit = limit_at(rules, pkt->matches.limit[n]);
	if (!limit)
		return 0;
	verdict = rows_verdict(limit, pkt, bits, said);
	count_limit(limit->slot, verdict, pkt->length);
	if (verdict == SL_LV_SHADOW)
		seen_note(rules, pkt, lowest_bit(bits));
	return 1;
}

/* The packet passes: charge limits that tag or only watch, and count it with each. */
static __always_inline void rows_pass(const struct sl_rules *rules, struct packet *pkt)
{
	u32 n, bits, said;

	for (n = 0; n < SL_MATCHES_MAX && n < pkt->matches.limits; n++) {
		bits = pkt->matches.rows[n];
		said = CHARGE_PASS;
		if (!(bits & pkt->matches.dropping))
			said = rows_take(rules, pkt, bits);
		rows_count(rules, pkt, n, said);
	}
}

/* Whatever pkt->match has. */
static __always_inline u32 rows_all(const struct sl_rules *rules, struct packet *pkt)
{
	u32 said;

	rows_collect(rules, pkt);
	if (!pkt->matches.limits) {
		pkt->reason = SL_R_NO_MATCH;
		return SL_ACT_PASS;
	}
	/* It chose not to say which it belongs to: it does not pass those that are left out. */
	if (pkt->matches.too_many && is_l4_hidden(pkt->flags)) {
		pkt->reason = SL_R_TOO_MANY_LIMITS;
		return SL_ACT_DROP;
	}
	pkt->reason = pkt->matches.too_many ? SL_R_TOO_MANY_LIMITS : SL_R_WITHIN;
	said = rows_take(rules, pkt, pkt->matches.dropping);
	if (said != CHARGE_PASS)
		return rows_drop(rules, pkt, said);
	rows_pass(rules, pkt);
	return pkt->tag ? SL_ACT_TAG : SL_ACT_PASS;
}

/* The plain limit that charge_quickly() prepared and could not answer for. */
static __always_inline u32 rows_plain(const struct sl_rules *rules, struct packet *pkt, u32 index)
{
	const struct sl_limit *limit = limit_at(rules, index);
	u32 said = charge_limit(rules, pkt, index, CHARGE_TAKE), verdict;

	if (!limit)
		return SL_ACT_PASS;
	verdict = limit_said(limit, pkt, said);
	count_limit(limit->slot, verdict, pkt->length);
	if (verdict == SL_LV_DROP)
		return SL_ACT_DROP;
	return pkt->tag ? SL_ACT_TAG : SL_ACT_PASS;
}

/* Returns enum sl_action, or ACCOUNT_ON; pkt->reason says why, pkt->tag what to put on. */
static __always_inline u32 rows(env_ctx *ctx, const struct sl_rules *rules, struct packet *pkt)
{
	u32 single = pkt->single, action;

	if (single < SL_LIMITS_MAX)
		return rows_plain(rules, pkt, single);
	if (single < SL_ROWS_MAX)
		return internal_account(rules, pkt, single);
	action = rows_all(rules, pkt);
	ban_note_drop(ctx, rules, pkt);
	return action;
}

#endif
