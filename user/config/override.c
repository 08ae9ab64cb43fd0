// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * override.c - overrides in the rule model: finding and checking them, their rates as text.
 *
 * Rates are stored once and shared: of 100000 customers most are on one of a few plans.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "limiter/params.h"
#include "config/override.h"
#include "limiter/algorithm.h"

/* ------------------------------------------------------------------ finding */

size_t override_place(const struct limit_def *limit, const struct sl_prefix *src)
{
	size_t lo = 0, hi = limit->override_count;

	while (lo < hi) {
		size_t mid = (lo + hi) / 2;

		if (sl_prefix_compare(&limit->override[mid].src, src) < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

const struct override_def *override_find(const struct limit_def *limit, const struct sl_prefix *src)
{
	size_t at = override_place(limit, src);

	if (at == limit->override_count || !sl_prefix_equal(&limit->override[at].src, src) ||
	    limit->override[at].removed)
		return NULL;
	return &limit->override[at];
}

const struct override_def *override_match(const struct limit_def *limit,
					  const struct sl_prefix *src)
{
	const struct override_def *def = NULL;
	struct sl_prefix prefix = *src;

	for (int len = src->len; len >= 0 && !def; len--) {
		prefix.len = len;
		prefix.addr = sl_addr_mask(src->addr, len);
		def = override_find(limit, &prefix);
	}
	return def;
}

size_t override_count(const struct limit_def *limit)
{
	size_t count = 0;

	for (size_t i = 0; i < limit->override_count; i++)
		count += !limit->override[i].removed;
	return count;
}

/* ------------------------------------------------------------------ checking */

static bool counts_bytes(const struct rate *rate)
{
	return rate->unit == RATE_BYTES || rate->unit == RATE_BITS;
}

static bool same_unit(const struct rate *a, const struct rate *b)
{
	return a->unit == b->unit || (counts_bytes(a) && counts_bytes(b));
}

/* One rate times one prefix_scale, as compile does it, where it must not fail. */
static int check_scaled(const struct limit_def *limit, const struct rates *rates, u32 i, u32 scale,
			char reason[OVERRIDE_REASON])
{
	struct rate rate = rates->rate[i];
	u64 burst = rates->burst[i];
	struct sl_params params;
	const char *words;

	if (algorithms[limit->terms.algorithm]->default_burst && !burst)
		burst = algorithms[limit->terms.algorithm]->default_burst(&rate, 0);
	if (__builtin_mul_overflow(rate.count, (u64)scale, &rate.count))
		rate.count = ~0ULL;
	if (__builtin_mul_overflow(burst, (u64)scale, &burst))
		burst = ~0ULL;
	if (!params_compile(limit->terms.algorithm, &rate, burst, 0, &params, &words) &&
	    !params_divide(&params, limit->terms.buckets, limit_ceiling(limit), &words)) {
		bool elastic = limit->terms.throttle.kind == THROTTLE_ELASTIC;

		if (elastic)
			params_make_room(&params, limit->terms.throttle.ceiling_percent);
		/* One utilization function serves all overrides of a limit, so their quantum must
		 * be equal. */
		if (sl_algo_is_sliding(params.algo) && params.quantum)
			words = "a sliding window of this size counts in steps, which overrides do not support; "
				"accepted: up to 33554431 units per window, elastic included";
		else if (!elastic ||
			 !params_check_floor(&params, limit->terms.throttle.floor_percent, &words))
			return 0;
	}
	if (scale > 1)
		snprintf(reason, OVERRIDE_REASON, "times the limit's prefix_scale of %u: %s", scale,
			 words);
	else
		snprintf(reason, OVERRIDE_REASON, "%s", words);
	return -EINVAL;
}

static int check_rate(const struct limit_def *limit, const struct rates *rates, u32 i,
		      char reason[OVERRIDE_REASON])
{
	const struct rate *rate = &rates->rate[i], *usual = &limit->terms.rates.rate[i];
	int rc = 0;

	if (!same_unit(rate, usual)) {
		snprintf(reason, OVERRIDE_REASON,
			 "the rate counts another unit than the limit's; accepted: the same");
		return -EINVAL;
	}
	if (sl_algo_is_window(limit->terms.algorithm) && rate->period_ns != usual->period_ns) {
		snprintf(reason, OVERRIDE_REASON,
			 "the rate's window is not as long as the limit's; accepted: the same");
		return -EINVAL;
	}
	for (u32 family = 0; family < SL_FAMILY_COUNT; family++)
		for (u32 level = 0; level < limit->prefix.count[family] && !rc; level++)
			rc = check_scaled(limit, rates, i, limit->prefix.scale[family][level],
					  reason);
	return rc;
}

int override_rates_check(const struct limit_def *limit, const struct rates *rates,
			 char reason[OVERRIDE_REASON])
{
	int rc = 0;

	if (limit->terms.first_request) {
		snprintf(
			reason, OVERRIDE_REASON,
			"the limit's window is first-request, which has no overrides; accepted with them: window: aligned");
		return -EINVAL;
	}
	if (rates->count != limit->terms.rates.count) {
		snprintf(reason, OVERRIDE_REASON,
			 "%u rates, but the limit has %u; accepted: as many", rates->count,
			 limit->terms.rates.count);
		return -EINVAL;
	}
	for (u32 i = 0; i < rates->count && !rc; i++) {
		if (rates->burst[i] && !algorithms[limit->terms.algorithm]->default_burst) {
			snprintf(reason, OVERRIDE_REASON,
				 "a burst, but the limit's algorithm %s has none",
				 algorithm_name(limit->terms.algorithm));
			return -EINVAL;
		}
		rc = check_rate(limit, rates, i, reason);
	}
	return rc;
}

int overrides_check(const struct limit_def *limit, struct sl_err *err)
{
	char reason[OVERRIDE_REASON], text[SL_PREFIX_TEXT];

	if (!override_count(limit))
		return 0;
	if (!(limit->per & SL_PER_SOURCE))
		return sl_err_set(err, EINVAL,
				  "limit \"%s\": it has overrides, which are per source; "
				  "accepted with them: source in per",
				  limit->name);
	for (size_t i = 0; i < limit->override_rates_count; i++) {
		if (!override_rates_check(limit, &limit->override_rates[i], reason))
			continue;
		for (size_t k = 0; k < limit->override_count; k++) {
			const struct override_def *def = &limit->override[k];

			if (def->removed || def->rates != i)
				continue;
			return sl_err_set(err, EINVAL,
					  "limit \"%s\": its override for %s would "
					  "not fit: %s",
					  limit->name,
					  sl_prefix_format(&def->src, text, sizeof(text)), reason);
		}
	}
	return 0;
}

static u64 hash_rates(const struct rates *rates)
{
	return hash_bytes(hash_seed(), 0, rates, sizeof(*rates));
}

int override_rates_number(struct numbers *known, struct limit_def *limit, const struct rates *rates,
			  u32 *ret)
{
	u64 hash = hash_rates(rates);

	for (size_t i = known->count; i < limit->override_rates_count; i++)
		if (numbers_add(known, hash_rates(&limit->override_rates[i]), i))
			return -ENOMEM;
	if (numbers_find(known, hash, ret))
		return 0;
	*ret = limit->override_rates_count;
	return append(limit->override_rates, limit->override_rates_count, *rates);
}

size_t override_rates_most(const struct limit_def *limit)
{
	return 2 * limit->override_count + 16;
}

void override_rates_tidy(struct limit_def *limit)
{
	size_t used = 0;
	u32 *number;

	if (limit->override_rates_count <= override_rates_most(limit))
		return;
	number = calloc(limit->override_rates_count, sizeof(*number));
	if (!number)
		return; /* another time */
	for (size_t i = 0; i < limit->override_count; i++)
		number[limit->override[i].rates] = 1;
	for (size_t i = 0; i < limit->override_rates_count; i++) {
		if (!number[i])
			continue;
		limit->override_rates[used] = limit->override_rates[i];
		number[i] = used++;
	}
	limit->override_rates_count = used;
	for (size_t i = 0; i < limit->override_count; i++)
		limit->override[i].rates = number[limit->override[i].rates];
	free(number);
}

/* ------------------------------------------------------------------ text */

const char *override_format_rates(const struct rates *rates, const char *apart, char *buf,
				  size_t size)
{
	size_t used = 0;
	char text[96];

	buf[0] = 0;
	for (u32 i = 0; i < rates->count && used < size; i++)
		used += snprintf(buf + used, size - used, "%s%s", i ? apart : "",
				 rate_format(&rates->rate[i], text, sizeof(text)));
	return buf;
}

const char *override_format_bursts(const struct rates *rates, const char *apart, char *buf,
				   size_t size)
{
	size_t used = 0;

	buf[0] = 0;
	for (u32 i = 0; i < rates->count && rates->burst[i] && used < size; i++)
		used += snprintf(buf + used, size - used, "%s%llu", i ? apart : "",
				 rates->burst[i]);
	return buf;
}
