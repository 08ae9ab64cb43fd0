// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * spec.c - see spec.h; each function is that of the algorithm's row (algorithm.h), at the time of
 * the limit's calendar, if it has one.
 */
#include "limiter/algorithm_private.h"
#include "sluice/abi.h"

static const struct algorithm *row_of(const struct spec *spec)
{
	return algorithms[spec->algo];
}

static struct sl_now now_of(const struct spec *spec, struct sl_now now)
{
	return calendar_now(spec->calendar, now);
}

void spec_view_init(struct spec_view *view, const struct spec *spec, u32 elastic, u32 hold_permille)
{
	view->spec = spec;
	view->p = spec->params;
	view->hold = 0;
	if (elastic != SL_ELASTIC_ONE && elastic >= SL_SCALE_MIN && elastic <= SL_SCALE_MAX)
		sl_scale_params(&view->p, elastic, (u32)(((1ULL << 32) + elastic - 1) / elastic),
				1);
	if (!hold_permille)
		return;
	view->hold = (u128)view->p.capacity * hold_permille / 1000;
	view->p.capacity -= view->hold;
	if (algorithm_is_bucket(spec->algo))
		view->p.tau -= sl_gcra_ticks(&view->p, view->hold);
}

struct sl_result spec_charge(const struct spec_view *view, u64 bucket_state, struct sl_now now,
			     u64 cost)
{
	const struct algorithm *row = row_of(view->spec);
	struct sl_now at = now_of(view->spec, now);
	struct sl_result res = cost ? row->charge(view, bucket_state, at, cost)
				    : row->look(view, bucket_state, at);

	res.wait_ns = calendar_wait_ns(view->spec->calendar, now.utc_ns, res.wait_ns);
	return res;
}

u64 spec_force(const struct spec_view *view, u64 bucket_state, struct sl_now now, u64 cost)
{
	return row_of(view->spec)->force(view, bucket_state, now_of(view->spec, now), cost);
}

u64 spec_report(const struct spec_view *view, u64 bucket_state, struct sl_now now,
		struct sl_now then, u64 cost)
{
	return row_of(view->spec)
		->report(view, bucket_state, now_of(view->spec, now), now_of(view->spec, then),
			 cost);
}

u64 spec_fill(const struct spec_view *view, u64 bucket_state, struct sl_now now, u64 cost)
{
	return sl_fill(bucket_state, &view->p, now, cost);
}

u64 spec_refund(const struct spec_view *view, u64 bucket_state, struct sl_now now, u64 cost)
{
	return row_of(view->spec)->refund(view, bucket_state, now_of(view->spec, now), cost);
}

u64 spec_uncommit(const struct spec_view *view, u64 bucket_state, struct sl_now now,
		  struct sl_now then, u64 cost)
{
	return row_of(view->spec)
		->uncommit(view, bucket_state, now_of(view->spec, now), now_of(view->spec, then),
			   cost);
}

u64 spec_remaining(const struct spec_view *view, u64 bucket_state, struct sl_now now)
{
	return row_of(view->spec)->remaining(view, bucket_state, now_of(view->spec, now));
}

u64 spec_reset_ns(const struct spec_view *view, u64 bucket_state, struct sl_now now)
{
	u64 left = row_of(view->spec)->reset_ns(view, bucket_state, now_of(view->spec, now));

	return calendar_wait_ns(view->spec->calendar, now.utc_ns, left);
}

u32 spec_utilization(const struct spec *spec, u64 bucket_state, struct sl_now now)
{
	return row_of(spec)->utilization(spec, bucket_state, now_of(spec, now));
}

bool spec_expired(const struct spec *spec, u64 bucket_state, struct sl_now now)
{
	return row_of(spec)->expired(spec, bucket_state, now_of(spec, now));
}

u64 spec_convert(const struct spec *from, const struct spec *to, u64 bucket_state,
		 struct sl_now now)
{
	enum state_kind kind = algorithm_kind(from->algo);

	if (from->algo != to->algo)
		return 0;
	if (kind != STATE_DEBT && kind != STATE_TIME &&
	    from->params.window_ns != to->params.window_ns)
		return 0;
	return row_of(from)->convert(from, to, bucket_state, now);
}
