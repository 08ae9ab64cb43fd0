/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * err.h - an error message for people: the place, the value found, the accepted values.
 *
 * Library functions return 0 or -errno and fill one of these; only mains print it. Wherever
 * it comes out (CLI, log, HTTP) it reads "FILE:LINE:COLUMN: message".
 */
#ifndef SLUICE_ERR_H
#define SLUICE_ERR_H

#include <stddef.h>

struct sl_err {
	char file[256];	  /* "" if the error is not about a file */
	int line, column; /* from 1; 0 unknown */
	char message[512];
};

/* Fills `err` (may be NULL) and returns -code; code is a positive errno. */
int sl_err_set(struct sl_err *err, int code, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* The same, at a place in a file. */
int sl_err_at(struct sl_err *err, int code, const char *file, int line, int column,
	      const char *format, ...) __attribute__((format(printf, 6, 7)));

int sl_err_no_memory(struct sl_err *err);

/* "FILE:LINE:COLUMN: message" or "message" into buf; returns buf. */
const char *sl_err_format(const struct sl_err *err, char *buf, size_t size);

#endif
