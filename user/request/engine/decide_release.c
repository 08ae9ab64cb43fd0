// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * decide_release.c - the end of a request in flight releases its units of concurrency.
 *
 * A permit has the keys of the buckets and the time at which the request took a unit of each, so no
 * rule is needed: rules, overrides and prefixes may have changed since. The time is needed as well.
 * A bucket counts requests by the time at which they began, and only so do those expire whose end
 * is lost: if an end removed any request, a lost one would either never expire under steady
 * traffic, or requests that still run would.
 */
#include "request/engine/decide_private.h"
#include "request/engine/report_ids.h"

/* Each deciding thread writes its number, below this, into the last bits of a permit's time. */
#define PERMIT_THREADS 256

/* An end that is reported again would release a unit of another request of the same time. */
static bool is_repeated(const struct ledger *ledger, const struct permit *permit, struct sl_now now)
{
	struct bytes id = { (const char *)permit,
			    offsetof(struct permit, key) + permit->count * sizeof(permit->key[0]) };

	return ledger->ended && !report_ids_first(ledger->ended, (struct bytes){ NULL, 0 }, id,
						  now.mono_ns / SL_NS_PER_SEC);
}

u64 decide_permit_time(u64 now_ns)
{
	static u32 threads;
	static _Thread_local u32 number;

	if (!number)
		number = __atomic_add_fetch(&threads, 1, __ATOMIC_RELAXED);
	return (now_ns & ~(u64)(PERMIT_THREADS - 1)) - PERMIT_THREADS + number % PERMIT_THREADS;
}

u32 decide_release(const struct ledger *ledger, const struct permit *permit, struct sl_now now)
{
	struct counters_ref ref[PERMIT_UNITS_MAX];
	struct sl_now then = { .mono_ns = permit->at_ns };
	struct counters_locks locks;
	u32 released = 0;

	if (!permit->count || is_repeated(ledger, permit, now))
		return 0;
	for (u32 i = 0; i < permit->count; i++)
		ref[i].key = permit->key[i];
	store_begin(ledger->counters, &locks, ref, permit->count);
	for (u32 i = 0; i < permit->count; i++)
		released += counters_release(ledger->counters, permit->key[i], then, now);
	counters_end(&locks);
	return released;
}
