// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * spec.c - see spec.h.
 *
 * Verdicts and bucket states come from sl_step() as in the packet tier. Two things it does not
 * know:
 *
 * - A reserve. It is a smaller limit over the same bucket state: capacity and tau without what is
 * held
 *   back. Only waits then need the bucket state's whole debt, which sl_gcra_debt() cuts at tau.
 * - A debt. Reports charge what has happened, also above the limit: a bucket state goes up
 * to
 *   two tau ahead, a count up to twice the capacity. Steps take either as full.
 *
 * Requests cost whole ticks (params.c: shift 0), and mult x capacity = tau < 2^60: no product of
 * a cost that fits overflows here.
 */
#include "limiter/anchored.h"
#include "limiter/spec.h"
#include "lib/whole.h"
#include "sluice/abi.h"

typedef unsigned __int128 u128;

static bool is_bucket(const struct spec *spec)
{
	return spec->algo <= HTTP_LEAKY_BUCKET;
}

void spec_view_init(struct spec_view *view, const struct spec *spec, u32 elastic,
		    u32 hold_permille)
{
	view->spec = spec;
	view->p = spec->params;
	view->hold = 0;
	if (elastic > SL_ELASTIC_ONE && elastic <= SL_SCALE_MAX)
		sl_scale_params(&view->p, elastic, (u32)(((1ULL << 32) + elastic - 1) / elastic));
	if (!hold_permille)
		return;
	view->hold = (u128)view->p.capacity * hold_permille / 1000;
	view->p.capacity -= view->hold;
	if (is_bucket(spec))
		view->p.tau -= sl_gcra_ticks(&view->p, view->hold);
}

/* ------------------------------------------------------------------ what a bucket state holds */

/* A bucket's debt in ticks, also one above tau. */
static u64 debt_of(u64 bucket_state, struct sl_now now)
{
	u64 tat = bucket_state >> SL_GCRA_GEN_BITS, ticks = now.mono_ns * SL_TICKS_PER_NS;

	return tat > ticks ? tat - ticks : 0;
}

static u64 make_bucket_state(u64 debt, struct sl_now now)
{
	return (now.mono_ns * SL_TICKS_PER_NS + debt) << SL_GCRA_GEN_BITS;
}

static u64 anchored_count(const struct spec *spec, u64 bucket_state, struct sl_now now,
			  u64 *ret_end, u64 *ret_left)
{
	return anchored_read(bucket_state, spec->count_bits, spec->tick_shift,
			     spec->params.window_ns, now.mono_ns, ret_end, ret_left);
}

static u64 ticks_to_ns(u64 ticks)
{
	return (ticks + SL_TICKS_PER_NS - 1) / SL_TICKS_PER_NS;
}

/* How long until an aligned window's count starts again. */
static u64 window_left(const struct spec_view *view, u64 bucket_state, struct sl_now now)
{
	u64 window_ns = view->p.window_ns, number;
	u64 left = window_ns - now.utc_ns % window_ns;

	sl_window_count(bucket_state, &view->p, now.utc_ns, &number);
	if (number != ((now.utc_ns / window_ns) & SL_WINDOW_NUMBER_MASK))
		left += window_ns;
	return left;
}

/* ------------------------------------------------------------------ steps */

static struct sl_result take_anchored(const struct spec_view *view, u64 bucket_state,
				      struct sl_now now, u64 cost)
{
	struct sl_result res = { .bucket_state = bucket_state };
	u64 end, left, count = anchored_count(view->spec, bucket_state, now, &end, &left);

	if (count + cost <= view->p.capacity) {
		res.bucket_state = anchored_state(end, view->spec->count_bits, count + cost);
		return res;
	}
	res.verdict = SL_OVER;
	res.wait_ns = cost > view->p.capacity ? ~0ULL : left;
	return res;
}

/* A look: over only while reports have taken more than there is. */
static struct sl_result take_nothing(const struct spec_view *view, u64 bucket_state,
				     struct sl_now now)
{
	struct sl_result res = { .bucket_state = bucket_state };
	u64 capacity = view->p.capacity + view->hold, number, end;

