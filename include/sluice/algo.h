/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * algo.h - the algorithms, as pure steps over one 64-bit bucket state.
 *
 *     sl_step(state, params, now, cost)      ->  the new state, a verdict, how long to wait
 *     sl_utilization(state, params, now)     ->  0..255, the used share of the limit
 *
 * No clock, map, helper or libc call inside: time and parameters come in as arguments, so the
 * packet tier, the daemon and the tests run the very same code. One algorithm, one file
 * (algo_gcra.h, algo_window.h, algo_sliding.h, algo_counters.h, algo_first.h, algo_grace.h); this
 * page only names them and picks one. Buckets are tested first: most limits are buckets.
 *
 * To add an algorithm: an enum value, a header with its functions, one line in each function
 * below, and its row (user/limiter/algorithm.h).
 *
 * A bucket state of 0 is unused, for every algorithm.
 */
#ifndef SLUICE_ALGO_H
#define SLUICE_ALGO_H

#include "types.h"

enum sl_algo {
	SL_ALGO_TOKEN_BUCKET,	 /* GCRA, algo_gcra.h */
	SL_ALGO_LEAKY_BUCKET,	 /* the same with a capacity of one packet or frame: no burst */
	SL_ALGO_FIXED_WINDOW,	 /* algo_window.h */
	SL_ALGO_SLIDING_WINDOW,	 /* algo_sliding.h */
	SL_ALGO_SLIDING_LOG,	 /* the request tier's alone: no step here */
	SL_ALGO_FIRST_REQUEST,	 /* fixed-window with window: first-request; algo_first.h */
	SL_ALGO_GRACE,		 /* not a rate, but for how long; algo_grace.h */
	SL_ALGO_INTERVAL_BUCKET, /* algo_window.h, which refills at the edges */
	SL_ALGO_WINDOW_COUNTERS, /* algo_counters.h */
	SL_ALGO_BAN, /* the request tier's alone: until when, and its level; limiter/ban.h */
	/* the request tier's alone: requests in flight; limiter/request_log.h */
	SL_ALGO_CONCURRENCY,
	SL_ALGO_COUNT,
};

enum sl_verdict {
	SL_PASS, /* fits; the new state is to be stored */
	SL_OVER, /* does not fit; nothing is to be stored */
};

/* The largest cost of one step, in units. A frame is at most 64 KiB; leases take more. */
#define SL_COST_MAX (1ULL << 24)

/*
 * What a limit's step needs, computed once when a rule is compiled (user/limiter/params.c),
 * which also checks every bound given here.
 */
struct sl_params {
	u64 capacity;	     /* units: the burst, or the limit of a window; 1..2^46-1 */
	u64 mult;	     /* GCRA: a unit's interval = mult / 2^shift ticks. Interval bucket: the
				units that each edge refills, 1..2^46-1. Window counters: a
				bucket's length, ns */
	u64 tau;	     /* GCRA: capacity x interval, in ticks of 1/16 ns; < 2^60 */
	u64 window_ns;	     /* windows: their length, >= 10 ms; grace: how long; <= 2^56 */
	u32 rescale_mult[4]; /* GCRA: see "A live rate change" in algo_gcra.h */
	signed char rescale_exp[4];
	signed char tau_exp; /* GCRA: 2^31 <= tau / 2^tau_exp < 2^32 */
	u8 algo;	     /* enum sl_algo */
	u8 gen;		     /* GCRA: 0..3, the limit's rate generation */
	u8 shift;	     /* GCRA: 0..40. Sliding window: window_ns >> shift < 2^38. Window
				counters: bits of a count. First request: a tick is 2^shift ns */
	u8 quantum;	     /* sliding window: counts are in units of 2^quantum; 0..28. Window
				counters: the number of buckets. First request: bits of a count */
	/* sliding window: the previous window's part is rounded up; only of requests */
	u8 round_up;
	u8 pad[6];
};
SL_STATIC_ASSERT(sizeof(struct sl_params) == 64, "one cache line");

/*
 * The time of a step. mono_ns is CLOCK_MONOTONIC. utc_ns is mono_ns + the offset that the
 * daemon publishes: only windows read it, to be aligned to UTC.
 */
struct sl_now {
	u64 mono_ns;
	u64 utc_ns;
};

struct sl_result {
	u64 bucket_state; /* the new state; the old one where the verdict is SL_OVER */
	u64 wait_ns;	  /* SL_OVER: after this long the same cost fits; ~0 where it never does */
	u32 verdict;	  /* enum sl_verdict */
};

