/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * report_ids.h - the ids of the reports charged in the last five minutes: a caller without a reply
 * sends its report again, and its `id` identifies it.
 *
 * A fixed table of keyed hashes, 8 MiB once the first id has come, for a million ids. If more
 * come within five minutes the oldest are evicted: a repeated report would then be charged again,
 * which gives a client no advantage. Permits of requests that have ended have a table of their own.
 */
#ifndef SLUICE_HTTP_REPORT_IDS_H
#define SLUICE_HTTP_REPORT_IDS_H

#include "request/rules/request.h"

#define REPORT_IDS_S 300

struct report_ids;

struct report_ids *report_ids_new(void);      /* NULL: no memory */
void report_ids_free(struct report_ids *ids); /* NULL is fine */

/*
 * True for the first of an id in a domain, which is stored with time now_s (seconds that never
 * decrease); false for a repetition within REPORT_IDS_S. Any thread.
 */
bool report_ids_first(struct report_ids *ids, struct bytes domain, struct bytes id, u64 now_s);

#endif
