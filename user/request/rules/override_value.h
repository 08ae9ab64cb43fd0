/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * override_value.h - limits of single values, in place of their rule's: plans, one customer's
 * contract, a user who is blocked or exempt.
 *
 * A rule may have a million of them (`overrides_file`), with few distinct limits: a value takes a
 * keyed 64-bit hash and the number of its limits, 12 bytes and the free entries of the table;
 * limits are shared by all values with the same ones. The values themselves stay in their file.
 * Two of 1M values collide with probability 2^-25, which loading refuses as a duplicate; a value
 * that a client invents collides with 2^-44, and without the key it cannot be searched for.
 */
#ifndef SLUICE_HTTP_OVERRIDE_VALUE_H
#define SLUICE_HTTP_OVERRIDE_VALUE_H

#include "request/rules/rule.h"

/* Distinct ones in a rule set, at most. */
#define OVERRIDE_LIMITS_MAX 60000

/* In place of the rule's limits; shared by all values of a rule with the same ones. */
struct override_limits {
	bool unlimited;		  /* exempt: nothing is charged */
	struct rule_limit *limit; /* named as the rule's, in their order */
	u32 limit_count;	  /* 1.., or 0 with unlimited */
};

/*
 * The limits of the values of the rule's entries (`depth` of them), as the client sent them; NULL:
 * the rule's own apply. An address is looked up by its group (rule->prefix, the finest), then,
 * where no other entry has values of its own, by the networks that it is in, the smallest first.
 */
const struct override_limits *override_value_find(const struct rule *rule,
						  const struct bytes *value);

/*
 * Whether the files have any for a value (rule_values.h), whether there is a live change, and
 * whether one of these names it by another text.
 */
void override_value_where(const struct rule *rule, struct bytes value, bool *ret_in_file,
			  bool *ret_live, bool *ret_other_text);

/* How many values have limits of their own. */
u64 override_values(const struct rule *rule);

#endif
