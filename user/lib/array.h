/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* array.h - arrays that grow one element at a time; their capacity follows from their count. */
#ifndef SLUICE_LIB_ARRAY_H
#define SLUICE_LIB_ARRAY_H

#include <errno.h>
#include <stddef.h>
#include <string.h>

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

/*
 * `array` with room for count + 1 elements, or NULL (and `array` is unchanged). The capacity is the
 * next power of two, at least 4: all arrays of a policy grow and are copied here.
 */
void *array_grow(void *array, size_t count, size_t size);
/* A copy of `count` elements; NULL for none, and *rc is -ENOMEM if there is no memory. */
void *array_copy(const void *array, size_t count, size_t size, int *rc);

/* Appends one value; 0 or -ENOMEM. */
#define append(array, count, ...)                                                                  \
	({                                                                                         \
		void *grown_ = array_grow((array), (count), sizeof(*(array)));                     \
                                                                                                   \
		if (grown_) {                                                                      \
			(array) = grown_;                                                          \
			(array)[(count)++] = (__VA_ARGS__);                                        \
		}                                                                                  \
		grown_ ? 0 : -ENOMEM;                                                              \
	})

/* The same before the element at `at`. */
#define insert_at(array, count, at, ...)                                                           \
	({                                                                                         \
		int failed_ = append(array, count, __VA_ARGS__);                                   \
                                                                                                   \
		if (!failed_) {                                                                    \
			memmove(&(array)[(at) + 1], &(array)[at],                                  \
				((count)-1 - (at)) * sizeof(*(array)));                            \
			(array)[at] = (__VA_ARGS__);                                               \
		}                                                                                  \
		failed_;                                                                           \
	})

#define remove_at(array, count, at)                                                                \
	memmove(&(array)[at], &(array)[(at) + 1], (--(count) - (at)) * sizeof(*(array)))

#endif
