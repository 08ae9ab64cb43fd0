/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * timer_heap.h - timers in order of their time: a binary heap in an array. A timer has its
 * position, so that it can be moved or removed from the middle; its owner casts it to what it
 * begins.
 */
#ifndef SLUICE_LIB_TIMER_HEAP_H
#define SLUICE_LIB_TIMER_HEAP_H

#include <errno.h>
#include <stdlib.h>

#include "sluice/types.h"

struct timer {
	u64 at_ns;
	u32 position; /* from 1, the children of p are at 2p and 2p + 1; 0: not set */
};

struct timer_heap {
	struct timer **at; /* the first one to come is at[0] */
	u32 count, room;
};

/* Reserves room for `count` timers. 0 or -ENOMEM. */
static inline int timer_heap_reserve(struct timer_heap *heap, u32 count)
{
	u32 room = heap->room ? heap->room : 64;
	struct timer **at;

	while (room < count)
		room *= 2;
	if (room == heap->room)
		return 0;
	at = reallocarray(heap->at, room, sizeof(*at));
	if (!at)
		return -ENOMEM;
	heap->at = at;
	heap->room = room;
	return 0;
}

static inline void timer_heap_put(struct timer_heap *heap, u32 position, struct timer *timer)
{
	heap->at[position - 1] = timer;
	timer->position = position;
}

/* Puts a timer where its time belongs, from a position that is free. */
static inline void timer_heap_sift(struct timer_heap *heap, u32 position, struct timer *timer)
{
	u32 child;

	while (position > 1 && heap->at[position / 2 - 1]->at_ns > timer->at_ns) {
		timer_heap_put(heap, position, heap->at[position / 2 - 1]);
		position /= 2;
	}
	while ((child = position * 2) <= heap->count) {
		if (child < heap->count && heap->at[child]->at_ns < heap->at[child - 1]->at_ns)
			child++;
		if (heap->at[child - 1]->at_ns >= timer->at_ns)
			break;
		timer_heap_put(heap, position, heap->at[child - 1]);
		position = child;
	}
	timer_heap_put(heap, position, timer);
}

/* Sets or moves a timer; without room for it nothing happens. */
static inline void timer_heap_set(struct timer_heap *heap, struct timer *timer, u64 at_ns)
{
	if (!timer->position) {
		if (heap->count == heap->room)
			return;
		timer->position = ++heap->count;
	}
	timer->at_ns = at_ns;
	timer_heap_sift(heap, timer->position, timer);
}

/* Nothing happens if it is not set. */
static inline void timer_heap_unset(struct timer_heap *heap, struct timer *timer)
{
	u32 position = timer->position;
	struct timer *last;

	if (!position)
		return;
	timer->position = 0;
	last = heap->at[--heap->count];
	if (last != timer)
		timer_heap_sift(heap, position, last);
}

#endif
