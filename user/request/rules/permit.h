/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * permit.h - a permit as text: hexadecimal digits, 16 for its time and 16 for each unit. It goes to
 * the caller with the response and comes back with the end of the request. It holds keys of buckets
 * that nobody can guess (SipHash with a secret seed), so it needs no signature: a client that never
 * saw a permit cannot write one.
 */
#ifndef SLUICE_HTTP_PERMIT_H
#define SLUICE_HTTP_PERMIT_H

#include "request/rules/request.h"

#define PERMIT_TEXT_MAX (16 * (PERMIT_UNITS_MAX + 1) + 1)
/* Entries of this key are a permit to be released (Envoy has no other field for it). */
#define REQUEST_RELEASE_KEY "sluice_release"

/* "" without units; returns buf. */
const char *permit_format(const struct permit *permit, char *buf, size_t size);
/* False, and *ret as it was: the text is no permit. */
bool permit_parse(struct bytes text, struct permit *ret);

#endif
