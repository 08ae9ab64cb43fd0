/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * signal.h - numbers that others tell us: `while: {signal: api-load}` of an elastic limit.
 *
 * They come by the metrics listener (PUT /v1/signals/NAME, http.c) and by sluicectl signal. Each
 * holds for a time that is told with it and is then not set any more: who stops telling is not
 * taken for free. Only names that rules use are taken, so there are never more than limits.
 */
#ifndef SLUICE_ELASTIC_SIGNAL_H
#define SLUICE_ELASTIC_SIGNAL_H

#include <jansson.h>
#include <stdbool.h>

#include "config/policy.h"
#include "control/elastic/scales.h"


#define LOAD_SIGNAL_FOR_NS (10 * SL_NS_PER_SEC)		/* where nothing is said */
#define LOAD_SIGNAL_FOR_MAX_NS (86400 * SL_NS_PER_SEC)
#define LOAD_SIGNAL_VALUE_MAX 1e6

struct load_signal {
	char name[SL_NAME_MAX];
	double value;		/* 0 and up; 1 is all */
	u64 until_ns;		/* CLOCK_MONOTONIC */
};

/*
 * Sets one: `json` is {"value": 0.63, "for": "10s"}, `for` optional. -ENOENT where no rule uses
 * the name, -EINVAL where the value or time is not one, -ENOMEM; each with words.
 */
int load_signal_set(struct scales *scales, const char *name, const json_t *json, u64 now_ns,
		    struct sl_err *err);

/* False where it is not set, or not any more. */
bool load_signal_value(const struct scales *scales, const char *name, u64 now_ns, double *ret);

/* {"name", "value", "left_ns", "limits": [...]}; value and left_ns null where it is not set. */
json_t *load_signal_to_json(const struct scales *scales, const char *name, u64 now_ns);
/* Of each name that rules use, in the order of the rules. */
json_t *load_signals_to_json(const struct scales *scales, u64 now_ns);

#endif
