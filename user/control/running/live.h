/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * live.h - live changes: a list of operations, applied to the file's policy in order.
 *
 * An operation is a JSON object, kept as it is in state_dir/live.json:
 *
 *     {"op": "limit set", "name": N, "pairs": ["rate=10 packets/s", ...], WHO}
 *     {"op": "limit add", "name": N, "yaml": TEXT, WHO}     {"op": "limit del", "name": N, WHO}
 *     {"op": "block add", "prefix": P, "until_utc_ns": T, "reason": TEXT, WHO}
 *     {"op": "block del", "prefix": P, WHO}                 and "exempt add", "exempt del"
 *     {"op": "set add", "name": N, "prefixes": [P, ...], WHO}   and "set del", "set replace"
 *     {"op": "override set", "name": N, "prefix": P, "pairs": ["rate=...", "burst=..."], WHO}
 *     {"op": "override del", "name": N, "prefix": P, WHO}
 *     "rule set", "user set" and related ones: live_rule.h
 *     {"op": "attach", "interface": I, "mode": M, WHO}      {"op": "detach", "interface": I, WHO}
 *
 * WHO is "when" (UTC), "uid" and "pid". P may be "@set". The list stays short: live_add() removes
 * operations that a later one overrides.
 */
#ifndef SLUICE_RUNNING_LIVE_H
#define SLUICE_RUNNING_LIVE_H

#include <jansson.h>

#include "config/policy.h"

/* A member of an operation; "" if it has none. */
const char *op_text(const json_t *op, const char *key);
/* Pairs of an earlier operation whose keys `op` does not have are put before its own. 0 or -ENOMEM. */
int op_merge_pairs(json_t *op, const json_t *before);

/* Applies one operation to a policy: completely, or not at all and err. */
int live_apply(const json_t *op, struct policy *policy, struct sl_err *err);

/*
 * Applies all of them. Operations that no longer apply are removed from the list, logged, and
 * described in the array `dropped` (may be NULL); expired blocks and exemptions are removed without
 * a message.
 */
void live_replay(json_t *live, struct policy *policy, u64 now_utc_ns, json_t *dropped);

/*
 * Appends an operation that has been applied, and removes those that it overrides: a set of the
 * same key, operations on a limit that is now deleted, and so on. An operation whose effect the
 * file alone has is not kept. `op` is not changed; the list takes its own reference.
 */
int live_add(json_t *live, json_t *op, const struct policy *file);

/* Removes expired operations; returns their number. */
size_t live_expire(json_t *live, u64 now_utc_ns);

/* One line for people: "limit set web rate=10 packets/s". */
void live_describe(const json_t *op, char *buf, size_t size);

/* True if each operation is an object whose members have the right types. */
bool live_well_formed(const json_t *changes);

/*
 * state_dir/live.json: the list ("changes"), and the object `record` of rules_start.c, in the same
 * file since the two change together. A missing file is an empty list. A damaged one is renamed to
 * live.json.bad and logged: starting without limits would be worse than without live changes.
 */
int live_load(const char *state_dir, json_t **ret_live, json_t **ret_record,
	      struct sl_err *err);
int live_store(const char *state_dir, const json_t *live, const json_t *record,
	       struct sl_err *err);

#endif
