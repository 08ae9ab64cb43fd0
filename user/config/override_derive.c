// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * override_derive.c - derived overrides: the HTTP tier computes them from the users behind a
 * source. They are marked in the list of a limit and never written to a file. An operator's
 * override for the same source has precedence.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "config/override.h"

void policy_override_underive(struct policy *policy)
{
	for (size_t i = 0; i < policy->limit_count; i++) {
		struct limit_def *limit = &policy->limit[i];
		size_t kept = 0;

		for (size_t k = 0; k < limit->override_count; k++)
			if (!limit->override[k].derived)
				limit->override[kept++] = limit->override[k];
		limit->override_count = kept;
		override_rates_tidy(limit);
	}
}

static double pps_of(const struct rates *rates)
{
	double least = 0;

	for (u32 i = 0; i < rates->count; i++) {
		double pps = (double)rates->rate[i].count * 1e9 / (double)rates->rate[i].period_ns;

		if (!i || pps < least)
			least = pps;
	}
	return least;
}

/* Rounded up, except for errors of floating point. */
static u64 times(u64 count, double factor)
{
	double product = (double)count * factor * (1 - 1e-12);
	u64 whole = product < 9e18 ? (u64)product : 9000000000000000000ULL;

	return whole + ((double)whole < product);
}

/* The rates without a derived override: the longest covering override's, or the limit's. */
static const struct rates *rates_without(const struct limit_def *limit, const struct sl_prefix *src)
{
	const struct override_def *own = override_match(limit, src);

	return own ? &limit->override_rates[own->rates] : &limit->terms.rates;
}

/* 1: added; 0: not needed, or no room; or -ENOMEM. */
static int derive(struct limit_def *limit, struct numbers *known,
		  const struct override_derived *derived)
{
	struct override_def def = { .src = derived->src, .derived = true };
	const struct rates *without = rates_without(limit, &derived->src);
	size_t at = override_place(limit, &derived->src);
	double factor = (double)derived->pps / pps_of(without);
	char reason[OVERRIDE_REASON];
	struct rates rates;
	u32 number;

	if (factor <= 1 || (at < limit->override_count &&
			    sl_prefix_equal(&limit->override[at].src, &derived->src)))
		return 0;
	memcpy(&rates, without, sizeof(rates));
	for (u32 i = 0; i < rates.count; i++) {
		rates.rate[i].count = times(rates.rate[i].count, factor);
		rates.burst[i] = times(rates.burst[i], factor);
	}
	if (override_rates_check(limit, &rates, reason))
		return 0;
	if (override_rates_number(known, limit, &rates, &number))
		return -ENOMEM;
	def.rates = number;
	return insert_at(limit->override, limit->override_count, at, def) ? -ENOMEM : 1;
}

int policy_override_derive(struct policy *policy, const char *name,
			   const struct override_derived *derived, size_t count, struct sl_err *err)
{
	struct limit_def *limit = policy_find_limit(policy, name);
	struct numbers known = { .count = 0 };
	int r = 0, in = 0;

	policy_override_underive(policy);
	if (!limit)
		return sl_err_set(err, ENOENT, "there is no limit \"%.63s\"", name);
	if (!(limit->per & SL_PER_SOURCE))
		return sl_err_set(err, EINVAL, "limit \"%.63s\" does not count per source", name);
	for (u32 i = 0; i < limit->terms.rates.count; i++)
		if (limit->terms.rates.rate[i].unit != RATE_PACKETS)
			return sl_err_set(err, EINVAL, "limit \"%.63s\" does not count packets",
					  name);
	for (size_t i = 0; i < count && r >= 0; i++) {
		r = derive(limit, &known, &derived[i]);
		in += r > 0;
	}
	numbers_free(&known);
	return r < 0 ? sl_err_set(err, ENOMEM, "out of memory") : in;
}