#include "algo_counters.h"
#include "algo_first.h"
#include "algo_gcra.h"
#include "algo_grace.h"
#include "algo_sliding.h"
#include "algo_window.h"

/* Whether the state is a TAT (when the bucket is full again) with a rate generation. */
static __always_inline int sl_algo_is_bucket(u32 algo)
{
	return algo <= SL_ALGO_LEAKY_BUCKET;
}

/* Whether the state is one count (algo_window.h). */
static __always_inline int sl_algo_is_count(u32 algo)
{
	return algo == SL_ALGO_FIXED_WINDOW || algo == SL_ALGO_INTERVAL_BUCKET;
}

/* Whether the state counts in windows of window_ns, aligned to UTC. */
static __always_inline int sl_algo_is_window(u32 algo)
{
	return sl_algo_is_count(algo) || algo == SL_ALGO_SLIDING_WINDOW ||
	       algo == SL_ALGO_WINDOW_COUNTERS;
}

/* Whether the state has two counts, in quanta. */
static __always_inline int sl_algo_is_sliding(u32 algo)
{
	return algo == SL_ALGO_SLIDING_WINDOW;
}

/* Whether the state is one count, of a window that begins with its first packet. */
static __always_inline int sl_algo_is_anchored(u32 algo)
{
	return algo == SL_ALGO_FIRST_REQUEST;
}

static __always_inline int sl_is_bucket(const struct sl_params *p)
{
	return sl_algo_is_bucket(p->algo);
}

static __always_inline int sl_is_window(const struct sl_params *p)
{
	return sl_algo_is_window(p->algo);
}

/*
 * Charges `cost` units to a bucket. cost is 0..SL_COST_MAX; a cost of 0 always passes and
 * changes nothing that matters.
 */
static __always_inline struct sl_result sl_step(u64 bucket_state, const struct sl_params *p,
						struct sl_now now, u64 cost)
{
	if (sl_is_bucket(p))
		return sl_gcra_step(bucket_state, p, now.mono_ns, cost);
	if (sl_algo_is_count(p->algo))
		return sl_window_step(bucket_state, p, now.utc_ns, cost);
	if (p->algo == SL_ALGO_SLIDING_WINDOW)
		return sl_sliding_step(bucket_state, p, now.utc_ns, cost);
	if (p->algo == SL_ALGO_WINDOW_COUNTERS)
		return sl_counters_step(bucket_state, p, now.utc_ns, cost);
	if (p->algo == SL_ALGO_FIRST_REQUEST)
		return sl_first_step(bucket_state, p, now.mono_ns, cost);
	return sl_grace_step(bucket_state, p, now.mono_ns);
}

/*
 * The state after a refusal of `cost`, of a limit that counts refused ones: used up to the limit,
 * not beyond. An algorithm whose count starts again at an edge has no such limit; its state stays.
 */
static __always_inline u64 sl_fill(u64 bucket_state, const struct sl_params *p, struct sl_now now,
				   u64 cost)
{
	if (sl_is_bucket(p))
		return sl_gcra_fill(bucket_state, p, now.mono_ns, cost);
	if (p->algo == SL_ALGO_SLIDING_WINDOW)
		return sl_sliding_fill(bucket_state, p, now.utc_ns, cost);
	if (p->algo == SL_ALGO_WINDOW_COUNTERS)
		return sl_counters_fill(bucket_state, p, now.utc_ns, cost);
	return bucket_state;
}

/*
 * The used share of the limit: 0 exactly where the bucket has expired, that is, no different from
 * an unused one; 1..127 below half of the limit; 128..255 from half up.
 */
static __always_inline u32 sl_utilization(u64 bucket_state, const struct sl_params *p,
					  struct sl_now now)
{
	if (sl_is_bucket(p))
		return sl_gcra_utilization(bucket_state, p, now.mono_ns);
	if (sl_algo_is_count(p->algo))
		return sl_window_utilization(bucket_state, p, now.utc_ns);
	if (p->algo == SL_ALGO_SLIDING_WINDOW)
		return sl_sliding_utilization(bucket_state, p, now.utc_ns);
	if (p->algo == SL_ALGO_WINDOW_COUNTERS)
		return sl_counters_utilization(bucket_state, p, now.utc_ns);
	if (p->algo == SL_ALGO_FIRST_REQUEST)
		return sl_first_utilization(bucket_state, p, now.mono_ns);
	return sl_grace_utilization(bucket_state, p, now.mono_ns);
}

/* Whether a bucket has expired: sl_utilization() == 0, without its division. */
static __always_inline int sl_expired(u64 bucket_state, const struct sl_params *p,
				      struct sl_now now)
{
	u64 number;

