/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * dp_state.h - the use of long limits by sources, as a block of memory that is kept over a reboot.
 *
 *     dp_state_save() -> dp_state_seal() -> a file ... dp_state_check() -> dp_state_restore()
 *
 * Pins are lost with the kernel. Of a limit per second that costs nothing; of one per day it is a
 * day's use. So bucket states of meters that take DP_STATE_LONG_NS or more to expire are saved: by
 * the name and kind of their slot, with the seed of their keys, their times in UTC; and the records
 * of evicted offenders (sluice/table.h): fingerprints, which are valid only in a table of the same
 * size, with the same seed and slots.
 */
#ifndef SLUICE_DP_STATE_H
#define SLUICE_DP_STATE_H

#include "packet/dataplane/dataplane.h"

#define DP_STATE_LONG_NS (600 * SL_NS_PER_SEC)
/* Entries: as many as a table of a million buckets, the default, has ways. 38 MB. */
#define DP_STATE_MAX 1600000
#define DP_STATE_BYTES_MAX (DP_STATE_MAX * 24 + SL_LIMIT_IDS * 88 + 72)

struct dp_saved_state {
	void *data; /* to be freed; NULL: no such meter */
	size_t size;
	u64 words, left_out; /* sources; and those left out beyond DP_STATE_MAX entries */
	u64 digest;	     /* of the bucket states: equal if nothing has changed */
};
/* 0 or -ENOMEM. A pass over the table. */
int dp_state_save(struct dp *dp, struct sl_now now, struct dp_saved_state *ret);
/* Writes the checksum; any thread. */
void dp_state_seal(void *data, size_t size);

/* Why a file's content cannot be used; NULL: it can. Any bytes are accepted. */
const char *dp_state_check(const void *data, size_t size);
/* The seed of its keys: the data plane must have it before the first rules. */
struct sl_seed dp_state_seed(const void *data);
/* Reserves for every meter its previous slot: before the first rules, while no slot is used. */
void dp_state_bind(struct dp *dp, const void *data);

struct dp_state_restored {
	u64 put; /* bucket states */
	u64 records;
	/* Dropped: limits that no longer exist, no room, or expired. */
	u64 gone;
};
/*
 * With the rules in force and before the first packet: restores the bucket states of meters that
 * exist with the same kind, and the records, as of now.
 */
struct dp_state_restored dp_state_restore(struct dp *dp, const void *data, struct sl_now now);

#endif
