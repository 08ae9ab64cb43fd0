// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * grace.c - the row of grace: the time for which a throttle is soft (include/sluice/algo_grace.h).
 */
#include "limiter/algorithm_private.h"

static int grace_compile(const struct rate *rate, u64 burst, u32 max_frame, struct sl_params *p,
			 const char **ret_reason)
{
	if (!rate->period_ns || rate->period_ns > PERIOD_MAX_NS)
		return params_refuse("a soft throttle's time is 0 or above 2.2 years", ret_reason);
	p->capacity = 1;
	p->window_ns = rate->period_ns;
	return 0;
}

static struct sl_result grace_charge(const struct spec_view *view, u64 bucket_state,
				     struct sl_now now, u64 cost)
{
	return sl_grace_step(bucket_state, &view->p, now.mono_ns);
}

static struct sl_result grace_look(const struct spec_view *view, u64 bucket_state,
				   struct sl_now now)
{
	return sl_grace_step(bucket_state, &view->p, now.mono_ns);
}

/* It has no charges. */
static u64 grace_keep(const struct spec_view *view, u64 bucket_state, struct sl_now now, u64 cost)
{
	return bucket_state;
}

static u64 grace_keep_then(const struct spec_view *view, u64 bucket_state, struct sl_now now,
			   struct sl_now then, u64 cost)
{
	return grace_keep(view, bucket_state, now, cost);
}

static u64 grace_nothing(const struct spec_view *view, u64 bucket_state, struct sl_now now)
{
	return 0;
}

static u32 grace_utilization(const struct spec *spec, u64 bucket_state, struct sl_now now)
{
	return sl_grace_utilization(bucket_state, &spec->params, now.mono_ns);
}

static bool grace_expired(const struct spec *spec, u64 bucket_state, struct sl_now now)
{
	return sl_grace_expired(bucket_state, &spec->params, now.mono_ns);
}

static u64 grace_convert(const struct spec *from, const struct spec *to, u64 bucket_state,
			 struct sl_now now)
{
	return bucket_state;
}

const struct algorithm algorithm_grace = {
	.percpu_note = "the duration of a soft throttle cannot be divided among CPUs",
	.compile = grace_compile,
	.charge = grace_charge,
	.look = grace_look,
	.force = grace_keep,
	.report = grace_keep_then,
	.refund = grace_keep,
	.uncommit = grace_keep_then,
	.remaining = grace_nothing,
	.reset_ns = grace_nothing,
	.utilization = grace_utilization,
	.expired = grace_expired,
	.convert = grace_convert,
};
