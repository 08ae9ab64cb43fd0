/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * algo_gcra.h - token bucket and leaky bucket, as the generic cell rate algorithm (ITU-T I.371,
 * annex A; "virtual scheduling").
 *
 * A bucket of capacity B refilled at R units a second is the same thing as one time, the
 * theoretical arrival time: TAT = when the bucket would be full again. With interval
 * I = 1/R and tau = B x I, a cost c conforms at `now` when
 *
 *     max(TAT, now) + c x I  <=  now + tau            and then TAT' = max(TAT, now) + c x I
 *
 * so over any interval of length t it admits at most B + R x t. debt = TAT - now is the time
 * the bucket needs to fill; tokens held = (tau - debt) / I.
 *
 * A leaky bucket, as a meter, is the token bucket whose capacity is one packet (of bytes: one
 * frame of the largest size): each packet has to keep its interval from the one before.
 *
 * Units: a tick is 1/16 ns (a nanosecond is 25% off per byte at 10 Gbit/s). The interval is
 * mult / 2^shift ticks. A cost above the capacity never fits and is refused first; for the
 * others cost x mult < 2^63, because mult x min(capacity, 2^24) < 2^63 is checked when the
 * rule is compiled. The product is rounded UP: a bucket never admits more than its rate, and
 * less by at most one tick a step (64-byte frames at 10 Gbit/s: 1/819).
 *
 * The bucket state: bits 63..2 the TAT in ticks since boot, bits 1..0 the limit's rate generation.
 * 62 bits of ticks are 9.1 years of uptime; tau < 2^60 ticks (2.2 years) is checked when a
 * rule is compiled.
 *
 * A live rate change. Debt is time at the rate it was made at; left alone, it would be worth
 * 100 times too much or too little when a rate changes by 100. So the limit's generation
 * changes with its rate, and a step that meets another generation first scales the debt:
 *
 *     debt' = debt x tau_now / tau_then
 *
 * An empty bucket stays empty, a full one full. There is no 128-bit multiply in BPF, so this
 * is done on mantissas: with 2^31 <= tau / 2^e < 2^32 (e: tau_exp, may be negative),
 * debt' = ((debt / 2^e_then) x rescale_mult / 2^31) x 2^e_now, where rescale_mult =
 * mantissa(tau_now) x 2^31 / mantissa(tau_then) < 2^32. The error is below 2^-29 of tau. The
 * daemon converts every stored state to the current generation before a number is used again.
 */
#ifndef SLUICE_ALGO_GCRA_H
#define SLUICE_ALGO_GCRA_H

#include "types.h"

#define SL_TICKS_PER_NS 16
#define SL_GCRA_GEN_BITS 2
#define SL_GCRA_GEN_MASK 3ULL
#define SL_MANTISSA_MAX 0xffffffffULL

/* x / 2^exp; exp is -31..63. */
static __always_inline u64 sl_scale_down(u64 x, s32 exp)
{
	return exp >= 0 ? x >> (exp & 63) : x << (-exp & 63);
}

/* cost units as ticks, rounded up. cost <= min(capacity, SL_COST_MAX). */
static __always_inline u64 sl_gcra_ticks(const struct sl_params *p, u64 cost)
{
	u64 product = cost * p->mult;
	u32 shift = p->shift & 63;

	return (product >> shift) + ((product & ((1ULL << shift) - 1)) != 0);
}

/*
 * The debt of a bucket at `now`, in ticks at the limit's rate now; at most tau, for a bucket
 * can be no emptier than empty.
 */
static __always_inline u64 sl_gcra_debt(u64 bucket_state, const struct sl_params *p, u64 now_ticks)
{
	u64 tat = bucket_state >> SL_GCRA_GEN_BITS;
	u32 gen = bucket_state & SL_GCRA_GEN_MASK;
	u64 debt;

	if (tat <= now_ticks)
		return 0;
	debt = tat - now_ticks;
	if (gen != p->gen) {
		u64 mantissa = sl_scale_down(debt, p->rescale_exp[gen]);

		if (mantissa > SL_MANTISSA_MAX)
			mantissa = SL_MANTISSA_MAX;
		debt = sl_scale_down((mantissa * p->rescale_mult[gen]) >> 31, -p->tau_exp);
	}
	return debt < p->tau ? debt : p->tau;
}

