/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* config_text.h - checks of text: the characters accepted in a configuration and its values. */
#ifndef SLUICE_CONFIG_TEXT_H
#define SLUICE_CONFIG_TEXT_H

#include <stdbool.h>
#include <stddef.h>

#include "lib/err.h"
#include "lib/visible.h"
#include "sluice/abi.h"

/* Longer files are refused: 64 MiB is two million prefixes. */
#define CONFIG_TEXT_SIZE_MAX (64UL << 20)

/* 0, or -EINVAL with the position of the first byte that is not UTF-8 text in `err`. */
int config_text_check(const char *file, const char *text, size_t size, struct sl_err *err);

/*
 * Whether a value prints on one line and can be written back as YAML: UTF-8, no control
 * characters, none that is a line break or a byte order mark in YAML.
 */
bool config_text_printable(const char *text, size_t size);

/* The length of a text truncated to at most that many bytes, not within a character. */
size_t config_text_cut(const char *text, size_t most);

/*
 * Reads a whole file. 0 with *ret to be freed (0-terminated), or -errno. `regular`: refuse devices,
 * pipes and directories, which could block the reader or never end.
 */
int config_text_read(const char *path, bool regular, char **ret, size_t *ret_size,
		     struct sl_err *err);
/* A digest of a text, the same in this process alone: shows whether a file still has it. */
u64 config_text_digest(const char *text, size_t size);
/*
 * Reads a regular file of UTF-8 text, and calls `take` for each line, 0-terminated (it may change
 * the line), until a call does not return 0. *ret_digest is the file's. Returns the last result, or
 * -errno.
 */
int config_text_lines(const char *path, int (*take)(void *arg, char *line, int number), void *arg,
		      u64 *ret_digest, struct sl_err *err);
/* `name`, relative to the file that has it. To be freed; NULL: out of memory. */
char *config_text_beside(const char *file, const char *name);

#endif
