/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * delay_heap.h - a worker's delayed requests in order of their next try: a binary heap in an array.
 * Each member has its index, so that it can be removed from the middle.
 */
#ifndef SLUICE_HTTP_DELAY_HEAP_H
#define SLUICE_HTTP_DELAY_HEAP_H

#include <errno.h>
#include <stdlib.h>

#include "sluice/types.h"

struct delay_timer {
	u64 at_ns;
	u32 index; /* in the heap */
};

struct delay_heap {
	struct delay_timer **at;
	u32 count, room;
};

static inline void delay_heap_set(struct delay_heap *heap, u32 index, struct delay_timer *timer)
{
	heap->at[index] = timer;
	timer->index = index;
}

/* Puts the member at `index` where its time belongs. */
static inline void delay_heap_sift(struct delay_heap *heap, u32 index)
{
	struct delay_timer *timer = heap->at[index];
	u32 next;

	while (index && heap->at[(index - 1) / 2]->at_ns > timer->at_ns) {
		delay_heap_set(heap, index, heap->at[(index - 1) / 2]);
		index = (index - 1) / 2;
	}
	while ((next = 2 * index + 1) < heap->count) {
		if (next + 1 < heap->count && heap->at[next + 1]->at_ns < heap->at[next]->at_ns)
			next++;
		if (heap->at[next]->at_ns >= timer->at_ns)
			break;
		delay_heap_set(heap, index, heap->at[next]);
		index = next;
	}
	delay_heap_set(heap, index, timer);
}

static inline int delay_heap_add(struct delay_heap *heap, struct delay_timer *timer)
{
	if (heap->count == heap->room) {
		u32 room = heap->room ? 2 * heap->room : 64;
		struct delay_timer **at = realloc(heap->at, room * sizeof(*at));

		if (!at)
			return -ENOMEM;
		heap->at = at;
		heap->room = room;
	}
	delay_heap_set(heap, heap->count, timer);
	delay_heap_sift(heap, heap->count++);
	return 0;
}

static inline void delay_heap_move(struct delay_heap *heap, struct delay_timer *timer, u64 at_ns)
{
	timer->at_ns = at_ns;
	delay_heap_sift(heap, timer->index);
}

static inline void delay_heap_del(struct delay_heap *heap, struct delay_timer *timer)
{
	u32 index = timer->index;

	if (index == --heap->count)
		return;
	delay_heap_set(heap, index, heap->at[heap->count]);
	delay_heap_sift(heap, index);
}

#endif
