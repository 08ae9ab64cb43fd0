/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * prefix_hash.h - the IPv6 prefixes' hash: buckets of one cache line, two choices a key.
 */
#ifndef SLUICE_POLICY_PREFIX_HASH_H
#define SLUICE_POLICY_PREFIX_HASH_H

#include <stddef.h>

#include "sluice/abi.h"

/* A prefix and its class: a distinct prefix of the input, or a key of the hash. */
struct prefix_node {
	struct sl_addr addr;	/* masked */
	u32 class;
	u8 family, len, dim;
};

/*
 * Places distinct keys. 0 with *ret, 64-byte aligned, to be freed, and *ret_buckets >= 1;
 * -ENOMEM, or -E2BIG where they fit no table (more than 2^31 keys).
 */
int prefix_hash_build(const struct prefix_node *key, size_t count, struct sl_seed seed,
		      struct sl_pfx_bucket **ret, u32 *ret_buckets);

#endif
