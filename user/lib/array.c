// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* array.c - see array.h. */
#include "lib/array.h"

#include <stdlib.h>
#include <string.h>

/* The capacity of an array of `count` elements, which follows from the count alone. */
static size_t array_room(size_t count)
{
	if (count <= 4)
		return count ? 4 : 0;
	return (size_t)1 << (64 - __builtin_clzl(count - 1));
}

void *array_grow(void *array, size_t count, size_t size)
{
	if (array_room(count) == array_room(count + 1))
		return array;
	return reallocarray(array, array_room(count + 1), size);
}

void *array_copy(const void *from, size_t count, size_t size, int *rc)
{
	void *copy;

	if (!count || *rc)
		return NULL;
	copy = reallocarray(NULL, array_room(count), size);
	if (!copy)
		*rc = -ENOMEM;
	else
		memcpy(copy, from, count * size);
	return copy;
}
