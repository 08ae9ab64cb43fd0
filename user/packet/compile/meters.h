/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* meters.h - compiles a limit to its meters (struct sl_limit of abi.h). */
#ifndef SLUICE_POLICY_METERS_H
#define SLUICE_POLICY_METERS_H

#include "packet/compile/override_index.h"

/* The output arrays, and the environment of the meters. */
struct meters {
	struct sl_limit *meter;		  /* sl_rules.limits, SL_METERS_MAX of them */
	struct sl_ban *ban;		  /* sl_rules.ban, SL_LIMITS_MAX of them */
	char (*name)[SL_NAME_MAX];	  /* of the limit_id of each meter */
	u32 next;			  /* the next free meter, from SL_METER_FURTHER on */
	u32 cpus, max_frame;		  /* as in struct compile_env */
	struct override_meters overrides; /* meters that overrides apply to */
	/* NULL, or meters of before: those of overrides stay as these are, and no override is read
	 * but `changed`. */
	const struct sl_limit *before;
	const struct override_def *changed; /* NULL: none */
	bool counters;			    /* limits of scope cluster count admitted packets */
	char reason[256];		    /* of an error */
};

/*
 * Makes the meters of `def`, with the head at `index`, except for their limit_ids. 0; -ERANGE if a
 * rate or burst cannot be represented, -E2BIG if no meter is free, with a message in
 * meters->reason.
 */
int meters_of_limit(struct meters *meters, const struct limit_def *def, u32 index);

/*
 * meters_counter.c: adds counting meters after the last meter of a limit, one for each unit and
 * prefix of its meters; errors as above.
 */
int meters_add_counters(struct meters *meters, const struct limit_def *def, u32 head);

/* Whether what it refuses is dropped. */
static inline bool limit_drops(const struct limit_def *def)
{
	return def->mode == SL_MODE_ENFORCE && def->terms.rates.count &&
	       (def->action == SL_ACT_DROP || def->terms.throttle.kind == THROTTLE_SOFT);
}

/* A meter without references to other meters. */
void meter_init(struct sl_limit *meter, u32 head);

#endif
