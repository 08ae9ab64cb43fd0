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
 *     {"op": "attach", "interface": I, "mode": M, WHO}      {"op": "detach", "interface": I, WHO}
 *
 * and of the HTTP tier's rules. These change no policy: http_rules.c applies them to the rule files
 * when it reads these. A "user unset" with "forget" only removes an earlier change of the value.
 *
 *     {"op": "rule set", "name": "DOMAIN/PATH", "pairs": [...], WHO}
 *     {"op": "user set", "name": "DOMAIN/PATH", "value": V, "pairs": [...], "until_utc_ns": T, WHO}
 *     {"op": "user block", "name": "DOMAIN/PATH", "value": V, "until_utc_ns": T, WHO}
 *     and "user exempt"; {"op": "user unset", "name": "DOMAIN/PATH", "value": V, "forget": B, WHO}
 *
 * WHO is "when" (UTC), "uid" and "pid". P may be "@set". The list holds what differs from the file:
 * live_add() compares.
 */
#ifndef SLUICE_RUNNING_LIVE_H
#define SLUICE_RUNNING_LIVE_H

#include <jansson.h>

#include "config/policy.h"

/* What operations change. */
enum live_subject {
	LIVE_LIMIT,
	LIVE_OVERRIDE,
	LIVE_BLOCK,
	LIVE_EXEMPT,
	LIVE_SET,
	LIVE_INTERFACE,
	LIVE_RULE,
	LIVE_USER,
};

/* A row of live.c for each "op". */
struct live_kind {
	const char *op;
	enum live_subject subject;
	const char *member[2]; /* which of the subjects; the second may be NULL */
	int (*apply)(const json_t *op, struct policy *policy, struct sl_err *err);
};

/* NULL: an operation of another version of sluice. */
const struct live_kind *live_kind_of(const json_t *op);
/* True if it is one of the HTTP tier's rules. */
bool live_is_rule(const json_t *op);
/* A member's text, "" without it. */
const char *live_text(const json_t *op, const char *member);
/* Its pairs as an array to be freed, of texts that belong to it. 0 or -errno and err. */
int live_pairs(const json_t *op, char ***ret, size_t *ret_count, struct sl_err *err);

/* Applies one operation to a policy: completely, or not at all and err. */
int live_apply(const json_t *op, struct policy *policy, struct sl_err *err);

/*
 * Applies all of them. Operations that no longer apply are removed from the list, logged, and
 * described in the array `dropped` (may be NULL); expired blocks and exemptions are removed without
 * a message.
 */
void live_replay(json_t *live, struct policy *policy, u64 now_utc_ns, json_t *dropped);

/* One line for people: "limit set web rate=10 packets/s". */
void live_describe(const json_t *op, char *buf, size_t size);

/* ---- live_list.c: the list ---- */

/*
 * Adds an operation that has been applied to `running`. Of each limit, source, prefix and set the
 * list keeps what makes `file` equal `running`: two operations, or a few more where others between
 * them depend on the first; nothing where they are equal. `op` is not changed; the list may take a
 * reference.
 */
int live_add(json_t *live, json_t *op, const struct policy *file, const struct policy *running);

/* The changes to the HTTP tier's rules, as a new array: all, or those with or without a
 * deadline. */
enum live_term { LIVE_ANY_TERM, LIVE_TIMED, LIVE_LASTING };
json_t *live_rules(const json_t *live, enum live_term term);

/* Those of one rule: of its keys (LIVE_RULE), or of its values (LIVE_USER). */
json_t *live_rules_of(const json_t *live, const char *name, enum live_subject subject);

/* Whether its deadline has passed; live_expire() removes such, and returns their number. */
bool live_expired(const json_t *op, u64 now_utc_ns);
size_t live_expire(json_t *live, u64 now_utc_ns);

/* An object with a member for each of a set's prefixes, in its canonical text. */
json_t *live_set_members(const struct set_def *set);

/* True if each operation is an object whose members have the right types. */
bool live_well_formed(const json_t *changes);

/*
 * state_dir/live.json: the list ("changes"), and the object `record` of rules_start.c, in the same
 * file since the two change together. A missing file is an empty list. A damaged one is renamed to
 * live.json.bad and logged: starting without limits would be worse than without live changes.
 */
int live_load(const char *state_dir, json_t **ret_live, json_t **ret_record, struct sl_err *err);
int live_store(const char *state_dir, const json_t *live, const json_t *record, struct sl_err *err);

#endif
