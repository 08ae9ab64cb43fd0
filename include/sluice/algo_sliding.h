/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * algo_sliding.h - sliding window counter: two aligned windows, and what of the previous one
 * is still within a window's length.
 *
 *     used = current + floor(previous x left / W)        left: until the current window ends
 *
 * and a cost c fits where used + c <= capacity C. Windows are aligned to UTC, as in
 * algo_window.h. The product is rounded down, to whole units: rounded up, a limit of C would
 * give a source that sends more only C - 1 in each window. A rule may ask for that (round_up): then
 * the estimate is never below `previous x left / W`, and the + 1 above is gone.
 *
 * What it admits. Take an interval of length L that begins with x of the P units of one
 * window, and ends with y units at share f of the next. When the last of those came,
 * y < C + 1 - P (1 - f), and x <= P, x <= C, so x + y < C + 1 + x f; and f W <= L. Whole
 * windows between the two have at most C each. So over every interval
 *
 *     admitted  <  C + C x L / W + 1
 *
 * which is the bound of a token bucket with burst C and rate C / W. Within one W it is at
 * most 2 C: C at once at the end of a window, then as many again, one by one as that window's
 * share goes down. (A fixed window lets the second C through at once; a log of all times
 * would let none through.) Within an aligned window it is at most C.
 *
 * How far the estimate is from a log that knows each time. The error is that of taking the
 * previous window's arrivals as evenly spread: of P of them a log finds some number T in the
 * last `left` of that window, the estimate has P left / W.
 *
 *     evenly spread	0, but for the rounding of a unit
 *     at random	T is binomial(P, left / W): the error's standard deviation is
 *			sqrt(P s (1 - s)) at s = left / W, at most sqrt(P) / 2: at P = C = 100
 *			5 % of C, at 1000 1.6 %
 *     at worst		all at the window's end: P (1 - s) too low; all at its beginning: P s
 *			too high. Either comes to P, at one end of the current window
 *
 * A verdict can be wrong only while used + c is that near to C. docs/algorithms.md has
 * measurements.
 *
 * The bucket state: bits 63..50 the window's number modulo 2^14, bits 49..25 the current count,
 * bits 24..0 the previous one, in quanta of 2^quantum units, which is 1 up to a capacity of 2^25 -
 * 2 units. Numbers are compared as a difference: equal, one on (the current count is the previous
 * one now), one back (a clock stepped back over an edge: the state's window goes on until its own
 * end; before its beginning `left` is all of it); any other number is a key never seen. A state
 * unchanged for 2^14 windows (4.5 hours of seconds; 27 minutes of 100 ms) would be taken for a live
 * one, for two windows; the daemon's sweep clears expired buckets long before.
 *
 * Larger quanta. A cost fits by what it is rounded up; it is charged rounded at random,
 * (c + r) / quantum with r evenly out of 0..quantum-1, so that in the mean neither small nor
 * large packets are favoured. The variance of one charge is below quantum x c, of all that
 * make up a capacity below quantum x C: standard deviation sqrt(quantum / C), 0.024 % at the
 * least C that needs such a quantum (params_error_ppm()). r is a mix of the time, so a refund
 * at the same instant refunds exactly what was charged.
 *
 * No 128-bit products: a count (below 2^26) times a time (at most 2^56) is taken as two
 * halves of 32 bits, and verdict, wait and estimate are exact.
 */
#ifndef SLUICE_ALGO_SLIDING_H
#define SLUICE_ALGO_SLIDING_H

#include "types.h"

#define SL_SLIDING_COUNT_BITS 25
#define SL_SLIDING_COUNT_MASK (SL_BIT(SL_SLIDING_COUNT_BITS) - 1)
/* One less than fits: no state is all ones, which is SL_STATE_BUSY. */
#define SL_SLIDING_COUNT_MAX (SL_SLIDING_COUNT_MASK - 1)
#define SL_SLIDING_NUMBER_MASK (SL_BIT(64 - 2 * SL_SLIDING_COUNT_BITS) - 1)

struct sl_params;

/* A state as it is read at some time. Counts in quanta. */
struct sl_sliding {
	u64 number; /* of the current window, modulo 2^14 */
	u64 current, previous;
	u64 left_ns;  /* 1..W: how much of the previous window still counts */
	u64 early_ns; /* how long until the current window begins; 0 but for a clock set back */
};

