/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * table.h - the shared table of words: find, charge, install, evict.
 *
 * Sets of four {key, word} ways, one cache line each; a key lives in one of two sets. Words
 * change by compare-and-swap only. A way changes hands in three steps, so that nobody ever
 * charges a word to the wrong key unnoticed:
 *
 *     word: old -> BUSY        (whoever wins this owns the way)
 *     key:  old -> new         then look again in both sets: if the key came in meanwhile
 *                              by another CPU, give this way up
 *     word: BUSY -> new word   (published)
 *
 * A charge reads key, word, key; swaps the word; and reads the key once more: if the way was
 * given away in between, it charges again where its key is now.
 *
 * Who is evicted: nobody, while there is a dead word (one no different from none) in the
 * eight ways. Else the live word that has used the smallest share of its limit, which is
 * counted with what it had used. A word at half its limit or more never is: an offender
 * cannot buy a fresh bucket by filling the table.
 */
#ifndef SLUICE_BPF_TABLE_H
#define SLUICE_BPF_TABLE_H

#include "bpf/clock.h"
#include "bpf/observe.h"

#define TABLE_TRIES 8
#define TABLE_VICTIM_MAX 128	/* weight from which a word is never a victim */

/* What the table says to a charge. */
enum charge {
	CHARGE_PASS,
	CHARGE_OVER,
	CHARGE_FULL,		/* no room for a new key */
	CHARGE_CONTENDED,	/* TABLE_TRIES compare-and-swaps lost */
	CHARGE_RETRY,		/* internal: look again */
};

static __always_inline u64 read_once(const u64 *at)
{
	return *(const volatile u64 *)at;
}

/* The way that holds `key`, other than `except`; NULL where none does. */
static __always_inline struct sl_way *table_find(u64 key, const struct sl_way *except)
{
	u32 which, i;

	for (which = 0; which < 2; which++) {
		struct sl_set *set = map_table_set(sl_key_set(key, which, env_table_sets()));

		if (!set) {
			count_map_error(SL_ME_TABLE_LOOKUP);
			return NULL;
		}
		for (i = 0; i < SL_WAYS; i++)
			if (read_once(&set->way[i].key) == key && &set->way[i] != except)
				return &set->way[i];
	}
	return NULL;
}

/* Has a key's first set on its way to the cache. */
static __always_inline void table_touch(u64 key)
{
	struct sl_set *set = map_table_set(sl_key_set(key, 0, env_table_sets()));

	if (set)
		read_once(&set->way[0].key);
}

/* The parameters that a stored key's word is to be read with; NULL where its limit is gone. */
static __always_inline const struct sl_limit *table_limit_of(const struct sl_rules *rules, u64 key)
{
	u32 slot = sl_key_slot(key);

	OPAQUE(slot);
	if (slot >= SL_SLOTS)
		return NULL;
	return limit_at(rules, rules->limit_of_slot[slot]);
}

/*
 * sl_step() of the contract, as a function of its own: the new word, or SL_WORD_BUSY where
 * the verdict is SL_OVER (no step ever gives that word).
 */
SL_GLOBAL u64 table_step(const struct sl_params *p, u64 mono_ns, u64 utc_ns, u64 word, u64 cost)
{
	struct sl_now now = { .mono_ns = mono_ns, .utc_ns = utc_ns };
	struct sl_result res;

	if (!p)
		return SL_WORD_BUSY;
	res = sl_step(word, p, now, cost);
	return res.verdict == SL_PASS ? res.word : SL_WORD_BUSY;
}

/* The weight of a way of any limit: 0 for empty, dead, or of a limit that is gone. */
SL_GLOBAL u32 table_weight(const struct sl_rules *rules, const struct packet *pkt, u64 key,
			   u64 word)
{
	const struct sl_limit *limit;

	if (!rules || !pkt || !key)
		return 0;
	if (word == SL_WORD_BUSY)
		return 255;
	limit = table_limit_of(rules, key);
	return limit ? sl_weight(word, &limit->params, pkt->now) : 0;
}

/* The same, inline for what is usual: an empty way, a dead word of the same limit. */
static __always_inline u32 table_weigh(const struct sl_rules *rules, const struct packet *pkt,
				       const struct sl_limit *limit, u64 key, u64 word)
{
	if (!key)
		return word == SL_WORD_BUSY ? 255 : 0;
	if (sl_key_slot(key) == limit->slot && sl_dead(word, &limit->params, pkt->now))
		return 0;
	return table_weight(rules, pkt, key, word);
}

