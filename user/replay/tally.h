/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * tally.h - what became of each source, or of each value of requests, in bounded memory.
 *
 * Sets of eight entries by lib/heaviest.h: a subject without an entry replaces the lightest one of
 * its set, and inherits its weight as `missed`. So
 *
 *     count <= true count <= count + missed,
 *
 * and a subject with more than an eighth of its set's packets has an entry. Up to some ten thousand
 * subjects all have one; `tally_replaced()` is 0 as long as every number is exact.
 */
#ifndef SLUICE_REPLAY_TALLY_H
#define SLUICE_REPLAY_TALLY_H

#include <stdbool.h>

#include "lib/addr.h"
#include "lib/bytes.h"

#define TALLY_SETS 8192
#define TALLY_WAYS 8
#define TALLY_LABEL 80 /* bytes of a value that are kept, with its final 0 */
#define REPLAY_SIDES 2 /* the configuration, and the one that it is compared with */

enum outcome {
	OUTCOME_PASSED,
	OUTCOME_REFUSED,
	OUTCOME_TAGGED,	 /* packets */
	OUTCOME_SHADOW,	 /* requests that a rule in shadow mode would refuse */
	OUTCOME_DELAYED, /* requests that would wait: on_limit */
	OUTCOME_COUNT,
};

const char *outcome_name(enum outcome outcome);

/* Under one configuration. */
struct tally_side {
	u64 count[OUTCOME_COUNT];
	float used; /* the largest share of a limit that was in use: 0..1 */
	u32 limit;  /* of that limit */
};

struct tally_entry {
	struct sl_prefix source; /* without a label */
	u64 count, missed, bytes;
	u64 second;	     /* of the newest packet */
	u32 in_second, peak; /* of `count`: so many in that second, and in the fullest */
	struct tally_side side[REPLAY_SIDES];
};

struct tally;

/* `labels`: subjects are values. NULL: no memory. */
struct tally *tally_new(bool labels);
void tally_free(struct tally *tally); /* NULL is fine */

/* The entry of a source, or of a value by its label; counts one more at the second. */
struct tally_entry *tally_source(struct tally *tally, struct sl_addr source, u8 family, u32 bytes,
				 u64 second);
struct tally_entry *tally_value(struct tally *tally, struct bytes label, u64 second);

/* "" of a source. */
const char *tally_label(const struct tally *tally, const struct tally_entry *entry);
u64 tally_subjects(const struct tally *tally); /* entries there are */
u64 tally_replaced(const struct tally *tally); /* entries that made room for others */

/*
 * The entries of the highest rank, at most `max`, the first one first; entries of rank 0 are left
 * out. Returns how many.
 */
typedef double (*tally_rank)(const struct tally_entry *entry, const void *arg);
u32 tally_top(struct tally *tally, tally_rank rank, const void *arg, struct tally_entry **ret,
	      u32 max);

#endif
