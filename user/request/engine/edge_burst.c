// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * edge_burst.c - see edge_burst.h. A table of one place for each hash. A place that another thread is at
 * is left alone: the result is a lower bound in any case, and no decision waits.
 */
#include "request/engine/edge_burst.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define PARTS 16

struct place {
	u64 key;		/* 0: free */
	u64 part;		/* the number of the last one that something passed in */
	u64 window_ns;
	u64 until_ns;		/* then it is free again */
	u64 passed[PARTS];
	bool busy;
};

struct edge_bursts {
	struct place place[EDGE_SAMPLE];
};

struct edge_bursts *edge_bursts_new(void)
{
	return calloc(1, sizeof(struct edge_bursts));
}

void edge_bursts_free(struct edge_bursts *bursts)
{
	free(bursts);
}

/* Whether the place is the key's, from now on at least. */
static bool take_place(struct place *place, u64 key, u64 window_ns, u64 now_ns)
{
	if (place->key == key && place->window_ns == window_ns)
		return true;
	if (place->key != key && place->key && now_ns < place->until_ns)
		return false;
	place->key = key;
	place->window_ns = window_ns;
	place->part = 0;
	memset(place->passed, 0, sizeof(place->passed));
	return true;
}

static u64 add(struct place *place, u64 part, u64 cost)
{
	u64 sum = 0;

	/* A thread that was faster may have a later time. */
	if (part < place->part)
		part = place->part;
	if (part - place->part >= PARTS)
		memset(place->passed, 0, sizeof(place->passed));
	else
		for (u64 gone = place->part + 1; gone <= part; gone++)
			place->passed[gone % PARTS] = 0;
	place->part = part;
	place->passed[part % PARTS] += cost;
	for (u32 i = 0; i < PARTS; i++)
		sum += place->passed[i];
	return sum;
}

u64 edge_burst_note(struct edge_bursts *bursts, u64 key, u64 window_ns, u64 now_ns, u64 cost)
{
	struct place *place = &bursts->place[key % EDGE_SAMPLE];
	u64 sum = 0;

	if (window_ns < PARTS || __atomic_exchange_n(&place->busy, true, __ATOMIC_ACQUIRE))
		return 0;
	if (take_place(place, key, window_ns, now_ns)) {
		sum = add(place, now_ns / (window_ns / PARTS), cost);
		place->until_ns = now_ns + window_ns;
	}
	__atomic_store_n(&place->busy, false, __ATOMIC_RELEASE);
	return sum;
}
