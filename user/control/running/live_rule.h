/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * live_rule.h - live changes to the HTTP tier's rules: "rule set", and of one value "user set",
 * "user unset", "user block", "user exempt". They change no policy: http_rules.c applies them to
 * the rule files when it reads these.
 *
 *     {"op": "rule set", "name": "DOMAIN/PATH", "pairs": [...], WHO}
 *     {"op": "user set", "name": "DOMAIN/PATH", "value": V, "pairs": [...], "until_utc_ns": T, WHO}
 *     {"op": "user block", "name": "DOMAIN/PATH", "value": V, "until_utc_ns": T, WHO}
 *
 * A "user unset" with "forget": true only removes an earlier live change of the value.
 */
#ifndef SLUICE_RUNNING_LIVE_RULE_H
#define SLUICE_RUNNING_LIVE_RULE_H

#include "control/running/live.h"
#include "request/rules/rule_edit.h"

bool live_rule_is(const json_t *op);
/* As live_apply(): 0 if there is an HTTP tier. */
int live_rule_apply(const json_t *op, const struct policy *policy, struct sl_err *err);
int live_rule_add(json_t *live, json_t *op);
/* Without its pairs; the length, as snprintf(). */
size_t live_rule_describe(const json_t *op, char *buf, size_t size);

/* The rule changes of a list as a new array. */
json_t *live_rules(const json_t *live);
json_t *live_rules_timed(const json_t *live);

/*
 * The rule changes of a list as edits, in order, pointing into the list: *ret[i] belongs to
 * json_array_get(live, ret_at[i]). Free them with live_rule_edits_free(). 0 or -ENOMEM.
 */
int live_rule_edits(const json_t *live, struct rule_edit **ret, size_t **ret_at,
		    size_t *ret_count);
void live_rule_edits_free(struct rule_edit *edit, size_t *at, size_t count);

#endif
