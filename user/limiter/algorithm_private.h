/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* algorithm_private.h - helpers for the rows of algorithm.h. */
#ifndef SLUICE_LIMITER_ALGORITHM_PRIVATE_H
#define SLUICE_LIMITER_ALGORITHM_PRIVATE_H

#include <errno.h>

#include "lib/whole.h"
#include "limiter/algorithm.h"

typedef unsigned __int128 u128;

/* tau's bound in ns. It also keeps mult x cost, before it is checked, at 2^127 at most. */
#define PERIOD_MAX_NS SL_BIT(56)
/* In ticks: 2.2 years. */
#define TAU_MAX (SL_BIT(60) - 1)

static inline int params_refuse(const char *reason, const char **ret_reason)
{
	*ret_reason = reason;
	return -ERANGE;
}

static inline bool counts_bytes(const struct rate *rate)
{
	return rate->unit == RATE_BYTES || rate->unit == RATE_BITS;
}

/* Number of bits of x, 0 for 0. */
static inline int bit_length(u64 x)
{
	return x ? 64 - __builtin_clzll(x) : 0;
}

/* The e with 2^31 <= x / 2^e < 2^32. */
static inline int mantissa_exp(u64 x)
{
	return bit_length(x) - 32;
}

int params_check_capacity(u64 capacity, bool bytes, const char **ret_reason);

/* Windows: a rate is a capacity and a length. */
int window_compile(const struct rate *rate, u64 burst, u32 max_frame, struct sl_params *p,
		   const char **ret_reason);
/* The same for algorithms bounded by their layout, not by params_check_capacity(). */
int window_compile_requests(const struct rate *rate, u64 burst, u32 max_frame, struct sl_params *p,
			    const char **ret_reason);

/* Adds up to `most`; a count above it already (the limit was lowered) is unchanged. */
static inline u64 add_up_to(u64 count, u64 cost, u64 most)
{
	return count >= most ? count : min_u64(count + cost, most);
}

/* The most that reports may charge: the limit, and a debt of the same size. */
static inline u64 most_forced(const struct spec_view *view)
{
	return 2 * (view->p.capacity + view->hold);
}

static inline u64 us_to_ns(u64 us)
{
	return us > ~0ULL / 1000 ? ~0ULL : us * 1000;
}

/* The result of a read with this wait. */
static inline struct sl_result looked(u64 bucket_state, u64 wait_ns)
{
	return (struct sl_result){ .bucket_state = bucket_state,
				   .wait_ns = wait_ns,
				   .verdict = wait_ns ? SL_OVER : SL_PASS };
}

/* A bucket state holds forced counts up to twice the limit, as in spec_force(). */
static inline u64 stored_count(const struct spec *spec, u64 used, u64 more)
{
	u64 sum;

	if (__builtin_add_overflow(used, more, &sum))
		sum = ~0ULL;
	return min_u64(sum, 2 * spec->params.capacity);
}

/* The number of a stored window; without one it is the current one. */
static inline u64 stored_number(const struct spec *spec, const struct cluster_store_state *state,
				struct sl_now now)
{
	return state->window || !spec->params.window_ns ? state->window
							: now.utc_ns / spec->params.window_ns;
}

#endif
