/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * params.c - a rate and a burst -> struct sl_params; every bound of algo.h is checked here.
 *
 * The steps run where there is no 128-bit multiply; here there is one, so each bound is
 * checked on the exact product instead of being argued about.
 *
 * What rounding costs (token bucket), always on the side of admitting less:
 *
 * - Packets and connections cost 1, and a cost is whole ticks, so the interval is rounded up
 *   to whole ticks here (shift 0). A lease of n units then costs exactly n times one unit.
 *   The rate is low by less than 1/interval: 1/16000 at 1M a second, 1 % at 160M, 6 % at the
 *   largest rate, 1G.
 * - Bytes keep a binary fraction: mult = ceil(interval x 2^shift), long by less than 1/mult.
 *   Either shift is below 40 because one more would have passed 2^63 / 2^24, so mult >= 2^38;
 *   or shift is 40 and the least interval, 1/8 tick, makes mult >= 2^37. So the rate is low
 *   by less than 2^-37; and a step rounds up to a tick on top, as algo_gcra.h says.
 *
 * A sliding window counts in quanta of one unit, or, where 25 bits do not hold its capacity so,
 * of the least power of two with which they do.
 */
#include <errno.h>
#include <math.h>

#include "lib/whole.h"
#include "limiter/params.h"

typedef unsigned __int128 u128;

#define CAPACITY_MAX (SL_BIT(46) - 1)
#define TAU_MAX (SL_BIT(60) - 1)
#define SHIFT_MAX 40
/* tau's bound in ns. It also keeps mult x cost, before it is checked, at 2^127 at most. */
#define PERIOD_MAX_NS SL_BIT(56)
/* A capacity below the smallest Ethernet frame would let nothing through, ever. */
#define CAPACITY_MIN_BYTES 64
#define MAX_FRAME_DEFAULT 9018
/* The least interval, in eighths of a tick: 1G packets/s, 1.024 Tbit/s. */
#define INTERVAL8_MIN_UNITS (16 * 8)
#define INTERVAL8_MIN_BYTES 1

/* Upper bits of a sliding window's times that its estimate is first divided by. */
#define SLIDING_TIME_BITS 38

#define RESCALE_ONE SL_BIT(31)

static int refuse(const char *reason, const char **ret_reason)
{
	*ret_reason = reason;
	return -ERANGE;
}

static bool counts_bytes(const struct rate *rate)
{
	return rate->unit == RATE_BYTES || rate->unit == RATE_BITS;
}

static int max_int(int a, int b)
{
	return a > b ? a : b;
}

/* Number of bits of x, 0 for 0. */
static int bit_length(u64 x)
{
	return x ? 64 - __builtin_clzll(x) : 0;
}

/* The e with 2^31 <= x / 2^e < 2^32. */
static int mantissa_exp(u64 x)
{
	return bit_length(x) - 32;
}

u64 params_default_burst(const struct rate *rate, u32 max_frame)
{
	u128 second = (u128)rate->count * SL_NS_PER_SEC / rate->period_ns;
	u64 least = 1;

	if (counts_bytes(rate)) {
		least = max_frame ? max_frame : MAX_FRAME_DEFAULT;
		if (rate->unit == RATE_BITS)
			least *= 8;
	}
	if (second > ~0ULL)
		return ~0ULL;
	return second > least ? (u64)second : least;
}

static int check_capacity(u64 capacity, bool bytes, const char **ret_reason)
{
	if (capacity > CAPACITY_MAX)
		return refuse("the burst (of a window: the rate) is above 2^46 - 1 packets, connections or bytes",
			      ret_reason);
	if (bytes && capacity < CAPACITY_MIN_BYTES)
		return refuse("the burst (of a window: the rate) is below 64 bytes, the smallest frame: nothing would ever pass",
			      ret_reason);
	if (!capacity)
		return refuse("the burst is 0: nothing would ever pass", ret_reason);
	return 0;
}

