/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * consumption_text.h - the message that reports what sources used of limits of scope cluster.
 *
 *     {"limits": [{"meter": "web#1c", "kind": "9f...", "used": [HASH, UNITS, AGE_MS, HASH, ...]}]}
 *
 * Meter and kind name what is counted, as limit_ids do: meters of equal kinds count the same unit
 * by the same prefix, at any rates. HASH is the source's under the cluster's seed; AGE_MS is the
 * time from the first counted unit to the message.
 */
#ifndef SLUICE_CONSUMPTION_TEXT_H
#define SLUICE_CONSUMPTION_TEXT_H

#include <jansson.h>

#include "packet/dataplane/dp_consumption.h"

/* What fits a message of 64 KiB. */
#define CONSUMPTION_REPORT_MAX 1000

/* NULL: out of memory. */
json_t *consumption_to_json(const struct dp_consumption *consumption,
			    const struct dp_consumption_report *told, u32 count, u64 mono_ns);

struct consumption_received {
	u64 charged;		/* sources */
	u64 unknown;		/* limits that the rules in force do not have in this kind */
	u64 bad;		/* invalid entries; the rest of such a message is ignored */
};
/* Charges a message sent age_ns ago; adds to the counters. `body` is untrusted. */
void consumption_read(struct dp_consumption *consumption, const json_t *body, u64 age_ns,
		      struct sl_now now, struct consumption_received *received);

#endif
