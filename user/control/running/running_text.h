/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* running_text.h - the text of the file's part, its settings, and the files that it may name. */
#ifndef SLUICE_RUNNING_RUNNING_TEXT_H
#define SLUICE_RUNNING_RUNNING_TEXT_H

#include <sys/types.h>

#include "conf/reach.h"
#include "control/running/running.h"

/* Reads a file. `ret` must be cleared afterwards; unchanged on failure. */
int config_text_read_file(const char *path, struct config_text *ret, struct sl_err *err);
/* Makes one from a text that was received. */
int config_text_make(const char *path, const char *text, size_t size, struct config_text *ret,
		     struct sl_err *err);
/* Reads a text of the history; it counts as applied unless it equals the configured file. */
int config_text_restore(const struct running *run, u32 number, const char *path,
			struct config_text *ret, struct sl_err *err);
/* True if it is what the configured file says. */
bool config_text_is_configured(const struct running *run, const struct config_text *source);
/* Notes when, by whom, and whether in the configured file's place it is applied. */
void config_text_note_applied(const struct running *run, struct config_text *source, uid_t uid);
void config_text_clear(struct config_text *source);

int config_text_parse(const struct config_text *source, struct policy **ret, struct sl_err *err);
bool config_text_same(const struct config_text *a, const struct config_text *b);

/* Copies the keys that take effect only at start, for config_text_note_settings(). */
int config_text_keep_settings(const struct policy *file, struct policy **ret);
/* Adds a line to the array `notes` for each such key that differs in `file`. */
void config_text_note_settings(const struct policy *started, const struct policy *file,
			       json_t *notes);

/*
 * Compares the files on disk with what was read of them: the configuration, files of sets and
 * overrides, rule files. Returns an array of {file, why} of those that differ, and of settings that
 * wait for a restart.
 */
json_t *config_text_differing(struct running *run);

/* ---- the files that a peer's text may name: conf/reach.h with those of this daemon ---- */

struct reach_of {
	struct reach reach;
	char *config_dir;
	char **file;
};

/*
 * For a command of `uid` while `running` is in force, whose text errors call `own` (NULL: no text):
 * sets the reach, unless it is root's. Ends with reach_of_end() in any case.
 */
int reach_of_begin(const char *config_path, const char *state_dir, const struct policy *running,
		   uid_t uid, const char *own, struct reach_of *ret, struct sl_err *err);
void reach_of_end(struct reach_of *reach);

/* Logs the sets of which lines of their file were skipped. */
void config_text_log_skipped(const struct policy *file);

/*
 * Keys with one of `flags` (enum key_flag) whose value differs from root's configuration: 0 if
 * none, else -EACCES, and err names the first.
 */
int config_text_check_settings(const struct policy *roots, const struct policy *policy, u32 flags,
			       struct sl_err *err);

#endif
