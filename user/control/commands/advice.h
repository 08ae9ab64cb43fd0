/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* advice.h - one sentence about a limit, from its numbers; of `analyze`. */
#ifndef SLUICE_COMMANDS_ADVICE_H
#define SLUICE_COMMANDS_ADVICE_H

#include <stdbool.h>
#include <stddef.h>

#include "sluice/types.h"

struct limit_numbers {
	const char *unit;		/* "packets", "requests": of the next two */
	u64 passed, refused;		/* since the counters began; `shadow`: would have been refused */
	bool shadow;			/* refuses nothing */
	bool tags;			/* `refused` were tagged, and passed */
	bool is_window;			/* fixed windows: two limits can pass around an edge */
	u64 edge_permille;		/* of that, what did, of the limit; 0: not measured */
	const char *who;		/* "sources", "users" */
	u64 live, over, near;		/* with a bucket now; of these over; within, but 80% used */
	bool no_buckets;		/* live and over are not known */
	bool no_values;			/* it is not known who was refused */
	/* Of those refused in the last seconds; users: since their values are counted: */
	u64 seen;			/* that are known */
	u64 just_above;			/* sent less than 1.5 times what passed */
	u64 far_above;			/* more than twice */
	u64 heaviest;			/* refusals of the one with most of them, ... */
	u64 all;			/* ... of so many */
};

/* Of bursts at window edges; NULL: nothing is known, or no more than the limit passed. */
const char *edge_advice(const struct limit_numbers *n, char *buf, size_t size);
/* Into buf; returns buf. */
const char *advice(const struct limit_numbers *n, char *buf, size_t size);

#endif
