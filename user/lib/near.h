/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* near.h - the distance of two words, for suggestions: (did you mean "limits"?). */
#ifndef SLUICE_LIB_NEAR_H
#define SLUICE_LIB_NEAR_H

#include <stdbool.h>

#define WORD_MAX 32

/*
 * Insertions, deletions, changes and swaps of neighbors that make one word of the other; WORD_MAX
 * if one is longer than that.
 */
unsigned int word_distance(const char *a, const char *b);
/* True if the two differ by little: a slip of the finger. */
bool word_is_near(const char *word, const char *name);

#endif
