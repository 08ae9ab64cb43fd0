// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * log.c - see log.h. A line is one write(), so that lines of several threads and of the
 * journal do not mix. Logged text may come from a client (visible.h).
 */
#include "lib/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/hash.h"
#include "lib/visible.h"

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

bool log_texts_add(struct log_texts *texts, const char *text)
{
	u64 hash = hash_bytes(hash_seed(), 0, text, strlen(text));

	for (u32 i = 0; i < texts->count; i++)
		if (texts->hash[i] == hash)
			return false;
	if (texts->count == LOG_TEXTS_MAX)
		return false;
	texts->hash[texts->count++] = hash;
	return true;
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
	char line[4096], text[2048];
	struct out out;
	va_list args;
	int len;

	if (level > log_most)
		return;
	if (log_journal)
		len = snprintf(line, sizeof(line), "<%d>", level);
	else
		len = snprintf(line, sizeof(line), "%.64s: %s", log_program, level_word(level));
	va_start(args, format);
	if (vsnprintf(text, sizeof(text), format, args) < 0)
		text[0] = '\0';
	va_end(args);
	out_begin(&out, line, sizeof(line));
	out.len = (size_t)len;
	/* Cut in the middle of a character, the last bytes are not UTF-8. */
	out_visible(&out, text, strlen(text), VISIBLE_LINE);
	out_end(&out);
	len = (int)strlen(line);
	line[len++] = '\n'; /* in the place of the final 0 */
	if (write(STDERR_FILENO, line, (size_t)len) < 0)
		return; /* stderr is gone: nothing to do */
}
