/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * counters.h - the counter table: the bucket states of the HTTP tier in one mapped file, of a size
 * fixed at start.
 *
 * It outlives the daemon: a new one maps the same file and continues (kill -9, an upgrade). A
 * bucket state is found by a 64-bit keyed hash (SipHash-1-3 under a random seed kept in the file);
 * an entry has the class of its limit (struct spec, interned in the file), so that expiry,
 * utilization and rescaling after a rate change need no rule. Sets of seven {key, bucket state} and
 * their classes fill two cache lines; a key has two candidate sets. Eviction as in the packet tier
 * (docs/algorithms.md): expired ones first, then the live bucket state of least utilization, but
 * never one at half its limit or more.
 *
 * To charge all or none, all bucket states of a request are locked together: counters_lock() locks
 * the sets of all keys, in ascending order. Requests with a common key run one after the other, and
 * no charge has to be refunded. Locks belong to the process, not to the file.
 */
#ifndef SLUICE_HTTP_COUNTERS_H
#define SLUICE_HTTP_COUNTERS_H

#include "limiter/spec.h"
#include "lib/err.h"
#include "sluice/key.h"

#define COUNTERS_CALLERS 4096 /* callers that have different numbers; callers.h */

struct counters;

/*
 * path NULL: private memory of this process. `users`: the number of live entries that must fit.
 * `log_bytes`: memory for sliding logs. A file of another size or layout is converted if possible,
 * else created again. A file that is not writable, or has no space on disk, is read, and counts
 * continue in memory: counters_not_kept(). Blocks that a crash of the machine damaged are emptied.
 * counters_note() reports each of these.
 */
int counters_open(const char *path, u64 users, u64 log_bytes, struct counters **ret,
		  struct sl_err *err);
void counters_close(struct counters *counters); /* NULL is fine */
/*
 * The result of a request whose bucket states find no place: not charged (the default), or
 * RESPONSE_CLOSED. Call it before the counter table is used.
 */
void counters_on_full(struct counters *counters, bool closed);
/*
 * Enables limits with `scope: cluster`: their keys use a seed that all nodes have, and their
 * windows the cluster store's clock. Call it before the counter table is used. Returns the address
 * at which the caller publishes the offset of that clock from this machine's UTC, in ns; atomic.
 */
s64 *counters_set_quotas(struct counters *counters, struct sl_seed seed);
/*
 * Writes all changes to disk, with their checks. It may take seconds, so it needs a thread of its
 * own. 0 or -errno. It is needed for a power failure, not for a killed daemon.
 */
int counters_sync(struct counters *counters);
/* Why a restart would lose the counts: no file could be written, or it was deleted. NULL: it would
 * not. */
const char *counters_not_kept(const struct counters *counters);
/* Notes about the file (recreated, moved to another size); "" none. */
const char *counters_note(const struct counters *counters);

/*
 * The current time for steps: mono_ns is never less than in an earlier process with this file, also
 * over a reboot; utc_ns is the wall clock.
 */
struct sl_now counters_now(struct counters *counters);

struct counters_stats {
	u64 entries[SL_ALGO_COUNT]; /* live */
	u64 room;		    /* entries there is room for */
	u64 bytes, log_bytes, log_used;
	u64 evicted, evicted_units; /* live bucket states that were evicted; the requests that they
				       had counted */
};
/* Does not scan the table: entries are from the last complete round of the sweep. */
void counters_stats(struct counters *counters, struct counters_stats *ret);
/*
 * One step of the sweep, which removes expired entries, logs and unused classes (4096 sets, 21845
 * users, in less than a millisecond). True if requests come: then call it again soon, so that a
 * round takes seconds; else once a second. A step does nothing while the table is empty and no
 * requests come.
 */
bool counters_sweep(struct counters *counters, struct sl_now now);
/* A whole round. */
void counters_sweep_all(struct counters *counters, struct sl_now now);

#endif
