/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* near.h - the edit distance of two names, for suggestions: (did you mean "limits"?). */
#ifndef SLUICE_LIB_NEAR_H
#define SLUICE_LIB_NEAR_H

#include <stdbool.h>

#define WORD_MAX 32

/*
 * The number of insertions, deletions, replacements and swaps of neighbors that turn one name into
 * the other; WORD_MAX if one is longer than that.
 */
unsigned int word_distance(const char *a, const char *b);
/* True if the two differ by a typing error only. */
bool word_is_near(const char *word, const char *name);

#endif
