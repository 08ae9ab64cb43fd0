/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* share_rig.h - shares, a clock, and a store that answers what a test says. */
#ifndef SLUICE_TESTS_SHARE_RIG_H
#define SLUICE_TESTS_SHARE_RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "cluster/quota/share.h"

#define MS 1000000ULL
#define SEC 1000000000ULL
#define STORE_AHEAD_NS (5 * MS)

static struct shares *shares;
static struct sl_now now;

static const struct spec_def window_def = {
	.count = 100, .period_ns = 60 * SEC, .scale = 1, .ceiling_percent = 100,
	.algo = HTTP_FIXED_WINDOW,
};

static inline int set_up(void **state)
{
	now = (struct sl_now){ 1000 * SEC, 1700000000ULL * SEC };
	return shares_new(0, &shares);
}

static inline int tear_down(void **state)
{
	shares_free(shares);
	return 0;
}

static inline void pass(u64 ns)
{
	now.mono_ns += ns;
	now.utc_ns += ns;
}

static inline struct share_ref ref_of(u64 key, enum consistency consistency, u64 every_ns)
{
	return (struct share_ref){ key << 32 | key, key, &window_def, consistency, every_ns, 7 };
}

static inline u64 store_us(void)
{
	return (now.utc_ns + STORE_AHEAD_NS) / 1000;
}

static inline struct shared_ask answer(bool passed)
{
	return (struct shared_ask){ .passed = passed, .now_us = store_us() };
}

static inline struct shared_bucket bucket_of(const struct share_ref *ref, u64 cost)
{
	return (struct shared_bucket){ .key = ref->key, .tag = ref->tag, .def = *ref->def,
				       .cost = cost };
}

/* ------------------------------------------------------------------ answers */

static inline u64 window(void)
{
	return (now.utc_ns + STORE_AHEAD_NS) / (60 * SEC);
}

/* Asks, and the store says: so much is used, so much of it this node's, so much of a lease. */
static inline struct shared_bucket asks(const struct share_ref *ref, u64 used, u64 own, u64 granted)
{
	struct shared_bucket bucket = bucket_of(ref, 1);
	struct shared_ask ask;

	share_ask(shares, ref, &bucket, now);
	pass(MS);
	ask = answer(true);
	bucket.granted = granted < bucket.want ? granted : bucket.want;
	bucket.state = (struct shared_state){ used, 0, window(), own };
	share_answered(shares, ref, &bucket, &ask, SHARED_DONE, now);
	return bucket;
}

static inline u64 told(struct share_due *due, enum shared_outcome outcome, u64 used, u64 own)
{
	struct shared_ask ask = answer(true);
	u64 unsent;

	due->bucket.state = (struct shared_state){ used, 0, window(), own };
	shares_told(shares, due, &ask, outcome, now, &unsent);
	return unsent;
}

static inline u32 due_now(struct share_due *due)
{
	return shares_due(shares, due, 1, now);
}

#endif