	switch (view->spec->algo) {
	case HTTP_TOKEN_BUCKET:
	case HTTP_LEAKY_BUCKET: {
		u64 tau = view->p.tau + sl_gcra_ticks(&view->p, view->hold);
		u64 debt = debt_of(bucket_state, now);

		res.wait_ns = debt > tau ? ticks_to_ns(debt - tau) : 0;
		break;
	}
	case HTTP_FIXED_WINDOW:
		if (sl_window_count(bucket_state, &view->p, now.utc_ns, &number) > capacity)
			res.wait_ns = window_left(view, bucket_state, now);
		break;
	case HTTP_SLIDING_WINDOW: {
		struct sl_sliding s = sl_sliding_read(bucket_state, &view->p, now.utc_ns);

		capacity >>= view->p.quantum;
		if (sl_sliding_used(bucket_state, &view->p, now.utc_ns) > capacity)
			res.wait_ns = sl_sliding_wait(&s, &view->p, capacity, 0);
		break;
	}
	case HTTP_FIRST_REQUEST:
		if (anchored_count(view->spec, bucket_state, now, &end, &number) > capacity)
			res.wait_ns = number;
		break;
	default:
		break;
	}
	res.verdict = res.wait_ns ? SL_OVER : SL_PASS;
	return res;
}

struct sl_result spec_charge(const struct spec_view *view, u64 bucket_state, struct sl_now now,
			     u64 cost)
{
	struct sl_result res;

	if (view->spec->algo == HTTP_GRACE)
		return sl_grace_step(bucket_state, &view->p, now.mono_ns);
	if (!cost)
		return take_nothing(view, bucket_state, now);
	if (view->spec->algo == HTTP_FIRST_REQUEST)
		return take_anchored(view, bucket_state, now, cost);
	res = sl_step(bucket_state, &view->p, now, cost);
	if (res.verdict == SL_OVER && is_bucket(view->spec) && cost <= view->p.capacity)
		res.wait_ns = ticks_to_ns(debt_of(bucket_state, now) +
					  sl_gcra_ticks(&view->p, cost) - view->p.tau);
	return res;
}

/* Up to `most`; a count that is above it already (the limit was lowered) stays. */
static u64 add_up_to(u64 count, u64 cost, u64 most)
{
	return count >= most ? count : min_u64(count + cost, most);
}

u64 spec_force(const struct spec_view *view, u64 bucket_state, struct sl_now now, u64 cost)
{
	u64 most = 2 * (view->p.capacity + view->hold), number, left, count;

	cost = min_u64(cost, most);
	switch (view->spec->algo) {
	case HTTP_TOKEN_BUCKET:
	case HTTP_LEAKY_BUCKET:
		count = debt_of(bucket_state, now) + sl_gcra_ticks(&view->p, cost);
		return make_bucket_state(min_u64(count, sl_gcra_ticks(&view->p, most)), now);
	case HTTP_FIXED_WINDOW:
		count = sl_window_count(bucket_state, &view->p, now.utc_ns, &number);
		most = min_u64(most, SL_WINDOW_COUNT_MASK);
		return sl_window_state(number, add_up_to(count, cost, most));
	case HTTP_SLIDING_WINDOW: {
		struct sl_sliding s = sl_sliding_read(bucket_state, &view->p, now.utc_ns);

		cost = (cost + sl_sliding_random(&view->p, now.utc_ns)) >> view->p.quantum;
		return sl_sliding_state(&s, add_up_to(s.current, cost, most >> view->p.quantum));
	}
	case HTTP_FIRST_REQUEST:
		count = anchored_count(view->spec, bucket_state, now, &number, &left);
		return anchored_state(number, view->spec->count_bits, add_up_to(count, cost, most));
	default:
		return bucket_state;
	}
}

/* What counts in the window before this one: so much more of it, or (back) less. */
static u64 change_previous(const struct spec_view *view, u64 bucket_state, struct sl_now now,
			   u64 cost, bool back)
{
	struct sl_sliding s = sl_sliding_read(bucket_state, &view->p, now.utc_ns);
	u64 most = 2 * (view->p.capacity + view->hold) >> view->p.quantum;

	if (s.early_ns)
		return bucket_state;
	cost = (cost + sl_sliding_random(&view->p, now.utc_ns)) >> view->p.quantum;
	s.previous = back ? less(s.previous, cost) : add_up_to(s.previous, cost, most);
	return s.current || s.previous ? sl_sliding_state(&s, s.current) : 0;
}

u64 spec_report(const struct spec_view *view, u64 bucket_state, struct sl_now now,
		struct sl_now then, u64 cost)
{
	u64 window_ns = view->p.window_ns, back, end, left;

