/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * wait_heap.h - a worker's held answers by when they are to be looked at next: a binary heap in
 * an array, whose members know where they are, so that one can leave from the middle.
 */
#ifndef SLUICE_HTTP_WAIT_HEAP_H
#define SLUICE_HTTP_WAIT_HEAP_H

#include <errno.h>
#include <stdlib.h>

#include "sluice/types.h"

struct wait_timer {
	u64 at_ns;
	u32 index;		/* in the heap */
};

struct wait_heap {
	struct wait_timer **at;
	u32 count, room;
};

static inline void wait_heap_set(struct wait_heap *heap, u32 index, struct wait_timer *timer)
{
	heap->at[index] = timer;
	timer->index = index;
}

/* Puts the member at `index` where its time belongs. */
static inline void wait_heap_sift(struct wait_heap *heap, u32 index)
{
	struct wait_timer *timer = heap->at[index];
	u32 next;

	while (index && heap->at[(index - 1) / 2]->at_ns > timer->at_ns) {
		wait_heap_set(heap, index, heap->at[(index - 1) / 2]);
		index = (index - 1) / 2;
	}
	while ((next = 2 * index + 1) < heap->count) {
		if (next + 1 < heap->count && heap->at[next + 1]->at_ns < heap->at[next]->at_ns)
			next++;
		if (heap->at[next]->at_ns >= timer->at_ns)
			break;
		wait_heap_set(heap, index, heap->at[next]);
		index = next;
	}
	wait_heap_set(heap, index, timer);
}

static inline int wait_heap_add(struct wait_heap *heap, struct wait_timer *timer)
{
	if (heap->count == heap->room) {
		u32 room = heap->room ? 2 * heap->room : 64;
		struct wait_timer **at = realloc(heap->at, room * sizeof(*at));

		if (!at)
			return -ENOMEM;
		heap->at = at;
		heap->room = room;
	}
	wait_heap_set(heap, heap->count, timer);
	wait_heap_sift(heap, heap->count++);
	return 0;
}

static inline void wait_heap_move(struct wait_heap *heap, struct wait_timer *timer, u64 at_ns)
{
	timer->at_ns = at_ns;
	wait_heap_sift(heap, timer->index);
}

static inline void wait_heap_del(struct wait_heap *heap, struct wait_timer *timer)
{
	u32 index = timer->index;

	if (index == --heap->count)
		return;
	wait_heap_set(heap, index, heap->at[heap->count]);
	wait_heap_sift(heap, index);
}

#endif
