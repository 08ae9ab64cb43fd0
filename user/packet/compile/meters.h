/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* meters.h - a limit -> its meters: they are struct sl_limit of abi.h. */
#ifndef SLUICE_POLICY_METERS_H
#define SLUICE_POLICY_METERS_H

#include "packet/compile/override_index.h"

/* Where meters go, and what they are bound to. */
struct meters {
	struct sl_limit *meter;		/* sl_rules.limits, SL_METERS_MAX of them */
	struct sl_ban *ban;		/* sl_rules.ban, SL_LIMITS_MAX of them */
	char (*name)[SL_NAME_MAX];	/* of each meter: of its slot */
	u32 next;			/* the next free one, from SL_METER_FURTHER on */
	u32 cpus, max_frame;		/* as in struct compile_env */
	struct override_meters overrides;	/* meters that overrides apply to */
	bool counters;			/* limits of scope cluster count what they let pass */
	char reason[256];		/* of a failure */
};

/*
 * Makes the meters of `def`, its head at `index`, all but their slots. 0; or -ERANGE where a rate
 * or burst cannot be held and -E2BIG where there is no meter left, with a message in
 * meters->reason.
 */
int meters_of_limit(struct meters *meters, const struct limit_def *def, u32 index);

/*
 * meters_counter.c: meters that count, behind a limit's last one. For each unit and prefix that its
 * meters have one; errors as above.
 */
int meters_add_counters(struct meters *meters, const struct limit_def *def, u32 head);

/* A meter that names no other. */
void meter_init(struct sl_limit *meter, u32 head);

#endif
