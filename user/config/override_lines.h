/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * override_lines.h - files of lines KEY,PLAN: overrides_file of both tiers. Lines that begin with #
 * are comments, and # after the key begins one; a header line may come first. A key with a comma, a
 * quote or a leading # stands in double quotes, a quote in it twice.
 *
 * A million customers are on a few plans: each PLAN is parsed once, and found again by its text.
 */
#ifndef SLUICE_OVERRIDE_LINES_H
#define SLUICE_OVERRIDE_LINES_H

#include "conf/read.h"
#include "lib/bytes.h"
#include "lib/hash.h"

/* Functions return 0, or what ends the reading; columns are from 0. */
struct override_lines {
	struct reader *r;
	const char *file;
	const char *header[2]; /* the beginning of its two fields */
	const char *form;      /* for errors: "SRC,RATE or SRC,RATE,BURST" */
	void *arg;
	int (*key)(void *arg, struct bytes key, int line, size_t column); /* terminated, too */
	/* NULL: only keys are read. `text` may be changed; *ret is the plan's number. */
	int (*plan)(void *arg, char *text, int line, size_t column, u32 *ret);
	int (*add)(void *arg, u32 number); /* the key and its plan */
	struct numbers plans;		   /* by their text */
	bool began;			   /* a line that is no comment was read */
	u64 digest;			   /* of the file; config_text.h */
};

/* Returns the last result, or -errno. */
int override_lines_read(struct override_lines *lines);
/* The field at *text, up to `apart`, terminated and without blanks around it; *text then points
 * after it. */
char *override_field(char **text, char apart);
/* "SUBJECT: PATH: message" at a place of the file; -EINVAL. */
int override_line_fail(const struct override_lines *lines, int line, size_t column,
		       const char *format, ...) __attribute__((format(printf, 4, 5)));

#endif
