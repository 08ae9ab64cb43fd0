/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * load_signal.h - load signals, values set from outside: `while: {load_signal: api-load}` of an
 * elastic limit.
 *
 * Set through the metrics listener (PUT /v1/load-signals/NAME) and by sluicectl load-signal set.
 * Each value expires after the time that was set with it; then the signal counts as not free. Only
 * names that rules use are accepted, so there are never more signals than limits; and not those
 * that the daemon measures (load_source.h).
 */
#ifndef SLUICE_ELASTIC_SIGNAL_H
#define SLUICE_ELASTIC_SIGNAL_H

#include <jansson.h>
#include <stdbool.h>

#include "config/policy.h"
#include "control/elastic/scales.h"

#define LOAD_SIGNAL_FOR_NS (10 * SL_NS_PER_SEC) /* default */
#define LOAD_SIGNAL_FOR_MAX_NS (86400 * SL_NS_PER_SEC)
#define LOAD_SIGNAL_VALUE_MAX 1e6

struct load_signal {
	char name[SL_NAME_MAX];
	double value; /* 0 and up; 1: fully loaded */
	u64 until_ns; /* CLOCK_MONOTONIC */
};

/*
 * Sets one: `json` is {"value": 0.63, "for": "10s"}, `for` optional. -ENOENT if no rule uses the
 * name, -EEXIST if the daemon measures it, -EINVAL for an invalid value or time, -ENOMEM; each
 * with err.
 */
int load_signal_set(struct scales *scales, const char *name, const json_t *json, u64 now_ns,
		    struct sl_err *err);

/* Sets one that the daemon measured; without memory it stays as it is. */
void load_signal_found(struct scales *scales, const char *name, double value, u64 until_ns);

/* False if it is not set, or expired. */
bool load_signal_value(const struct scales *scales, const char *name, u64 now_ns, double *ret);

/*
 * {"name", "value", "left_ns", "from", "limits": [...]}; value and left_ns are null if not set,
 * from if it is set from outside.
 */
json_t *load_signal_to_json(const struct scales *scales, const char *name, u64 now_ns);
/* Whether a list of them has the name. */
bool load_signal_is_listed(const json_t *list, const char *name);
/* The signals that rules use, in the order of the rules, then others of load_signals. */
json_t *load_signals_to_json(const struct scales *scales, u64 now_ns);

#endif
