// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * window.c - the rows of the fixed window and of the interval bucket: a count that starts again, or
 * is refilled, at each edge (include/sluice/algo_window.h).
 */
#include "limiter/algorithm_private.h"

static int window_read_rate(const struct rate *rate, u64 burst, struct sl_params *p,
			    const char **ret_reason)
{
	if (burst)
		return params_refuse("a window has no burst: its rate is all it allows",
				     ret_reason);
	p->capacity = rate->unit == RATE_BITS ? rate->count / 8 : rate->count;
	p->window_ns = rate->period_ns;
	return 0;
}

int window_compile(const struct rate *rate, u64 burst, u32 max_frame, struct sl_params *p,
		   const char **ret_reason)
{
	int err = window_read_rate(rate, burst, p, ret_reason);

	return err ? err : params_check_capacity(p->capacity, counts_bytes(rate), ret_reason);
}

int window_compile_requests(const struct rate *rate, u64 burst, u32 max_frame, struct sl_params *p,
			    const char **ret_reason)
{
	p->algo = SL_ALGO_FIXED_WINDOW;
	return window_read_rate(rate, burst, p, ret_reason);
}

/* Edges until a full bucket is empty; bucket states number windows modulo 2^18. */
#define INTERVALS_MAX SL_BIT(16)

static u64 interval_default_burst(const struct rate *rate, u32 max_frame)
{
	return rate->count;
}

static int interval_compile(const struct rate *rate, u64 burst, u32 max_frame, struct sl_params *p,
			    const char **ret_reason)
{
	u64 divisor = rate->unit == RATE_BITS ? 8 : 1;

	p->capacity = (burst ? burst : rate->count) / divisor;
	p->mult = rate->count / divisor;
	p->window_ns = rate->period_ns;
	if (!p->mult)
		return params_refuse("the rate is below one byte", ret_reason);
	if (p->capacity / p->mult >= INTERVALS_MAX ||
	    p->capacity / p->mult >= PERIOD_MAX_NS / p->window_ns)
		return params_refuse(
			"the rate is too slow for its burst: refilling it takes more than 65536 intervals, or 2.2 years",
			ret_reason);
	return params_check_capacity(p->capacity, counts_bytes(rate), ret_reason);
}

/* ------------------------------------------------------------------ steps */

static u64 count_of(const struct spec_view *view, u64 bucket_state, struct sl_now now)
{
	u64 number;

	return sl_window_count(bucket_state, &view->p, now.utc_ns, &number);
}

static struct sl_result window_charge(const struct spec_view *view, u64 bucket_state,
				      struct sl_now now, u64 cost)
{
	return sl_window_step(bucket_state, &view->p, now.utc_ns, cost);
}

static struct sl_result window_look(const struct spec_view *view, u64 bucket_state,
				    struct sl_now now)
{
	u64 number, count = sl_window_count(bucket_state, &view->p, now.utc_ns, &number);
	u64 over = less(count, view->p.capacity + view->hold);

	return looked(bucket_state, over ? sl_window_wait(&view->p, now.utc_ns, number, over) : 0);
}

static u64 window_force(const struct spec_view *view, u64 bucket_state, struct sl_now now, u64 cost)
{
	u64 most = most_forced(view), number;
	u64 count = sl_window_count(bucket_state, &view->p, now.utc_ns, &number);

	cost = min_u64(cost, most);
	return sl_window_state(number, add_up_to(count, cost, min_u64(most, SL_WINDOW_COUNT_MASK)));
}

/* What is left now of a charge of the time `then`, of a bucket that was empty in between. */
static u64 left_of(const struct spec_view *view, struct sl_now now, struct sl_now then, u64 cost)
{
	u64 number = now.utc_ns / view->p.window_ns;
	u64 edges = less(number, then.utc_ns / view->p.window_ns);

	if (!edges)
		return cost;
	return edges < INTERVALS_MAX
		       ? sl_window_fallen(&view->p, min_u64(cost, most_forced(view)), edges)
		       : 0;
}

