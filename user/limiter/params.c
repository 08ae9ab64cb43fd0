/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * params.c - a rate and a burst -> struct sl_params; every bound of algo.h is checked here.
 *
 * BPF, where the steps run, has no 128-bit multiply; user space has one, so each bound is
 * checked on the exact product.
 */
#include <math.h>

#include "limiter/algorithm_private.h"

#define CAPACITY_MAX (SL_BIT(46) - 1)
/* A capacity below the smallest Ethernet frame would never admit a packet. */
#define CAPACITY_MIN_BYTES 64
#define RESCALE_ONE SL_BIT(31)

u64 params_default_burst(const struct rate *rate, u32 max_frame)
{
	u128 second = (u128)rate->count * SL_NS_PER_SEC / rate->period_ns;
	u64 least = 1;

	if (counts_bytes(rate)) {
		least = max_frame ? max_frame : SL_FRAME_LARGE;
		if (rate->unit == RATE_BITS)
			least *= 8;
	}
	if (second > ~0ULL)
		return ~0ULL;
	return second > least ? (u64)second : least;
}

int params_check_capacity(u64 capacity, bool bytes, const char **ret_reason)
{
	if (capacity > CAPACITY_MAX)
		return params_refuse(
			"the burst (of a window: the rate) is above 2^46 - 1 packets, connections or bytes",
			ret_reason);
	if (bytes && capacity < CAPACITY_MIN_BYTES)
		return params_refuse(
			"the burst (of a window: the rate) is below 64 bytes, the smallest frame: nothing would ever pass",
			ret_reason);
	if (!capacity)
		return params_refuse("the burst is 0: nothing would ever pass", ret_reason);
	return 0;
}

void params_make_room(struct sl_params *p, u32 ceiling_percent)
{
	u128 most = (u128)p->capacity * ceiling_percent / 100;

	if (!sl_algo_is_sliding(p->algo))
		return;
	p->quantum = 0;
	while (most >> p->quantum > SL_SLIDING_COUNT_MAX)
		p->quantum++;
}

int params_check_floor(const struct sl_params *p, u32 floor_percent, const char **ret_reason)
{
	if (!floor_percent || !sl_is_bucket(p) ||
	    (u128)p->tau * 100 <= (u128)TAU_MAX * floor_percent)
		return 0;
	return params_refuse(
		"the rate at the floor of elastic is too slow for its burst: refilling it takes more than 2.2 years",
		ret_reason);
}

int params_divide(struct sl_params *p, u32 buckets, u32 ceiling_percent, const char **ret_reason)
{
	if (p->algo != SL_ALGO_WINDOW_COUNTERS)
		return 0;
	if (buckets < SL_COUNTERS_MIN || buckets > SL_COUNTERS_MAX)
		return params_refuse(
			"a bucket state of the packet tier has room for 2 to 6 buckets",
			ret_reason);
	p->quantum = buckets;
	p->shift = SL_COUNTERS_BITS / buckets;
	p->mult = p->window_ns / buckets;
	p->window_ns = p->mult * buckets;
	if ((u128)p->capacity * ceiling_percent / 100 > sl_counters_mask(p) - 1)
		return params_refuse(
			"the buckets of a bucket state have room for a limit (with elastic the ceiling) of 16777214 if there are 2, 65534 if 3, 4094 if 4, 510 if 5, 254 if 6",
			ret_reason);
	return 0;
}

/* Two layouts, so that a change of rate seldom changes the layout: counts up to 2^20 - 1 and 2^40 -
 * 1. */
int params_anchor(struct sl_params *p, bool first_request, u32 ceiling_percent,
		  const char **ret_reason)
{
	u128 most = (u128)p->capacity * ceiling_percent / 100;

	if (p->algo != SL_ALGO_FIXED_WINDOW || !first_request)
		return 0;
	if (most >= SL_BIT(40))
		return params_refuse(
			"a window that begins with its first packet has room for 2^40 - 1 packets, connections or bytes (with elastic at the ceiling)",
			ret_reason);
	p->algo = SL_ALGO_FIRST_REQUEST;
	p->quantum = most < SL_BIT(20) ? 20 : 40;
	p->shift = 0;
	while (p->window_ns >> p->shift >= SL_BIT(64 - p->quantum - 2))
		p->shift++;
	return 0;
}

u32 params_error_ppm(const struct sl_params *p, const struct rate *rate)
{
	double (*error_of)(const struct sl_params *, const struct rate *) =
		algorithms[p->algo]->error;
	double error = error_of ? error_of(p, rate) : 0;

	return error > 0 ? lround(error * 1e6) : 0;
}

int params_compile(enum sl_algo algo, const struct rate *rate, u64 burst, u32 max_frame,
		   struct sl_params *ret, const char **ret_reason)
{
	static const struct sl_limit_id_info no_history;
	struct sl_params p = { .algo = algo };
	int err;

	if (algo >= SL_ALGO_COUNT)
		return params_refuse("unknown algorithm", ret_reason);
	if (algorithm_kind(algo) != STATE_TIME) {
		if (!rate->count)
			return params_refuse("the rate is 0", ret_reason);
		if (rate->period_ns < RATE_PERIOD_MIN_NS || rate->period_ns > PERIOD_MAX_NS)
			return params_refuse("the rate's period is below 10ms or above 2.2 years",
					     ret_reason);
	}
	err = algorithms[algo]->compile(rate, burst, max_frame, &p, ret_reason);
	if (err)
		return err;
	params_rescale(&p, &no_history);
	*ret = p;
	return 0;
}

/*
 * A generation without a tau has no bucket states in the table; if one is found nevertheless (a
 * damaged table), it is treated as made at the present rate.
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

		/* Rounded up, so a full debt stays full. At most 2^32 - 1. */
		p->rescale_mult[gen] = (mantissa_now * RESCALE_ONE + mantissa - 1) / mantissa;
		p->rescale_exp[gen] = exp;
	}
}

const char *params_percpu_note(enum sl_algo algo)
{
	return algorithms[algo]->percpu_note;
}
