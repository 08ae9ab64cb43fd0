/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * scenario.h - what scenarios of packets and of requests have in common: a configuration, a line
 * "---", then steps in order of time, one a line, made of words; '#' begins a comment.
 *
 * A take_ function reads one thing at *at, skips it, and is true; or it is false, and *at stays.
 */
#ifndef SLUICE_TESTS_SCENARIO_H
#define SLUICE_TESTS_SCENARIO_H

#include <stdbool.h>
#include <stdio.h>

#include "sluice/types.h"

struct scenario_range {
	u64 least, most;
};

/* "1.5s", "20ms", "3us", "1m", "2h", also negative. */
bool take_time(const char **at, s64 *ret_ns);
/* "1s..2s" */
bool take_times(const char **at, s64 *ret_from, s64 *ret_to);
bool take_literal(const char **at, const char *literal);
/* A word, cut to `size`. */
bool take_word(const char **at, char *ret, size_t size);
bool take_number(const char **at, s64 *ret);
/* "x20": how often; 1 where there is none. */
u64 take_count(const char **at);
/* "N" or "N..M" */
bool take_range(const char **at, struct scenario_range *ret);
bool at_end(const char *at);

bool in_range(const struct scenario_range *range, u64 value);

/*
 * The lines up to "---", which raise *line; each `name` (NULL: none) in them is replaced by
 * `value`, and *ret_varies is whether there was one. To be freed; NULL: there is no "---".
 */
char *scenario_text(FILE *in, int *line, const char *name, const char *value, bool *ret_varies);
/* The next line that is not empty, without its comment; false at the end. */
bool scenario_line(FILE *in, int *line, char *ret, size_t size);

#endif
