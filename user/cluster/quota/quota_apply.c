// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* quota_apply.c - see quota_apply.h. */
#include "cluster/quota/quota_apply.h"
#include "limiter/algorithm.h"

void quota_adopt(struct counters *counters, struct counters_ref *ref,
		 const struct cluster_store_state *state, u64 unflushed, struct sl_now now)
{
	u64 bucket_state;

	if (!ref->spec || algorithm_is_log(ref->spec->algo))
		return;
	bucket_state = cluster_store_bucket_state(ref->spec, state, unflushed, now);
	if (!ref->present && !ref->claimed &&
	    (!bucket_state || !counters_claim(counters, ref, now)))
		return;
	counters_put(counters, ref, bucket_state);
}

/* `count: all`: what was refused here since the command was sent. */
static void refill(struct counters *counters, struct quotas *quotas, struct counters_ref *ref,
		   struct sl_now now)
{
	u64 refused = quota_refused(quotas, ref->key);
	struct spec_view view;

	if (!refused || !ref->spec || algorithm_is_log(ref->spec->algo) ||
	    (!ref->present && !ref->claimed && !counters_claim(counters, ref, now)))
		return;
	spec_view_init(&view, ref->spec, 0, 0);
	counters_put(counters, ref, spec_fill(&view, ref->bucket_state, now, refused));
}

void quota_discount(struct counters *counters, struct counters_ref *ref, u64 before, u64 unflushed,
		    struct sl_now now)
{
	struct spec_view view;

	if (!ref->present || !ref->spec || unflushed >= before || algorithm_is_log(ref->spec->algo))
		return;
	spec_view_init(&view, ref->spec, 0, 0);
	counters_put(counters, ref, spec_refund(&view, ref->bucket_state, now, before - unflushed));
}

bool quota_apply(struct counters *counters, struct quotas *quotas, struct counters_ref *state,
		 const struct quota_ref *ref, const struct cluster_store_bucket *bucket,
		 const struct cluster_store_request *request, enum cluster_store_outcome outcome,
		 struct sl_now now)
{
	bool old =
		outcome == CLUSTER_STORE_DONE && quota_is_stale(quotas, ref->key, request->now_us);
	u64 before = quota_unflushed(quotas, ref->key), unflushed;

	quota_complete(quotas, ref, bucket, request, outcome, now);
	unflushed = quota_unflushed(quotas, ref->key);
	now = counters_shared_now(counters, now);
	if (old)
		quota_discount(counters, state, before, unflushed, now);
	else if (outcome == CLUSTER_STORE_DONE)
		quota_adopt(counters, state, &bucket->state, unflushed, now);
	if (outcome == CLUSTER_STORE_DONE)
		refill(counters, quotas, state, now);
	return old || unflushed;
}

void quota_reply(struct counters *counters, struct quotas *quotas, const struct quota_ref *ref,
		 const struct cluster_store_bucket *bucket,
		 const struct cluster_store_request *request, enum cluster_store_outcome outcome,
		 struct sl_now now)
{
	struct counters_ref state = { .key = ref->key, .def = *ref->def };
	struct counters_locks locks;

	store_begin(counters, &locks, &state, 1);
	counters_look(counters, &state, counters_shared_now(counters, now));
	quota_apply(counters, quotas, &state, ref, bucket, request, outcome, now);
	counters_end(&locks);
}

void quota_flushed(struct counters *counters, struct quotas *quotas, const struct quota_due *due,
		   const struct cluster_store_request *request, enum cluster_store_outcome outcome,
		   struct sl_now now)
{
	struct counters_ref bucket_state = { .key = due->ref.key, .def = due->def };
	struct sl_now then = counters_shared_now(counters, now);
	struct counters_locks locks;
	u64 before, unflushed;
	bool old;

	store_begin(counters, &locks, &bucket_state, 1);
	counters_look(counters, &bucket_state, then);
	old = outcome == CLUSTER_STORE_DONE &&
	      quota_is_stale(quotas, due->ref.key, request->now_us);
	before = quota_unflushed(quotas, due->ref.key);
	quotas_flushed(quotas, due, request, outcome, now, &unflushed);
	if (old)
		quota_discount(counters, &bucket_state, before, unflushed, then);
	else if (outcome == CLUSTER_STORE_DONE)
		quota_adopt(counters, &bucket_state, &due->bucket.state, unflushed, then);
	if (outcome == CLUSTER_STORE_DONE)
		refill(counters, quotas, &bucket_state, then);
	counters_end(&locks);
}
