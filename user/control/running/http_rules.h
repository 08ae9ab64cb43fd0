/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * http_rules.h - the HTTP tier's rules in force: the files of http.rules, and the live changes
 * of run->live on top.
 */
#ifndef SLUICE_RUNNING_HTTP_RULES_H
#define SLUICE_RUNNING_HTTP_RULES_H

#include "control/running/running.h"

struct ruleset;

/*
 * Reads the files with the changes of `live`. One that does not apply is taken out of `live`,
 * logged, and told in words in `dropped` (may be NULL); but where the last of them is to apply,
 * `must`, it is an error.
 */
int http_rules_build(struct running *run, json_t *live, bool must, json_t *dropped,
		     struct ruleset **ret, struct sl_err *err);

/* The same where `live` has other changes to rules than are in force; else *ret is NULL. */
int http_rules_prepare(struct running *run, json_t *live, bool must, json_t *dropped,
		       struct ruleset **ret, struct sl_err *err);

/* Puts a set in force, which is the daemon's then; `live` is what it was made with. */
void http_rules_put(struct running *run, struct ruleset *set, const json_t *live);

/* run->live is another one: where it can't be followed, the rules before go on, and it is logged. */
void http_rules_follow(struct running *run);

/* Whether a change to rules has ended by now. */
bool http_rules_expired(const struct running *run, u64 now_utc_ns);

/*
 * Writes the changes of run->live, but those that end by themselves, into the files where their
 * rules stand: each whole or not at all, the one before as FILE.bak.
 */
int http_rules_save(struct running *run, size_t *ret_files, struct sl_err *err);

#endif
