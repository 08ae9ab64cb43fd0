/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * value_series.h - decisions counted by value, for rules with detailed_metric or value_to_metric:
 * the label `value`, for metrics.max_values values at most.
 *
 * Values are untrusted bytes: of each at most VALUE_LABEL_MAX, and of these printable ASCII only.
 * A value that finds no room is counted without its label.
 */
#ifndef SLUICE_HTTP_VALUE_SERIES_H
#define SLUICE_HTTP_VALUE_SERIES_H

#include "request/engine/observe.h"
#include "request/rules/rule.h"

#define VALUE_LABEL_MAX 64

struct value_table;

/* Whether a rule's decisions are counted by value. */
static inline bool value_series_wanted(const struct rule *rule)
{
	return rule->detailed_metric || rule->value_to_metric;
}

/* A worker's, for so many values. NULL: no memory. */
struct value_table *value_table_new(u32 max);
void value_table_free(struct value_table *table); /* NULL is fine */

struct value_series {
	struct observe_series series;
	struct observe_lately lately; /* number 0: it is being written */
};

/* The series of a rule and a descriptor's values; NULL where there is no room. */
struct value_series *value_series(struct value_table *table, const struct rule *rule,
				  const struct request_descriptor *descriptor);

/* Its worker: so many hits of the value passed, or a limit refused them. */
void value_series_note(struct value_series *series, const struct response_status *status,
		       bool refused, u64 hits, u64 utc_ns);
/* Any thread: a copy, of the periods that are current at utc_ns. */
void value_series_lately(const struct value_series *series, u64 utc_ns, struct observe_lately *ret);

/* All series of a table, while its worker runs; `index` is the order of their first use. */
typedef void (*value_series_fn)(void *arg, u32 index, u32 metric, const char *label,
				const struct value_series *series);
void value_table_each(const struct value_table *table, value_series_fn each, void *arg);

#endif
