/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * dp_state.h - what sources have used of long limits, as a block of memory that outlives a reboot.
 *
 *     dp_state_save() -> dp_state_seal() -> a file ... dp_state_check() -> dp_state_restore()
 *
 * Pins end with the kernel. Of a limit per second that is nothing; of one per day it is a day's
 * worth. So the bucket states of meters that take DP_STATE_LONG_NS or more to be as unused are
 * written down: by the name and kind of their slot, under the seed that their keys were made with,
 * their times in UTC. With them go the records of evicted offenders (sluice/table.h): fingerprints,
 * which are good in a table of the same size alone, under the same seed and slots.
 */
#ifndef SLUICE_DP_STATE_H
#define SLUICE_DP_STATE_H

#include "packet/dataplane/dataplane.h"

#define DP_STATE_LONG_NS (600 * SL_NS_PER_SEC)
/* Entries: as many as a table of a million buckets, the default, has ways. 38 MB. */
#define DP_STATE_MAX 1600000
#define DP_STATE_BYTES_MAX (DP_STATE_MAX * 24 + SL_LIMIT_IDS * 88 + 72)

struct dp_saved_state {
	void *data;		/* to be freed; NULL: there is no such meter */
	size_t size;
	u64 words, left_out;	/* sources; and those beyond DP_STATE_MAX entries */
	u64 digest;		/* of the bucket states: equal where nothing has changed */
};
/* 0 or -ENOMEM. A pass over the table. */
int dp_state_save(struct dp *dp, struct sl_now now, struct dp_saved_state *ret);
/* Writes the checksum; any thread. */
void dp_state_seal(void *data, size_t size);

/* Why a file's content cannot be used; NULL: it can. Any bytes are accepted. */
const char *dp_state_check(const void *data, size_t size);
/* The seed that its keys were made with: the data plane has to have it before the first rules. */
struct sl_seed dp_state_seed(const void *data);
/* Reserves for every meter its previous slot: before the first rules, while no slot is used. */
void dp_state_bind(struct dp *dp, const void *data);

struct dp_state_restored {
	u64 put;		/* bucket states */
	u64 records;
	/* Dropped: limits that no longer exist, no room, or expired. */
	u64 gone;
};
/*
 * With the rules in force and before the first packet: the bucket states of meters that are there
 * in the same kind, and the records, as they are now.
 */
struct dp_state_restored dp_state_restore(struct dp *dp, const void *data, struct sl_now now);

#endif
