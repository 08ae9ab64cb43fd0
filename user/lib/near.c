// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* near.c - see near.h. */
#include "lib/near.h"

#include <string.h>

unsigned int word_distance(const char *a, const char *b)
{
	size_t n = strlen(a), m = strlen(b);
	unsigned int d[WORD_MAX + 1][WORD_MAX + 1];

	if (n > WORD_MAX || m > WORD_MAX)
		return WORD_MAX;
	for (size_t i = 0; i <= n; i++) {
		for (size_t k = 0; k <= m; k++) {
			unsigned int least;

			if (!i || !k) {
				d[i][k] = (unsigned int)(i + k);
				continue;
			}
			least = d[i - 1][k - 1] + (a[i - 1] != b[k - 1]);
			if (d[i - 1][k] + 1 < least)
				least = d[i - 1][k] + 1;
			if (d[i][k - 1] + 1 < least)
				least = d[i][k - 1] + 1;
			if (i > 1 && k > 1 && a[i - 1] == b[k - 2] && a[i - 2] == b[k - 1] &&
			    d[i - 2][k - 2] + 1 < least)
				least = d[i - 2][k - 2] + 1;
			d[i][k] = least;
		}
	}
	return d[n][m];
}

bool word_is_near(const char *word, const char *name)
{
	size_t length = strlen(name);

	return word_distance(word, name) <= (length < 4 ? 1 : length < 9 ? 2 : 3);
}
