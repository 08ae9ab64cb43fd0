/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * edge_burst.h - how much of one value or source passed within one window's length, across the edge
 * of a fixed window: up to twice the limit can.
 *
 * Of a sample of those that come now, the passed units by sixteenths of a window. So a result is
 * what did pass within one window's length; what began up to a sixteenth earlier is not in it.
 * Memory is fixed; a value keeps its place until nothing of it has passed for a window. See
 * decision 0073.
 */
#ifndef SLUICE_LIB_EDGE_BURST_H
#define SLUICE_LIB_EDGE_BURST_H

#include "sluice/types.h"

#define EDGE_SAMPLE 2048 /* values at a time, of all limits */
#define EDGE_PARTS 16	 /* of a window */

struct edge_bursts;

struct edge_bursts *edge_bursts_new(void);	   /* NULL: no memory */
void edge_bursts_free(struct edge_bursts *bursts); /* NULL is fine */

/*
 * `cost` units of a bucket pass now, on any clock that is not set. Returns how many of it passed
 * within the last window, with these; 0: it is not in the sample, or another thread is at its
 * place. Any thread.
 */
u64 edge_burst_note(struct edge_bursts *bursts, u64 key, u64 window_ns, u64 now_ns, u64 cost);

/*
 * Of a limit that changes: the capacity that something passes by now. Returns the largest one by
 * which something passed within the last window; 0: the value is not in the sample. After the
 * functions that note what passes.
 */
u64 edge_burst_capacity(struct edge_bursts *bursts, u64 key, u64 window_ns, u64 now_ns,
			u64 capacity);

/* A bucket that others charge as well, as read now. */
struct edge_reading {
	u64 window_ns;
	u64 elapsed_ns; /* since the window of `count` began, give or take less than half of one */
	u64 since_ns;	/* a time at which all of `count` was still to come; 0: not known */
	u64 count;
	u64 cost; /* the part of it that passes right now */
};

/*
 * The same by readings of its count. What came since the last reading, less `cost`, may have passed
 * at any time since then, and counts from that time on: so a result is never too large. What passed
 * between the last reading and an edge is not in it.
 */
u64 edge_burst_read(struct edge_bursts *bursts, u64 key, const struct edge_reading *reading,
		    u64 now_ns);

#endif
