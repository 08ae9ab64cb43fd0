/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* push_private.h - shared by push.c and push_receive.c. */
#ifndef SLUICE_HTTP_PUSH_PRIVATE_H
#define SLUICE_HTTP_PUSH_PRIVATE_H

#include "request/mitigation/offense.h"
#include "request/mitigation/push.h"

#define PUSH_CHAINS 4096

struct push {
	struct push_callbacks callbacks;
	struct push_limits_def limits;
	struct sl_seed seed;
	struct offenses offenses;
	struct push_entry *entry;
	u32 top, used;		/* entries ever used, and in use */
	u32 chain[PUSH_CHAINS]; /* 1 + index */
	struct push_stats stats;
};

struct push_entry *push_lookup(const struct push *push, const struct sl_prefix *group);
/* A new entry, copied from `entry`; NULL: no memory. Entries move. */
struct push_entry *push_take(struct push *push, const struct push_entry *entry);
void push_drop(struct push *push, struct push_entry *entry);
/* Removes it from the data plane, publishes its end, and drops it. */
void push_finish(struct push *push, struct push_entry *entry, enum push_refusal why);
void push_report(struct push *push, const struct push_entry *entry, enum push_event event,
		 enum push_refusal refusal);
bool push_may_take(const struct push_step *step, const struct source_profile *profile);
/* The larger of the requested rate and the rate for the well-behaved users behind the source. */
struct rate push_limit_rate(const struct push *push, const struct rate *wanted,
			    const struct source_profile *profile);
bool push_is_large_share(struct push *push, const struct source_profile *profile);

#endif