static int compile_window(const struct rate *rate, u64 burst, struct sl_params *p,
			  const char **ret_reason)
{
	int err;

	if (burst)
		return refuse("a window has no burst: its rate is all it allows", ret_reason);
	p->capacity = rate->unit == RATE_BITS ? rate->count / 8 : rate->count;
	p->window_ns = rate->period_ns;
	err = check_capacity(p->capacity, counts_bytes(rate), ret_reason);
	if (err || p->algo != SL_ALGO_SLIDING_WINDOW)
		return err;
	p->shift = max_int(bit_length(p->window_ns) - SLIDING_TIME_BITS, 0);
	params_make_room(p, 100);
	return 0;
}

void params_make_room(struct sl_params *p, u32 ceiling_percent)
{
	u128 most = (u128)p->capacity * ceiling_percent / 100;

	if (p->algo != SL_ALGO_SLIDING_WINDOW)
		return;
	p->quantum = 0;
	while (most >> p->quantum > SL_SLIDING_COUNT_MAX)
		p->quantum++;
}

/*
 * Sliding window: four standard deviations of what random rounding makes of the quanta, and
 * the part of a quantum that the capacity loses. Buckets: the interval.
 */
u32 params_error_ppm(const struct sl_params *p, const struct rate *rate)
{
	double error = 0;

	if (sl_is_bucket(p)) {
		double exact = (double)rate->period_ns * SL_TICKS_PER_NS / rate->count *
			       (rate->unit == RATE_BITS ? 8 : 1);

		error = ldexp(p->mult, -p->shift) / exact - 1;
	} else if (p->algo == SL_ALGO_SLIDING_WINDOW && p->quantum) {
		double quantum = ldexp(1, p->quantum) / p->capacity;

		error = 4 * sqrt(quantum) + quantum;
	}
	return error > 0 ? lround(error * 1e6) : 0;
}

/* ceil(interval x 2^shift) where the interval is period8 / count eighths of a tick. */
static u128 scaled_interval(u128 period8, u64 count, int shift)
{
	u128 divisor = (u128)count * 8;

	return ((period8 << shift) + divisor - 1) / divisor;
}

static int compile_gcra(const struct rate *rate, u64 burst, u32 max_frame, struct sl_params *p,
			const char **ret_reason)
{
	bool bytes = counts_bytes(rate);
	/* A byte is eight bits: a rate in bits has eight times the interval per unit charged. */
	u128 period8 = (u128)rate->period_ns * SL_TICKS_PER_NS * 8 *
		       (rate->unit == RATE_BITS ? 8 : 1);
	int shift = bytes ? SHIFT_MAX : 0;
	u64 most;	/* the largest cost of one step */
	u128 mult, tau;
	int err;

	if (!burst)
		burst = params_default_burst(rate, max_frame);
	p->capacity = rate->unit == RATE_BITS ? burst / 8 : burst;
	err = check_capacity(p->capacity, bytes, ret_reason);
	if (err)
		return err;
	if (period8 / rate->count < (bytes ? INTERVAL8_MIN_BYTES : INTERVAL8_MIN_UNITS))
		return refuse(bytes ? "the rate is above 128G bytes/s (1024G bits/s), which a step cannot resolve" :
				      "the rate is above 1G a second, which a step cannot resolve",
			      ret_reason);

	most = min_u64(p->capacity, SL_COST_MAX);
	for (;; shift--) {
		mult = scaled_interval(period8, rate->count, shift);
		if (mult * most < SL_BIT(63))
			break;
		if (!shift)
			return refuse("the rate is too slow for its burst: refilling it takes more than 2.2 years",
				      ret_reason);
	}
	/*
	 * From the rounded interval, up: so that `capacity` packets, or one cost of `capacity`
	 * bytes, fit exactly.
	 */
	tau = (mult * p->capacity + SL_BIT(shift) - 1) >> shift;
	if (tau > TAU_MAX)
		return refuse("the rate is too slow for its burst: refilling it takes more than 2.2 years",
			      ret_reason);
	p->mult = mult;
	p->shift = shift;
	p->tau = tau;
	p->tau_exp = mantissa_exp(tau);
	return 0;
}

