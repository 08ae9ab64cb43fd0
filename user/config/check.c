// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * check.c - checks over a whole policy, read from a file or changed live: the number of limits,
 * unique names, the number of prefix lengths of bans. Limits that are more than a packet can be
 * charged to are noted by sluicectl check (notes.c).
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

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
	return rc;
}
