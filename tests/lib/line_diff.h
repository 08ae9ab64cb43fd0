/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* line_diff.h - which lines of a text another one lacks. */
#ifndef SLUICE_TESTS_LINE_DIFF_H
#define SLUICE_TESTS_LINE_DIFF_H

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "lib/test.h"
#include "sluice/types.h"

#define LINES_MAX 300

struct lines {
	const char *line[LINES_MAX];
	size_t len[LINES_MAX], count;
};

static inline void lines_of(const char *text, struct lines *ret)
{
	ret->count = 0;
	while (*text) {
		size_t len = strcspn(text, "\n");

		len += text[len] != 0;
		assert_true(ret->count < LINES_MAX);
		ret->line[ret->count] = text;
		ret->len[ret->count++] = len;
		text += len;
	}
}

/* The lines of `a` that are not in the longest sequence of lines that both have. */
static inline char *lines_gone(const char *a, const char *b)
{
	static u16 common[LINES_MAX + 1][LINES_MAX + 1];
	char *gone = calloc(1, strlen(a) + 1);
	struct lines x, y;

	lines_of(a, &x);
	lines_of(b, &y);
#define SAME(i, k) (x.len[i] == y.len[k] && !memcmp(x.line[i], y.line[k], x.len[i]))
	memset(common, 0, sizeof(common));
	for (size_t i = x.count; i-- > 0;)
		for (size_t k = y.count; k-- > 0;) {
			u16 skip = common[i + 1][k] > common[i][k + 1] ? common[i + 1][k]
								       : common[i][k + 1];

			common[i][k] = SAME(i, k) ? common[i + 1][k + 1] + 1 : skip;
		}
	for (size_t i = 0, k = 0; i < x.count;) {
		if (k < y.count && SAME(i, k)) {
			i++;
			k++;
		} else if (k < y.count && common[i][k + 1] >= common[i + 1][k]) {
			k++;
		} else {
			strncat(gone, x.line[i], x.len[i]);
			i++;
		}
	}
	return gone;
}

/* `is_out`: a key that is taken out, and the comment above it with it. */
static inline size_t count_lines(const char *text, bool is_out)
{
	size_t count = 0;

	for (; *text; text = strchr(text, '\n') + 1)
		count += !is_out || text[strspn(text, " ")] != '#';
	return count;
}

#endif
