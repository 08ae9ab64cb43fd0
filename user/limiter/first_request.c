// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * first_request.c - the row of a window that begins with its first request
 * (include/sluice/algo_first.h).
 *
 * With `buckets` it admits in the first of so many parts of its length only. Two of them are the
 * time for which a soft throttle of a cluster limit lasts, and as long again: algo_grace.h with a
 * state that Redis can have.
 */
#include "limiter/algorithm_private.h"
#include "limiter/anchored.h"

#define COUNT_BITS_MAX 40

static int first_layout(struct spec *spec, u64 most, const char **ret_reason)
{
	if (most >= SL_BIT(COUNT_BITS_MAX))
		return params_refuse(
			"a window that begins with its first request allows at most 2^39 requests (with elastic the ceiling)",
			ret_reason);
	anchored_layout(most, spec->params.window_ns, &spec->count_bits, &spec->tick_shift);
	return 0;
}

static u64 count_of(const struct spec *spec, u64 bucket_state, struct sl_now now, u64 *ret_end,
		    u64 *ret_left)
{
	return sl_first_read(bucket_state, spec->count_bits, spec->tick_shift,
			     spec->params.window_ns, now.mono_ns, ret_end, ret_left);
}

/* The part of the window in which it admits is over. */
static bool is_closed(const struct spec *spec, u64 count, u64 left)
{
	u64 window_ns = spec->params.window_ns;

	return spec->buckets && count && left <= window_ns - window_ns / spec->buckets;
}

static struct sl_result first_charge(const struct spec_view *view, u64 bucket_state,
				     struct sl_now now, u64 cost)
{
	struct sl_result res = { .bucket_state = bucket_state };
	u64 end, left, count = count_of(view->spec, bucket_state, now, &end, &left);

	if (!is_closed(view->spec, count, left) && count + cost <= view->p.capacity) {
		res.bucket_state = sl_first_state(end, view->spec->count_bits, count + cost);
		return res;
	}
	res.verdict = SL_OVER;
	res.wait_ns = cost > view->p.capacity ? ~0ULL : left;
	return res;
}

static struct sl_result first_look(const struct spec_view *view, u64 bucket_state,
				   struct sl_now now)
{
	u64 end, left, count = count_of(view->spec, bucket_state, now, &end, &left);

	bool over = count > view->p.capacity + view->hold || is_closed(view->spec, count, left);

	return looked(bucket_state, over ? left : 0);
}

static u64 first_force(const struct spec_view *view, u64 bucket_state, struct sl_now now, u64 cost)
{
	u64 end, left, count = count_of(view->spec, bucket_state, now, &end, &left);
	u64 most = most_forced(view);

	return sl_first_state(end, view->spec->count_bits,
			      add_up_to(count, min_u64(cost, most), most));
}

static u64 first_report(const struct spec_view *view, u64 bucket_state, struct sl_now now,
			struct sl_now then, u64 cost)
{
	u64 window_ns = view->p.window_ns, end, left;

	if (count_of(view->spec, bucket_state, now, &end, &left))
		return left + now.mono_ns - then.mono_ns > window_ns
			       ? bucket_state
			       : first_force(view, bucket_state, now, cost);
	return now.mono_ns - then.mono_ns >= window_ns ? bucket_state
						       : first_force(view, 0, then, cost);
}

static u64 first_refund(const struct spec_view *view, u64 bucket_state, struct sl_now now, u64 cost)
{
	u64 end, left, count = count_of(view->spec, bucket_state, now, &end, &left);

	return sl_first_state(end, view->spec->count_bits, less(count, cost));
}

static u64 first_uncommit(const struct spec_view *view, u64 bucket_state, struct sl_now now,
			  struct sl_now then, u64 cost)
{
	u64 window_ns = view->p.window_ns, end, left;

	/* A window that began later does not contain the charge. */
	count_of(view->spec, bucket_state, now, &end, &left);
	if (now.mono_ns + left > then.mono_ns + window_ns + SL_BIT(view->spec->tick_shift))
		return bucket_state;
	return first_refund(view, bucket_state, now, cost);
}

static u64 first_remaining(const struct spec_view *view, u64 bucket_state, struct sl_now now)
{
	u64 end, left;

	return less(view->p.capacity, count_of(view->spec, bucket_state, now, &end, &left));
}

static u64 first_reset_ns(const struct spec_view *view, u64 bucket_state, struct sl_now now)
{
	u64 end, left;

	count_of(view->spec, bucket_state, now, &end, &left);
	return left;
}

static u32 first_utilization(const struct spec *spec, u64 bucket_state, struct sl_now now)
{
	u64 end, left, count = count_of(spec, bucket_state, now, &end, &left);

	if (!count)
		return 0;
	return count >= spec->capacity ? 255 : 1 + count * 254 / spec->capacity;
}

static bool first_expired(const struct spec *spec, u64 bucket_state, struct sl_now now)
{
	u64 end, left;

	return !count_of(spec, bucket_state, now, &end, &left);
}

/* The state of a window that ends in left_ns. */
static u64 state_until(const struct spec *spec, struct sl_now now, u64 left_ns, u64 count)
{
	u64 end = (now.mono_ns + left_ns + SL_BIT(spec->tick_shift) - 1) >> spec->tick_shift;

	return sl_first_state(end & (SL_BIT(64 - spec->count_bits) - 1), spec->count_bits,
			      min_u64(count, SL_BIT(spec->count_bits) - 1));
}

static u64 first_convert(const struct spec *from, const struct spec *to, u64 bucket_state,
			 struct sl_now now)
{
	u64 end, left, count = count_of(from, bucket_state, now, &end, &left);

	return count ? state_until(to, now, left, count) : 0;
}

/* ------------------------------------------------------------------ the cluster store */

static u64 first_store_wait_ns(const struct cluster_store_rate *rate,
			       const struct cluster_store_raw *raw, u64 room, u64 cost, u64 now_us)
{
	return us_to_ns(less(raw->window + rate->period_us, now_us));
}

/* A window without a begin begins now. */
static u64 first_from_store(const struct spec *spec, const struct cluster_store_state *state,
			    u64 more, struct sl_now now)
{
	u64 window_ns = spec->params.window_ns, left = window_ns;
	s64 gone = (s64)(now.utc_ns - state->window * 1000);

	if (state->window && gone > 0)
		left = (u64)gone < window_ns ? window_ns - gone : 0;
	return left ? state_until(spec, now, left, stored_count(spec, state->used, more)) : 0;
}

const struct algorithm algorithm_first_request = {
	.count_note = "its count starts again when the window ends",
	.windows_kept = 1,
	.percpu_note = "a window that begins with its first request is not divided among CPUs",
	.compile = window_compile_requests,
	.layout = first_layout,
	.charge = first_charge,
	.look = first_look,
	.force = first_force,
	.report = first_report,
	.refund = first_refund,
	.uncommit = first_uncommit,
	.remaining = first_remaining,
	.reset_ns = first_reset_ns,
	.utilization = first_utilization,
	.expired = first_expired,
	.convert = first_convert,
	.store_wait_ns = first_store_wait_ns,
	.from_store = first_from_store,
};
