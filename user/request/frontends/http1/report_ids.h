/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * report_ids.h - which reports were charged in the last five minutes: a caller that heard no
 * answer sends its report again, and its `id` says that it is the same one.
 *
 * A fixed table of keyed hashes, 8 MiB once the first id has come, for a million ids. Where more
 * come within five minutes the oldest are forgotten first: a report sent again would then be
 * charged again, which no client gains by.
 */
#ifndef SLUICE_HTTP_REPORT_IDS_H
#define SLUICE_HTTP_REPORT_IDS_H

#include "request/rules/request.h"

#define REPORT_IDS_S 300

struct report_ids;

struct report_ids *report_ids_new(void);	/* NULL: no memory */
void report_ids_free(struct report_ids *ids);	/* NULL is fine */

/*
 * True for the first of an id in a domain, which is remembered as of now_s (seconds that never
 * go back); false for the same again within REPORT_IDS_S. From any thread.
 */
bool report_ids_first(struct report_ids *ids, struct bytes domain, struct bytes id, u64 now_s);

#endif
