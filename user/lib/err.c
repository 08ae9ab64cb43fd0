// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* err.c - see err.h. Long messages are truncated: an error must not fail. */
#include "lib/err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

static void err_fill(struct sl_err *err, const char *file, int line, int column, const char *format,
		     va_list args)
{
	snprintf(err->file, sizeof(err->file), "%s", file ? file : "");
	err->line = line;
	err->column = column;
	vsnprintf(err->message, sizeof(err->message), format, args);
}

int sl_err_set(struct sl_err *err, int code, const char *format, ...)
{
	va_list args;

	if (err) {
		va_start(args, format);
		err_fill(err, "", 0, 0, format, args);
		va_end(args);
	}
	return -code;
}

int sl_err_at(struct sl_err *err, int code, const char *file, int line, int column,
	      const char *format, ...)
{
	va_list args;

	if (err) {
		va_start(args, format);
		err_fill(err, file, line, column, format, args);
		va_end(args);
	}
	return -code;
}

int sl_err_no_memory(struct sl_err *err)
{
	return sl_err_set(err, ENOMEM, "out of memory");
}

const char *sl_err_format(const struct sl_err *err, char *buf, size_t size)
{
	if (!err->file[0])
		snprintf(buf, size, "%s", err->message);
	else if (!err->line)
		snprintf(buf, size, "%s: %s", err->file, err->message);
	else
		snprintf(buf, size, "%s:%d:%d: %s", err->file, err->line, err->column,
			 err->message);
	return buf;
}
