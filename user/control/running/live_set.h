/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * live_set.h - live changes of sets: "set add", "set del" and "set replace".
 *
 * Of a set the list keeps either what it was replaced by, or what was added to the file's and
 * what was taken out of it: however often it changes, that is at most two operations.
 */
#ifndef SLUICE_RUNNING_LIVE_SET_H
#define SLUICE_RUNNING_LIVE_SET_H

#include "control/running/live.h"

/* As live_apply(). What is to be taken out and is not there is no error unless all of it is. */
int live_set_apply(const json_t *op, struct policy *policy, struct sl_err *err);

/* As live_add(). */
int live_set_add(json_t *live, json_t *op, const struct policy *file);

/* An object with a member for each of a set's prefixes, in its canonical text. */
json_t *live_set_members(const struct set_def *set);

#endif
