// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* refusal_cache.c - see refusal_cache.h. */
#include <stdlib.h>

#include "cluster/quota/refusal_cache.h"
#include "sluice/algo.h"

#define ENTRIES 65536
#define AGAIN_MAX 1000 /* retries a second, of all keys */
#define NS_PER_MS 1000000ULL
#define COST_BITS 24
#define COST_MAX (SL_BIT(COST_BITS) - 1)

struct place {
	u64 check;     /* key ^ until ^ requested */
	u64 until;     /* time at which it may fit, in ms, above the refused cost */
	u64 requested; /* in ms: the last retry; 0: never */
};

struct refusal_cache {
	struct place place[ENTRIES];
	u64 requested; /* the present second, above its number of retries */
};

struct refusal_cache *refusal_cache_new(void)
{
	return calloc(1, sizeof(struct refusal_cache));
}

void refusal_cache_free(struct refusal_cache *refusal_cache)
{
	free(refusal_cache);
}

/* The upper bits, because other tables use the lower ones. */
static u32 place_of(u64 key)
{
	return (key >> 40) % ENTRIES;
}

static bool read_place(const struct refusal_cache *refusal_cache, u64 key, struct place *ret)
{
	const struct place *place = &refusal_cache->place[place_of(key)];

	ret->check = __atomic_load_n(&place->check, __ATOMIC_RELAXED);
	ret->until = __atomic_load_n(&place->until, __ATOMIC_RELAXED);
	ret->requested = __atomic_load_n(&place->requested, __ATOMIC_RELAXED);
	return (ret->check ^ ret->until ^ ret->requested) == key;
}

static void write_place(struct refusal_cache *refusal_cache, u64 key, u64 until, u64 requested)
{
	struct place *place = &refusal_cache->place[place_of(key)];

	__atomic_store_n(&place->check, key ^ until ^ requested, __ATOMIC_RELAXED);
	__atomic_store_n(&place->until, until, __ATOMIC_RELAXED);
	__atomic_store_n(&place->requested, requested, __ATOMIC_RELAXED);
}

void refusal_cache_note(struct refusal_cache *refusal_cache, u64 key, u64 cost, u64 wait_ns,
			u64 now_ns)
{
	u64 now_ms = now_ns / NS_PER_MS, left_ms = (SL_BIT(40) - 1) - now_ms;
	u64 wait_ms = wait_ns / NS_PER_MS;

	if (wait_ms > left_ms)
		wait_ms = left_ms;
	write_place(refusal_cache, key,
		    (now_ms + wait_ms) << COST_BITS | (cost < COST_MAX ? cost : COST_MAX), now_ms);
}

u64 refusal_cache_wait(const struct refusal_cache *refusal_cache, u64 key, u64 cost, u64 now_ns)
{
	u64 now_ms = now_ns / NS_PER_MS, until_ms;
	struct place place;

	if (!read_place(refusal_cache, key, &place) || !place.until ||
	    cost < (place.until & COST_MAX))
		return 0;
	until_ms = place.until >> COST_BITS;
	return until_ms > now_ms ? (until_ms - now_ms) * NS_PER_MS : 0;
}

/*
 * Bounds the load on Redis for any number of refused keys. (Two threads at the same time may count
 * as one.)
 */
static bool may_request(struct refusal_cache *refusal_cache, u64 now_ms)
{
	u64 second = now_ms / 1000 << 32,
	    requested = __atomic_load_n(&refusal_cache->requested, __ATOMIC_RELAXED);

	if (requested >> 32 != second >> 32)
		requested = second;
	if ((u32)requested >= AGAIN_MAX)
		return false;
	__atomic_store_n(&refusal_cache->requested, requested + 1, __ATOMIC_RELAXED);
	return true;
}

bool refusal_cache_due(struct refusal_cache *refusal_cache, u64 key, u64 again_ns, u64 now_ns)
{
	u64 now_ms = now_ns / NS_PER_MS;
	struct place place;

	if (!read_place(refusal_cache, key, &place))
		place.until = place.requested = 0;
	if ((place.requested && now_ms < place.requested + again_ns / NS_PER_MS) ||
	    !may_request(refusal_cache, now_ms))
		return false;
	write_place(refusal_cache, key, place.until, now_ms);
	return true;
}

void refusal_cache_forget(struct refusal_cache *refusal_cache, u64 key)
{
	struct place place;

	/* A check that matches no key with these fields. */
	if (read_place(refusal_cache, key, &place))
		__atomic_store_n(&refusal_cache->place[place_of(key)].check,
				 ~key ^ place.until ^ place.requested, __ATOMIC_RELAXED);
}
