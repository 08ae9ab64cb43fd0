// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* spec_make.c - from a rate, a burst and an algorithm to a spec; every bound is checked here. */
#include "limiter/algorithm_private.h"

/*
 * The soft part, as in meters.c: an integer count; a bucket may have it as a rate in a longer
 * period.
 */
static void soft_share(u32 permille, bool bucket, struct rate *rate, u64 *burst)
{
	u64 product = mul_saturated(rate->count, permille), divisor;

	if (bucket && product != ~0ULL) {
		divisor = greatest_divisor(product, 1000);
		rate->count = product / divisor;
		rate->period_ns = mul_saturated(rate->period_ns, 1000 / divisor);
	} else {
		rate->count = product == ~0ULL ? rate->count / 1000 * permille : product / 1000;
		rate->count += !rate->count;
	}
	if (*burst) {
		*burst = *burst / 1000 * permille + *burst % 1000 * permille / 1000;
		*burst += !*burst;
	}
}

static int make_params(const struct spec_def *def, struct spec *spec, const char **reason)
{
	struct rate rate = { mul_saturated(def->count, def->scale), def->period_ns, RATE_PACKETS };
	struct rate unscaled = { def->count, def->period_ns, RATE_PACKETS };
	const struct algorithm *row = algorithms[def->algo];
	u64 burst = def->burst, most;
	int err;

	if (algorithm_kind(def->algo) == STATE_TIME) {
		spec->ban_factor_percent = (u32)def->count;
		spec->ban_max_ns = def->burst;
		return params_compile(def->algo, &rate, 0, 0, &spec->params, reason);
	}
	*reason = "the rate is 0";
	if (!rate.count)
		return -ERANGE;
	if (!burst && row->default_burst)
		burst = row->default_burst(&unscaled, 0);
	burst = mul_saturated(burst, def->scale);
	if (def->soft_permille)
		soft_share(def->soft_permille, algorithm_is_bucket(def->algo), &rate, &burst);
	spec->requests = rate.count;
	spec->period_ns = rate.period_ns;
	most = mul_saturated(rate.count, 2 * def->ceiling_percent) / 100;
	err = params_compile((enum sl_algo)def->algo, &rate, burst, 0, &spec->params, reason);
	if (err)
		return err;
	spec->buckets = def->buckets;
	spec->params.round_up = def->round_up;
	if (def->calendar) {
		spec->calendar = calendar_find(def->calendar, def->period_ns);
		*reason = "unknown calendar, or no room for one more";
		if (!spec->calendar || def->algo != SL_ALGO_FIXED_WINDOW)
			return -ERANGE;
	}
	/* Debts: a count may be twice the limit. */
	params_make_room(&spec->params, 2 * def->ceiling_percent);
	return row->layout ? row->layout(spec, most, reason) : 0;
}

int spec_make_def(const struct spec_def *def, struct spec *ret, struct sl_err *err)
{
	struct spec spec = { .algo = def->algo };
	const char *reason = "unknown algorithm, or a scale out of its range";
	int code;

	if (def->algo >= SL_ALGO_COUNT || !def->scale || def->soft_permille > 1000 ||
	    def->ceiling_percent < 100 || def->ceiling_percent > 10000)
		return sl_err_set(err, ERANGE, "%s", reason);
	code = make_params(def, &spec, &reason);
	if (code)
		return sl_err_set(err, -code, "%s", reason);
	spec.capacity = spec.params.capacity;
	*ret = spec;
	return 0;
}
