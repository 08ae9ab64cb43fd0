/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * timeline.h - outcomes over time in a fixed number of bins: when the input is longer than all of
 * them, each two become one.
 */
#ifndef SLUICE_REPLAY_TIMELINE_H
#define SLUICE_REPLAY_TIMELINE_H

#include <jansson.h>

#include "replay/tally.h"

#define TIMELINE_BINS 120

struct timeline {
	u64 step_ns;
	u32 bins; /* up to the last one that is not empty */
	u64 count[TIMELINE_BINS][REPLAY_SIDES][OUTCOME_COUNT];
};

/* `step_ns`: of the first bins, no less than what times are exact to. */
void timeline_begin(struct timeline *line, u64 step_ns);
/* The bin of a time since the beginning. */
u64 (*timeline_at(struct timeline *line, u64 ns))[OUTCOME_COUNT];

/* An outcome as 60 bars at most, "▁▃█"; to be freed. NULL: no memory. */
char *timeline_bars(const struct timeline *line, u32 side, enum outcome outcome);

#endif
