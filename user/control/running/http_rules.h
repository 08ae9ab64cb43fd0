/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * http_rules.h - the HTTP tier's rules in force: the files of http.rules with the live changes of
 * run->live.
 */
#ifndef SLUICE_RUNNING_HTTP_RULES_H
#define SLUICE_RUNNING_HTTP_RULES_H

#include "control/running/running.h"

struct ruleset;

/*
 * Reads the files and applies the changes of `live`. A change that does not apply is removed from
 * `live`, logged, and described in `dropped` (may be NULL); with `must`, if the last one does not
 * apply, that is an error.
 */
int http_rules_build(struct running *run, json_t *live, bool must, json_t *dropped,
		     struct ruleset **ret, struct sl_err *err);

/* The same if `live` and the rules in force differ in their changes; else *ret is NULL. */
int http_rules_prepare(struct running *run, json_t *live, bool must, json_t *dropped,
		       struct ruleset **ret, struct sl_err *err);

/* Puts a set in force and takes ownership of it; `live` is the list that it was made with. */
void http_rules_put(struct running *run, struct ruleset *set, const json_t *live);

/* Applies a replaced run->live; on failure logs and keeps the previous rules. */
void http_rules_follow(struct running *run);

/*
 * An operation of a rule or of one value, in the rules in force: see ruleset_edit_rule() and
 * ruleset_edit_value(). 0; 1 and nothing done where the files must be read. Once run->live has it:
 * http_rules_noted(); if it never will: http_rules_again(), which reads them.
 */
int http_rules_change(struct running *run, json_t *op);
void http_rules_noted(struct running *run);
void http_rules_again(struct running *run);

/* True if a timed change to rules has expired; http_rules_expire() once run->live has these no
 * longer. */
bool http_rules_expired(const struct running *run, u64 now_utc_ns);
void http_rules_expire(struct running *run, u64 now_utc_ns);

/*
 * Writes the permanent changes of run->live into the files of their rules. Each file is replaced
 * whole or not at all; the previous one is kept as FILE.bak.
 */
int http_rules_save(struct running *run, size_t *ret_files, struct sl_err *err);

#endif