static __always_inline u64 sl_gcra_state(const struct sl_params *p, u64 now_ticks, u64 debt)
{
	return ((now_ticks + debt) << SL_GCRA_GEN_BITS) | p->gen;
}

static __always_inline struct sl_result sl_gcra_step(u64 bucket_state, const struct sl_params *p,
						     u64 mono_ns, u64 cost)
{
	struct sl_result res = { .bucket_state = bucket_state,
				 .verdict = SL_OVER,
				 .wait_ns = ~0ULL };
	u64 now = mono_ns * SL_TICKS_PER_NS;
	u64 debt;

	if (cost > p->capacity)
		return res;
	debt = sl_gcra_debt(bucket_state, p, now);
	debt += sl_gcra_ticks(p, cost);
	if (debt > p->tau) {
		res.wait_ns = (debt - p->tau + SL_TICKS_PER_NS - 1) / SL_TICKS_PER_NS;
		return res;
	}
	res.verdict = SL_PASS;
	res.bucket_state = sl_gcra_state(p, now, debt);
	res.wait_ns = 0;
	return res;
}

/* After a refusal of `cost`, of a limit that counts refused ones: up to an empty bucket. */
static __always_inline u64 sl_gcra_fill(u64 bucket_state, const struct sl_params *p, u64 mono_ns,
					u64 cost)
{
	u64 now = mono_ns * SL_TICKS_PER_NS;
	u64 debt = sl_gcra_debt(bucket_state, p, now);

	if (debt >= p->tau)
		return bucket_state;
	debt = cost < p->capacity ? debt + sl_gcra_ticks(p, cost) : p->tau;
	return sl_gcra_state(p, now, debt < p->tau ? debt : p->tau);
}

static __always_inline u32 sl_gcra_utilization(u64 bucket_state, const struct sl_params *p,
					       u64 mono_ns)
{
	u64 debt = sl_gcra_debt(bucket_state, p, mono_ns * SL_TICKS_PER_NS);

	if (!debt)
		return 0;
	return 1 + sl_scale_down(debt, p->tau_exp) * 254 / sl_scale_down(p->tau, p->tau_exp);
}

/*
 * Units used: capacity x debt / tau, rounded up. The mantissas are below 2^32; a capacity of
 * 2^31 and more is cut to its upper bits first, so the product stays below 2^63.
 */
static __always_inline u64 sl_gcra_used(u64 bucket_state, const struct sl_params *p, u64 mono_ns)
{
	u64 debt = sl_gcra_debt(bucket_state, p, mono_ns * SL_TICKS_PER_NS);
	u64 tau = sl_scale_down(p->tau, p->tau_exp);
	u32 cut = p->capacity >> 31 ? 15 : 0;

	debt = sl_scale_down(debt, p->tau_exp);
	return (((p->capacity >> cut) * debt + tau - 1) / tau) << cut;
}

/* Until the bucket is full again; not cut to tau: an override has another tau. */
static __always_inline u64 sl_gcra_left(u64 bucket_state, const struct sl_params *p, u64 mono_ns)
{
	u64 now = mono_ns * SL_TICKS_PER_NS, debt = sl_gcra_debt(bucket_state, p, now);

	if (debt && (bucket_state & SL_GCRA_GEN_MASK) == p->gen)
		debt = (bucket_state >> SL_GCRA_GEN_BITS) - now;
	return (debt + SL_TICKS_PER_NS - 1) / SL_TICKS_PER_NS;
}

/* left_ns < 2^59. */
static __always_inline u64 sl_gcra_spent(const struct sl_params *p, u64 mono_ns, u64 left_ns)
{
	u64 debt = left_ns * SL_TICKS_PER_NS;

	return sl_gcra_state(p, mono_ns * SL_TICKS_PER_NS, debt < p->tau ? debt : p->tau);
}

static __always_inline u64 sl_gcra_refund(u64 bucket_state, const struct sl_params *p, u64 mono_ns,
					  u64 cost)
{
	u64 now = mono_ns * SL_TICKS_PER_NS;
	u64 back = sl_gcra_ticks(p, cost);
	u64 debt;

	if ((bucket_state & SL_GCRA_GEN_MASK) != p->gen)
		return bucket_state;
	debt = sl_gcra_debt(bucket_state, p, now);
	if (!debt)
		return bucket_state;
	return sl_gcra_state(p, now, debt > back ? debt - back : 0);
}

#endif
