// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * sliding.c - the row of the sliding window: two counts (include/sluice/algo_sliding.h).
 *
 * It counts in quanta of one unit, or, if the capacity exceeds 25 bits, of the least power of two
 * with which it fits.
 */
#include <math.h>

#include "limiter/algorithm_private.h"

/* The upper bits of a sliding window's times, the first divisor of its estimate. */
#define SLIDING_TIME_BITS 38

static int sliding_compile(const struct rate *rate, u64 burst, u32 max_frame, struct sl_params *p,
			   const char **ret_reason)
{
	int err = window_compile(rate, burst, max_frame, p, ret_reason), bits;

	if (err)
		return err;
	bits = bit_length(p->window_ns);
	p->shift = bits > SLIDING_TIME_BITS ? bits - SLIDING_TIME_BITS : 0;
	params_make_room(p, 100);
	return 0;
}

/*
 * Four standard deviations of the error by random rounding to quanta, and the part of a quantum
 * that the capacity loses.
 */
static double sliding_error(const struct sl_params *p, const struct rate *rate)
{
	double quantum = ldexp(1, p->quantum) / p->capacity;

	return p->quantum ? 4 * sqrt(quantum) + quantum : 0;
}

/* ------------------------------------------------------------------ steps */

static struct sl_result sliding_charge(const struct spec_view *view, u64 bucket_state,
				       struct sl_now now, u64 cost)
{
	return sl_sliding_step(bucket_state, &view->p, now.utc_ns, cost);
}

static struct sl_result sliding_look(const struct spec_view *view, u64 bucket_state,
				     struct sl_now now)
{
	struct sl_sliding s = sl_sliding_read(bucket_state, &view->p, now.utc_ns);
	u64 capacity = (view->p.capacity + view->hold) >> view->p.quantum;
	bool over = sl_sliding_used(bucket_state, &view->p, now.utc_ns) > capacity;

	return looked(bucket_state, over ? sl_sliding_wait(&s, &view->p, capacity, 0) : 0);
}

/* A cost in quanta, as the charge of this instant was rounded. */
static u64 rounded(const struct spec_view *view, struct sl_now now, u64 cost)
{
	return (cost + sl_sliding_random(&view->p, now.utc_ns)) >> view->p.quantum;
}

static u64 sliding_force(const struct spec_view *view, u64 bucket_state, struct sl_now now,
			 u64 cost)
{
	struct sl_sliding s = sl_sliding_read(bucket_state, &view->p, now.utc_ns);
	u64 most = most_forced(view);

	cost = rounded(view, now, min_u64(cost, most));
	return sl_sliding_state(&s, add_up_to(s.current, cost, most >> view->p.quantum));
}

/* Adds to the count of the previous window, or (back) subtracts from it. */
static u64 change_previous(const struct spec_view *view, u64 bucket_state, struct sl_now now,
			   u64 cost, bool back)
{
	struct sl_sliding s = sl_sliding_read(bucket_state, &view->p, now.utc_ns);

	if (s.early_ns)
		return bucket_state;
	cost = rounded(view, now, cost);
	s.previous = back ? less(s.previous, cost)
			  : add_up_to(s.previous, cost, most_forced(view) >> view->p.quantum);
	return s.current || s.previous ? sl_sliding_state(&s, s.current) : 0;
}

static u64 windows_since(const struct spec_view *view, struct sl_now now, struct sl_now then)
{
	return now.utc_ns / view->p.window_ns - then.utc_ns / view->p.window_ns;
}

static u64 sliding_report(const struct spec_view *view, u64 bucket_state, struct sl_now now,
			  struct sl_now then, u64 cost)
{
	u64 back = windows_since(view, now, then);

	if (back == 1)
		return change_previous(view, bucket_state, now, cost, false);
	return back ? bucket_state : sliding_force(view, bucket_state, now, cost);
}

/* First from this window, then from the part of the previous one that still counts. */
static u64 sliding_refund(const struct spec_view *view, u64 bucket_state, struct sl_now now,
			  u64 cost)
{
	struct sl_sliding s = sl_sliding_read(bucket_state, &view->p, now.utc_ns);
	u64 from_current;

	cost = rounded(view, now, cost);
	from_current = min_u64(cost, s.current);
	s.previous -= min_u64(cost - from_current, s.previous);
	if (s.current == from_current && !s.previous)
		return 0;
	return sl_sliding_state(&s, s.current - from_current);
}

static u64 sliding_uncommit(const struct spec_view *view, u64 bucket_state, struct sl_now now,
			    struct sl_now then, u64 cost)
{
	u64 back = windows_since(view, now, then);

	if (back == 1)
		return change_previous(view, bucket_state, now, cost, true);
	return back ? bucket_state : sliding_refund(view, bucket_state, now, cost);
}

