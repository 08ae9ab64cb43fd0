/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * rate_samples.h - the rates of the last two minutes, one sample a second: the sparklines of the
 * status page. Memory is fixed: room for every interface, every limit and the first 2048 rules.
 */
#ifndef SLUICE_METRICS_RATE_SAMPLES_H
#define SLUICE_METRICS_RATE_SAMPLES_H

#include <jansson.h>

#include "control/running/running.h"

struct rate_samples;

/* Decisions of a rule since the daemon started; with those that are counted by value. */
struct rule_totals {
	u64 ok, over, shadow;
};

struct rate_samples *rate_samples_new(void);	      /* NULL: no memory */
void rate_samples_free(struct rate_samples *samples); /* NULL is fine */

/* Each second, after view_sample(). */
void rate_samples_take(struct rate_samples *samples, const struct running *run);

/* {"passed": [...], "refused": [...]} a second, the oldest first, at most 120. */
json_t *rate_samples_interface(const struct rate_samples *samples, u32 slot);
json_t *rate_samples_limit(const struct rate_samples *samples, u32 limit_id);
json_t *rate_samples_rule(const struct rate_samples *samples, u32 index);

/* Of the rule at `index` of the rule set, as of the last second; NULL: no room for it. */
const struct rule_totals *rate_samples_totals(const struct rate_samples *samples, u32 index);

#endif
