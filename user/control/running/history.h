/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * history.h - state_dir/history: the last states, for rollback.
 *
 *     text-N.yaml	the text of a file that was in force; states with the same text share it
 *     state-N.json	{"text": N, "path": P, "at_utc_ns": T, "uid": U, "changes": [live changes],
 *			 "undoes": {"what": WORDS, "when": UTC, "uid": U, "pid": P}}
 *
 * State N is what was in force before a change, "undoes" is that change. "top" in live.json names
 * the newest state and is authoritative: a state is written before its change, and outlives it for
 * a moment after a rollback, so that live.json names existing states at every moment. Files are
 * replaced whole and synced.
 */
#ifndef SLUICE_RUNNING_HISTORY_H
#define SLUICE_RUNNING_HISTORY_H

#include <jansson.h>
#include <stdbool.h>

#include "lib/err.h"
#include "sluice/types.h"

#define HISTORY_MAX 10

/* Writes a text, or finds the same one; *ret_number identifies it. */
int history_text_keep(const char *state_dir, const char *text, size_t size, u32 *ret_number,
		      struct sl_err *err);
int history_text_read(const char *state_dir, u32 number, char **ret, size_t *ret_size,
		      struct sl_err *err);

int history_state_write(const char *state_dir, u32 number, const json_t *state, struct sl_err *err);
/* -ENOENT if there is no such state, or none that can be parsed. */
int history_state_read(const char *state_dir, u32 number, json_t **ret, struct sl_err *err);

/*
 * Removes states that are not among the HISTORY_MAX up to `top`; with `texts` also the texts that
 * neither the remaining states nor `number` refer to.
 */
void history_tidy(const char *state_dir, u32 top, bool texts, u32 number);

#endif
