/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * consumption.h - packet limits of scope cluster: every sync interval each node publishes what
 * sources used of them on it, and charges the other nodes' reports to its own buckets
 * (packet/dataplane/dp_consumption.h).
 *
 * nodes->consumption is NULL if sluiced was started without a section `cluster`; all of these
 * functions then do nothing. If no limit has scope cluster, there are no messages and no scans.
 *
 * A message:
 *
 *     {"limits": [{"meter": "web#1c", "kind": "9f...", "used": [HASH, UNITS, AGE_MS, HASH, ...]}]}
 *
 * Meter and kind name what is counted, as limit_ids do: meters of equal kinds count the same unit
 * by the same prefix, at any rates. HASH is the source's under the cluster's seed; AGE_MS is the
 * time from the first counted unit to the message. What a meter refused, with `count: all`, is an
 * entry of its own ("web#1r"); of a bucket AGE_MS is then the time from the last refusal.
 */
#ifndef SLUICE_REPLICATION_CONSUMPTION_H
#define SLUICE_REPLICATION_CONSUMPTION_H

#include "control/replication/nodes.h"
#include "packet/dataplane/dp_consumption.h"

struct cluster;

/*
 * Before the first rules: bucket keys use the cluster's seed, which all nodes share. If they did
 * not before, all sources start with empty buckets, once.
 */
int consumption_open(struct nodes *nodes, struct sl_err *err);
/* Starts publishing and receiving; `cluster` must outlive nodes->consumption. */
int consumption_start(struct nodes *nodes, struct cluster *cluster, struct sl_err *err);
void consumption_close(struct nodes *nodes);

/* Counters of received reports; null without a cluster. */
json_t *consumption_show(const struct nodes *nodes);

/* ---- messages ---- */

/* What fits a message of 64 KiB. */
#define CONSUMPTION_REPORT_MAX 1000

/* NULL: out of memory. */
json_t *consumption_to_json(const struct dp_consumption *consumption,
			    const struct dp_consumption_report *report, u32 count, u64 mono_ns);

struct consumption_received {
	u64 charged; /* sources */
	u64 unknown; /* limits that the rules in force do not have in this kind */
	u64 bad;     /* invalid entries; the rest of such a message is ignored */
};
/* Charges a message sent age_ns ago; adds to the counters. `body` is untrusted. */
void consumption_read(struct dp_consumption *consumption, const json_t *body, u64 age_ns,
		      struct sl_now now, struct consumption_received *received);

#endif
