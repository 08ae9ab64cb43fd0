/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* expand.h - texts with fields (command/command.h) and the forms of their values. */
#ifndef SLUICE_CLI_EXPAND_H
#define SLUICE_CLI_EXPAND_H

#include <jansson.h>
#include <stdbool.h>

/* Where fields are looked up: in the item, then in the one around it, of "a/b". */
struct scope {
	const json_t *item;
	const char *key; /* of the item, in an object */
	const struct scope *outer;
	bool brief;    /* numbers are short */
	bool first;    /* of the items of an array, of "a/b" of b */
	bool verbatim; /* YAML: newlines and backslashes stay */
	bool optional; /* in braces: a field may be missing */
};

/* The text with its fields, which are made visible; the caller frees it. Out of memory, the program
 * exits. */
char *expanded(const struct scope *scope, const char *text);
/* The member at "a.b" of `length` characters, or NULL. */
const json_t *scope_find(const struct scope *scope, const char *path, size_t length);
/* False for what is missing, null, false, "" or []. */
bool is_there(const json_t *value);

#endif