static u64 sliding_remaining(const struct spec_view *view, u64 bucket_state, struct sl_now now)
{
	const struct sl_params *p = &view->p;

	return less(p->capacity >> p->quantum, sl_sliding_used(bucket_state, p, now.utc_ns))
	       << p->quantum;
}

static u64 sliding_reset_ns(const struct spec_view *view, u64 bucket_state, struct sl_now now)
{
	struct sl_sliding s = sl_sliding_read(bucket_state, &view->p, now.utc_ns);
	u64 wait = s.early_ns + s.left_ns;

	/* Until count x left / W, rounded, is 0. */
	if (s.current)
		return wait + view->p.window_ns - sl_sliding_left(1, &view->p, s.current);
	if (sl_sliding_expired(bucket_state, &view->p, now.utc_ns))
		return 0;
	return wait - sl_sliding_left(1, &view->p, s.previous);
}

static u32 sliding_utilization(const struct spec *spec, u64 bucket_state, struct sl_now now)
{
	return sl_sliding_utilization(bucket_state, &spec->params, now.utc_ns);
}

static bool sliding_expired(const struct spec *spec, u64 bucket_state, struct sl_now now)
{
	return sl_sliding_expired(bucket_state, &spec->params, now.utc_ns);
}

static u64 sliding_convert(const struct spec *from, const struct spec *to, u64 bucket_state,
			   struct sl_now now)
{
	struct sl_sliding s = sl_sliding_read(bucket_state, &from->params, now.utc_ns);
	u32 down = to->params.quantum, up = from->params.quantum;
	u64 round = SL_BIT(down) - 1;

	if (up == down)
		return bucket_state;
	s.current = min_u64(((s.current << up) + round) >> down, SL_SLIDING_COUNT_MAX);
	s.previous = min_u64(((s.previous << up) + round) >> down, SL_SLIDING_COUNT_MAX);
	return s.current || s.previous ? sl_sliding_state(&s, s.current) : 0;
}

/* ------------------------------------------------------------------ the cluster store */

/* The time until previous x left' / W, rounded, is at most `most`; left: rest of the active
 * window. */
static u64 fraction_wait_us(u64 previous, u64 most, u64 left_us,
			    const struct cluster_store_rate *rate)
{
	/* previous x left' < (most + 1) x W, rounded up <= most x W */
	u128 below = rate->round_up ? (u128)most * rate->period_us + 1
				    : (u128)(most + 1) * rate->period_us;
	u128 highest;

	if (!previous)
		return 0;
	highest = (below + previous - 1) / previous - 1;
	return highest < left_us ? left_us - (u64)highest : 0;
}

static u64 sliding_store_wait_ns(const struct cluster_store_rate *rate,
				 const struct cluster_store_raw *raw, u64 room, u64 cost,
				 u64 now_us)
{
	u64 start = raw->window * rate->period_us, twice = 2 * rate->capacity;
	u64 wait = less(start, now_us), left = rate->period_us - less(now_us, start);

	if (raw->used <= room - cost)
		wait += fraction_wait_us(min_u64(raw->before, twice), room - raw->used - cost, left,
					 rate);
	else
		wait += left + fraction_wait_us(min_u64(raw->used, twice), room - cost,
						rate->period_us, rate);
	return us_to_ns(wait);
}

static u64 quanta(const struct spec *spec, u64 count)
{
	u32 quantum = spec->params.quantum & 63;

	return min_u64((count + SL_BIT(quantum) - 1) >> quantum, SL_SLIDING_COUNT_MAX);
}

static u64 sliding_from_store(const struct spec *spec, const struct cluster_store_state *state,
			      u64 more, struct sl_now now)
{
	u64 count = quanta(spec, stored_count(spec, state->used, more));
	struct sl_sliding s = {
		.number = stored_number(spec, state, now) & SL_SLIDING_NUMBER_MASK,
		.previous = quanta(spec, min_u64(state->before, 2 * spec->params.capacity)),
	};

	return count || s.previous ? sl_sliding_state(&s, count) : 0;
}

const struct algorithm algorithm_sliding_window = {
	.has_rounding = true,
	.windows_kept = 2,
	.compile = sliding_compile,
	.error = sliding_error,
	.charge = sliding_charge,
	.look = sliding_look,
	.force = sliding_force,
	.report = sliding_report,
	.refund = sliding_refund,
	.uncommit = sliding_uncommit,
	.remaining = sliding_remaining,
	.reset_ns = sliding_reset_ns,
	.utilization = sliding_utilization,
	.expired = sliding_expired,
	.convert = sliding_convert,
	.store_wait_ns = sliding_store_wait_ns,
	.from_store = sliding_from_store,
};
