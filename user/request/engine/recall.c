// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* recall.c - see recall.h. */
#include <stdlib.h>

#include "request/engine/recall.h"
#include "sluice/algo.h"

#define PLACES 65536
#define AGAIN_MS 1000
#define AGAIN_MAX 1000			/* in a second, of all keys */
#define NS_PER_MS 1000000ULL
#define COST_BITS 24
#define COST_MAX (SL_BIT(COST_BITS) - 1)

struct place {
	u64 check;		/* key ^ until ^ asked */
	u64 until;		/* when it may fit, in ms, above the cost that was refused */
	u64 asked;		/* in ms: when the store was asked last; 0 never */
};

struct recall {
	struct place place[PLACES];
	u64 asked;			/* the second, above how many were asked for in it */
};

struct recall *recall_new(void)
{
	return calloc(1, sizeof(struct recall));
}

void recall_free(struct recall *recall)
{
	free(recall);
}

/* The upper bits: the lower ones pick the slot of queues and the like. */
static u32 place_of(u64 key)
{
	return (key >> 40) % PLACES;
}

static bool read_place(const struct recall *recall, u64 key, struct place *ret)
{
	const struct place *place = &recall->place[place_of(key)];

	ret->check = __atomic_load_n(&place->check, __ATOMIC_RELAXED);
	ret->until = __atomic_load_n(&place->until, __ATOMIC_RELAXED);
	ret->asked = __atomic_load_n(&place->asked, __ATOMIC_RELAXED);
	return (ret->check ^ ret->until ^ ret->asked) == key;
}

static void write_place(struct recall *recall, u64 key, u64 until, u64 asked)
{
	struct place *place = &recall->place[place_of(key)];

	__atomic_store_n(&place->check, key ^ until ^ asked, __ATOMIC_RELAXED);
	__atomic_store_n(&place->until, until, __ATOMIC_RELAXED);
	__atomic_store_n(&place->asked, asked, __ATOMIC_RELAXED);
}

void recall_note(struct recall *recall, u64 key, u64 cost, u64 wait_ns, u64 now_ns)
{
	u64 now_ms = now_ns / NS_PER_MS, left_ms = (SL_BIT(40) - 1) - now_ms;
	u64 wait_ms = wait_ns / NS_PER_MS;

	if (wait_ms > left_ms)
		wait_ms = left_ms;
	write_place(recall, key,
		    (now_ms + wait_ms) << COST_BITS | (cost < COST_MAX ? cost : COST_MAX), now_ms);
}

u64 recall_wait(const struct recall *recall, u64 key, u64 cost, u64 now_ns)
{
	u64 now_ms = now_ns / NS_PER_MS, until_ms;
	struct place place;

	if (!read_place(recall, key, &place) || !place.until || cost < (place.until & COST_MAX))
		return 0;
	until_ms = place.until >> COST_BITS;
	return until_ms > now_ms ? (until_ms - now_ms) * NS_PER_MS : 0;
}

/*
 * However many are refused, or take each other's places: the store is not to notice. (Two threads at
 * once may count as one.)
 */
static bool may_ask(struct recall *recall, u64 now_ms)
{
	u64 second = now_ms / 1000 << 32, asked = __atomic_load_n(&recall->asked, __ATOMIC_RELAXED);

	if (asked >> 32 != second >> 32)
		asked = second;
	if ((u32)asked >= AGAIN_MAX)
		return false;
	__atomic_store_n(&recall->asked, asked + 1, __ATOMIC_RELAXED);
	return true;
}

bool recall_due(struct recall *recall, u64 key, u64 now_ns)
{
	u64 now_ms = now_ns / NS_PER_MS;
	struct place place;

	if (!read_place(recall, key, &place))
		place.until = place.asked = 0;
	if ((place.asked && now_ms < place.asked + AGAIN_MS) || !may_ask(recall, now_ms))
		return false;
	write_place(recall, key, place.until, now_ms);
	return true;
}

void recall_forget(struct recall *recall, u64 key)
{
	struct place place;

	/* A check that is no key's, with these. */
	if (read_place(recall, key, &place))
		__atomic_store_n(&recall->place[place_of(key)].check, ~key ^ place.until ^ place.asked,
				 __ATOMIC_RELAXED);
}