static bool is_in_it(const struct spec_view *view, struct sl_now now, struct sl_now then)
{
	return view->p.mult || now.utc_ns / view->p.window_ns == then.utc_ns / view->p.window_ns;
}

static u64 window_report(const struct spec_view *view, u64 bucket_state, struct sl_now now,
			 struct sl_now then, u64 cost)
{
	if (!is_in_it(view, now, then))
		return bucket_state;
	/* Edges refill a bucket that was not empty for this charge no sooner. */
	if (!count_of(view, bucket_state, now))
		cost = left_of(view, now, then, cost);
	return cost ? window_force(view, bucket_state, now, cost) : bucket_state;
}

static u64 window_refund(const struct spec_view *view, u64 bucket_state, struct sl_now now,
			 u64 cost)
{
	u64 number, count = sl_window_count(bucket_state, &view->p, now.utc_ns, &number);

	return count > cost ? sl_window_state(number, count - cost) : 0;
}

static u64 window_uncommit(const struct spec_view *view, u64 bucket_state, struct sl_now now,
			   struct sl_now then, u64 cost)
{
	return is_in_it(view, now, then) ? window_refund(view, bucket_state, now, cost)
					 : bucket_state;
}

static u64 window_remaining(const struct spec_view *view, u64 bucket_state, struct sl_now now)
{
	return less(view->p.capacity, count_of(view, bucket_state, now));
}

static u64 window_reset_ns(const struct spec_view *view, u64 bucket_state, struct sl_now now)
{
	return sl_window_left(bucket_state, &view->p, now.utc_ns);
}

static u32 window_utilization(const struct spec *spec, u64 bucket_state, struct sl_now now)
{
	return sl_window_utilization(bucket_state, &spec->params, now.utc_ns);
}

static bool window_expired(const struct spec *spec, u64 bucket_state, struct sl_now now)
{
	u64 number;

	return !sl_window_count(bucket_state, &spec->params, now.utc_ns, &number);
}

static u64 window_convert(const struct spec *from, const struct spec *to, u64 bucket_state,
			  struct sl_now now)
{
	return bucket_state;
}

static u64 window_store_wait_ns(const struct cluster_store_rate *rate,
				const struct cluster_store_raw *raw, u64 room, u64 cost, u64 now_us)
{
	u64 over = less(raw->used + cost, room), edges = 1;

	if (rate->mult && over)
		edges = (over - 1) / rate->mult + 1;
	if (rate->calendar)
		return less(calendar_begin_ns(rate->calendar, raw->window + 1), us_to_ns(now_us));
	return us_to_ns(less((raw->window + edges) * rate->period_us, now_us));
}

static u64 window_from_store(const struct spec *spec, const struct cluster_store_state *state,
			     u64 more, struct sl_now now)
{
	u64 count = min_u64(stored_count(spec, state->used, more), SL_WINDOW_COUNT_MASK);
	u64 number = stored_number(spec, state, now);

	return count ? sl_window_state(number & SL_WINDOW_NUMBER_MASK, count) : 0;
}

#define STARTS_AGAIN "its count falls at an edge by itself"

/* clang-format off */
#define WINDOW_STEPS							\
	.charge = window_charge, .look = window_look, .force = window_force,	\
	.report = window_report, .refund = window_refund, .uncommit = window_uncommit,	\
	.remaining = window_remaining, .reset_ns = window_reset_ns,	\
	.utilization = window_utilization, .expired = window_expired,	\
	.convert = window_convert, .store_wait_ns = window_store_wait_ns,	\
	.from_store = window_from_store
/* clang-format on */

const struct algorithm algorithm_fixed_window = {
	.has_window = true,
	.count_note = STARTS_AGAIN,
	.windows_kept = 2,
	.compile = window_compile,
	WINDOW_STEPS,
};

const struct algorithm algorithm_interval_bucket = {
	.default_burst = interval_default_burst,
	.count_note = STARTS_AGAIN,
	.strict_note = "refills a bucket that Redis has: its units cannot be leased over an edge",
	.windows_kept = 2 * INTERVALS_MAX,
	.compile = interval_compile,
	WINDOW_STEPS,
};
