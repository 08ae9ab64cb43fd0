/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * sized.h - structs of a program that was compiled with another version of sluice.h. Each begins
 * with its size. A shorter one lacks fields, which are 0. A longer one has fields that this library
 * does not know: they must be 0, since what they ask for would not be done. (As struct clone_args
 * of clone3(2).)
 *
 *     struct sluice_config config;
 *     err = sized_read(&config, sizeof(config), SIZED_TO(struct sluice_config, reserved), theirs);
 */
#ifndef SLUICE_CLIENT_SIZED_H
#define SLUICE_CLIENT_SIZED_H

#include <errno.h>
#include <stddef.h>
#include <string.h>

/* The least size of a struct: up to the last field of its first version. */
#define SIZED_TO(type, field) (offsetof(type, field) + sizeof(((type *)0)->field))
/* A larger size was never set: it is rubbish from the stack. */
#define SIZED_MAX 4096

static inline size_t sized_of(const void *theirs)
{
	size_t size;

	memcpy(&size, theirs, sizeof(size));
	return size;
}

/* 0; -EINVAL: too small; -E2BIG: it has more than is known, and not 0. `to` is then undefined. */
static inline int sized_read(void *to, size_t known, size_t least, const void *theirs)
{
	const unsigned char *bytes = theirs;
	size_t size = sized_of(theirs);

	if (size < least || size > SIZED_MAX)
		return -EINVAL;
	for (size_t i = known; i < size; i++)
		if (bytes[i])
			return -E2BIG;
	memset(to, 0, known);
	memcpy(to, theirs, size < known ? size : known);
	return 0;
}

/* The other way: as much of `from` as `theirs` has room for, and 0 in fields that are not known
 * here. */
static inline int sized_write(void *theirs, const void *from, size_t known, size_t least)
{
	size_t size = sized_of(theirs), at = sizeof(size);

	if (size < least || size > SIZED_MAX)
		return -EINVAL;
	memset((char *)theirs + at, 0, size - at);
	memcpy((char *)theirs + at, (const char *)from + at, (size < known ? size : known) - at);
	return 0;
}

/* An element of an array, whose stride is the size of the first one. */
static inline const void *sized_at(const void *array, size_t index)
{
	return (const char *)array + index * sized_of(array);
}

#endif
