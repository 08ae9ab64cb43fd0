/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* quota_rig.h - quota, a clock, and a store whose replies the test states. */
#ifndef SLUICE_TESTS_QUOTA_RIG_H
#define SLUICE_TESTS_QUOTA_RIG_H
#include "lib/test.h"
#include "lib/spec_def.h"
#include "cluster/quota/quota.h"

#define MS 1000000ULL
#define SEC 1000000000ULL
#define STORE_AHEAD_NS (5 * MS)

static struct quotas *quotas;
static struct sl_now now;

static const struct spec_def window_def = SPEC_DEF(FIXED_WINDOW, 100, 60 * SEC);

static inline int set_up(void **state)
{
	now = (struct sl_now){ 1000 * SEC, 1700000000ULL * SEC };
	return quotas_new(0, &quotas);
}

static inline int tear_down(void **state)
{
	quotas_free(quotas);
	return 0;
}

static inline void pass(u64 ns)
{
	now.mono_ns += ns;
	now.utc_ns += ns;
}

static inline struct quota_ref ref_of(u64 key, enum consistency consistency, u64 every_ns)
{
	return (struct quota_ref){ key << 32 | key, key, &window_def, consistency,
				   every_ns,	    7,	 false };
}

static inline u64 store_us(void)
{
	return (now.utc_ns + STORE_AHEAD_NS) / 1000;
}

static inline struct cluster_store_request response(bool passed)
{
	return (struct cluster_store_request){ .passed = passed, .now_us = store_us() };
}

static inline struct cluster_store_bucket bucket_of(const struct quota_ref *ref, u64 cost)
{
	return (struct cluster_store_bucket){
		.key = ref->key, .tag = ref->tag, .def = *ref->def, .cost = cost
	};
}

/* ------------------------------------------------------------------ answers */

static inline u64 window(void)
{
	return (now.utc_ns + STORE_AHEAD_NS) / (60 * SEC);
}

/* Sends a command; the reply: so much is used, so much of it this node's, so much of a lease. */
static inline struct cluster_store_bucket asks(const struct quota_ref *ref, u64 used, u64 own,
					       u64 granted)
{
	struct cluster_store_bucket bucket = bucket_of(ref, 1);
	struct cluster_store_request request;

	quota_prepare(quotas, ref, &bucket, now);
	pass(MS);
	request = response(true);
	bucket.granted = granted < bucket.want ? granted : bucket.want;
	bucket.state = (struct cluster_store_state){ used, 0, window(), own };
	quota_complete(quotas, ref, &bucket, &request, CLUSTER_STORE_DONE, now);
	return bucket;
}

static inline const struct quota_ref *leased(const struct spec_def *def, u64 granted)
{
	static struct quota_ref ref;

	ref = ref_of(1, CONSISTENCY_LEASE, 100 * MS);
	ref.def = def;
	for (u32 i = 0; i < 4; i++) {
		assert_int_equal(quota_acquire(quotas, &ref, 1, now), QUOTA_NOT_COVERED);
		asks(&ref, i + 1, i + 1, i == 3 ? granted : 0);
	}
	return &ref;
}

static inline u64 flushed(struct quota_due *due, enum cluster_store_outcome outcome, u64 used,
			  u64 own)
{
	struct cluster_store_request request = response(true);
	u64 unflushed;

	due->bucket.state = (struct cluster_store_state){ used, 0, window(), own };
	quotas_flushed(quotas, due, &request, outcome, now, &unflushed);
	return unflushed;
}

static inline u32 due_now(struct quota_due *due)
{
	return quotas_due(quotas, due, 1, now);
}

#endif