/* Whether a way can be taken at no loss. */
static __always_inline int table_is_free(const struct sl_rules *rules, const struct packet *pkt,
					 const struct sl_limit *limit, const struct sl_way *way)
{
	u64 key = read_once(&way->key), word = read_once(&way->word);

	if (key && sl_key_slot(key) == limit->slot)
		return word != SL_WORD_BUSY && sl_dead(word, &limit->params, pkt->now);
	return table_weigh(rules, pkt, limit, key, word) == 0;
}

/* A free way of one set, and how many it has. */
static __always_inline struct sl_way *table_free_way(const struct sl_rules *rules,
						     const struct packet *pkt,
						     const struct sl_limit *limit,
						     struct sl_set *set, u32 *ret_count)
{
	struct sl_way *found = NULL;
	u32 i;

	*ret_count = 0;
	for (i = 0; i < SL_WAYS; i++) {
		if (!table_is_free(rules, pkt, limit, &set->way[i]))
			continue;
		found = &set->way[i];
		(*ret_count)++;
	}
	return found;
}

/* The lightest way of one set, if lighter than *weight. */
static __always_inline struct sl_way *table_lightest(const struct sl_rules *rules,
						     const struct packet *pkt, struct sl_set *set,
						     struct sl_way *best, u32 *weight)
{
	u32 i;

	for (i = 0; i < SL_WAYS; i++) {
		u32 w = table_weight(rules, pkt, read_once(&set->way[i].key),
				     read_once(&set->way[i].word));

		if (w < *weight) {
			*weight = w;
			best = &set->way[i];
		}
	}
	return best;
}

/* Counts a live word that makes room for another. */
static __always_inline void table_count_evicted(const struct sl_rules *rules,
						const struct packet *pkt, u64 key, u64 word)
{
	const struct sl_limit *limit = key ? table_limit_of(rules, key) : NULL;
	struct sl_limit_stats *stats;

	if (!limit || sl_dead(word, &limit->params, pkt->now))
		return;
	stats = map_limit_stats(limit->slot);
	if (!stats) {
		count_map_error(SL_ME_STATS_LOOKUP);
		return;
	}
	stats->evicted++;
	stats->forgiven += sl_used(word, &limit->params, pkt->now);
}

/*
 * Where a new key goes: a free way of the set that has more of them; where neither has one,
 * the lightest of the eight if it is light enough. NULL: full.
 */
static __always_inline struct sl_way *table_victim(const struct sl_rules *rules,
						   const struct packet *pkt,
						   const struct sl_limit *limit, u64 key)
{
	struct sl_set *a = map_table_set(sl_key_set(key, 0, env_table_sets()));
	struct sl_set *b = map_table_set(sl_key_set(key, 1, env_table_sets()));
	struct sl_way *way_a, *way_b, *best = NULL;
	u32 free_a, free_b, weight = TABLE_VICTIM_MAX;

	if (!a || !b) {
		count_map_error(SL_ME_TABLE_LOOKUP);
		return NULL;
	}
	way_a = table_free_way(rules, pkt, limit, a, &free_a);
	way_b = table_free_way(rules, pkt, limit, b, &free_b);
	if (free_a || free_b)
		return free_a >= free_b ? way_a : way_b;
	best = table_lightest(rules, pkt, a, best, &weight);
	return table_lightest(rules, pkt, b, best, &weight);
}

/* Puts a key in that was not there, with `word`. */
SL_GLOBAL u32 table_install(const struct sl_rules *rules, const struct packet *pkt,
			    const struct sl_limit *limit, u64 key, u64 word)
{
	struct sl_global_stats *stats;
	struct sl_way *way;
	u64 old_key, old;

	if (!rules || !pkt || !limit)
		return CHARGE_FULL;
	way = table_victim(rules, pkt, limit, key);
	if (!way)
		return CHARGE_FULL;
	old_key = read_once(&way->key);
	old = read_once(&way->word);
	if (old == SL_WORD_BUSY || __sync_val_compare_and_swap(&way->word, old, SL_WORD_BUSY) != old)
		return CHARGE_RETRY;
	/* The way is ours. Was it still the one that was weighed? */
	if (read_once(&way->key) != old_key ||
	    table_weigh(rules, pkt, limit, old_key, old) >= TABLE_VICTIM_MAX) {
		__sync_lock_test_and_set(&way->word, old);
		return CHARGE_RETRY;
	}
	__sync_lock_test_and_set(&way->key, key);
	if (table_find(key, way)) {
		__sync_lock_test_and_set(&way->key, 0);
		__sync_lock_test_and_set(&way->word, 0);
		return CHARGE_RETRY;
	}
	__sync_lock_test_and_set(&way->word, word);
	table_count_evicted(rules, pkt, old_key, old);
	stats = map_global_stats();
	if (stats)
		stats->inserted++;
	return CHARGE_PASS;
}

#endif
