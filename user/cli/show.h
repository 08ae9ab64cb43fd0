/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* show.h - prints a result by the parts of its command's row (command/command.h). */
#ifndef SLUICE_CLI_SHOW_H
#define SLUICE_CLI_SHOW_H

#include <jansson.h>

#include "command/command.h"

/* `width` is that of the terminal, 0 without a limit. */
void show_parts(const struct show_part *part, const json_t *result, int width);

/*
 * The width that text has to fit: $COLUMNS, else that of the terminal; 0 if the output is no
 * terminal, so that a program reads it whole.
 */
int show_width(void);

/*
 * The following text in a color ("31") until NULL ends it: where standard output is a terminal,
 * TERM is not dumb and NO_COLOR is not set.
 */
void show_color(const char *code);

#endif