	if (sl_is_bucket(p))
		return bucket_state >> SL_GCRA_GEN_BITS <= now.mono_ns * SL_TICKS_PER_NS;
	if (sl_algo_is_count(p->algo))
		return sl_window_count(bucket_state, p, now.utc_ns, &number) == 0;
	if (p->algo == SL_ALGO_SLIDING_WINDOW)
		return sl_sliding_expired(bucket_state, p, now.utc_ns);
	if (p->algo == SL_ALGO_WINDOW_COUNTERS)
		return sl_counters_used(bucket_state, p, now.utc_ns) == 0;
	if (p->algo == SL_ALGO_FIRST_REQUEST)
		return sl_first_used(bucket_state, p, now.mono_ns) == 0;
	return sl_grace_expired(bucket_state, p, now.mono_ns);
}

/*
 * Refunds `cost` units that a step charged before. Returns the state to store; a state that
 * no longer holds that charge (another window, another rate generation, drained) is returned
 * as it is. So is one of SL_ALGO_GRACE, which holds no charge, but by the step that began it.
 */
static __always_inline u64 sl_refund(u64 bucket_state, const struct sl_params *p, struct sl_now now,
				     u64 cost)
{
	if (sl_is_bucket(p))
		return sl_gcra_refund(bucket_state, p, now.mono_ns, cost);
	if (sl_algo_is_count(p->algo))
		return sl_window_refund(bucket_state, p, now.utc_ns, cost);
	if (p->algo == SL_ALGO_SLIDING_WINDOW)
		return sl_sliding_refund(bucket_state, p, now.utc_ns, cost);
	if (p->algo == SL_ALGO_WINDOW_COUNTERS)
		return sl_counters_refund(bucket_state, p, now.utc_ns, cost);
	if (p->algo == SL_ALGO_FIRST_REQUEST)
		return sl_first_refund(bucket_state, p, now.mono_ns, cost);
	return sl_grace_refund(bucket_state, now.mono_ns);
}

/*
 * Units of the limit in use now: exact for fixed windows, the estimate for sliding ones, rounded
 * up for buckets; 0 where it has expired. SL_ALGO_GRACE: 1 where it is not.
 */
static __always_inline u64 sl_used(u64 bucket_state, const struct sl_params *p, struct sl_now now)
{
	u64 number;

	if (sl_is_bucket(p))
		return sl_gcra_used(bucket_state, p, now.mono_ns);
	if (sl_algo_is_count(p->algo))
		return sl_window_count(bucket_state, p, now.utc_ns, &number);
	if (p->algo == SL_ALGO_SLIDING_WINDOW)
		return sl_sliding_used(bucket_state, p, now.utc_ns) << (p->quantum & 63);
	if (p->algo == SL_ALGO_WINDOW_COUNTERS)
		return sl_counters_used(bucket_state, p, now.utc_ns);
	if (p->algo == SL_ALGO_FIRST_REQUEST)
		return sl_first_used(bucket_state, p, now.mono_ns);
	return !sl_grace_expired(bucket_state, p, now.mono_ns);
}

/* How long until the bucket expires, rounded up; 0 where it has. */
static __always_inline u64 sl_left_ns(u64 bucket_state, const struct sl_params *p,
				      struct sl_now now)
{
	if (sl_is_bucket(p))
		return sl_gcra_left(bucket_state, p, now.mono_ns);
	if (sl_algo_is_count(p->algo))
		return sl_window_left(bucket_state, p, now.utc_ns);
	if (p->algo == SL_ALGO_SLIDING_WINDOW)
		return sl_sliding_left_ns(bucket_state, p, now.utc_ns);
	if (p->algo == SL_ALGO_WINDOW_COUNTERS)
		return sl_counters_left(bucket_state, p, now.utc_ns);
	if (p->algo == SL_ALGO_FIRST_REQUEST)
		return sl_first_left(bucket_state, p, now.mono_ns);
	return sl_grace_left(bucket_state, p, now.mono_ns);
}

/*
 * The state of a key of which only this is known: it used all of its limit, and its bucket
 * expires in left_ns (< 2^59), or up to 2^34 ns before. Never less used than the lost state was
 * at that time; 0 where that was in a window that no longer counts.
 */
