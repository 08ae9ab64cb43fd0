// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * counters_sweep.c - visits the whole table, a part at a time: removes expired entries, counts live
 * ones, and frees unused classes.
 *
 * An expired entry acts as a missing one, and a new key may replace it. It has to be removed
 * because bucket states count windows modulo a power of two: after that many windows it would be
 * live again.
 *
 * A lookup of a class shows that a request came (counters_class.c): without any the sweep is
 * slower, and rests once a whole round has found nothing.
 */
#include "counters/counters_table.h"

/* A set takes 20 to 100 ns: a step is below a millisecond. */
#define STEP_SETS 4096

static void sweep_set(struct counters *counters, u32 at, struct sl_now now)
{
	struct counters_set *set = &counters->set[at];
	bool any = false;

	/* Skips an empty set without locking it; a key added in the meantime is live. */
	for (u32 way = 0; way < COUNTERS_WAYS; way++)
		any |= __atomic_load_n(&set->key[way], __ATOMIC_RELAXED) != 0;
	if (!any)
		return;
	counters_lock_set(counters, at);
	for (u32 way = 0; way < COUNTERS_WAYS; way++) {
		const struct spec *spec;

		if (!set->key[way])
			continue;
		if (!counters_way_utilization(counters, set, way, now)) {
			counters_way_free(counters, set, way);
			continue;
		}
		spec = counters_spec(counters, set->class[way]);
		counters->classes->seen[set->class[way]] = 1;
		counters->count_now[spec->algo]++;
	}
	counters_unlock_set(counters, at);
}

static void round_over(struct counters *counters)
{
	u64 entries = 0;

	for (u32 i = 0; i < SL_ALGO_COUNT; i++) {
		entries += counters->count_now[i];
		__atomic_store_n(&counters->count[i], counters->count_now[i], __ATOMIC_RELAXED);
		counters->count_now[i] = 0;
	}
	counters->sweep_at = 0;
	counters->sweep_busy = counters_classes_touched(counters);
	counters->sweep_rests =
		!counters_classes_reclaim(counters) && !entries && !counters->sweep_busy;
}

static void sweep(struct counters *counters, struct sl_now now, u32 sets)
{
	pthread_mutex_lock(&counters->sweep_lock);
	while (sets--) {
		sweep_set(counters, counters->sweep_at, now);
		if (++counters->sweep_at < counters->sets)
			continue;
		round_over(counters);
		break;
	}
	pthread_mutex_unlock(&counters->sweep_lock);
}

bool counters_sweep(struct counters *counters, struct sl_now now)
{
	bool touched = counters_classes_touched(counters);

	if (touched || !counters->sweep_rests)
		sweep(counters, now, STEP_SETS);
	return touched || counters->sweep_busy;
}

void counters_sweep_all(struct counters *counters, struct sl_now now)
{
	pthread_mutex_lock(&counters->sweep_lock);
	counters->sweep_at = 0;
	for (u32 i = 0; i < SL_ALGO_COUNT; i++)
		counters->count_now[i] = 0;
	pthread_mutex_unlock(&counters->sweep_lock);
	sweep(counters, now, counters->sets);
}

void counters_stats(struct counters *counters, struct counters_stats *ret)
{
	*ret = (struct counters_stats){
		.room = counters->users,
		/* Includes a lock for each set, and the classes ever used. */
		.bytes = counters->map_bytes + counters->sets -
			 (COUNTERS_CLASSES - 1 - counters->classes->most) * sizeof(struct spec_def),
		.log_bytes = (u64)counters->logs.chunks * sizeof(struct request_chunk),
		.log_used = request_logs_used(&counters->logs) * sizeof(struct request_chunk),
		.evicted = __atomic_load_n(&counters->evicted, __ATOMIC_RELAXED),
		.evicted_units = __atomic_load_n(&counters->evicted_units, __ATOMIC_RELAXED),
	};
	for (u32 i = 0; i < SL_ALGO_COUNT; i++)
		ret->entries[i] = __atomic_load_n(&counters->count[i], __ATOMIC_RELAXED);
}
