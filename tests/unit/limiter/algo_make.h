/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* algo_make.h - parameters of a rate and an instant, for the tests of steps. */
#ifndef SLUICE_TESTS_ALGO_MAKE_H
#define SLUICE_TESTS_ALGO_MAKE_H

#include "limiter/params.h"

#define SEC SL_NS_PER_SEC
#define MINUTE (60 * SEC)
#define MAX_FRAME 1514

static inline struct sl_params make(enum sl_algo algo, u64 count, u64 period_ns, u8 unit, u64 burst)
{
	struct rate rate = { count, period_ns, unit };
	struct sl_params p;
	const char *reason = "";

	if (params_compile(algo, &rate, burst, MAX_FRAME, &p, &reason))
		fail_msg("%s", reason);
	return p;
}

static inline struct sl_now at(u64 ns)
{
	return (struct sl_now){ .mono_ns = ns, .utc_ns = ns };
}

/* Charges `bucket_state` if it fits; returns whether it did. */
static inline bool passes(u64 *bucket_state, const struct sl_params *p, u64 ns, u64 cost)
{
	struct sl_result res = sl_step(*bucket_state, p, at(ns), cost);

	*bucket_state = res.bucket_state;
	return res.verdict == SL_PASS;
}

/* How many of `count` costs of one unit fit at an instant. */
static inline u64 fit(u64 *bucket_state, const struct sl_params *p, u64 ns, u64 count)
{
	u64 passed = 0;

	while (count--)
		passed += passes(bucket_state, p, ns, 1);
	return passed;
}

#endif
