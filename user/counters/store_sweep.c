// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * store_sweep.c - going round the table, a part at a time: dead entries are taken out, live ones
 * counted, and classes that nothing uses any more are let go.
 *
 * A dead entry is no different from none, and a new key takes its place all the same; but words
 * count windows modulo a power of two, and one left alone for that many would come alive again.
 */
#include "counters/store_table.h"

/* A set takes 20 to 100 ns: a step is below a millisecond. */
#define STEP_SETS 4096

static void sweep_set(struct store *store, u32 at, struct sl_now now)
{
	struct store_set *set = &store->set[at];
	bool any = false;

	/* Most sets of an empty table; a key that comes in meanwhile is live. */
	for (u32 way = 0; way < STORE_WAYS; way++)
		any |= __atomic_load_n(&set->key[way], __ATOMIC_RELAXED) != 0;
	if (!any)
		return;
	store_lock_set(store, at);
	for (u32 way = 0; way < STORE_WAYS; way++) {
		const struct spec *spec;

		if (!set->key[way])
			continue;
		if (!store_way_weight(store, set, way, now)) {
			store_way_free(store, set, way);
			continue;
		}
		spec = store_spec(store, set->class[way]);
		store->classes->seen[set->class[way]] = 1;
		store->count_now[spec->algo]++;
	}
	store_unlock_set(store, at);
}

static void round_over(struct store *store)
{
	for (u32 i = 0; i < HTTP_ALGO_COUNT; i++) {
		__atomic_store_n(&store->count[i], store->count_now[i], __ATOMIC_RELAXED);
		store->count_now[i] = 0;
	}
	store->sweep_at = 0;
	store_classes_reclaim(store);
}

static void sweep(struct store *store, struct sl_now now, u32 sets)
{
	pthread_mutex_lock(&store->sweep_lock);
	while (sets--) {
		sweep_set(store, store->sweep_at, now);
		if (++store->sweep_at < store->sets)
			continue;
		round_over(store);
		break;
	}
	pthread_mutex_unlock(&store->sweep_lock);
}

void store_sweep(struct store *store, struct sl_now now)
{
	sweep(store, now, STEP_SETS);
}

void store_sweep_all(struct store *store, struct sl_now now)
{
	pthread_mutex_lock(&store->sweep_lock);
	store->sweep_at = 0;
	for (u32 i = 0; i < HTTP_ALGO_COUNT; i++)
		store->count_now[i] = 0;
	pthread_mutex_unlock(&store->sweep_lock);
	sweep(store, now, store->sets);
}

void store_stats(struct store *store, struct store_stats *ret)
{
	*ret = (struct store_stats){
		.room = store->users,
		/* With a lock for each set, and those classes that there ever were. */
		.bytes = store->map_bytes + store->sets -
			 (STORE_CLASSES - 1 - store->classes->most) *
				 (sizeof(struct spec_def) + sizeof(struct store_def_copy)),
		.log_bytes = (u64)store->logs.chunks * sizeof(struct request_chunk),
		.log_used = request_logs_used(&store->logs) * sizeof(struct request_chunk),
		.evicted = __atomic_load_n(&store->evicted, __ATOMIC_RELAXED),
		.forgiven = __atomic_load_n(&store->forgiven, __ATOMIC_RELAXED),
	};
	for (u32 i = 0; i < HTTP_ALGO_COUNT; i++)
		ret->entries[i] = __atomic_load_n(&store->count[i], __ATOMIC_RELAXED);
}
