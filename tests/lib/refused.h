/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * refused.h - texts that are refused: each with the place of the error, which is exact since
 * editors jump to it, and a part of its message.
 */
#ifndef SLUICE_TESTS_REFUSED_H
#define SLUICE_TESTS_REFUSED_H

#include <string.h>

#include "lib/err.h"

struct bad {
	const char *text; /* '^' marks the place; without one the error has none */
	const char *words;
};

/* A text without its mark, and where that was. */
struct unmarked {
	char text[1024];
	size_t size;
	int line, column;
};

static inline struct unmarked unmark(const char *text, size_t size)
{
	struct unmarked ret = { .size = 0 };

	assert_true(size < sizeof(ret.text));
	for (int line = 1, column = 1; size; text++, size--) {
		if (*text == '^') {
			ret.line = line;
			ret.column = column;
			continue;
		}
		ret.text[ret.size++] = *text;
		column = *text == '\n' ? 1 : column + 1;
		line += *text == '\n';
	}
	return ret;
}

/* `rc` and `err` are the results of reading `text`. */
static inline void assert_error(const char *text, int line, int column, const char *words, int rc,
				const struct sl_err *err)
{
	char gave[1024];

	if (!rc)
		fail_msg("accepted: %.300s", text);
	sl_err_format(err, gave, sizeof(gave));
	if (err->line != line || err->column != column || !strstr(err->message, words))
		fail_msg("%.300s\n  gave   %s\n  wanted %d:%d: ...%s", text, gave, line, column,
			 words);
}

/* `rc` and `err` are the results of reading what unmark() gave. */
static inline void assert_refused(const struct bad *bad, int rc, const struct sl_err *err)
{
	struct unmarked text = unmark(bad->text, strlen(bad->text));

	assert_error(text.text, text.line, text.column, bad->words, rc, err);
}

#endif
