/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* rule_watch.h - has a rules directory changed since it was read? */
#ifndef SLUICE_HTTP_RULE_WATCH_H
#define SLUICE_HTTP_RULE_WATCH_H

#include "sluice/types.h"

/* The number changes when a file is added, removed, replaced or written. */
u64 ruleset_fingerprint(const char *dir);

#endif
