// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * decide_response.c - what a call's buckets say, as statuses and policies.
 *
 * The limit that binds is, of those that refuse, the one with the longest wait; of those that
 * do not, the one with the smallest share of it left.
 */
#include <string.h>

#include "request/engine/decide_private.h"

static u64 ceil_div(u64 a, u64 b)
{
	return a / b + (a % b != 0);
}

static u64 ceil_u128(unsigned __int128 a, unsigned __int128 b)
{
	return (a + b - 1) / b;
}

/* The limit as a whole, whoever asks: what is held back from this call is in it. */
static u64 capacity_of(const struct bucket *b)
{
	return b->none || !b->view.spec ? 0 : b->view.p.capacity + b->view.hold;
}

static u64 remaining_of(const struct decision *d, const struct bucket *b)
{
	if (b->none || b->ahead)
		return 0;
	if (!b->view.spec)
		return ~0ULL;
	return bucket_remaining(d, b);
}

/* a / b < c / d, for what is left of two limits. */
static bool less_left(u64 a, u64 b, u64 c, u64 d)
{
	return (unsigned __int128)a * d < (unsigned __int128)c * b;
}

/* Whether `b` binds rather than `than`. */
static bool binds(const struct decision *d, const struct bucket *b, const struct bucket *than)
{
	if (b->over != than->over)
		return b->over;
	if (b->over)
		return b->wait_ns > than->wait_ns;
	return less_left(remaining_of(d, b), capacity_of(b), remaining_of(d, than),
			 capacity_of(than));
}

/* The rate as it holds now: elastic multiplies it. */
static u64 requests_of(const struct bucket *b)
{
	const struct spec *spec = b->view.spec;

	if (b->none || !spec)
		return 0;
	if (capacity_of(b) == spec->capacity)
		return spec->requests;
	return (unsigned __int128)spec->requests * capacity_of(b) / spec->capacity;
}

static void fill_status(const struct decision *d, const struct part *part,
			struct response_status *ret)
{
	const struct bucket *bound = NULL;

	memset(ret, 0, sizeof(*ret));
	ret->rule = part->rule;
	ret->unlimited = part->unlimited;
	ret->over = part->over;
	ret->shadow = part->over && part->shadow;
	if (part->unlimited)
		ret->remaining = ~0U;
	for (u32 i = 0; i < part->count; i++) {
		const struct bucket *b = &d->bucket[part->bucket[i]];

		ret->soft |= b->soft;
		ret->full |= b->full;
		ret->unavailable |= b->unavailable;
		if (!bound || binds(d, b, bound))
			bound = b;
	}
	if (!bound)
		return;
	ret->limit = bound->limit;
	ret->requests = requests_of(bound);
	ret->window_ns = d->ref[bound->ref].def.period_ns;
	ret->remaining = remaining_of(d, bound);
	if (bound->over)
		ret->retry_after_ns = bound->wait_ns;
	if (bound->view.spec && !bound->none)
		ret->reset_ns = bucket_reset_ns(d, bound);
	ret->soft &= !part->over;
}

static void fill_policy(const struct decision *d, const struct bucket *b,
			struct response_policy *ret)
{
	const struct spec *spec = b->view.spec;

	memset(ret, 0, sizeof(*ret));
	ret->rule = b->rule;
	ret->limit = b->limit;
	ret->q = capacity_of(b);
	ret->r = remaining_of(d, b);
	ret->prefix_len = b->prefix_len;
	ret->refused = b->over;
	ret->wait_ns = b->over ? b->wait_ns : 0;
	if (spec && !b->none) {
		ret->t_ns = bucket_reset_ns(d, b);
	}
	ret->w_s = ceil_div(d->ref[b->ref].def.period_ns, SL_NS_PER_SEC);
	/* A bucket: how long it takes to fill. */
	if (spec && spec->algo <= HTTP_LEAKY_BUCKET)
		ret->w_s = ceil_u128((unsigned __int128)spec->capacity * spec->period_ns,
				     (unsigned __int128)spec->requests * SL_NS_PER_SEC);
}

/* Enforced buckets, each once, the binding one first; returns how many. */
static u32 list_enforced(const struct decision *d, enum response_code code,
			 const struct bucket *ret[DECIDE_BUCKETS_MAX])
{
	u64 listed[DECIDE_BUCKETS_MAX / 64] = { 0 };
	u32 count = 0, first = 0;

	for (u32 i = 0; i < d->part_count; i++) {
		const struct part *part = &d->part[i];

		/* A quota that is used up, where another one took the call, bound nothing. */
		if (part->shadow || (part->quota && part->over && code == RESPONSE_OK))
			continue;
		for (u32 k = 0; k < part->count; k++) {
			u32 at = part->bucket[k];

			if (d->bucket[at].full || (listed[at / 64] & SL_BIT(at % 64)))
				continue;
			listed[at / 64] |= SL_BIT(at % 64);
			if (count && binds(d, &d->bucket[at], ret[first]))
				first = count;
			ret[count++] = &d->bucket[at];
		}
	}
	if (first) {
		const struct bucket *bound = ret[first];

		memmove(ret + 1, ret, first * sizeof(*ret));
		ret[0] = bound;
	}
	return count;
}

/* Until the call fits: the longest wait; of quotas the shortest, for one is enough. */
static u64 retry_after(const struct decision *d)
{
	u64 wait = 0, quota = ~0ULL;
	bool any_quota = false, quota_fits = false;

	for (u32 i = 0; i < d->part_count; i++) {
		const struct part *part = &d->part[i];
		u64 longest = 0;

		quota_fits |= part->quota && part->shadow;
		if (part->shadow)
			continue;
		for (u32 k = 0; k < part->count; k++) {
			const struct bucket *b = &d->bucket[part->bucket[k]];

			if (b->over && b->wait_ns > longest)
				longest = b->wait_ns;
		}
		if (!part->quota) {
			wait = longest > wait ? longest : wait;
			continue;
		}
		any_quota = true;
		quota_fits |= !part->over;
		quota = longest < quota ? longest : quota;
	}
	if (any_quota && !quota_fits && quota > wait)
		wait = quota;
	return wait;
}

void decide_response(const struct decision *d, enum response_code code, struct response *ret)
{
	const struct bucket *enforced[DECIDE_BUCKETS_MAX];
	u32 count = list_enforced(d, code, enforced);

	ret->code = code;
	ret->beyond = NULL;
	ret->count = d->part_count;
	ret->delayed_ns = 0;
	ret->retry_after_ns = code == RESPONSE_OVER_LIMIT ? retry_after(d) : 0;
	for (u32 i = 0; i < d->part_count; i++)
		fill_status(d, &d->part[i], &ret->status[i]);
	ret->policy_count = count < RESPONSE_POLICIES_MAX ? count : RESPONSE_POLICIES_MAX;
	for (u32 i = 0; i < ret->policy_count; i++)
		fill_policy(d, enforced[i], &ret->policy[i]);
}
