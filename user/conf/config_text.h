/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* config_text.h - is it text? What a configuration and its values may be made of. */
#ifndef SLUICE_CONFIG_TEXT_H
#define SLUICE_CONFIG_TEXT_H

#include <stdbool.h>
#include <stddef.h>

#include "lib/err.h"

/* A file that is longer is refused: 64 MiB is two million prefixes. */
#define CONFIG_TEXT_SIZE_MAX (64UL << 20)

/* 0, or -EINVAL with the place of the first byte that is no UTF-8 text in `err`. */
int config_text_check(const char *file, const char *text, size_t size, struct sl_err *err);

/*
 * Whether a value prints on one line and can be written back as YAML: UTF-8, no control
 * characters, none that YAML takes for a line break or a byte order mark.
 */
bool config_text_printable(const char *text, size_t size);

/* The length of a text where it is cut to at most that many bytes, not within a character. */
size_t config_text_cut(const char *text, size_t most);

/*
 * Reads a whole file. 0 with *ret to be freed (0-terminated), or -errno. `regular`: refuse devices,
 * pipes and directories, which could block the reader or never end.
 */
int config_text_read(const char *path, bool regular, char **ret, size_t *ret_size,
		     struct sl_err *err);

#endif
