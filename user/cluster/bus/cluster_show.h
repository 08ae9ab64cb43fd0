/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* cluster_show.h - what there is to show of the store and of messages. From any thread. */
#ifndef SLUICE_CLUSTER_SHOW_H
#define SLUICE_CLUSTER_SHOW_H

#include "cluster/bus/bus.h"
#include "cluster/bus/cluster.h"
#include "cluster/redis/redis.h"

/* Of all clients of this node together; `servers` and `up` as its thread sees them. */
void cluster_redis_stats(struct cluster *cluster, struct redis_stats *ret);
/* The servers that are known now, `max` at most; returns how many. */
u32 cluster_servers(struct cluster *cluster, struct redis_server_state *ret, u32 max);
/* As of the last sync interval. */
void cluster_bus_stats(struct cluster *cluster, struct bus_stats *ret);

#endif
