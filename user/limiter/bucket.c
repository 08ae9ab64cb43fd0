// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * bucket.c - the rows of token and leaky bucket: a debt that drains (include/sluice/algo_gcra.h).
 *
 * Two properties that a step does not have:
 *
 * - A reserve (hold). It is a smaller limit over the same bucket state: capacity and tau without
 * the reserve. Only waits then need the bucket state's whole debt, which sl_gcra_debt() cuts at
 * tau. - A debt. Reports are charged also above the limit: a bucket state goes up to two tau ahead.
 * Steps treat it as full.
 *
 * Requests cost whole ticks (shift 0), and mult x capacity = tau < 2^60: no product of a cost that
 * fits overflows here.
 *
 * The error by rounding (token bucket), which always admits less:
 *
 * - Packets and connections cost 1, and a cost is whole ticks, so the interval is rounded up to
 * whole ticks here (shift 0). A lease of n units then costs exactly n times one unit. The rate is
 * low by less than 1/interval: 1/16000 at 1M a second, 1 % at 160M, 6 % at the largest rate, 1G. -
 * Bytes keep a binary fraction: mult = ceil(interval x 2^shift), long by less than 1/mult. Either
 * shift is below 40 because one more would have passed 2^63 / 2^24, so mult >= 2^38; or shift is 40
 * and the least interval, 1/8 tick, makes mult >= 2^37. So the rate is low by less than 2^-37; and
 * a step rounds up to a tick on top, as algo_gcra.h says.
 */
#include <math.h>

#include "limiter/algorithm_private.h"

#define SHIFT_MAX 40
/* The least interval, in eighths of a tick: 1G packets/s, 1.024 Tbit/s. */
#define INTERVAL8_MIN_UNITS (16 * 8)
#define INTERVAL8_MIN_BYTES 1

/* ------------------------------------------------------------------ parameters */

/* ceil(interval x 2^shift) where the interval is period8 / count eighths of a tick. */
static u128 scaled_interval(u128 period8, u64 count, int shift)
{
	u128 divisor = (u128)count * 8;

	return ((period8 << shift) + divisor - 1) / divisor;
}

static int bucket_compile(const struct rate *rate, u64 burst, u32 max_frame, struct sl_params *p,
			  const char **ret_reason)
{
	bool bytes = counts_bytes(rate);
	/* A byte is eight bits: a rate in bits has eight times the interval per unit charged. */
	u128 period8 =
		(u128)rate->period_ns * SL_TICKS_PER_NS * 8 * (rate->unit == RATE_BITS ? 8 : 1);
	int shift = bytes ? SHIFT_MAX : 0;
	u64 most; /* the largest cost of one step */
	u128 mult, tau;
	int err;

	if (!burst)
		burst = params_default_burst(rate, max_frame);
	p->capacity = rate->unit == RATE_BITS ? burst / 8 : burst;
	err = params_check_capacity(p->capacity, bytes, ret_reason);
	if (err)
		return err;
	if (period8 / rate->count < (bytes ? INTERVAL8_MIN_BYTES : INTERVAL8_MIN_UNITS))
		return params_refuse(
			bytes ? "the rate is above 128G bytes/s (1024G bits/s), which a step cannot resolve"
			      : "the rate is above 1G a second, which a step cannot resolve",
			ret_reason);

	most = min_u64(p->capacity, SL_COST_MAX);
	for (;; shift--) {
		mult = scaled_interval(period8, rate->count, shift);
		if (mult * most < SL_BIT(63))
			break;
		if (!shift)
			return params_refuse(
				"the rate is too slow for its burst: refilling it takes more than 2.2 years",
				ret_reason);
	}
	/*
	 * From the rounded interval, up: so that `capacity` packets, or one cost of `capacity`
	 * bytes, fit exactly.
	 */
	tau = (mult * p->capacity + SL_BIT(shift) - 1) >> shift;
	if (tau > TAU_MAX)
		return params_refuse(
			"the rate is too slow for its burst: refilling it takes more than 2.2 years",
			ret_reason);
	p->mult = mult;
	p->shift = shift;
	p->tau = tau;
	p->tau_exp = mantissa_exp(tau);
	return 0;
}

/* A bucket of one packet, or of the largest frame: a slower rate only makes the time longer. */
static int leaky_compile(const struct rate *rate, u64 burst, u32 max_frame, struct sl_params *p,
			 const char **ret_reason)
{
	struct rate slow = { 1, PERIOD_MAX_NS, rate->unit };

	if (burst)
		return params_refuse("a leaky bucket has no burst: it spaces packets evenly",
				     ret_reason);
	return bucket_compile(rate, params_default_burst(&slow, max_frame), max_frame, p,
			      ret_reason);
}

/* The interval's. */
static double bucket_error(const struct sl_params *p, const struct rate *rate)
{
	double exact = (double)rate->period_ns * SL_TICKS_PER_NS / rate->count *
		       (rate->unit == RATE_BITS ? 8 : 1);

	return ldexp(p->mult, -p->shift) / exact - 1;
}

/* ------------------------------------------------------------------ steps */

/* A bucket's debt in ticks, also one above tau. */
static u64 debt_of(u64 bucket_state, struct sl_now now)
{
	return less(bucket_state >> SL_GCRA_GEN_BITS, now.mono_ns * SL_TICKS_PER_NS);
}

static u64 make_bucket_state(u64 debt, struct sl_now now)
{
	return (now.mono_ns * SL_TICKS_PER_NS + debt) << SL_GCRA_GEN_BITS;
}

