/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* check_rule.h - shared by check.c and check_rule.c. */
#ifndef SLUICE_CLI_CHECK_RULE_H
#define SLUICE_CLI_CHECK_RULE_H

#include "cli/cli.h"
#include "lib/err.h"
#include "config/policy.h"

/*
 * Loads what http.rules names, appending to `notes` what is worth knowing. 0 also where there is
 * no HTTP tier.
 */
int check_rules(const struct policy *policy, u32 *ret_rules, json_t *notes, struct sl_err *err);

/* An error of a file, as text or JSON; returns the exit code. */
int check_print_bad(const struct cli *cli, const struct sl_err *err);

#endif
