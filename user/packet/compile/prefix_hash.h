/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * prefix_hash.h - a hash of prefixes, searched by bisection over their lengths: makes its keys and
 * assigns them to buckets. The prefix index uses it for IPv6, the override index for all prefixes.
 */
#ifndef SLUICE_POLICY_PREFIX_HASH_H
#define SLUICE_POLICY_PREFIX_HASH_H

#include <stdbool.h>
#include <stddef.h>

#include "sluice/abi.h"

/* A prefix and its class: a distinct prefix of the input, or a key of the hash. */
struct prefix_node {
	struct sl_addr addr; /* masked */
	u32 class;
	u16 dim; /* enum sl_pdim; of an override its meter */
	u8 family, len;
};

struct prefix_nodes {
	struct prefix_node *node;
	size_t count;
};

/* 0 or -ENOMEM. */
int prefix_nodes_add(struct prefix_nodes *nodes, const struct prefix_node *node);

/* Whether outer covers inner or equals it, both of one dimension and family. */
bool prefix_node_covers(const struct prefix_node *outer, const struct prefix_node *inner);

/* The prefix lengths in use. */
void prefix_lengths(const struct prefix_node *node, size_t count, struct sl_lengths *ret);

/*
 * Adds the keys of prefixes, which are sorted by address and length and of one dimension and
 * family: every prefix, and the markers on the path of the bisection to it, with the class of
 * the longest prefix that covers them, or 0. Returns 0 or -ENOMEM.
 */
int prefix_keys_add(const struct sl_lengths *lengths, const struct prefix_node *node, size_t count,
		    struct prefix_nodes *keys);

/*
 * Places keys in buckets of `ways` ways, each in one of two buckets given by its hash. `hash`
 * computes the hash of key number `key` in a table of p->buckets.
 */
struct prefix_placing {
	size_t count;
	u32 ways;
	struct sl_pfx_hash (*hash)(const struct prefix_placing *p, u32 key);
	u32 *owner;  /* out: for each way the number of its key + 1, 0: free; to be freed */
	u32 buckets; /* out: at least 1 */
};

/* 0, -ENOMEM, or -E2BIG for more than 2^31 keys. */
int prefix_hash_place(struct prefix_placing *p);

/*
 * Places distinct keys. 0 with *ret, 64-byte aligned, to be freed, and *ret_buckets >= 1;
 * -ENOMEM, or -E2BIG for more than 2^31 keys.
 */
int prefix_hash_build(const struct prefix_node *key, size_t count, struct sl_seed seed,
		      struct sl_pfx_bucket **ret, u32 *ret_buckets);

#endif
