// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* limit_terms.c - what must fit together in the terms of a limit, in both tiers. */
#include <errno.h>
#include <string.h>

#include "config/limit_types.h"
#include "limiter/algorithm.h"

static bool has_burst(const struct algorithm *row)
{
	return row->default_burst;
}

static bool has_window(const struct algorithm *row)
{
	return row->has_window;
}

static bool has_buckets(const struct algorithm *row)
{
	return row->has_buckets;
}

static bool has_calendar(const struct algorithm *row)
{
	return row == algorithms[SL_ALGO_FIXED_WINDOW];
}

static bool has_rounding(const struct algorithm *row)
{
	return row->has_rounding;
}

static bool counts_all(const struct algorithm *row)
{
	return !row->count_note;
}

/* Keys that only some algorithms have. */
static const struct of_algorithm {
	const char *key, *found;
	bool (*fits)(const struct algorithm *row);
	bool default_fits; /* its default, written out, is accepted with any */
} of_algorithm[] = {
	{ "burst", "burst is given", has_burst, false },
	{ "window", "window is given", has_window, false },
	{ "buckets", "buckets is given", has_buckets, false },
	{ "rounding", "rounding is given", has_rounding, false },
	{ "calendar", "calendar is given", has_calendar, false },
	{ "count", "count is all", counts_all, true },
};

static u32 bit_of(const char *key)
{
	for (size_t i = 0; i < ARRAY_SIZE(of_algorithm); i++)
		if (!strcmp(of_algorithm[i].key, key))
			return 1U << i;
	return 0;
}

u32 limit_terms_given(const struct yaml_node *map)
{
	u32 bits = 0;

	for (const struct yaml_node *key = map->first; key; key = key->next)
		bits |= bit_of(key->text);
	return bits;
}

u32 limit_terms_given_rows(const struct keys *keys, u64 given)
{
	u32 bits = 0;

	for (size_t i = 0; i < keys->count; i++)
		if (given >> i & 1)
			bits |= bit_of(keys->key[i].name);
	return bits;
}

static bool is_set(const struct of_algorithm *of, const struct limit_terms *terms)
{
	return (of->fits == has_burst && terms->rates.burst[0]) ||
	       (of->fits == has_window && terms->first_request) ||
	       (of->fits == has_rounding && terms->round_up) ||
	       (of->fits == has_calendar && terms->calendar) ||
	       (of->fits == counts_all && terms->count == COUNT_ALL);
}

static int refuse(struct reader *r, const struct yaml_node *at, const struct of_algorithm *of,
		  enum sl_algo algorithm, const struct name *names)
{
	const char *note = of->fits == counts_all ? algorithms[algorithm]->count_note : NULL;
	char accepted[160] = "";
	size_t used = 0;

	for (; names->name && used < sizeof(accepted); names++)
		if (of->fits(algorithms[names->value]))
			used += snprintf(accepted + used, sizeof(accepted) - used, "%s%s",
					 used ? ", " : "", names->name);
	return read_fail(r, at, EINVAL,
			 "%s, but algorithm is %s%s%s; accepted with it: algorithm: %s", of->found,
			 algorithm_name(algorithm), note ? ": " : "", note ? note : "", accepted);
}

int limit_terms_check(struct reader *r, const struct yaml_node *map, u32 given,
		      const struct limit_terms *terms, const enum sl_algo *algorithm, u32 count,
		      const struct name *names)
{
	for (size_t i = 0; i < ARRAY_SIZE(of_algorithm); i++) {
		const struct of_algorithm *of = &of_algorithm[i];
		const struct yaml_node *at = map ? yaml_node_find(map, of->key) : NULL;
		bool fits = false;

		for (u32 k = 0; k < count; k++)
			fits |= of->fits(algorithms[algorithm[k]]);
		if (!fits && ((given >> i & 1 && !of->default_fits) || is_set(of, terms)))
			return refuse(r, at, of, algorithm[0], names);
	}
	return 0;
}

const char *limit_terms_conflict(const struct limit_terms *terms)
{
	if (terms->throttle.kind == THROTTLE_SOFT && terms->count == COUNT_DEBT)
		return "count is debt, but throttle is soft, whose excess is no debt; accepted with it: "
		       "throttle: hard or elastic";
	if (terms->throttle.kind == THROTTLE_SOFT && terms->count == COUNT_ALL)
		return "count is all, but throttle is soft, which admits above the limit; accepted "
		       "with it: throttle: hard or elastic";
	return NULL;
}

static enum calendar_unit rate_unit(const struct limit_terms *terms)
{
	return calendar_unit_of(terms->rates.rate[0].period_ns);
}

int limit_terms_settle_calendar(struct limit_terms *terms, const char **ret_reason)
{
	static _Thread_local struct sl_err why;

	if (!terms->calendar)
		return 0;
	*ret_reason =
		"calendar is given, but the rate has another period; accepted with it: requests/day, "
		"week, month or year";
	if (!rate_unit(terms))
		return -EINVAL;
	*ret_reason =
		"calendar is given, but window is first-request; accepted with it: window: aligned";
	if (terms->first_request)
		return -EINVAL;
	*ret_reason = why.message;
	return calendar_of_unit(terms->calendar, rate_unit(terms), &terms->calendar, &why);
}

void limit_terms_drop(struct limit_terms *terms, u32 given)
{
	const struct algorithm *row = algorithms[terms->algorithm];

	if (!has_burst(row) && !(given & bit_of("burst")))
		memset(terms->rates.burst, 0, sizeof(terms->rates.burst));
	if (!has_window(row) && !(given & bit_of("window")))
		terms->first_request = false;
	if (!has_buckets(row))
		terms->buckets = 0;
	if (!has_rounding(row) && !(given & bit_of("rounding")))
		terms->round_up = false;
	if (!(given & bit_of("calendar")) &&
	    (!has_calendar(row) || terms->first_request || !rate_unit(terms)))
		terms->calendar = NULL;
	if (!counts_all(row) && !(given & bit_of("count")) && terms->count == COUNT_ALL)
		terms->count = COUNT_ADMITTED;
}