	switch (view->spec->algo) {
	case HTTP_TOKEN_BUCKET:
	case HTTP_LEAKY_BUCKET:
		return spec_force(view, bucket_state, then, cost);
	case HTTP_FIXED_WINDOW:
	case HTTP_SLIDING_WINDOW:
		back = now.utc_ns / window_ns - then.utc_ns / window_ns;
		if (back == 1 && view->spec->algo == HTTP_SLIDING_WINDOW)
			return change_previous(view, bucket_state, now, cost, false);
		return back ? bucket_state : spec_force(view, bucket_state, now, cost);
	case HTTP_FIRST_REQUEST:
		if (anchored_count(view->spec, bucket_state, now, &end, &left)) {
			back = left + now.mono_ns - then.mono_ns > window_ns;
			return back ? bucket_state : spec_force(view, bucket_state, now, cost);
		}
		back = now.mono_ns - then.mono_ns >= window_ns;
		return back ? bucket_state : spec_force(view, 0, then, cost);
	default:
		return bucket_state;
	}
}

/* From this window first, then from what of the last one still counts. */
static u64 refund_sliding(const struct spec_view *view, u64 bucket_state, struct sl_now now,
			  u64 cost)
{
	struct sl_sliding s = sl_sliding_read(bucket_state, &view->p, now.utc_ns);
	u64 from_current;

	cost = (cost + sl_sliding_random(&view->p, now.utc_ns)) >> view->p.quantum;
	from_current = min_u64(cost, s.current);
	s.previous -= min_u64(cost - from_current, s.previous);
	if (s.current == from_current && !s.previous)
		return 0;
	return sl_sliding_state(&s, s.current - from_current);
}

u64 spec_refund(const struct spec_view *view, u64 bucket_state, struct sl_now now, u64 cost)
{
	u64 count, number, left;

	switch (view->spec->algo) {
	case HTTP_TOKEN_BUCKET:
	case HTTP_LEAKY_BUCKET:
		count = debt_of(bucket_state, now);
		cost = sl_gcra_ticks(&view->p, min_u64(cost, 2 * (view->p.capacity + view->hold)));
		return count > cost ? make_bucket_state(count - cost, now) : 0;
	case HTTP_FIXED_WINDOW:
		count = sl_window_count(bucket_state, &view->p, now.utc_ns, &number);
		return count > cost ? sl_window_state(number, count - cost) : 0;
	case HTTP_SLIDING_WINDOW:
		return refund_sliding(view, bucket_state, now, cost);
	case HTTP_FIRST_REQUEST:
		count = anchored_count(view->spec, bucket_state, now, &number, &left);
		return anchored_state(number, view->spec->count_bits, count > cost ? count - cost : 0);
	default:
		return bucket_state;
	}
}

u64 spec_uncommit(const struct spec_view *view, u64 bucket_state, struct sl_now now,
		  struct sl_now then, u64 cost)
{
	u64 window_ns = view->p.window_ns, end, left, back;

	switch (view->spec->algo) {
	case HTTP_FIXED_WINDOW:
	case HTTP_SLIDING_WINDOW:
		back = now.utc_ns / window_ns - then.utc_ns / window_ns;
		if (back == 1 && view->spec->algo == HTTP_SLIDING_WINDOW)
			return change_previous(view, bucket_state, now, cost, true);
		return back ? bucket_state : spec_refund(view, bucket_state, now, cost);
	case HTTP_FIRST_REQUEST:
		/* A window that began since never saw it. */
		anchored_count(view->spec, bucket_state, now, &end, &left);
		if (now.mono_ns + left > then.mono_ns + window_ns + SL_BIT(view->spec->tick_shift))
			return bucket_state;
		return spec_refund(view, bucket_state, now, cost);
	default:
		return spec_refund(view, bucket_state, now, cost);
	}
}

/* ------------------------------------------------------------------ for answers */

u64 spec_remaining(const struct spec_view *view, u64 bucket_state, struct sl_now now)
{
	const struct sl_params *p = &view->p;
	u64 number, left;

	switch (view->spec->algo) {
	case HTTP_TOKEN_BUCKET:
	case HTTP_LEAKY_BUCKET:
		return min_u64(less(p->tau, debt_of(bucket_state, now)) / p->mult, p->capacity);
	case HTTP_FIXED_WINDOW:
		return less(p->capacity, sl_window_count(bucket_state, p, now.utc_ns, &number));
	case HTTP_SLIDING_WINDOW:
		return less(p->capacity >> p->quantum, sl_sliding_used(bucket_state, p, now.utc_ns))
		       << p->quantum;
	case HTTP_FIRST_REQUEST:
		return less(p->capacity,
			    anchored_count(view->spec, bucket_state, now, &number, &left));
	default:
		return 0;
	}
}

