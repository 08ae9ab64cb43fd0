// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * edge_burst.c - see edge_burst.h. A table of one place for each hash. A place that another thread
 * is at is left alone: the result is a lower bound in any case, and no decision waits.
 */
#include "lib/edge_burst.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

struct place {
	u64 key;  /* 0: free */
	u64 part; /* the number of the last one that something passed in */
	u64 window_ns;
	u64 until_ns; /* then it is free again */
	u64 passed[EDGE_PARTS];
	/* The last reading; at_ns 0: none. */
	u64 at_ns, began_ns, count;
	/* The largest capacities of the window's length `length`, and of the one before. */
	u64 length, capacity, capacity_before;
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
	place->at_ns = place->length = place->capacity = place->capacity_before = 0;
	memset(place->passed, 0, sizeof(place->passed));
	return true;
}

static u64 add(struct place *place, u64 part, u64 cost)
{
	u64 sum = 0;

	/* A thread that was faster may have a later time. */
	if (part < place->part)
		part = place->part;
	if (part - place->part >= EDGE_PARTS)
		memset(place->passed, 0, sizeof(place->passed));
	else
		for (u64 gone = place->part + 1; gone <= part; gone++)
			place->passed[gone % EDGE_PARTS] = 0;
	place->part = part;
	place->passed[part % EDGE_PARTS] += cost;
	for (u32 i = 0; i < EDGE_PARTS; i++)
		sum += place->passed[i];
	return sum;
}

static struct place *enter(struct edge_bursts *bursts, u64 key, u64 window_ns)
{
	struct place *place = &bursts->place[key % EDGE_SAMPLE];

	if (window_ns < EDGE_PARTS || __atomic_exchange_n(&place->busy, true, __ATOMIC_ACQUIRE))
		return NULL;
	return place;
}

static void leave(struct place *place)
{
	__atomic_store_n(&place->busy, false, __ATOMIC_RELEASE);
}

u64 edge_burst_note(struct edge_bursts *bursts, u64 key, u64 window_ns, u64 now_ns, u64 cost)
{
	struct place *place = enter(bursts, key, window_ns);
	u64 sum = 0;

	if (!place)
		return 0;
	if (take_place(place, key, window_ns, now_ns)) {
		sum = add(place, now_ns / (window_ns / EDGE_PARTS), cost);
		place->until_ns = now_ns + window_ns;
	}
	leave(place);
	return sum;
}

u64 edge_burst_capacity(struct edge_bursts *bursts, u64 key, u64 window_ns, u64 now_ns,
			u64 capacity)
{
	struct place *place = enter(bursts, key, window_ns);
	u64 length = now_ns / window_ns, most = 0;

	if (!place)
		return 0;
	if (place->key == key && place->window_ns == window_ns) {
		if (length > place->length) {
			place->capacity_before = length == place->length + 1 ? place->capacity : 0;
			place->capacity = 0;
			place->length = length;
		}
		if (capacity > place->capacity)
			place->capacity = capacity;
		most = place->capacity > place->capacity_before ? place->capacity
								: place->capacity_before;
	}
	leave(place);
	return most;
}

static u64 read_place(struct place *place, const struct edge_reading *reading, u64 now_ns)
{
	u64 part_ns = reading->window_ns / EDGE_PARTS, fresh, own, sum;
	u64 began_ns = now_ns - (reading->elapsed_ns < now_ns ? reading->elapsed_ns : now_ns);
	bool same = place->at_ns && began_ns < place->began_ns + reading->window_ns / 2;
	u64 known = same ? place->count : 0,
	    since_ns = began_ns > place->at_ns ? began_ns : place->at_ns;

	if (!known && since_ns < reading->since_ns)
		since_ns = reading->since_ns;
	fresh = reading->count > known ? reading->count - known : 0;
	own = fresh < reading->cost ? fresh : reading->cost;
	add(place, since_ns / part_ns, fresh - own);
	sum = add(place, now_ns / part_ns, own);
	if (fresh)
		place->until_ns = now_ns + reading->window_ns;
	place->at_ns = now_ns;
	place->began_ns = began_ns;
	place->count = reading->count;
	return sum;
}

u64 edge_burst_read(struct edge_bursts *bursts, u64 key, const struct edge_reading *reading,
		    u64 now_ns)
{
	struct place *place = enter(bursts, key, reading->window_ns);
	u64 sum = 0;

	if (!place)
		return 0;
	if (take_place(place, key, reading->window_ns, now_ns))
		sum = read_place(place, reading, now_ns);
	leave(place);
	return sum;
}
