/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * consumption_text.h - what sources used of limits that nodes have in common, as a message.
 *
 *     {"limits": [{"meter": "web#1c", "kind": "9f...", "used": [HASH, UNITS, AGE_MS, HASH, ...]}]}
 *
 * Row and kind name what is counted, as slots do: rows of equal kinds count the same unit by the
 * same prefix, on whatever rates. HASH is a source's under the cluster's seed, AGE_MS how long
 * before the message it began.
 */
#ifndef SLUICE_CONSUMPTION_TEXT_H
#define SLUICE_CONSUMPTION_TEXT_H

#include <jansson.h>

#include "packet/dataplane/dp_consumption.h"

/* What fits a message of 64 KiB. */
#define CONSUMPTION_REPORT_MAX 1000

/* NULL: no memory. */
json_t *consumption_to_json(const struct dp_consumption *consumption,
			    const struct dp_consumption_report *told, u32 count, u64 mono_ns);

struct consumption_received {
	u64 charged;		/* sources */
	u64 unknown;		/* limits that these rules do not have, or not in this kind */
	u64 bad;		/* what makes no sense; the rest of it is left aside */
};
/* Charges what a message says that was sent age_ns ago; adds to *heard. It may be anything. */
void consumption_read(struct dp_consumption *consumption, const json_t *body, u64 age_ns,
		      struct sl_now now, struct consumption_received *received);

#endif
