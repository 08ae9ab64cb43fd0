/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* addr.h - IPv4 and IPv6 prefixes: text to struct and back, containment. */
#ifndef SLUICE_LIB_ADDR_H
#define SLUICE_LIB_ADDR_H

#include <stdbool.h>
#include <stddef.h>

#include "sluice/abi.h"

#define SL_PREFIX_TEXT 64 /* enough for any prefix as text */

struct sl_prefix {
	struct sl_addr addr; /* left-aligned as in abi.h, host bits 0 */
	u8 family;	     /* enum sl_family */
	u8 len;		     /* 0..32 or 0..128 */
};

/*
 * "192.0.2.0/24", "2001:db8::/32", or an address alone (/32, /128). Host bits below the
 * length must be 0. 0, or -EINVAL with the reason in *ret_reason (a static string).
 */
int sl_prefix_parse(const char *text, struct sl_prefix *ret, const char **ret_reason);
/* Canonical text (RFC 5952), without /32 or /128; returns buf. */
const char *sl_prefix_format(const struct sl_prefix *prefix, char *buf, size_t size);
bool sl_prefix_contains(const struct sl_prefix *outer, const struct sl_prefix *inner);
bool sl_prefix_equal(const struct sl_prefix *a, const struct sl_prefix *b);
/* Their order: by family, address, length. As strcmp(). */
int sl_prefix_compare(const struct sl_prefix *a, const struct sl_prefix *b);
/* For tables of this process: nobody outside can search for prefixes that share one (hash.h). */
u64 sl_prefix_hash(const struct sl_prefix *prefix);

#endif
