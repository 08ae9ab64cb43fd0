/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* json.h - values that jansson has no function for. */
#ifndef SLUICE_LIB_JSON_H
#define SLUICE_LIB_JSON_H

#include <jansson.h>

#include "sluice/types.h"

/* A new reference; above 2^63 - 1 the number is negative. */
json_t *json_u64(u64 value);
/* "2026-03-01T12:00:00Z", or null for 0. */
json_t *json_utc(u64 utc_ns);

#endif
