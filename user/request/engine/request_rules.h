/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * request_rules.h - the rules of limits that requests bring (`limit=10/s` in a query,
 * RateLimitDescriptor.limit) where no rule of a file matches: what lists, events and metrics count
 * them by.
 *
 * Such a limit counts by domain, entries and unit, so its rule is that of the domain, the keys and
 * the unit: "api/user@second", with the values of the entries as VALUE. Its rate is the one that
 * came last. The table has a fixed size and its rules stay until the daemon exits; further ones,
 * and names that are no short printable ASCII, share the rule "@other/requests": no request makes a
 * label, a rule or memory beyond that.
 */
#ifndef SLUICE_HTTP_REQUEST_RULES_H
#define SLUICE_HTTP_REQUEST_RULES_H

#include "request/rules/rule.h"

#define REQUEST_RULES_MAX 64
/* In rule->index and rule->metric, above all of a rule set: bit and index in the table. */
#define REQUEST_RULE_BIT 0x80000000U

struct request_rules;

struct request_rules *request_rules_new(void);	      /* NULL: no memory */
void request_rules_free(struct request_rules *rules); /* NULL is fine */
/* The rule of the descriptor's limit; made at its first use, by any thread. */
const struct rule *request_rule_of(struct request_rules *rules, struct bytes domain,
				   const struct request_descriptor *descriptor);
/* All that there are; NULL has none. */
u32 request_rules_count(const struct request_rules *rules);
const struct rule *request_rule_at(const struct request_rules *rules, u32 i);
/* By rule->index, or NULL. */
const struct rule *request_rule_index(const struct request_rules *rules, u32 index);
/* "api/user@second", or NULL. */
const struct rule *request_rule_find(const struct request_rules *rules, const char *name);

#endif