static __always_inline u64 sl_spent(const struct sl_params *p, struct sl_now now, u64 left_ns)
{
	if (sl_is_bucket(p))
		return sl_gcra_spent(p, now.mono_ns, left_ns);
	if (sl_algo_is_count(p->algo))
		return sl_window_spent(p, now.utc_ns, left_ns);
	if (p->algo == SL_ALGO_SLIDING_WINDOW)
		return sl_sliding_spent(p, now.utc_ns, left_ns);
	if (p->algo == SL_ALGO_WINDOW_COUNTERS)
		return sl_counters_spent(p, now.utc_ns, left_ns);
	if (p->algo == SL_ALGO_FIRST_REQUEST)
		return sl_first_spent(p, now.mono_ns, left_ns);
	return sl_grace_spent(p, now.mono_ns, left_ns);
}

/* The scales of an elastic limit: from a hundredth to 100 times, as 16.16. */
#define SL_SCALE_MIN 656U
#define SL_SCALE_MAX (100U << 16)
/* Of a scale below 1: 2^7 is more than its inverse. */
#define SL_SCALE_MIN_BITS 7

/* x * y / 2^16, rounded down; up with `round` 0xffff instead of 0. The result < 2^63. */
static __always_inline u64 sl_mul_16_16(u64 x, u32 y, u32 round)
{
	return (x >> 16) * y + (((x & 0xffff) * y + round) >> 16);
}

/*
 * Makes `p`, a copy of a limit's parameters, those of `scale` times the limit: scale is 16.16,
 * SL_SCALE_MIN..SL_SCALE_MAX, and inverse = 2^32 / scale, rounded up. States are valid for both:
 *
 *   token bucket		the interval / scale, tau as it is: rate and burst change together,
 *and a bucket's debt stays the same share of the burst leaky bucket		interval and tau  /
 *scale: still no burst windows		the capacity x scale; of a sliding window at most what 25
 *bits of its quantum hold, of window counters what one of them holds (params_make_room() and
 *params_divide() ensure that they hold it) interval bucket	the capacity and the refill x scale
 *   grace		as it is
 *
 * A capacity does not shrink below `least` units (1, or a large frame), so that something passes;
 * then the tau of a token bucket grows instead. The share that is used shrinks with that once, by
 * at most `least` units.
 *
 * The interval is rounded up, on top of the inverse's own rounding: a rate that is off by less
 * than scale / 2^32 (100: 0.16 %) upwards or a unit of mult downwards. Bounds, above 1: mult < 2^63
 * and inverse <= 2^16, so mult' <= mult; capacity < 2^46 and scale < 2^23, so capacity' < 2^53. A
 * cost is at most SL_COST_MAX and the capacity; its product with mult' is at most capacity x
 * scale x (mult / scale + 1) < 2^63 + 2^31. Below 1: of the fraction of mult up to 7 bits are cut
 * first; if it has as many, mult' <= mult, else mult' x capacity' is about tau, and
 * params_check_floor() sees to it that tau / scale < 2^60.
 */
static __always_inline void sl_scale_params(struct sl_params *p, u32 scale, u32 inverse, u64 least)
{
	u64 most = SL_WINDOW_COUNT_MASK, ticks;

	if (p->algo == SL_ALGO_GRACE)
		return;
	if (sl_is_bucket(p)) {
		if (scale < 1U << 16) {
			u32 cut = p->shift < SL_SCALE_MIN_BITS ? p->shift : SL_SCALE_MIN_BITS;

			p->mult = ((p->mult - 1) >> (cut & 7)) + 1;
			p->shift -= cut;
		}
		p->mult = sl_mul_16_16(p->mult, inverse, 0xffff);
	}
	if (p->algo == SL_ALGO_LEAKY_BUCKET) {
		p->tau = sl_gcra_ticks(p, p->capacity);
		return;
	}
	if (least > p->capacity)
		least = p->capacity;
	p->capacity = sl_mul_16_16(p->capacity, scale, 0);
	if (p->capacity < least)
		p->capacity = least;
	if (p->algo == SL_ALGO_TOKEN_BUCKET) {
		ticks = p->capacity <= least ? sl_gcra_ticks(p, least) : 0;
		if (ticks > p->tau)
			p->tau = ticks;
		return;
	}
	if (p->algo == SL_ALGO_SLIDING_WINDOW)
		most = SL_SLIDING_COUNT_MAX << (p->quantum & 63);
	if (p->algo == SL_ALGO_WINDOW_COUNTERS)
		most = sl_counters_mask(p) - 1;
	if (p->algo == SL_ALGO_FIRST_REQUEST)
		most = SL_BIT(p->quantum & 63) - 1;
	if (p->algo == SL_ALGO_INTERVAL_BUCKET) {
		p->mult = sl_mul_16_16(p->mult, scale, 0);
		if (p->mult > most)
			p->mult = most;
		if (!p->mult)
			p->mult = 1;
	}
	if (p->capacity > most)
		p->capacity = most;
}

#endif