/* A bucket of one packet, or of the largest frame: at a slower rate both only take longer. */
static int compile_leaky(const struct rate *rate, u64 burst, u32 max_frame, struct sl_params *p,
			 const char **ret_reason)
{
	struct rate slow = { 1, PERIOD_MAX_NS, rate->unit };

	if (burst)
		return refuse("a leaky bucket has no burst: it spaces packets evenly",
			      ret_reason);
	return compile_gcra(rate, params_default_burst(&slow, max_frame), max_frame, p,
			    ret_reason);
}

static int compile_grace(u64 for_ns, struct sl_params *ret, const char **ret_reason)
{
	if (!for_ns || for_ns > PERIOD_MAX_NS)
		return refuse("a soft throttle's time is 0 or above 2.2 years", ret_reason);
	*ret = (struct sl_params){ .algo = SL_ALGO_GRACE, .capacity = 1, .window_ns = for_ns };
	return 0;
}

int params_compile(enum sl_algo algo, const struct rate *rate, u64 burst, u32 max_frame,
		   struct sl_params *ret, const char **ret_reason)
{
	static const struct sl_limit_id_info no_history;
	struct sl_params p = { .algo = algo };
	int err;

	if (algo == SL_ALGO_GRACE)
		return compile_grace(rate->period_ns, ret, ret_reason);
	if (!rate->count)
		return refuse("the rate is 0", ret_reason);
	if (rate->period_ns < SL_NS_PER_SEC || rate->period_ns > PERIOD_MAX_NS)
		return refuse("the rate's period is below 1s or above 2.2 years", ret_reason);

	switch (algo) {
	case SL_ALGO_TOKEN_BUCKET:
		err = compile_gcra(rate, burst, max_frame, &p, ret_reason);
		break;
	case SL_ALGO_LEAKY_BUCKET:
		err = compile_leaky(rate, burst, max_frame, &p, ret_reason);
		break;
	case SL_ALGO_FIXED_WINDOW:
	case SL_ALGO_SLIDING_WINDOW:
		err = compile_window(rate, burst, &p, ret_reason);
		break;
	default:
		return refuse("unknown algorithm", ret_reason);
	}
	if (err)
		return err;
	params_rescale(&p, &no_history);
	*ret = p;
	return 0;
}

/*
 * A generation that has no tau in the slot has no bucket states in the table; one that turned up
 * all the same (a damaged table) is taken as made at the rate now.
 */
void params_rescale(struct sl_params *p, const struct sl_limit_id_info *slot)
{
	u64 mantissa_now;

	if (!sl_is_bucket(p))
		return;
	mantissa_now = sl_scale_down(p->tau, p->tau_exp);
	for (int gen = 0; gen < 4; gen++) {
		u64 tau = slot->tau[gen] ? slot->tau[gen] : p->tau;
		int exp = mantissa_exp(tau);
		u64 mantissa = sl_scale_down(tau, exp);

		/* Rounded up, a full debt stays full. At most 2^32 - 1 even so. */
		p->rescale_mult[gen] = (mantissa_now * RESCALE_ONE + mantissa - 1) / mantissa;
		p->rescale_exp[gen] = exp;
	}
}

/*
 * Leases let a bucket admit up to cpus x batch more than its capacity, and withhold as much
 * from a CPU that holds none: 1 % of the capacity for all CPUs together. Of a window they admit
 * nothing more, fixed or sliding: a lease's units were charged to the window that they are
 * spent in, when its estimate was no lower than now.
 */
u32 params_lease(const struct sl_params *p, u32 cpus)
{
	u64 batch = p->capacity / 100 / (cpus ? cpus : 1);

	if (params_percpu_note(p->algo) || batch < 2)
		return 0;
	return min_u64(batch, SL_LEASE_UNITS_MAX);
}

const char *params_percpu_note(enum sl_algo algo)
{
	if (algo == SL_ALGO_LEAKY_BUCKET)
		return "a leaky bucket holds one packet (or frame), which cannot be divided among CPUs: accounting percpu counts as exact";
	if (algo == SL_ALGO_GRACE)
		return "the duration of a soft throttle cannot be divided among CPUs";
	return NULL;
}
