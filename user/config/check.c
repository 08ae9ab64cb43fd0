// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * check.c - checks over a whole policy, read from a file or changed live: the number of limits,
 * unique names, the number of prefix lengths of bans, and that no packet matches more than
 * SL_MATCHES_MAX limits or is charged to more than SL_CHARGES_MAX of their meters.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lib/bitmap.h"
#include "config/http_def.h"
#include "config/model.h"

/* An error about limit `index`, at its place in the file where it has one. */
#define fail_at(policy, index, err, code, ...)                                                     \
	sl_err_at(err, code,                                                                       \
		  (policy)->limit[index].pos.line && (policy)->path ? (policy)->path : "",         \
		  (policy)->limit[index].pos.line, (policy)->limit[index].pos.column, __VA_ARGS__)

static int check_names(const struct policy *policy, struct sl_err *err)
{
	size_t i, j;

	/* at most SL_LIMITS_MAX of them: 32640 comparisons */
	for (i = 0; i < policy->limit_count; i++) {
		const struct limit_def *limit = &policy->limit[i];

		for (j = 0; j < i; j++) {
			if (strcmp(limit->name, policy->limit[j].name))
				continue;
			return fail_at(policy, i, err, EEXIST,
				       "limits[%zu] \"%s\": the name is "
				       "taken by limits[%zu]; accepted: each name once",
				       i, limit->name, j);
		}
	}
	return 0;
}

/* What is dropped by its match alone is charged nowhere. */
static bool is_charged(const struct limit_def *limit)
{
	return limit->terms.rates.count || limit->action != SL_ACT_DROP ||
	       limit->mode != SL_MODE_ENFORCE;
}

static u32 weight_of_match(const struct limit_def *limit, enum sl_family family)
{
	return is_charged(limit);
}

/* The meters that count what a limit of scope cluster admits: see meters_counter.c. */
static u32 limit_counters(const struct limit_def *def, enum sl_family family)
{
	u32 units = 0;

	for (u8 i = 0; i < def->terms.rates.count; i++) {
		enum rate_unit unit = def->terms.rates.rate[i].unit;

		units |= 1U << (unit == RATE_BITS ? RATE_BYTES : unit);
	}
	return (u32)__builtin_popcount(units) * def->prefix.count[family];
}

/* How many meters of a limit one packet of this family is charged to. */
static u32 limit_words(const struct limit_def *limit, enum sl_family family)
{
	bool grace =
		limit->terms.throttle.kind == THROTTLE_SOFT && limit->terms.throttle.soft_for_ns;

	if (!limit->terms.rates.count)
		return is_charged(limit);
	/* a soft meter replaces its meter; its grace meter is charged in addition */
	return limit->terms.rates.count * limit->prefix.count[family] * (grace ? 2 : 1) +
	       (limit->terms.cluster ? limit_counters(limit, family) : 0);
}

/* Limits in a bitmap: "a", "b", ...; *ret_last is the last of them. */
static size_t name_limits(const struct policy *policy, const struct sl_bitmap *map, char *buf,
			  size_t size, size_t *ret_last)
{
	size_t i, listed = 0, used = 0;

	buf[0] = 0;
	for (i = 0; i < policy->limit_count; i++) {
		if (!bitmap_has(map, i))
			continue;
		*ret_last = i;
		if (listed++ < 4 && used < size)
			used += snprintf(buf + used, size - used, "\"%s\", ",
					 policy->limit[i].name);
	}
	return listed;
}

static int check_overlap(const struct policy *policy, struct sl_err *err)
{
	struct sl_bitmap together;
	size_t last = 0, listed;
	char names[300];
	bool found;

	if (overlap_find(policy->limit, policy->limit_count, weight_of_match, SL_MATCHES_MAX,
			 &found, &together))
		return sl_err_set(err, ENOMEM, "out of memory");
	if (found) {
		listed = name_limits(policy, &together, names, sizeof(names), &last);
		return fail_at(
			policy, last, err, EINVAL,
			"limits[%zu] \"%s\": one packet can match "
			"this and %zu others (%s...); accepted: up to %d limits that match a "
			"packet, not counting those with mode off",
			last, policy->limit[last].name, listed - 1, names, SL_MATCHES_MAX);
	}
	if (overlap_find(policy->limit, policy->limit_count, limit_words, SL_CHARGES_MAX, &found,
			 &together))
		return sl_err_set(err, ENOMEM, "out of memory");
	if (!found)
		return 0;
	listed = name_limits(policy, &together, names, sizeof(names), &last);
	return fail_at(
		policy, last, err, EINVAL,
		"limits[%zu] \"%s\": one packet can match this and "
		"%zu other%s (%s...), which count more than %d times together: once for each "
		"of a limit's rates at each of its prefix lengths, twice with throttle.for, "
		"once more for each unit with scope: cluster; accepted: up to %d",
		last, policy->limit[last].name, listed - 1, listed == 2 ? "" : "s", names,
		SL_CHARGES_MAX, SL_CHARGES_MAX);
}

/* The prefix lengths of a family's bans: each costs a look-up per packet. */
static int check_ban_lengths(const struct policy *policy, enum sl_family family, struct sl_err *err)
{
	u8 length[SL_BAN_LENGTHS];
	u32 count = 0;

	for (size_t i = 0; i < policy->limit_count; i++) {
		const struct limit_def *limit = &policy->limit[i];

		for (u32 k = 0; limit->ban.after && k < limit->prefix.count[family]; k++) {
			if (memchr(length, limit->prefix.len[family][k], count))
				continue;
			if (count == SL_BAN_LENGTHS)
				return fail_at(policy, i, err, EINVAL,
					       "limits[%zu] \"%s\": "
					       "ban: found IPv%c prefix length %u, one too many; "
					       "accepted: up to %d different lengths in all "
					       "limits with ban",
					       i, limit->name, family == SL_V4 ? '4' : '6',
					       limit->prefix.len[family][k], SL_BAN_LENGTHS);
			length[count++] = limit->prefix.len[family][k];
		}
	}
	return 0;
}

/* The limit that source_budget writes overrides for. */
static int check_budget(const struct policy *policy, struct sl_err *err)
{
	const struct limit_def *limit;

	if (!policy->http || !policy->http->budget.limit[0])
		return 0;
	limit = policy_find_limit(policy, policy->http->budget.limit);
	if (!limit)
		return sl_err_set(err, EINVAL,
				  "http.source_budget.limit: there is no limit \"%s\"; "
				  "accepted: the name of one under limits",
				  policy->http->budget.limit);
	if (!(limit->per & SL_PER_SOURCE) || limit->terms.rates.count != 1 ||
	    limit->terms.rates.rate[0].unit != RATE_PACKETS)
		return sl_err_set(err, EINVAL,
				  "http.source_budget.limit: \"%s\" does not limit each "
				  "source to one rate in packets; accepted: a limit that does",
				  limit->name);
	return 0;
}

int policy_check(const struct policy *policy, struct sl_err *err)
{
	int rc;

	if (policy->limit_count > SL_LIMITS_MAX)
		return fail_at(policy, SL_LIMITS_MAX, err, EINVAL,
			       "found %zu limits; accepted: up "
			       "to %d",
			       policy->limit_count, SL_LIMITS_MAX);
	rc = check_names(policy, err);
	if (!rc)
		rc = check_budget(policy, err);
	for (int family = 0; family < SL_FAMILY_COUNT && !rc; family++)
		rc = check_ban_lengths(policy, family, err);
	return rc ? rc : check_overlap(policy, err);
}
