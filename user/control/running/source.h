/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* source.h - the text of the file's part: reading it, keeping it, and its settings. */
#ifndef SLUICE_DAEMON_SOURCE_H
#define SLUICE_DAEMON_SOURCE_H

#include "daemon/daemon.h"

/* Of a file as it is now. `ret` is to be cleared; untouched on failure. */
int source_read(const char *path, struct source *ret, struct sl_err *err);
/* Of a text from elsewhere. */
int source_make(const char *path, const char *text, size_t size, struct source *ret,
		struct sl_err *err);
/* A text that history has, to stand in the configured file's place unless it is just that. */
int source_recall(const struct daemon *d, u32 number, const char *path, struct source *ret,
		  struct sl_err *err);
void source_clear(struct source *source);

int source_parse(const struct source *source, struct policy **ret, struct sl_err *err);
bool source_same_text(const struct source *a, const struct source *b);

/* Copies of the keys that count only at start: what `file` is compared with from then on. */
int source_keep_settings(const struct policy *file, struct policy **ret);
/* A line for each such key that `file` has otherwise than `started`, into the array `notes`. */
void source_note_settings(const struct policy *started, const struct policy *file,
			  json_t *notes);

#endif
