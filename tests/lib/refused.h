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
	const char *text;
	int line, column;
	const char *words;
};

/* `rc` and `err` are the results of reading it. */
static inline void assert_refused(const struct bad *bad, int rc, const struct sl_err *err)
{
	char gave[1024];

	if (!rc)
		fail_msg("accepted: %.300s", bad->text);
	sl_err_format(err, gave, sizeof(gave));
	if (err->line != bad->line || err->column != bad->column ||
	    !strstr(err->message, bad->words))
		fail_msg("%.300s\n  gave   %s\n  wanted %d:%d: ...%s", bad->text, gave, bad->line,
			 bad->column, bad->words);
}

#endif