static u64 reset_sliding(const struct spec_view *view, u64 bucket_state, struct sl_now now)
{
	struct sl_sliding s = sl_sliding_read(bucket_state, &view->p, now.utc_ns);
	u64 wait = s.early_ns + s.left_ns, window_ns = view->p.window_ns;

	/* Until floor(count x left / W) is 0. */
	if (s.current)
		return wait + window_ns - sl_sliding_left(1, window_ns, s.current);
	if (sl_sliding_expired(bucket_state, &view->p, now.utc_ns))
		return 0;
	return wait - sl_sliding_left(1, window_ns, s.previous);
}

u64 spec_reset_ns(const struct spec_view *view, u64 bucket_state, struct sl_now now)
{
	u64 number, left;

	switch (view->spec->algo) {
	case HTTP_TOKEN_BUCKET:
	case HTTP_LEAKY_BUCKET:
		return ticks_to_ns(debt_of(bucket_state, now));
	case HTTP_FIXED_WINDOW:
		if (!sl_window_count(bucket_state, &view->p, now.utc_ns, &number))
			return 0;
		return window_left(view, bucket_state, now);
	case HTTP_SLIDING_WINDOW:
		return reset_sliding(view, bucket_state, now);
	case HTTP_FIRST_REQUEST:
		anchored_count(view->spec, bucket_state, now, &number, &left);
		return left;
	default:
		return 0;
	}
}

/* ------------------------------------------------------------------ for the table */

u32 spec_utilization(const struct spec *spec, u64 bucket_state, struct sl_now now)
{
	u64 end, left, count;

	if (spec->algo == HTTP_GRACE)
		return sl_grace_utilization(bucket_state, &spec->params, now.mono_ns);
	if (spec->algo != HTTP_FIRST_REQUEST)
		return sl_utilization(bucket_state, &spec->params, now);
	count = anchored_count(spec, bucket_state, now, &end, &left);
	if (!count)
		return 0;
	return count >= spec->capacity ? 255 : 1 + count * 254 / spec->capacity;
}

bool spec_expired(const struct spec *spec, u64 bucket_state, struct sl_now now)
{
	u64 end, left;

	if (spec->algo == HTTP_GRACE)
		return sl_grace_expired(bucket_state, &spec->params, now.mono_ns);
	if (spec->algo == HTTP_FIRST_REQUEST)
		return !anchored_count(spec, bucket_state, now, &end, &left);
	return sl_expired(bucket_state, &spec->params, now);
}

static u64 convert_sliding(const struct spec *from, const struct spec *to, u64 bucket_state,
			   struct sl_now now)
{
	struct sl_sliding s = sl_sliding_read(bucket_state, &from->params, now.utc_ns);
	u32 down = to->params.quantum, up = from->params.quantum;
	u64 round = SL_BIT(down) - 1;

	s.current = min_u64(((s.current << up) + round) >> down, SL_SLIDING_COUNT_MAX);
	s.previous = min_u64(((s.previous << up) + round) >> down, SL_SLIDING_COUNT_MAX);
	return s.current || s.previous ? sl_sliding_state(&s, s.current) : 0;
}

u64 spec_convert(const struct spec *from, const struct spec *to, u64 bucket_state,
		 struct sl_now now)
{
	u64 end, left, count;

	if (from->algo != to->algo)
		return 0;
	if (is_bucket(from)) {
		u128 debt = debt_of(bucket_state, now);

		debt = (debt * to->params.tau + from->params.tau - 1) / from->params.tau;
		return debt ? make_bucket_state(min_u64(debt, 2 * to->params.tau), now) : 0;
	}
	if (from->algo == HTTP_GRACE)
		return bucket_state;
	if (from->params.window_ns != to->params.window_ns)
		return 0;
	if (from->algo == HTTP_SLIDING_WINDOW && from->params.quantum != to->params.quantum)
		return convert_sliding(from, to, bucket_state, now);
	if (from->algo != HTTP_FIRST_REQUEST)
		return bucket_state;
	count = anchored_count(from, bucket_state, now, &end, &left);
	if (!count)
		return 0;
	end = (now.mono_ns + left + SL_BIT(to->tick_shift) - 1) >> to->tick_shift;
	return anchored_state(end & (SL_BIT(64 - to->count_bits) - 1), to->count_bits,
			      min_u64(count, SL_BIT(to->count_bits) - 1));
}
