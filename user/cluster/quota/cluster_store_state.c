// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * cluster_store_state.c - the store's answer as a word of the local store, so that the steps that
 * know nothing of other nodes (spec.h) refuse, wait and answer by what all nodes have charged.
 *
 * Windows have the same numbers here and there: time / period, modulo what a word holds. Where
 * the store's window is not the one that now.utc_ns is in, the steps take it as they take any
 * word: the one before is over, the next one goes on.
 */
#include "cluster/quota/cluster_store.h"
#include "limiter/anchored.h"
#include "lib/whole.h"

/* Of counts that are charged in any case a word holds twice the limit, as spec_force() has it. */
static u64 count_of(const struct spec *spec, u64 used, u64 more)
{
	u64 sum;

	if (__builtin_add_overflow(used, more, &sum))
		sum = ~0ULL;
	return min_u64(sum, 2 * spec->params.capacity);
}

static u64 quanta(const struct spec *spec, u64 count)
{
	u32 quantum = spec->params.quantum & 63;

	return min_u64((count + SL_BIT(quantum) - 1) >> quantum, SL_SLIDING_COUNT_MAX);
}

/*
 * All that the store has: what nodes that write back let through too much, beyond one capacity
 * too, has to be waited for. Cut at that, n nodes on a bucket that is emptied in less than an
 * interval would go on at n times its rate.
 */
#define DEBT_MAX_NS (366ULL * 86400 * 1000000000)

static u64 make_bucket_state(const struct spec *spec, const struct cluster_store_state *state,
			     u64 more, struct sl_now now)
{
	const struct sl_params *p = &spec->params;
	u64 debt = min_u64(state->used, DEBT_MAX_NS) * SL_TICKS_PER_NS;

	more = min_u64(more, 2 * p->capacity);
	debt += min_u64(sl_gcra_ticks(p, more), 2 * p->tau);
	return debt ? (now.mono_ns * SL_TICKS_PER_NS + debt) << SL_GCRA_GEN_BITS : 0;
}

static u64 sliding_state(const struct spec *spec, const struct cluster_store_state *state,
			 u64 number, u64 count)
{
	u64 before = quanta(spec, min_u64(state->before, 2 * spec->params.capacity));
	struct sl_sliding s = {
		.number = number & SL_SLIDING_NUMBER_MASK,
		.previous = before,
	};

	count = quanta(spec, count);
	return count || before ? sl_sliding_state(&s, count) : 0;
}

/* A window that has no begin yet begins now. */
static u64 first_state(const struct spec *spec, const struct cluster_store_state *state, u64 count,
		       struct sl_now now)
{
	u64 window_ns = spec->params.window_ns, left = window_ns, end;
	s64 gone = (s64)(now.utc_ns - state->window * 1000);

	if (state->window && gone > 0)
		left = (u64)gone < window_ns ? window_ns - gone : 0;
	if (!left)
		return 0;
	end = (now.mono_ns + left + SL_BIT(spec->tick_shift) - 1) >> spec->tick_shift;
	return anchored_state(end & (SL_BIT(64 - spec->count_bits) - 1), spec->count_bits,
			      min_u64(count, SL_BIT(spec->count_bits) - 1));
}

u64 cluster_store_bucket_state(const struct spec *spec, const struct cluster_store_state *state,
			       u64 more_hits, struct sl_now now)
{
	u64 count = count_of(spec, state->used, more_hits);
	u64 number = state->window;

	if (spec->algo <= HTTP_SLIDING_WINDOW && !number && spec->params.window_ns)
		number = now.utc_ns / spec->params.window_ns;
	switch (spec->algo) {
	case HTTP_TOKEN_BUCKET:
	case HTTP_LEAKY_BUCKET:
		return make_bucket_state(spec, state, more_hits, now);
	case HTTP_FIXED_WINDOW:
		count = min_u64(count, SL_WINDOW_COUNT_MASK);
		return count ? sl_window_state(number & SL_WINDOW_NUMBER_MASK, count) : 0;
	case HTTP_SLIDING_WINDOW:
		return sliding_state(spec, state, number, count);
	case HTTP_FIRST_REQUEST:
		return first_state(spec, state, count, now);
	default:
		return 0;
	}
}

/* The whole number of a window of which a word has the lowest bits; it is this one or the next. */
static u64 whole_number(u64 number, u64 mask, const struct spec *spec, struct sl_now now)
{
	u64 current = now.utc_ns / spec->params.window_ns;

	return current + ((number - current) & mask);
}

struct cluster_store_state cluster_store_state_of(const struct spec *spec, u64 bucket_state,
						  struct sl_now now)
{
	const struct sl_params *p = &spec->params;
	struct cluster_store_state state = { 0 };
	u64 tat, end, left;

	switch (spec->algo) {
	case HTTP_TOKEN_BUCKET:
	case HTTP_LEAKY_BUCKET:
		tat = bucket_state >> SL_GCRA_GEN_BITS;
		if (tat > now.mono_ns * SL_TICKS_PER_NS)
			state.used = (tat - now.mono_ns * SL_TICKS_PER_NS) / SL_TICKS_PER_NS;
		break;
	case HTTP_FIXED_WINDOW:
		state.used = sl_window_count(bucket_state, p, now.utc_ns, &state.window);
		state.window = whole_number(state.window, SL_WINDOW_NUMBER_MASK, spec, now);
		break;
	case HTTP_SLIDING_WINDOW: {
		struct sl_sliding s = sl_sliding_read(bucket_state, p, now.utc_ns);

		state.used = s.current << p->quantum;
		state.before = s.previous << p->quantum;
		state.window = whole_number(s.number, SL_SLIDING_NUMBER_MASK, spec, now);
		break;
	}
	case HTTP_FIRST_REQUEST:
		state.used = anchored_read(bucket_state, spec->count_bits, spec->tick_shift,
					   p->window_ns, now.mono_ns, &end, &left);
		if (state.used)
			state.window = (now.utc_ns + left - p->window_ns) / 1000;
		break;
	case HTTP_SLIDING_LOG:
		state.used = bucket_state & (SL_BIT(28) - 1);
		break;
	default:
		break;
	}
	return state;
}
