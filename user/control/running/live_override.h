/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * live_override.h - live changes of overrides: "override set" and "override del".
 *
 * Of each source of a limit the list keeps the last one. Whether an override fits depends on
 * the limit's rates, so neither is moved over a "limit set" of its limit.
 */
#ifndef SLUICE_RUNNING_LIVE_OVERRIDE_H
#define SLUICE_RUNNING_LIVE_OVERRIDE_H

#include <jansson.h>

#include "config/policy.h"

bool live_override_is(const json_t *op);
/* As live_apply(). */
int live_override_apply(const json_t *op, struct policy *policy, struct sl_err *err);
/* As live_add(). */
int live_override_add(json_t *live, json_t *op, const struct policy *file);
/* Whether `op` is of the limit `name`. */
bool live_override_of(const json_t *op, const char *name);

#endif
