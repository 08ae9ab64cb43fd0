/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* cluster_store_redis.h - what defer_store.c needs of the cluster store in Redis. */
#ifndef SLUICE_CLUSTER_STORE_REDIS_H
#define SLUICE_CLUSTER_STORE_REDIS_H

#include "cluster/quota/cluster_store.h"

/* Whether it is in Redis (not a test's), and one server has all keys. */
bool cluster_store_redis_single(const struct cluster_store *store);
struct redis *cluster_store_redis_client(struct cluster_store *store);
const char *cluster_store_redis_prefix(const struct cluster_store *store);

/* The number of keys, the keys, and charge.lua's arguments; valid until the store's next
 * command. */
struct cluster_store_args {
	const char *const *argv;
	const size_t *len;
	int argc;
};
/*
 * For a charge that belongs to no node: `own` and lease get names that no node has, so that none
 * takes the charge for its own.
 */
int cluster_store_redis_args(struct cluster_store *store,
			     const struct cluster_store_request *request,
			     struct cluster_store_args *ret);

#endif
