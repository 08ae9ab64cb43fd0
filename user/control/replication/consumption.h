/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * consumption.h - packet limits of scope cluster: every sync interval each node publishes what
 * sources used of them on it, and charges the other nodes' reports to its own buckets
 * (packet/dataplane/dp_consumption.h).
 *
 * nodes->consumption is NULL if sluiced was started without a section `cluster`; all of these
 * functions then do nothing. If no limit has scope cluster, there are no messages and no scans.
 */
#ifndef SLUICE_REPLICATION_CONSUMPTION_H
#define SLUICE_REPLICATION_CONSUMPTION_H

#include "control/replication/nodes.h"

struct cluster;

/*
 * Before the first rules: bucket keys use the cluster's seed, which all nodes share. If they did
 * not before, all sources start with empty buckets, once.
 */
int consumption_open(struct nodes *nodes, struct sl_err *err);
/* Starts publishing and receiving; `cluster` must outlive nodes->consumption. */
int consumption_start(struct nodes *nodes, struct cluster *cluster, struct sl_err *err);
void consumption_close(struct nodes *nodes);

/* Counters of reports sent and received; null without a cluster. */
json_t *consumption_show(const struct nodes *nodes);

#endif
