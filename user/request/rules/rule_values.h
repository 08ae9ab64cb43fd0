/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * rule_values.h - the values of a rule's keys as one text: VALUE of commands, `value` of overrides,
 * what lists and events show.
 *
 *     rule                     VALUE
 *     api/user                 bob                  of one key: the value as it is
 *     api/user/path=/search    bob,/search          one for each key; one with a comma:
 * "a,b",/search api/plan=free/user       free,bob, or bob     values that the rule has may be left
 * out api/default              user=bob,path=/x     also the keys api/domain               none: it
 * has one count, as a default with share_threshold
 *
 * A value with a comma, or that begins with a double quote, is in double quotes; a quote in it
 * twice. Not here: whether the value of a pattern or network is in it, which only matching knows.
 */
#ifndef SLUICE_HTTP_RULE_VALUES_H
#define SLUICE_HTTP_RULE_VALUES_H

#include "request/rules/rule.h"

struct rule_values {
	struct request_descriptor descriptor; /* of a request that has them */
	char *unquoted;
};

/*
 * `text` at NULL: none is given. It must stay as long as *ret, of which rule_values_free() is due
 * in any case. -EINVAL: the message has what was found and what is accepted; -ENOMEM.
 */
int rule_values_read(const struct rule *rule, struct bytes text, struct rule_values *ret,
		     struct sl_err *err);
/*
 * Also finds the match of such a request. -ENOENT: it meets another rule, or none. *ret_match
 * points into *ret.
 */
int rule_values_match(const struct ruleset *set, const struct rule *rule, struct bytes text,
		      struct rule_values *ret, struct rule_match *ret_match, struct sl_err *err);
void rule_values_free(struct rule_values *values);
/* Returns the length of the text, of which at most `size` bytes are written, without a
 * terminator. */
size_t rule_values_write(const struct rule *rule, const struct request_descriptor *descriptor,
			 char *buf, size_t size);
/* The value that a matching request's i-th entry is counted by. */
struct bytes rule_value_counted(const struct rule *rule,
				const struct request_descriptor *descriptor, u32 i);
/* Whether all its requests have one count, so that it has no VALUE. */
static inline bool rule_has_one_count(const struct rule *rule)
{
	return rule->place == RULE_OF_DOMAIN || (rule->place == RULE_DEFAULT && rule->share);
}

#endif
