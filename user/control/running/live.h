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
 *     "rule set", "user set" and its kin: live_rule.h
 *     {"op": "attach", "interface": I, "mode": M, WHO}      {"op": "detach", "interface": I, WHO}
 *
 * WHO is "when" (UTC), "uid" and "pid". P may be "@set". The list stays short by itself:
 * whatever a later operation makes void is taken out (live_add).
 */
#ifndef SLUICE_RUNNING_LIVE_H
#define SLUICE_RUNNING_LIVE_H

#include <jansson.h>

#include "config/policy.h"

/* Does one operation to a policy: all of it, or nothing and err. */
int live_apply(const json_t *op, struct policy *policy, struct sl_err *err);

/*
 * Does all of them. Those that no longer apply are taken out of the list, logged, and told in
 * words in the array `dropped` (NULL: not wanted); blocks and exemptions whose time has passed
 * are taken out in silence.
 */
void live_replay(json_t *live, struct policy *policy, u64 now_utc_ns, json_t *dropped);

/*
 * Appends an operation that has been applied, taking out what it makes void: a set of the
 * same key, whatever was done before to a limit now deleted, and so on. What the file says
 * anyway is not kept. `op` is not changed; the list takes a reference of its own.
 */
int live_add(json_t *live, json_t *op, const struct policy *file);

/* Takes out what has expired; returns how many. */
size_t live_expire(json_t *live, u64 now_utc_ns);

/* One line for people: "limit set web rate=10 packets/s". */
void live_describe(const json_t *op, char *buf, size_t size);

/* Only what live.c can walk without looking twice: objects with their members' types. */
bool live_well_formed(const json_t *changes);

/*
 * state_dir/live.json: the list ("changes"), and in the same file, since the two change
 * together, what rules_start.c notes beside it: an object `record`. A missing file is an empty
 * list. A broken one is put aside as live.json.bad and logged: without limits at all would be
 * worse than without its changes.
 */
int live_load(const char *state_dir, json_t **ret_live, json_t **ret_record,
	      struct sl_err *err);
int live_store(const char *state_dir, const json_t *live, const json_t *record,
	       struct sl_err *err);

#endif
