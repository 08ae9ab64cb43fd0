/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* emit.h - nodes of a tree as YAML text, for text_edit.c. */
#ifndef SLUICE_EMIT_H
#define SLUICE_EMIT_H

#include <stdio.h>

#include "conf/tree.h"

enum emit_quotes {
	EMIT_AS_NEEDED,
	EMIT_SINGLE,
	EMIT_DOUBLE,
};

/* Text without quotes in the file is written without quotes. `flow`: within brackets. */
void emit_text(FILE *out, const struct yaml_node *node, bool flow, enum emit_quotes quotes);
/* Any node on one line, lists and mappings in brackets. */
void emit_flow(FILE *out, const struct yaml_node *node);
/*
 * The text after "KEY:" or "-" in column `column`, whose parent is indented by `indent` bytes: on
 * the same line if it fits, else one line for each item.
 */
void emit_value(FILE *out, const struct yaml_node *node, size_t indent, size_t column);
/* A mapping's keys or a list's items, one line each; the last one without a line break. */
void emit_block(FILE *out, const struct yaml_node *node, size_t indent);
bool emit_fits(const struct yaml_node *node, size_t column);

#endif
