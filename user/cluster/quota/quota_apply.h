/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * quota_apply.h - applies replies of Redis to the counter table of this machine.
 *
 * The state of a bucket here and its entry (quota.h) change together, with the set of the bucket
 * locked. Any thread.
 */
#ifndef SLUICE_QUOTA_APPLY_H
#define SLUICE_QUOTA_APPLY_H

#include "cluster/quota/quota.h"
#include "counters/counters_table.h"

/*
 * Sets the state here to Redis' state of the bucket plus `unflushed`, which Redis does not have
 * yet. The bucket is locked and was looked up; `now` is Redis' time.
 */
void quota_adopt(struct counters *counters, struct counters_ref *ref,
		 const struct cluster_store_state *state, u64 unflushed, struct sl_now now);
/*
 * For a reply older than an applied one (quota_is_stale()). The newer one contains its charge,
 * which the state here also counts as pending: this removes the charge, except for a loss in Redis
 * in between. quota_unflushed() was `before`, and is `unflushed`, which includes the loss. Locked
 * as above.
 */
void quota_discount(struct counters *counters, struct counters_ref *ref, u64 before, u64 unflushed,
		    struct sl_now now);
/*
 * Applies the reply for one bucket, or its absence: quota_complete(), then the state here. The
 * state is locked and was looked up. Returns whether it has charges that the reply lacks.
 */
bool quota_apply(struct counters *counters, struct quotas *quotas, struct counters_ref *state,
		 const struct quota_ref *ref, const struct cluster_store_bucket *bucket,
		 const struct cluster_store_request *request, enum cluster_store_outcome outcome,
		 struct sl_now now);
/* The same, for a bucket that is neither locked nor looked up. */
void quota_reply(struct counters *counters, struct quotas *quotas, const struct quota_ref *ref,
		 const struct cluster_store_bucket *bucket,
		 const struct cluster_store_request *request, enum cluster_store_outcome outcome,
		 struct sl_now now);
/* Applies the reply to a flush (in `due->bucket`): quotas_flushed(), then the state here. */
void quota_flushed(struct counters *counters, struct quotas *quotas, const struct quota_due *due,
		   const struct cluster_store_request *request, enum cluster_store_outcome outcome,
		   struct sl_now now);

#endif
