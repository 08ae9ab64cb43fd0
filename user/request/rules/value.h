/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* value.h - values of descriptors that are addresses: such are grouped by their rule's prefix. */
#ifndef SLUICE_HTTP_VALUE_H
#define SLUICE_HTTP_VALUE_H

#include "request/rules/request.h"

/*
 * Whether a value is an address and nothing else: no port, no brackets, no zone, no prefix
 * length. An IPv4 address written as an IPv6 one (::ffff:192.0.2.1) is the IPv4 address. *ret
 * is left-aligned.
 */
bool value_address(struct bytes value, struct sl_addr *ret, u8 *ret_family);

#endif
