// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A request that a node refuses by itself is sent to the store once a second, since it may know
 * of room. With write_back the store does not know all that this node admitted: those units
 * must not be granted again. Seen from outside (tests/cluster/three.sh): a node alone let 301 of
 * 300 pass.
 */
#include "lib/test.h"
#include "lib/spec_def.h"
#include "cluster/quota/quota.h"

#define SEC 1000000000ULL

static const struct spec_def def = SPEC_DEF(FIXED_WINDOW, 100, 60 * SEC);

/* One request, so that the window is known, then `covered` more; the units that the next one holds
 * back. */
static u64 held(enum consistency consistency, u32 covered)
{
	struct quota_ref ref = { 1ULL << 32 | 1, 1, &def, consistency, SEC, 7, false };
	struct cluster_store_bucket bucket = {
		.key = ref.key, .tag = ref.tag, .def = def, .cost = 1
	};
	struct sl_now now = { 1000 * SEC, 1700000000ULL * SEC };
	struct cluster_store_request request = { .passed = true, .now_us = now.utc_ns / 1000 };
	struct quotas *quotas;

	assert_int_equal(quotas_new(0, &quotas), 0);
	quota_prepare(quotas, &ref, &bucket, now);
	assert_int_equal(bucket.hold, 0);
	bucket.state = (struct cluster_store_state){ 1, 0, now.utc_ns / (60 * SEC), 1 };
	quota_complete(quotas, &ref, &bucket, &request, CLUSTER_STORE_DONE, now);
	for (u32 i = 0; i < covered; i++)
		quota_acquire(quotas, &ref, 1, now);
	bucket.hold = 5; /* its own, of a priority */
	quota_prepare(quotas, &ref, &bucket, now);
	quotas_free(quotas);
	return bucket.hold - 5;
}

TEST(test_held)
{
	assert_int_equal(held(CONSISTENCY_WRITE_BACK, 10), 10);
	assert_int_equal(held(CONSISTENCY_WRITE_BACK, 0), 0);
	/* The store knows of all of these. */
	assert_int_equal(held(CONSISTENCY_STRICT, 10), 0);
	assert_int_equal(held(CONSISTENCY_LEASE, 10), 0);
}

TEST_MAIN
