/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * elastic.h - throttle: {elastic: 200%, floor: 20%, while: ...}: a limit's rate is multiplied by a
 * scale that rises to its ceiling while resources are free and falls fast to 1 when they are not.
 * With a floor it then shrinks further, until they are at their thresholds.
 *
 * Ten times a second the daemon samples the resources (load.h, load_signal.h), takes a step of the
 * controller below and publishes the scale with a deadline two seconds ahead. The data path checks
 * the deadline: when it has passed the scale is 1, so without a daemon the configured limit
 * applies.
 *
 * Below 1 the scale is a PI controller's on e, the logarithm of the largest use / threshold:
 *
 *     d ln(scale) = -(ELASTIC_SHRINK_PER_S x e x dt + ELASTIC_SHRINK_GAIN x de)
 *
 * The queue of a server that is offered too much integrates the excess, and what it reports comes
 * late; without the second term a scale that only integrates swings between its bounds. e is
 * bounded to -1..1, so that odd values move the scale by a factor of at most 4.
 */
#ifndef SLUICE_ELASTIC_ELASTIC_H
#define SLUICE_ELASTIC_ELASTIC_H

#include <stdbool.h>
#include <stddef.h>

#include "config/policy.h"
#include "control/elastic/scales.h"

/* The resources that `while` can name. */
enum elastic_resource {
	ELASTIC_CPU,
	ELASTIC_LINK,
	ELASTIC_LOAD_SIGNAL,
	ELASTIC_RESOURCE_COUNT,
};

struct elastic_input {
	/*
	 * Use, 1 is all; negative: unknown, which counts as not free, and is no reason to shrink.
	 */
	double share[ELASTIC_RESOURCE_COUNT];
	/* Free below this; 0: not named by `while`. */
	double threshold[ELASTIC_RESOURCE_COUNT];
};

/* The controller of one limit; all 0 is a new one. */
struct elastic_control {
	double scale;  /* 0 before the first step */
	double calm_s; /* time since it became free */
	double excess; /* e of the last step; 0 where a resource was unknown */
};

struct elastic_range {
	double floor, ceiling; /* 0.01..1, 1..100 */
};

/* Time from the configured rate to the ceiling. */
#define ELASTIC_RISE_S 5.0
#define ELASTIC_FALL_S 0.4
/* Free this long before the scale rises, so that flicker around a threshold keeps it down. */
#define ELASTIC_CALM_S 0.5
/* Above this part of a threshold time counts a fifth: near it the scale rises slowly. */
#define ELASTIC_NEAR 0.9
#define ELASTIC_NEAR_PACE 0.2
/* The longest step: a daemon that was suspended does not jump. */
#define ELASTIC_RISE_STEP_S 0.2

/* Below 1; and from the floor back to 1 while a resource is unknown, in ELASTIC_RISE_S. */
#define ELASTIC_SHRINK_PER_S 0.2
#define ELASTIC_SHRINK_GAIN 0.7
#define ELASTIC_EXCESS_MAX 1.0

#define ELASTIC_TICK_NS (SL_NS_PER_SEC / 10)
#define ELASTIC_VALID_NS (2 * SL_NS_PER_SEC)

/* Takes a step of `seconds`; returns the new scale, floor..ceiling. Pure. */
double elastic_step(struct elastic_control *control, struct elastic_range range,
		    const struct elastic_input *input, double seconds);
struct elastic_range elastic_range_of(const struct throttle_def *throttle);

/* The map's value of a scale, rounded so that never more passes than the scale permits. */
struct sl_elastic elastic_value(double scale, u64 valid_until_ns);

/* Samples the resources of a throttle of the HTTP tier, over all interfaces. */
void elastic_look(const struct scales *scales, const struct throttle_def *throttle, u64 now_ns,
		  struct elastic_input *ret);
/* Samples and takes one step for all limits; each ELASTIC_TICK_NS while some limit is elastic. */
void elastic_tick(struct scales *scales, u64 now_ns);
/* Starts or stops the ticks according to the rules; each second (timers.c). */
void elastic_watch(struct scales *scales);
void elastic_free(struct scales *scales);

/* The scale in force by the limit's first limit_id; 1 if not elastic. */
double elastic_scale(const struct scales *scales, u32 slot);
/* "free", or the busy resources: "cpu 93% of 70%, load signal api-load not set"; returns buf. */
const char *elastic_words(const struct scales *scales, const struct limit_def *def, u32 slot,
			  char *buf, size_t size);

#endif