static __always_inline struct sl_sliding sl_sliding_read(u64 bucket_state,
							 const struct sl_params *p, u64 utc_ns)
{
	u64 number = utc_ns / p->window_ns;
	struct sl_sliding s = {
		.number = number & SL_SLIDING_NUMBER_MASK,
		.current = (bucket_state >> SL_SLIDING_COUNT_BITS) & SL_SLIDING_COUNT_MASK,
		.previous = bucket_state & SL_SLIDING_COUNT_MASK,
		.left_ns = p->window_ns - (utc_ns - number * p->window_ns),
	};
	u64 ahead =
		((bucket_state >> 2 * SL_SLIDING_COUNT_BITS) - s.number) & SL_SLIDING_NUMBER_MASK;

	if (!ahead)
		return s;
	/* A state of 0 is of no window, not of one that is a multiple of 2^14. */
	if (ahead == 1 && bucket_state) {
		s.number = bucket_state >> 2 * SL_SLIDING_COUNT_BITS;
		s.early_ns = s.left_ns;
		s.left_ns = p->window_ns;
		return s;
	}
	s.previous = ahead == SL_SLIDING_NUMBER_MASK ? s.current : 0;
	s.current = 0;
	return s;
}

static __always_inline u64 sl_sliding_state(const struct sl_sliding *s, u64 current)
{
	return s->number << 2 * SL_SLIDING_COUNT_BITS | current << SL_SLIDING_COUNT_BITS |
	       s->previous;
}

/* count_a x ns_a < count_b x ns_b, where counts are below 2^26 and times at most 2^56. */
static __always_inline int sl_sliding_less(u64 count_a, u64 ns_a, u64 count_b, u64 ns_b)
{
	u64 low_a = count_a * (ns_a & 0xffffffff), low_b = count_b * (ns_b & 0xffffffff);
	u64 high_a = count_a * (ns_a >> 32) + (low_a >> 32);
	u64 high_b = count_b * (ns_b >> 32) + (low_b >> 32);

	if (high_a != high_b)
		return high_a < high_b;
	return (low_a & 0xffffffff) < (low_b & 0xffffffff);
}

/*
 * The most `left` at which count x left / W, rounded, is below `most`, both 1 and up: rounded down
 * ceil(most x W / count) - 1, rounded up floor((most - 1) x W / count).
 */
static __always_inline u64 sl_sliding_left(u64 most, const struct sl_params *p, u64 count)
{
	u64 times = p->round_up ? most - 1 : most;
	u64 low = times * (p->window_ns & 0xffffffff);
	u64 high = times * (p->window_ns >> 32) + (low >> 32);

	/* high:low, rounded down less 1, by long division in base 2^32: a remainder is below
	 * 2^26. */
	low &= 0xffffffff;
	if (!p->round_up) {
		if (!low)
			high--;
		low = (low - 1) & 0xffffffff;
	}
	return ((high / count) << 32) + (((high % count) << 32 | low) / count);
}

/*
 * How long until room for `cost` quanta, which does not fit now: in this window as the
 * previous one's share goes down; else in the next one, as this one's does. The count that
 * stands in its way is not 0.
 */
static __always_inline u64 sl_sliding_wait(const struct sl_sliding *s, const struct sl_params *p,
					   u64 capacity, u64 cost)
{
	u64 wait = s->early_ns + s->left_ns;

	if (cost > capacity)
		return ~0ULL;
	if (s->current + cost <= capacity)
		return wait - sl_sliding_left(capacity - s->current - cost + 1, p, s->previous);
	return wait + p->window_ns - sl_sliding_left(capacity - cost + 1, p, s->current);
}

/* Whether previous x left / W, rounded, is at most `room`. */
static __always_inline int sl_sliding_fits(const struct sl_sliding *s, const struct sl_params *p,
					   u64 room)
{
	if (p->round_up)
		return !sl_sliding_less(room, p->window_ns, s->previous, s->left_ns);
	return sl_sliding_less(s->previous, s->left_ns, room + 1, p->window_ns);
}

/* Evenly out of 0..2^quantum-1, by the time. (The mix is that of splitmix64, cut short.) */
static __always_inline u64 sl_sliding_random(const struct sl_params *p, u64 utc_ns)
{
	u64 mixed = utc_ns * 0x9e3779b97f4a7c15ULL;

	mixed = (mixed ^ mixed >> 32) * 0xbf58476d1ce4e5b9ULL;
	return (mixed >> 32) & (SL_BIT(p->quantum & 63) - 1);
}

