/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* running_text.h - the text of the file's part: reading it, keeping it, and its settings. */
#ifndef SLUICE_RUNNING_RUNNING_TEXT_H
#define SLUICE_RUNNING_RUNNING_TEXT_H

#include "control/running/running.h"

/* Of a file as it is now. `ret` is to be cleared; untouched on failure. */
int config_text_read_file(const char *path, struct config_text *ret, struct sl_err *err);
/* Of a text from elsewhere. */
int config_text_make(const char *path, const char *text, size_t size, struct config_text *ret,
		     struct sl_err *err);
/* A text that history has, to stand in the configured file's place unless it is just that. */
int config_text_restore(const struct running *run, u32 number, const char *path,
			struct config_text *ret, struct sl_err *err);
void config_text_clear(struct config_text *source);

int config_text_parse(const struct config_text *source, struct policy **ret, struct sl_err *err);
bool config_text_same(const struct config_text *a, const struct config_text *b);

/* Copies of the keys that count only at start: what `file` is compared with from then on. */
int config_text_keep_settings(const struct policy *file, struct policy **ret);
/* A line for each such key that `file` has otherwise than `started`, into the array `notes`. */
void config_text_note_settings(const struct policy *started, const struct policy *file,
			       json_t *notes);

#endif
