/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* cluster_show.h - state of Redis and of the messages, for display. Any thread. */
#ifndef SLUICE_CLUSTER_SHOW_H
#define SLUICE_CLUSTER_SHOW_H

#include "cluster/bus/bus.h"
#include "cluster/bus/cluster.h"
#include "cluster/redis/redis.h"

/* Sums of all clients of this node; `servers` and `up` as the cluster's thread sees them. */
void cluster_redis_stats(struct cluster *cluster, struct redis_stats *ret);
/* The known servers, at most `max`; returns their number. */
u32 cluster_servers(struct cluster *cluster, struct redis_server_state *ret, u32 max);
/* As of the last sync interval. */
void cluster_bus_stats(struct cluster *cluster, struct bus_stats *ret);

#endif