static __always_inline struct sl_result sl_sliding_step(u64 bucket_state, const struct sl_params *p,
							u64 utc_ns, u64 cost)
{
	struct sl_sliding s = sl_sliding_read(bucket_state, p, utc_ns);
	u32 quantum = p->quantum & 63;
	u64 capacity = p->capacity >> quantum;
	u64 whole = (cost + SL_BIT(quantum) - 1) >> quantum;
	u64 charge = whole;
	struct sl_result res = { .bucket_state = bucket_state };

	if (s.current + whole > capacity || !sl_sliding_fits(&s, p, capacity - s.current - whole)) {
		res.verdict = SL_OVER;
		res.wait_ns = sl_sliding_wait(&s, p, capacity, whole);
		return res;
	}
	if (quantum)
		charge = (cost + sl_sliding_random(p, utc_ns)) >> quantum;
	res.bucket_state = sl_sliding_state(&s, s.current + charge);
	return res;
}

/* After a refusal of `cost`, of a limit that counts refused ones: of this window up to the
 * limit. */
static __always_inline u64 sl_sliding_fill(u64 bucket_state, const struct sl_params *p, u64 utc_ns,
					   u64 cost)
{
	struct sl_sliding s = sl_sliding_read(bucket_state, p, utc_ns);
	u64 capacity = p->capacity >> (p->quantum & 63);

	cost = (cost + sl_sliding_random(p, utc_ns)) >> (p->quantum & 63);
	if (s.current >= capacity)
		return bucket_state;
	return sl_sliding_state(&s, s.current + cost < capacity ? s.current + cost : capacity);
}

/* previous x left / W, rounded, is 0 from here on, and the next window has no previous one. */
static __always_inline int sl_sliding_expired(u64 bucket_state, const struct sl_params *p,
					      u64 utc_ns)
{
	struct sl_sliding s = sl_sliding_read(bucket_state, p, utc_ns);

	if (p->round_up)
		return !s.current && !s.previous;
	/* previous x left < W */
	return !s.current && s.previous <= (p->window_ns - 1) / s.left_ns;
}

/*
 * Quanta used. On the times' upper 38 bits the quotient is right but for one, for each is off
 * by 2^-37 of itself and a count is below 2^25; the exact products then decide.
 */
static __always_inline u64 sl_sliding_used(u64 bucket_state, const struct sl_params *p, u64 utc_ns)
{
	struct sl_sliding s = sl_sliding_read(bucket_state, p, utc_ns);
	u32 shift = p->shift & 63;
	u64 share = s.previous * (s.left_ns >> shift) / (p->window_ns >> shift);

	if (sl_sliding_less(s.previous, s.left_ns, share, p->window_ns))
		share--;
	else if (!sl_sliding_less(s.previous, s.left_ns, share + 1, p->window_ns))
		share++;
	if (p->round_up && sl_sliding_less(share, p->window_ns, s.previous, s.left_ns))
		share++;
	return s.current + share;
}

static __always_inline u32 sl_sliding_utilization(u64 bucket_state, const struct sl_params *p,
						  u64 utc_ns)
{
	u64 used = sl_sliding_used(bucket_state, p, utc_ns);
	u64 capacity = p->capacity >> (p->quantum & 63);

	if (!used)
		return 0;
	if (used >= capacity)
		return 255;
	return 1 + used * 254 / capacity;
}

/* Until nothing of it counts any more: to the end of the next window, or of this one. */
static __always_inline u64 sl_sliding_left_ns(u64 bucket_state, const struct sl_params *p,
					      u64 utc_ns)
{
	struct sl_sliding s = sl_sliding_read(bucket_state, p, utc_ns);

	if (!s.current && !s.previous)
		return 0;
	return s.early_ns + s.left_ns + (s.current ? p->window_ns : 0);
}

static __always_inline u64 sl_sliding_spent(const struct sl_params *p, u64 utc_ns, u64 left_ns)
{
	struct sl_sliding s = sl_sliding_read(0, p, utc_ns);
	u64 capacity = p->capacity >> (p->quantum & 63);

	/* The limit was used up in this window, the previous one, or one that no longer counts. */
	if (left_ns >= s.left_ns + p->window_ns / 2)
		return sl_sliding_state(&s, capacity);
	if (left_ns < s.left_ns)
		return 0;
	s.previous = capacity;
	return sl_sliding_state(&s, 0);
}

/* Only from the window that utc_ns is in, by what the charge of this instant was rounded to. */
static __always_inline u64 sl_sliding_refund(u64 bucket_state, const struct sl_params *p,
					     u64 utc_ns, u64 cost)
{
	struct sl_sliding s = sl_sliding_read(bucket_state, p, utc_ns);
	u32 quantum = p->quantum & 63;

	if (s.number != bucket_state >> 2 * SL_SLIDING_COUNT_BITS || s.early_ns)
		return bucket_state;
	if (quantum)
		cost = (cost + sl_sliding_random(p, utc_ns)) >> quantum;
	return sl_sliding_state(&s, s.current > cost ? s.current - cost : 0);
}

#endif
