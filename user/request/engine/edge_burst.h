/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * edge_burst.h - how much of one value passed within one window's length, across the edge of a fixed
 * window: up to twice the limit can.
 *
 * Of a sample of values that requests come from now, the passed units by sixteenths of a window. So a
 * result is what did pass within one window's length; what began up to a sixteenth earlier is not in
 * it. Memory is fixed; a value keeps its place until nothing of it has passed for a window.
 */
#ifndef SLUICE_HTTP_EDGE_BURST_H
#define SLUICE_HTTP_EDGE_BURST_H

#include "sluice/types.h"

#define EDGE_SAMPLE 2048	/* values at a time, of all limits */

struct edge_bursts;

struct edge_bursts *edge_bursts_new(void);		/* NULL: no memory */
void edge_bursts_free(struct edge_bursts *bursts);	/* NULL is fine */

/*
 * `cost` units of a bucket pass now, on any clock that is not set. Returns how many of it passed within
 * the last window, with these; 0: it is not in the sample, or another thread is at its place. Any thread.
 */
u64 edge_burst_note(struct edge_bursts *bursts, u64 key, u64 window_ns, u64 now_ns, u64 cost);

#endif
