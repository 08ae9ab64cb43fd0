/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * override_value.h - limits of one value's own, in place of its rule's: plans, one customer's
 * contract, a user who is blocked or exempt.
 *
 * A rule may have a million of them (`overrides_file`), of which few differ in their limits:
 * what is kept per value is a keyed 64-bit hash and the number of its limits, 12 bytes and the
 * free places of the table; limits are shared by all values that have the same. The values
 * themselves stay in their file. Two values of 1M have the same hash with probability 2^-25,
 * which loading refuses as a value written twice; one that a client invents meets one of them
 * with 2^-44, and who does not know the key cannot aim.
 */
#ifndef SLUICE_HTTP_OVERRIDE_VALUE_H
#define SLUICE_HTTP_OVERRIDE_VALUE_H

#include "request/rules/rule.h"

/* Distinct ones in a rule set at most. */
#define OVERRIDE_LIMITS_MAX 60000

/* What holds in place of the rule's limits; one for all values of a rule that have the same. */
struct override_limits {
	bool unlimited;			/* exempt: nothing is charged */
	struct rule_limit *limit;	/* named as the rule's, in their order */
	u32 limit_count;		/* 1.., or 0 with unlimited */
};

/*
 * What holds for a value of the rule's last entry, as the client sent it; NULL: the rule's own
 * limits. An address is looked up as the group it is in (rule->prefix, the finest).
 */
const struct override_limits *override_value_find(const struct rule *rule, struct bytes value);

/* Whether a value has any in the files, and whether any (or none) were made live. */
void override_value_where(const struct rule *rule, struct bytes value, bool *ret_in_file,
			  bool *ret_live);

/* How many values have limits of their own. */
u64 override_values(const struct rule *rule);

#endif
