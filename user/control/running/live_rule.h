/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * live_rule.h - live changes to the HTTP tier's rules: "rule set", and of one value "user set",
 * "user unset", "user block", "user exempt". They change no policy: http_rules.c does them to
 * the rule files as they are read.
 *
 *     {"op": "rule set", "name": "DOMAIN/PATH", "pairs": [...], WHO}
 *     {"op": "user set", "name": "DOMAIN/PATH", "value": V, "pairs": [...], "until_utc_ns": T, WHO}
 *     {"op": "user block", "name": "DOMAIN/PATH", "value": V, "until_utc_ns": T, WHO}
 *
 * A "user unset" with "forget": true only takes an earlier one of the value back.
 */
#ifndef SLUICE_RUNNING_LIVE_RULE_H
#define SLUICE_RUNNING_LIVE_RULE_H

#include "control/running/live.h"
#include "request/rules/rule_edit.h"

bool live_rule_is(const json_t *op);
/* As live_apply(): 0 where there is an HTTP tier to do it to. */
int live_rule_apply(const json_t *op, const struct policy *policy, struct sl_err *err);
int live_rule_add(json_t *live, json_t *op);
void live_rule_describe(const json_t *op, char *buf, size_t size);

/* Those of a list, as an array of its own: all, or those that end by themselves. */
json_t *live_rules(const json_t *live);
json_t *live_rules_timed(const json_t *live);

/*
 * Those of a list as edits, in order, pointing into the list: *ret[i] is what
 * json_array_get(live, ret_at[i]) says. One allocation each, to be freed by
 * live_rule_edits_free(). 0 or -ENOMEM.
 */
int live_rule_edits(const json_t *live, struct rule_edit **ret, size_t **ret_at,
		    size_t *ret_count);
void live_rule_edits_free(struct rule_edit *edit, size_t *at, size_t count);

#endif
