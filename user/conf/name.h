/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* name.h - the names of an enumeration's values: one table for reading and writing. */
#ifndef SLUICE_CONF_NAME_H
#define SLUICE_CONF_NAME_H

#include <stddef.h>

#define IDENTIFIER_CHARACTERS "abcdefghijklmnopqrstuvwxyz0123456789-"

struct name {
	const char *name; /* NULL ends a table */
	int value;
};

/* The entry, or NULL. */
const struct name *name_find(const struct name *names, const char *text);
/* The first name of a value, or NULL. */
const char *name_of(const struct name *names, int value);
/* The accepted ones as "a, b, c"; returns buf. */
const char *name_list(const struct name *names, char *buf, size_t size);

#endif
