/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* rule_watch.h - has a rules directory changed since it was read? */
#ifndef SLUICE_HTTP_RULE_WATCH_H
#define SLUICE_HTTP_RULE_WATCH_H

#include "sluice/types.h"

/* Another number where a file of it was added, taken out, replaced or written. */
u64 ruleset_fingerprint(const char *dir);

#endif
