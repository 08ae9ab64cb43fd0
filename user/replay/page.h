/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * page.h - a replay's report as one HTML page: charts are inline SVG, nothing is loaded and no
 * script runs, so it opens offline, and everything that came from the input is text.
 */
#ifndef SLUICE_REPLAY_PAGE_H
#define SLUICE_REPLAY_PAGE_H

#include <jansson.h>
#include <stdio.h>

void replay_page(const json_t *report, FILE *out);

#endif
