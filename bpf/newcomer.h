/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * newcomer.h - a source without a bucket gets one: the usual case in one call. table.h has all
 * cases.
 */
#ifndef SLUICE_BPF_NEWCOMER_H
#define SLUICE_BPF_NEWCOMER_H

#include "bpf/table.h"
#include "bpf/evaluation.h"

/* Whether a bucket can be overwritten at no loss, as far as that is known without its own limit. */
static __always_inline int table_is_spent(const struct packet *pkt, const struct sl_limit *limit,
					  u64 key, u64 bucket_state)
{
	return !key || (sl_key_limit_id(key) == limit->slot &&
			sl_expired(bucket_state, &limit->params, packet_time(pkt)));
}

/*
 * Finds a free way as table_free_way() does, in one set. *ret_other is set if the set has a record,
 * the key, or a way that another CPU is changing.
 */
static __always_inline u32 table_spent_way(const struct packet *pkt, const struct sl_limit *limit,
					   struct sl_set *set, u64 key, u32 *ret_count,
					   u64 *ret_other)
{
	u64 seen, bucket_state;
	u32 i, is_free, found = 0;

	*ret_count = 0;
	for (i = 0; i < SL_WAYS; i++) {
		seen = read_once(&set->way[i].key);
		bucket_state = read_once(&set->way[i].bucket_state);
		*ret_other |= seen >> 63 | (bucket_state == SL_STATE_BUSY) | sl_key_is(seen, key);
		is_free = table_is_spent(pkt, limit, seen, bucket_state);
		FORGET(pkt, is_free);
		found = is_free ? i : found;
		*ret_count += is_free;
		FORGET(pkt, found);
		FORGET(pkt, *ret_count);
		FORGET(pkt, *ret_other);
	}
	return found;
}

/*
 * table_recorded(), table_victim() and table_install() in one piece, where both sets have buckets
 * only, and one of them is spent. Else ATTEMPT_AGAIN, and nothing was written.
 */
static __always_inline enum attempt
table_newcomer(const struct packet *pkt, const struct sl_limit *limit, u64 key, u64 bucket_state)
{
	struct sl_set *a = map_table_set(sl_table_set(key, 0, env_table_sets()));
	struct sl_set *b = map_table_set(sl_table_set(key, 1, env_table_sets()));
	u32 free_a, free_b, way_a, way_b;
	struct sl_way seen, *way;
	u64 other = 0;

	if (!a || !b)
		return ATTEMPT_AGAIN;
	way_a = table_spent_way(pkt, limit, a, key, &free_a, &other);
	way_b = table_spent_way(pkt, limit, b, key, &free_b, &other);
	if (other || !(free_a | free_b))
		return ATTEMPT_AGAIN;
	way = free_a >= free_b ? &a->way[way_a & (SL_WAYS - 1)] : &b->way[way_b & (SL_WAYS - 1)];
	seen.key = read_once(&way->key);
	seen.bucket_state = read_once(&way->bucket_state);
	if (!table_is_spent(pkt, limit, seen.key, seen.bucket_state) || !table_lock(way, seen))
		return ATTEMPT_AGAIN;
	if (__sync_val_compare_and_swap(&way->key, seen.key, key) != seen.key) {
		__sync_lock_test_and_set(&way->bucket_state, seen.bucket_state);
		return ATTEMPT_AGAIN;
	}
	return table_publish(way, key, bucket_state);
}

/*
 * A source that has no bucket gets one, in one call instead of the six and more of charge_limit():
 * in a flood of forged sources nearly every packet comes here. ATTEMPT_AGAIN as of
 * charge_quickly().
 */
SL_GLOBAL enum attempt charge_newcomer(const struct sl_limit *meter, struct evaluation *ev)
{
	const struct sl_params *params;
	struct sl_result res;

	if (!meter || !ev)
		return ATTEMPT_AGAIN;
	params = ev->meter.own_params ? &ev->meter.params : &meter->params;
	clock_read(&ev->pkt);
	res = sl_step(0, params, packet_time(&ev->pkt), ev->meter.cost);
	if (res.verdict == SL_OVER)
		return ATTEMPT_AGAIN;
	return table_newcomer(&ev->pkt, meter, ev->meter.key, res.bucket_state);
}

#endif
