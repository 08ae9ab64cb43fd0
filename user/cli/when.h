/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* when.h - a time as people write it, in local time or with its zone, and answers in the same. */
#ifndef SLUICE_CLI_WHEN_H
#define SLUICE_CLI_WHEN_H

#include <jansson.h>
#include <stdbool.h>
#include <time.h>

#define WHEN_ACCEPTED                                                                              \
	"14:03, 14:03:20, today, yesterday, 'yesterday 14:03', 2026-03-01, '2026-03-01 14:03', "   \
	"2026-03-01T14:03Z"

/*
 * The time and its end: a day, a minute or a second later, by what `text` names. A time of day that
 * is still to come today is yesterday's. A zone at its end, Z or +01:00, becomes that of the
 * process. False: it is none of WHEN_ACCEPTED.
 */
bool when_parse(const char *text, time_t now, time_t *ret_from, time_t *ret_to);
/* Writes each UTC time in the strings of `json` in the zone of the process, with its offset. */
void when_localize(json_t *json);

#endif
