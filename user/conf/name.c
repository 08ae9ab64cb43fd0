// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* name.c - see name.h. */
#include "conf/name.h"

#include <stdio.h>
#include <string.h>

const struct name *name_find(const struct name *names, const char *text)
{
	for (; names->name; names++)
		if (!strcmp(names->name, text))
			return names;
	return NULL;
}

const char *name_of(const struct name *names, int value)
{
	for (; names->name; names++)
		if (names->value == value)
			return names->name;
	return NULL;
}

const char *name_list(const struct name *names, char *buf, size_t size)
{
	size_t used = 0;

	buf[0] = 0;
	for (; names->name && used < size; names++)
		used += snprintf(buf + used, size - used, "%s%s", used ? ", " : "", names->name);
	return buf;
}
