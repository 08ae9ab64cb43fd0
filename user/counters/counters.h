/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * counters.h - where the bucket states of the HTTP tier live: one mapped file, of a size fixed at
 * start.
 *
 * It outlives the daemon: a new one maps the same file and continues (kill -9, an upgrade). A
 * bucket state is found by a 64-bit keyed hash (SipHash-1-3 under a random seed kept in the file);
 * an entry has the class of its limit (struct spec, interned in the file), so that dead entries,
 * weights and rescaling after a rate change need no rule. Sets of seven {key, bucket state} and
 * their classes fill two cache lines; a key has two candidate sets. Eviction as in the packet tier
 * (docs/algorithms.md): expired ones first, then the live bucket state of least weight; one at half
 * its limit or more never.
 *
 * All or none needs all bucket states of a call at once: counters_lock() takes the sets of all its
 * keys, in one order, so two calls that share a key are one after the other, and nothing has to be
 * refunded. Locks are the process's, not the file's.
 */
#ifndef SLUICE_HTTP_COUNTERS_H
#define SLUICE_HTTP_COUNTERS_H

#include "limiter/spec.h"
#include "lib/err.h"
#include "sluice/key.h"

#define COUNTERS_CALLERS 4096	/* that are told apart by number; callers.h */

struct counters;

/*
 * path NULL: memory of this process alone. `users`: entries there is room for, all live.
 * `log_bytes`: memory for sliding logs. A file of another size or layout is moved over where
 * that is possible, else begun anew. One that can only be read, or for which there is no room, is
 * read, and counts go on in memory until counters_sync() can write them. Damaged blocks are taken
 * out. counters_note() reports all of that.
 */
int counters_open(const char *path, u64 users, u64 log_bytes, struct counters **ret,
		  struct sl_err *err);
void counters_close(struct counters *counters);		/* NULL is fine */
/*
 * What becomes of a call whose bucket states find no place: charged nowhere (the default), or
 * RESPONSE_CLOSED. Before the store is used.
 */
void counters_on_full(struct counters *counters, bool closed);
/*
 * There are limits that many nodes have in common (`scope: cluster`): their keys begin with a
 * seed that all nodes have, and their windows are by the cluster store's clock. Before the counter
 * table is used. Returns where to publish how far that clock is ahead of this machine's UTC, in
 * ns, whenever it is known better; atomic.
 */
s64 *counters_set_quotas(struct counters *counters, struct sl_seed seed);
/*
 * Has what changed on disk, and checked, when it returns. Where the file is gone, or could not be
 * made at the start, it is written anew. It may take seconds: for a thread that has nothing else
 * to do. 0 or -errno. A killed daemon loses nothing without it; a machine without power does.
 */
int counters_sync(struct counters *counters);
/* How often the file was recreated because it had been deleted or never existed. */
u64 counters_rewrites(const struct counters *counters);
/* Notes about the file (recreated, moved to another size); "" none. */
const char *counters_note(const struct counters *counters);

/*
 * Now, for steps: mono_ns is never behind what any earlier process on this file had, also
 * over a reboot; utc_ns is the wall clock.
 */
struct sl_now counters_now(struct counters *counters);

struct counters_stats {
	u64 entries[SL_ALGO_COUNT];	/* live */
	u64 room;			/* entries there is room for */
	u64 bytes, log_bytes, log_used;
	u64 evicted, evicted_units;		/* live bucket states that had to go; the requests they had counted */
};
/* At once: entries are those that the last whole round of the sweep found. */
void counters_stats(struct counters *counters, struct counters_stats *ret);
/*
 * One step of the sweep that takes expired entries, logs and unused classes out; from a timer,
 * often enough for a round (4096 sets, 21845 users a step) to take seconds. Below a millisecond.
 */
void counters_sweep(struct counters *counters, struct sl_now now);
/* A whole round. */
void counters_sweep_all(struct counters *counters, struct sl_now now);

#endif