static u64 ticks_to_ns(u64 ticks)
{
	return (ticks + SL_TICKS_PER_NS - 1) / SL_TICKS_PER_NS;
}

static struct sl_result bucket_charge(const struct spec_view *view, u64 bucket_state,
				      struct sl_now now, u64 cost)
{
	struct sl_result res = sl_gcra_step(bucket_state, &view->p, now.mono_ns, cost);

	if (res.verdict == SL_OVER && cost <= view->p.capacity)
		res.wait_ns = ticks_to_ns(debt_of(bucket_state, now) +
					  sl_gcra_ticks(&view->p, cost) - view->p.tau);
	return res;
}

static struct sl_result bucket_look(const struct spec_view *view, u64 bucket_state,
				    struct sl_now now)
{
	u64 tau = view->p.tau + sl_gcra_ticks(&view->p, view->hold);

	return looked(bucket_state, ticks_to_ns(less(debt_of(bucket_state, now), tau)));
}

static u64 bucket_force(const struct spec_view *view, u64 bucket_state, struct sl_now now, u64 cost)
{
	u64 most = most_forced(view);
	u64 debt = debt_of(bucket_state, now) + sl_gcra_ticks(&view->p, min_u64(cost, most));

	return make_bucket_state(min_u64(debt, sl_gcra_ticks(&view->p, most)), now);
}

/* The bucket has drained since. */
static u64 bucket_report(const struct spec_view *view, u64 bucket_state, struct sl_now now,
			 struct sl_now then, u64 cost)
{
	return bucket_force(view, bucket_state, then, cost);
}

static u64 bucket_refund(const struct spec_view *view, u64 bucket_state, struct sl_now now,
			 u64 cost)
{
	u64 debt = debt_of(bucket_state, now);

	cost = sl_gcra_ticks(&view->p, min_u64(cost, most_forced(view)));
	return debt > cost ? make_bucket_state(debt - cost, now) : 0;
}

static u64 bucket_uncommit(const struct spec_view *view, u64 bucket_state, struct sl_now now,
			   struct sl_now then, u64 cost)
{
	return bucket_refund(view, bucket_state, now, cost);
}

static u64 bucket_remaining(const struct spec_view *view, u64 bucket_state, struct sl_now now)
{
	const struct sl_params *p = &view->p;

	return min_u64(less(p->tau, debt_of(bucket_state, now)) / p->mult, p->capacity);
}

static u64 bucket_reset_ns(const struct spec_view *view, u64 bucket_state, struct sl_now now)
{
	return ticks_to_ns(debt_of(bucket_state, now));
}

static u32 bucket_utilization(const struct spec *spec, u64 bucket_state, struct sl_now now)
{
	return sl_gcra_utilization(bucket_state, &spec->params, now.mono_ns);
}

static bool bucket_expired(const struct spec *spec, u64 bucket_state, struct sl_now now)
{
	return !debt_of(bucket_state, now);
}

/* The debt as a fraction of tau stays. */
static u64 bucket_convert(const struct spec *from, const struct spec *to, u64 bucket_state,
			  struct sl_now now)
{
	u128 debt = debt_of(bucket_state, now);

	debt = (debt * to->params.tau + from->params.tau - 1) / from->params.tau;
	return debt ? make_bucket_state(min_u64(debt, 2 * to->params.tau), now) : 0;
}

/* ------------------------------------------------------------------ the cluster store */

static u64 bucket_store_wait_ns(const struct cluster_store_rate *rate,
				const struct cluster_store_raw *raw, u64 room, u64 cost, u64 now_us)
{
	return ticks_to_ns(less(raw->used, (room - cost) * rate->mult));
}

/*
 * The whole debt counts, beyond one capacity too: it is the excess of nodes with write_back.
 * If it were cut at one capacity, n nodes on a bucket that drains in less than an interval would
 * continue at n times its rate.
 */
#define DEBT_MAX_NS (366ULL * 86400 * 1000000000)

static u64 bucket_from_store(const struct spec *spec, const struct cluster_store_state *state,
			     u64 more, struct sl_now now)
{
	const struct sl_params *p = &spec->params;
	u64 debt = min_u64(state->used, DEBT_MAX_NS) * SL_TICKS_PER_NS;

	more = min_u64(more, 2 * p->capacity);
	debt += min_u64(sl_gcra_ticks(p, more), 2 * p->tau);
	return debt ? make_bucket_state(debt, now) : 0;
}

/* clang-format off */
#define BUCKET_STEPS							\
	.error = bucket_error, .charge = bucket_charge, .look = bucket_look,	\
	.force = bucket_force, .report = bucket_report, .refund = bucket_refund,	\
	.uncommit = bucket_uncommit, .remaining = bucket_remaining,	\
	.reset_ns = bucket_reset_ns, .utilization = bucket_utilization,	\
	.expired = bucket_expired, .convert = bucket_convert,		\
	.store_wait_ns = bucket_store_wait_ns, .from_store = bucket_from_store
/* clang-format on */

const struct algorithm algorithm_token_bucket = {
	.default_burst = params_default_burst,
	.compile = bucket_compile,
	BUCKET_STEPS,
};

const struct algorithm algorithm_leaky_bucket = {
	.percpu_note = "a leaky bucket holds one packet (or frame), which is not divided among "
		       "CPUs",
	.compile = leaky_compile,
	BUCKET_STEPS,
};
