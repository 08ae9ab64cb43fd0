// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * log.c - see log.h. A line is one write(), so that lines of several threads and of the
 * journal do not mix. Control characters become '?': logged text may come from a client,
 * which must not be able to begin a new line.
 */
#include "lib/log.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *log_program = "sluice";
static enum log_level log_most = LOG_LEVEL_INFO;
static bool log_journal;

/* $JOURNAL_STREAM is inherited: stderr is the journal only if it is that file. */
static bool stderr_is_journal(void)
{
	const char *stream = getenv("JOURNAL_STREAM");
	unsigned long long dev, ino;
	struct stat st;

	return stream && sscanf(stream, "%llu:%llu", &dev, &ino) == 2 &&
	       !fstat(STDERR_FILENO, &st) && st.st_dev == dev && st.st_ino == ino;
}

void log_open(const char *program, enum log_level most)
{
	log_program = program;
	log_most = most;
	log_journal = stderr_is_journal();
}

static const char *level_word(enum log_level level)
{
	switch (level) {
	case LOG_LEVEL_ERROR:
		return "error: ";
	case LOG_LEVEL_WARN:
		return "warning: ";
	case LOG_LEVEL_DEBUG:
		return "debug: ";
	default:
		return "";
	}
}

void log_line(enum log_level level, const char *format, ...)
{
	char line[2048];
	size_t used, i;
	va_list args;
	int len;

	if (level > log_most)
		return;
	if (log_journal)
		len = snprintf(line, sizeof(line), "<%d>", level);
	else
		len = snprintf(line, sizeof(line), "%s: %s", log_program, level_word(level));
	used = len < (int)sizeof(line) ? (size_t)len : sizeof(line) - 1;

	va_start(args, format);
	len = vsnprintf(line + used, sizeof(line) - used, format, args);
	va_end(args);
	if (len > 0)
		used += (size_t)len < sizeof(line) - used ? (size_t)len : sizeof(line) - used - 1;

	for (i = 0; i < used; i++)
		if ((unsigned char)line[i] < 0x20 || line[i] == 0x7f)
			line[i] = '?';
	line[used++] = '\n';	/* in the place of the final 0 */
	if (write(STDERR_FILENO, line, used) < 0)
		return;		/* stderr is gone: nothing to do */
}
