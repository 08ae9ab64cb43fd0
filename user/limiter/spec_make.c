// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* spec_make.c - from a rate, a burst and an algorithm to a spec; every bound is checked here. */
#include <errno.h>

#include "limiter/anchored.h"
#include "limiter/spec.h"
#include "lib/whole.h"
#include "limiter/params.h"

#define COUNT_BITS_MAX 40

const char *http_algo_name(enum http_algo algo)
{
	static const char *const name[HTTP_ALGO_COUNT] = {
		[HTTP_TOKEN_BUCKET] = "token-bucket",
		[HTTP_LEAKY_BUCKET] = "leaky-bucket",
		[HTTP_FIXED_WINDOW] = "fixed-window",
		[HTTP_SLIDING_WINDOW] = "sliding-window",
		[HTTP_SLIDING_LOG] = "sliding-log",
		[HTTP_FIRST_REQUEST] = "first-request",
		[HTTP_GRACE] = "soft-for",
	};

	return algo < HTTP_ALGO_COUNT ? name[algo] : "unknown";
}

/* What soft adds, as meters.c has it: a count is whole, a bucket's rate may be so many in longer.
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

/* The two that params.c does not know. `most` is the highest count they have to hold. */
static int make_counting(struct spec *spec, const struct rate *rate, u64 most, const char **reason)
{
	struct sl_params *p = &spec->params;

	p->algo = SL_ALGO_FIXED_WINDOW;
	p->capacity = rate->count;
	p->window_ns = rate->period_ns;
	*reason = "the rate's period is below 1s or above 2.2 years";
	if (p->window_ns < SL_NS_PER_SEC || p->window_ns > SL_BIT(56))
		return -ERANGE;
	*reason = "the rate is 0";
	if (!p->capacity)
		return -ERANGE;
	if (spec->algo == HTTP_SLIDING_LOG) {
		*reason = "a sliding log remembers each request: its rate is at most 67108863 a period (with elastic the ceiling)";
		if (most / 2 > SPEC_LOG_MAX / 2)
			return -ERANGE;
		while (p->window_ns >> spec->tick_shift >= SL_BIT(47))
			spec->tick_shift++;
		return 0;
	}
	*reason = "a window that begins with its first request allows at most 2^39 requests (with elastic the ceiling)";
	if (most >= SL_BIT(COUNT_BITS_MAX))
		return -ERANGE;
	anchored_layout(most, p->window_ns, &spec->count_bits, &spec->tick_shift);
	return 0;
}

static int make_params(const struct spec_def *def, struct spec *spec, const char **reason)
{
	struct rate rate = { mul_saturated(def->count, def->scale), def->period_ns, RATE_PACKETS };
	struct rate unscaled = { def->count, def->period_ns, RATE_PACKETS };
	bool bucket = def->algo <= HTTP_LEAKY_BUCKET;
	u64 burst = def->burst, most;
	int err;

	if (def->algo == HTTP_GRACE)
		return params_compile(SL_ALGO_GRACE, &rate, 0, 0, &spec->params, reason);
	*reason = "the rate is 0";
	if (!rate.count)
		return -ERANGE;
	if (!burst && def->algo == HTTP_TOKEN_BUCKET)
		burst = params_default_burst(&unscaled, 0);
	burst = mul_saturated(burst, def->scale);
	if (def->soft_permille)
		soft_share(def->soft_permille, bucket, &rate, &burst);
	spec->requests = rate.count;
	spec->period_ns = rate.period_ns;
	most = mul_saturated(rate.count, 2 * def->ceiling_percent) / 100;
	if (def->algo == HTTP_SLIDING_LOG || def->algo == HTTP_FIRST_REQUEST) {
		*reason = "a window has no burst: its rate is all it allows";
		return burst ? -ERANGE : make_counting(spec, &rate, most, reason);
	}
	err = params_compile((enum sl_algo)def->algo, &rate, burst, 0, &spec->params, reason);
	/* Debts: a count may be twice the limit. */
	if (!err)
		params_make_room(&spec->params, 2 * def->ceiling_percent);
	return err;
}

int spec_make_def(const struct spec_def *def, struct spec *ret, struct sl_err *err)
{
	struct spec spec = { .algo = def->algo };
	const char *reason = "unknown algorithm, or a scale out of its range";
	int code;

	if (def->algo >= HTTP_ALGO_COUNT || !def->scale || def->soft_permille > 1000 ||
	    def->ceiling_percent < 100 || def->ceiling_percent > 10000)
		return sl_err_set(err, ERANGE, "%s", reason);
	code = make_params(def, &spec, &reason);
	if (code)
		return sl_err_set(err, -code, "%s", reason);
	spec.capacity = spec.params.capacity;
	*ret = spec;
	return 0;
}
