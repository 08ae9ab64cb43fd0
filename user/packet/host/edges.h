/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * edges.h - bursts at the edges of windows: how much of one source passed within one window's
 * length, of limits with fixed windows.
 *
 * The counts of a sample of buckets are read sixteen times a window, the last time just before its
 * edge (lib/edge_burst.h). Packets cost nothing. The daemon has to run. See decision 0073.
 */
#ifndef SLUICE_HOST_EDGES_H
#define SLUICE_HOST_EDGES_H

#include "packet/host/host.h"

/*
 * Reads the sample, and looks for more in a part of the table. Returns the time until the next call
 * is due; 0: no limit in force has such a window.
 */
u64 edges_tick(struct packet_host *host, struct sl_now now);
/* The most that passed within a window, in permille of the limit; 0: not known. */
u64 edges_peak(const struct packet_host *host, const struct sl_limit *limit);
void edges_free(struct packet_host *host);

#endif
