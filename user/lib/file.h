/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* file.h - replaces files atomically, reads files of state_dir, and creates directories. */
#ifndef SLUICE_FILE_H
#define SLUICE_FILE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "lib/err.h"

/*
 * Puts `size` bytes at `path`: a temporary file beside it, fsync, rename, fsync of the
 * directory. After a crash the old content is there or the new, never half. Where `backup`
 * is not NULL the old file stays under that name. 0, or -errno and err.
 */
int file_replace(const char *path, const char *backup, const void *data, size_t size, mode_t mode,
		 struct sl_err *err);

/* Writes all of it. 0 or -errno. */
int file_write(int fd, const char *data, size_t size);

/* Whether an errno means that the disk is full or not writable. Limits do not depend on it. */
bool file_is_no_room(int code);

/* mkdir -p: creates `path` and its missing parent directories. */
int file_make_dir(const char *path, mode_t mode, struct sl_err *err);
/* The same for the directory that `path` is in. */
int file_make_parent(const char *path, mode_t mode, struct sl_err *err);

/*
 * A file of state_dir: an object whose "version", if there is one, is FILE_VERSION. NULL: there is
 * none, or it is not valid: then it is renamed to NAME.bad and logged with `lost`, the consequence.
 */
#define FILE_VERSION 1
json_t *file_load_json(const char *dir, const char *name, const char *lost);
/* The same for a file that was read but has an invalid content: `why`. */
void file_put_aside(const char *dir, const char *name, const char *why, const char *lost);

/* dir/name into a new string, NULL without memory. */
char *file_join(const char *dir, const char *name);

#endif
