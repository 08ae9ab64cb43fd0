/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * log.h - lines to stderr, with journald's level prefix where stderr is the journal
 * ($JOURNAL_STREAM is set). Only mains and the daemon log; libraries return errors.
 */
#ifndef SLUICE_LIB_LOG_H
#define SLUICE_LIB_LOG_H

#include <stdbool.h>

#include "sluice/types.h"

enum log_level {
	LOG_LEVEL_ERROR = 3, /* syslog numbers */
	LOG_LEVEL_WARN = 4,
	LOG_LEVEL_INFO = 6,
	LOG_LEVEL_DEBUG = 7,
};

void log_open(const char *program, enum log_level most);
void log_line(enum log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The texts of one outage that were logged. Zeroed memory has none. */
#define LOG_TEXTS_MAX 8
struct log_texts {
	u32 count;
	u64 hash[LOG_TEXTS_MAX];
};
/* Adds `text`; false: it was added before, or LOG_TEXTS_MAX others were. Then do not log it. */
bool log_texts_add(struct log_texts *texts, const char *text);

#define log_error(...) log_line(LOG_LEVEL_ERROR, __VA_ARGS__)
#define log_warn(...) log_line(LOG_LEVEL_WARN, __VA_ARGS__)
#define log_info(...) log_line(LOG_LEVEL_INFO, __VA_ARGS__)

#endif
